"""Other codes for categories that a model has learned: in its tables, and in the rows that it holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from headwater.core.batch import Batch, Buffer
from headwater.core.learner import Learner
from headwater.core.statistics import Array
from headwater.estimators.runtime import Runtime
from headwater.families.category_tables import CategoryParameters, CategoryPrior, CategoryStatistics

TABLES = {CategoryStatistics: "table", CategoryPrior: "concentration", CategoryParameters: "logs"}


def recode_runtime(runtime: Runtime, learner: Learner, columns: Sequence[int], tables: Sequence[Array]) -> Runtime:
    """Return what was learned with other codes: `tables` holds the new code of each old one, for each of the columns."""
    if all(np.array_equal(table, np.arange(len(table))) for table in tables):
        return runtime.with_learner(learner, runtime.made_with)
    return runtime.with_state(_recode(runtime.state, columns, tables), learner)


def _recode(value: Any, columns: Sequence[int], tables: Sequence[Array]) -> Any:
    """Return a part of a state with other codes; parts that hold none are returned as they are."""
    name = TABLES.get(type(value))
    if name is not None:
        return replace(value, **{name: move_cells(getattr(value, name), tables)})
    if isinstance(value, Batch):
        return replace(value, X=recode_rows(value.X, columns, tables))
    if isinstance(value, Buffer):
        return value.map(lambda batch: _recode(batch, columns, tables))
    if is_dataclass(value) and not isinstance(value, type):
        value = getattr(value, "settled", value)
        parts = {part.name: getattr(value, part.name) for part in fields(value)}
        changed = {part: _recode(one, columns, tables) for part, one in parts.items()}
        moved = {part: one for part, one in changed.items() if one is not parts[part]}
        return replace(value, **moved) if moved else value
    if isinstance(value, dict):
        return {key: _recode(one, columns, tables) for key, one in value.items()}
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(_recode(one, columns, tables) for one in value)
    return value


def move_cells(cells: Array, tables: Sequence[Array]) -> Array:
    """Return cells (K, d, capacity + 1) with those of each column at their new codes; cells of no category fill the rest."""
    moved = cells.copy()
    for column, table in enumerate(tables):
        old, new = np.arange(len(table)), table.astype(np.int64)
        free = np.setdiff1d(np.arange(cells.shape[2]), new)
        spare = np.setdiff1d(np.arange(cells.shape[2]), old)
        moved[:, column, new] = cells[:, column, old]
        moved[:, column, free] = cells[:, column, spare]
    return moved


def recode_rows(X: Array, columns: Sequence[int], tables: Sequence[Array]) -> Array:
    """Return rows with other codes."""
    rows = X.copy()
    for column, table in zip(columns, tables, strict=True):
        known = ~np.isnan(X[:, column]) & (X[:, column] < len(table))
        rows[known, column] = table[X[known, column].astype(np.int64)]
    return rows
