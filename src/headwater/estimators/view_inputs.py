"""The other columns of a mixture of which one is predicted: an array of numbers, or columns of a table as they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from sklearn.base import clone

from headwater.core.chunk import Chunk
from headwater.core.statistics import Array
from headwater.core.validation import check_finite, one_line
from headwater.core.values import AnyArray, Rows, Values
from headwater.estimators.conditional import Conditional
from headwater.estimators.gap_rows import read_gaps
from headwater.estimators.table_conditional import TableConditional
from headwater.estimators.table_schema import TableColumns, TableSchema, split_table

if TYPE_CHECKING:
    from headwater.estimators.gap_answers import GapAnswers


class Inputs(ABC):
    """Rows without the column that is predicted."""

    holds_words: bool  # whether classes are learned as they are, or as numbers

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of columns."""

    @abstractmethod
    def __len__(self) -> int:
        """Number of rows."""

    @abstractmethod
    def blank(self, model: GapAnswers, column: str | int, kind: str) -> GapAnswers:
        """Return a mixture that has learned nothing, of rows with one more column, of this kind."""

    @abstractmethod
    def with_column(self, place: int, name: str | None, values: AnyArray | float) -> Rows:
        """Return the rows with one more column."""

    @abstractmethod
    def gaps(self) -> AnyArray | float:
        """Return a column that is missing in every row."""

    @abstractmethod
    def refuse_gaps(self) -> None:
        """Refuse rows in which values are missing."""


@dataclass(frozen=True)
class NumberInputs(Inputs):
    """Rows (n, d) of numbers, NaN where a value is missing."""

    rows: Array
    names: list[str] | None
    holds_words = False

    @property
    def width(self) -> int:
        """Number of columns."""
        return int(self.rows.shape[1])

    def __len__(self) -> int:
        return len(self.rows)

    def blank(self, model: GapAnswers, column: str | int, kind: str) -> GapAnswers:
        """Return a mixture that has learned nothing."""
        return clone(model)

    def with_column(self, place: int, name: str | None, values: AnyArray | float) -> Chunk:
        """Return the rows with one more column."""
        names = None
        if name is not None and self.names is not None:
            names = [*self.names[:place], name, *self.names[place:]]
        return Chunk(np.insert(self.rows, place, values, axis=1), names)

    def gaps(self) -> float:
        """Return a column that is missing in every row."""
        return np.nan

    def refuse_gaps(self) -> None:
        """Refuse rows in which values are missing."""
        check_finite(self.rows, "X")


@dataclass(frozen=True)
class TableInputs(Inputs):
    """Columns of a table."""

    table: TableColumns
    holds_words = True

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.table.columns)

    def __len__(self) -> int:
        return len(self.table)

    def blank(self, model: GapAnswers, column: str | int, kind: str) -> GapAnswers:
        """Return a mixture that has learned nothing."""
        return model._to_predict(column, kind)

    def with_column(self, place: int, name: str | None, values: AnyArray | float) -> TableColumns:
        """Return the rows with one more column."""
        return self.table.with_column(place, name, values)

    def gaps(self) -> pa.Array:
        """Return a column that is missing in every row."""
        return pa.nulls(len(self))

    def refuse_gaps(self) -> None:
        """Refuse nothing: tables have gaps."""


def read_inputs(model: GapAnswers, X: Rows, owner: str) -> Inputs:
    """Return rows without the column that is predicted, as a model takes them."""
    if model._traits.takes_tables:
        return TableInputs(TableColumns(*split_table(X, owner)))
    names = X.columns if isinstance(X, Chunk) else getattr(X, "columns", None)
    return NumberInputs(read_gaps(X, owner), None if names is None else [str(name) for name in names])


def numeric_law(law: Conditional | TableConditional) -> Conditional:
    """Return the law of numbers and codes."""
    return law._law if isinstance(law, TableConditional) else law


def known_classes(schema: TableSchema, place: int, classes: Values) -> AnyArray:
    """Return the categories of a column in their order, or those of them that were asked for."""
    levels = schema.levels_of(place)
    known = np.array([False, True]) if levels is None else np.unique(levels.as_array())
    if classes is None:
        if len(known) == 0:
            raise ValueError("the column has no categories that were seen")
        return known
    given = np.unique(np.asarray(classes))
    unknown = [value for value in given.tolist() if value not in known.tolist()]
    if unknown or len(given) < 2:
        raise ValueError(f"classes must be at least two of the categories of the column, got {one_line(classes, 80)}")
    return given


def category_codes(schema: TableSchema, place: int, classes: AnyArray) -> Array:
    """Return the code of each class."""
    levels = schema.levels_of(place)
    if levels is None:
        return classes.astype(float)
    places = {value: code for code, value in enumerate(levels.as_array().tolist())}
    return np.array([float(places[value]) for value in classes.tolist()])
