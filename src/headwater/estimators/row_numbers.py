"""Columns that number the rows, as ids do: a model of numbers would learn where a row stands, which says nothing of it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from headwater.core.chunk import Chunk
from headwater.core.statistics import Array
from headwater.core.values import Rows

NUMBERS_ROWS = "numbers the rows, as ids do"
LEAST_ROWS = 50  # below which nothing is said
MOST_ROWS = 10_000  # of the first chunk that are looked at


def numbers_rows(values: Array) -> bool:
    """Return whether a column counts the rows, in equal steps of whole numbers; of few rows nothing is said."""
    if len(values) < LEAST_ROWS:
        return False
    steps = np.diff(values)
    return bool(steps[0] != 0 and (steps == steps[0]).all() and np.all(values == np.round(values)))


def rises(values: Array) -> bool:
    """Return whether a column holds whole numbers, each greater than the one before; of few rows nothing is said."""
    return len(values) >= LEAST_ROWS and bool((np.diff(values) > 0.0).all() and (values == np.round(values)).all())


def find_row_numbers(X: Rows) -> list[str]:
    """Return the names of the columns of a frame or a chunk that count the rows, or hold whole numbers that only rise."""
    if isinstance(X, Chunk):
        if X.columns is None or not isinstance(X.X, np.ndarray) or X.X.ndim != 2:
            return []
        return [name for name, values in zip(X.columns, X.X[:MOST_ROWS].T, strict=True) if numbers_rows(values)]
    return [name for name, column in _first_values(X) if _is_numbered(column)]


def warn_of_row_numbers(names: list[str], stacklevel: int = 2) -> None:
    """Say in one sentence which columns number the rows, if there are any."""
    if names:
        more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
        told = f"column {names[0]!r} {NUMBERS_ROWS}{more}: leave it out, unless it says something of the rows"
        warnings.warn(told, UserWarning, stacklevel=stacklevel)


def _first_values(X: Any) -> Iterator[tuple[str, Any]]:
    """Yield the names of the columns of a frame of pandas, polars or Arrow, and their first values."""
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        yield from ((str(name), X.iloc[:MOST_ROWS, at]) for at, name in enumerate(X.columns))
    elif hasattr(X, "get_columns"):
        yield from ((one.name, one.head(MOST_ROWS)) for one in X.get_columns())
    elif hasattr(X, "schema") and hasattr(X, "column"):
        yield from ((name, X.column(at).slice(0, MOST_ROWS)) for at, name in enumerate(X.schema.names))


def _is_numbered(column: Any) -> bool:
    kind = str(getattr(column, "dtype", getattr(column, "type", ""))).lower()
    if len(column) < LEAST_ROWS or not kind.startswith(("int", "uint", "float", "double")):
        return False
    try:
        values = np.asarray(column.to_numpy(), dtype=np.float64)
    except (TypeError, ValueError):  # gaps that have no number
        return False
    return numbers_rows(values) or (not kind.startswith(("float", "double")) and rises(values))
