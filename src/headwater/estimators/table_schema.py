"""TableSchema: what each column of a table is, and the categories of those that have them; tables as columns, and as rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import issparse

from headwater.core.chunk import Chunk
from headwater.core.statistics import LARGEST, Array
from headwater.core.table_rows import TableRows
from headwater.core.validation import check_shape, refuse_unreadable
from headwater.core.values import AnyArray, Rows, Values
from headwater.estimators.codebook import NUMBER, Codebook, Levels, as_arrow
from headwater.estimators.column_kinds import AMOUNTS, BERNOULLI, CATEGORICAL, COUNTS, GAMMA, IGNORED, LOGNORMAL

FLAGS = "flags, which are 0 or 1, or booleans"
UNREAD = re.compile(r"Failed to parse string: '(.*)' as a scalar", re.DOTALL)  # what Arrow says of words


@dataclass(frozen=True, eq=False)
class EncodedChunk(Chunk):
    """Rows of numbers and codes, made of a table by a model that knows what they are."""


@dataclass(frozen=True)
class TableSchema:
    """The kind of each column ("gaussian", "categorical", ...), and the codebook of the categorical ones."""

    kinds: tuple[str, ...] = ()
    codebook: Codebook = Codebook()

    @classmethod
    def of(cls, kinds: Sequence[str]) -> TableSchema:
        """Return the schema of columns of these kinds, of whose categories nothing is known yet."""
        places = tuple(at for at, kind in enumerate(kinds) if kind == CATEGORICAL)
        return cls(tuple(kinds), Codebook(places, (Levels(),) * len(places)))

    def cut(self, sizes: Sequence[int]) -> TableSchema:
        """Return the schema with only the first categories of each column."""
        levels = tuple(replace(one, values=one.values[:size]) for one, size in zip(self.codebook.levels, sizes, strict=True))
        return replace(self, codebook=replace(self.codebook, levels=levels))

    def encode(
        self, columns: Sequence[object], names: Sequence[str], capacity: int, learning: bool
    ) -> tuple[TableSchema, Array]:
        """Return the schema with new categories, and the rows (n, d): numbers, codes, and NaN for gaps."""
        rows = np.empty((_n_rows(columns), len(columns)))
        levels = dict(zip(self.codebook.columns, self.codebook.levels, strict=True))
        for place, (column, name) in enumerate(zip(columns, names, strict=True)):
            if self.kinds[place] == IGNORED:
                rows[:, place] = np.nan
            elif place in levels:
                levels[place], rows[:, place] = levels[place].encode(column, repr(name), capacity, learning)
            else:
                rows[:, place] = _numbers(column, name, FLAGS if self.kinds[place] == BERNOULLI else "numbers")
                refuse_values(self.kinds[place], rows[:, place], name)
        return replace(self, codebook=replace(self.codebook, levels=tuple(levels.values()))), rows

    def with_categories(self, other: TableSchema, capacity: int, names: Sequence[str]) -> TableSchema:
        """Return the schema with the categories of another one behind its own; no more than `capacity` in a column."""
        pairs = zip(self.codebook.columns, self.codebook.levels, other.codebook.levels, strict=True)
        levels = tuple(one.with_values(two, repr(names[at] if names else f"x{at}"), capacity) for at, one, two in pairs)
        return replace(self, codebook=replace(self.codebook, levels=levels))

    @property
    def has_law(self) -> NDArray[np.bool_]:
        """Which columns (d,) a model knows something of: not those that are left out, or of which no category was seen."""
        found = np.array([kind != IGNORED for kind in self.kinds])
        for place, size in zip(self.codebook.columns, self.codebook.sizes, strict=True):
            found[place] = size > 0
        return found

    @property
    def is_numeric(self) -> bool:
        """Whether all columns hold numbers, so that rows of the table are an array of them."""
        return BERNOULLI not in self.kinds and all(one.holds in (NUMBER, "") for one in self.codebook.levels)

    def levels_of(self, place: int) -> Levels | None:
        """Return the categories of a column; None if it holds none."""
        return dict(zip(self.codebook.columns, self.codebook.levels, strict=True)).get(place)

    def words(self, rows: Array) -> list[AnyArray]:
        """Return the columns of rows: numbers, categories, and booleans of what is nearer to yes; None where there is none."""
        found: list[AnyArray] = []
        for place, column in enumerate(rows.T):
            levels = self.levels_of(place)
            if levels is not None:
                found.append(levels.words(column))
            elif self.kinds[place] == BERNOULLI:
                found.append(_flags(column))
            else:
                found.append(np.asarray(column))
        return found

    def table(self, rows: Array) -> AnyArray:
        """Return rows (n, d) with categories and booleans: an array of objects, or of numbers if all are."""
        columns = self.words(rows)
        if self.is_numeric:
            return np.column_stack([_as_numbers(one) for one in columns])
        return np.column_stack([np.asarray(one, dtype=object) for one in columns])

    def decode(self, rows: Array) -> list[Values]:
        """Return the columns of rows: numbers, categories or booleans."""
        levels = dict(zip(self.codebook.columns, self.codebook.levels, strict=True))
        return [
            levels[at].decode(column) if at in levels else column == 1.0 if self.kinds[at] == BERNOULLI else column
            for at, column in enumerate(rows.T)
        ]


@dataclass(frozen=True, eq=False)
class TableColumns:
    """Columns as they are, side by side, with names or without."""

    names: list[str] | None
    columns: list[Values]

    def __len__(self) -> int:
        return _n_rows(self.columns)

    def with_column(self, place: int, name: str | None, column: object) -> TableColumns:
        """Return the columns with one more."""
        names = None if self.names is None or name is None else [*self.names[:place], name, *self.names[place:]]
        return TableColumns(names, [*self.columns[:place], column, *self.columns[place:]])


def split_table(X: Rows, owner: str) -> tuple[list[str] | None, list[object]]:
    """Return the names of the columns, if they have any, and the columns of a frame, a table, an array or a chunk."""
    if isinstance(X, Chunk):
        names, columns = split_table(X.X, owner)
        return (list(X.columns) if X.columns is not None else names), columns
    if isinstance(X, TableColumns):
        return X.names, X.columns
    if isinstance(X, TableRows):
        return split_table(X.table, owner)
    if issparse(X):
        raise TypeError(f"X is a sparse matrix, but {owner} needs dense columns: pass X.toarray()")
    if isinstance(X, pa.Table | pa.RecordBatch):
        return list(X.schema.names), list(X.columns)
    frame: Any = X
    refuse_unreadable(frame, "X", gaps=True)
    if hasattr(frame, "iloc") and hasattr(frame, "columns"):  # pandas
        return [str(name) for name in frame.columns], [frame.iloc[:, at] for at in range(frame.shape[1])]
    if hasattr(frame, "get_columns"):  # polars
        return list(frame.columns), list(frame.get_columns())
    array = X if isinstance(X, np.ndarray) else np.asarray(X, dtype=None if _is_plain(X) else object)
    if isinstance(array, np.ma.MaskedArray):  # masked values are gaps
        gaps = np.ma.getmaskarray(array)
        array = np.ma.getdata(array).astype(float if array.dtype.kind in "fiu" else object)  # in memory of its own
        array[gaps] = np.nan if array.dtype.kind == "f" else None
    check_shape(array, "X")
    return None, list(array.T)


def refuse_values(kind: str, values: Array, name: object) -> None:
    """Refuse counts and amounts below 0, and flags that are neither 0 nor 1; NaN is a gap."""
    if kind in COUNTS:
        wrong, wanted = values[values < 0.0], "a count must not be negative"
    elif kind in AMOUNTS:
        wrong, wanted = values[values < 0.0], "an amount must not be negative"
    elif kind in (LOGNORMAL, GAMMA):
        wrong, wanted = values[values <= 0.0], f"a value must be positive; 'zero-inflated-{kind}' takes zeros, too"
    elif kind == BERNOULLI:
        wrong = values[(values != 0.0) & (values != 1.0) & ~np.isnan(values)]
        wanted = "a flag must be 0 or 1, or a boolean"
    else:
        return
    if wrong.size:
        raise ValueError(f"column {name!r} is {kind!r} and holds {wrong[0]:g}: {wanted}")


def one_row_columns(x: object, names: Sequence[str] | None) -> tuple[list[str] | None, list[object]]:
    """Return the columns of one row: a mapping from names to values, or a sequence of values."""
    if isinstance(x, Mapping):
        known = list(names) if names is not None else [str(name) for name in x]
        unknown = [str(name) for name in x if str(name) not in known]
        if unknown:
            raise ValueError(f"the row has the column {unknown[0]!r}, which the model has not learned")
        return known, [_one_value(x.get(name)) for name in known]
    values = list(x) if isinstance(x, Sequence | np.ndarray) and not isinstance(x, str) else None
    if values is None:
        raise TypeError(f"a row must be a mapping or a sequence of values, got {type(x).__name__}")
    return (list(names) if names is not None else None), [_one_value(value) for value in values]


def _one_value(value: object) -> object:
    plain = value.item() if isinstance(value, np.generic) else value
    return pa.array([plain], from_pandas=True)


def _is_none(values: AnyArray) -> NDArray[np.bool_]:
    return np.array([value is None for value in values.tolist()], dtype=np.bool_)


def _as_numbers(values: AnyArray) -> Array:
    return np.where(_is_none(values), np.nan, values).astype(float) if values.dtype == object else np.asarray(values, float)


def _flags(column: Array) -> AnyArray:
    """Booleans, None for gaps."""
    found = (column >= 0.5).astype(object)
    found[np.isnan(column)] = None
    return found


def _is_plain(X: object) -> bool:
    return hasattr(X, "__array__")


def _n_rows(columns: Sequence[object]) -> int:
    if not columns:
        raise ValueError("X has 0 feature(s) (shape=(0, 0)) while a minimum of 1 is required.")
    rows = len(columns[0])  # type: ignore[arg-type]
    if rows == 0:
        raise ValueError(f"X has 0 sample(s) (shape=(0, {len(columns)})) while a minimum of 1 is required.")
    return rows


def _numbers(column: object, name: str, wanted: str) -> Array:
    """The numbers of a column, NaN for its gaps."""
    try:
        if isinstance(column, pa.Array | pa.ChunkedArray):
            values = (
                column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
                if isinstance(column, pa.Array)
                else (column.cast(pa.float64(), safe=False).to_numpy())
            )
        elif hasattr(column, "to_numpy") and not isinstance(column, np.ndarray):
            values = as_arrow(column, repr(name)).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        else:
            values = np.asarray(column)
            if values.dtype.kind == "c":
                raise TypeError(f"Complex data not supported, got {values.dtype}")
            if values.dtype.kind in "OUS":
                values = pa.array(values, from_pandas=True).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        found = np.asarray(values, dtype=np.float64)
    except OverflowError as error:
        raise ValueError(f"column {name!r} contains a whole number too large for float64") from error
    except (TypeError, ValueError, pa.ArrowException) as error:
        if isinstance(error, pa.ArrowInvalid) and "too large" in str(error):
            raise ValueError(f"column {name!r} contains a whole number too large for float64") from error
        word = UNREAD.match(str(error))
        if word is not None:
            raise ValueError(f"column {name!r} must hold {wanted}, got {word[1][:100]!r}") from error
        shown = " ".join(str(error).split())[:100]
        raise ValueError(f"column {name!r} must hold {wanted}: {shown}") from error
    refuse_large(found, name)
    return found


def refuse_large(values: Array, name: object) -> None:
    """Refuse numbers whose squares would overflow."""
    largest = np.nanmax(np.abs(values), initial=0.0)
    if largest > LARGEST:
        raise ValueError(f"column {name!r} must hold numbers of at most {LARGEST:g} in size, got {largest:.3g}")
