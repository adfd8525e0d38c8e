"""Codebook: the categories of columns, each with the code by which a table knows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headwater.core.statistics import LARGEST, Array

Category: TypeAlias = str | float | bool
EXACT = 2**53  # to this size, a float holds every whole number
TEXT, NUMBER, FLAG = "text", "numbers", "yes and no"


@dataclass(frozen=True)
class Levels:
    """Categories of one column, in the order of their codes, and what they are: text, numbers, or yes and no."""

    holds: str = ""  # empty as long as only gaps were seen
    values: tuple[Category, ...] = ()

    def __len__(self) -> int:
        return len(self.values)

    def encode(self, column: object, name: str, capacity: int, learning: bool) -> tuple[Levels, Array]:
        """Return the levels with those that are new, and the codes (n,) of a column; NaN where it has a gap.

        What is new gets the next code if the column is learned from, and `capacity` if not.
        """
        kind, found, places = _unique(column, name)
        self._refuse_other(kind, found, name)
        values, known = list(self.values), {value: code for code, value in enumerate(self.values)}
        codes = np.full(len(found) + 1, np.nan)  # the last is that of a gap
        for place, value in enumerate(found):
            if value not in known and learning:
                known[value] = len(values)
                values.append(value)
            codes[place] = known.get(value, capacity)
        _refuse_many(values, name, capacity)
        return (Levels(self.holds or kind, tuple(values)) if learning else self), codes[places]

    def with_values(self, other: Levels, name: str, capacity: int) -> Levels:
        """Return the levels with those of another column of this name behind them."""
        self._refuse_other(other.holds, other.values, name)
        values = list(dict.fromkeys((*self.values, *other.values)))
        _refuse_many(values, name, capacity)
        return Levels(self.holds or other.holds, tuple(values))

    def _refuse_other(self, kind: str, values: Sequence[Category], name: str) -> None:
        if kind and self.holds and kind != self.holds:
            raise ValueError(f"column {name} held {self.holds} before, and holds {kind} now: {values[0]!r}")

    def decode(self, codes: Array) -> NDArray[np.object_]:
        """Return the categories of codes; None for gaps and for codes that have none."""
        names = np.array([*self.values, None], dtype=object)
        known = (codes >= 0.0) & (codes < len(self.values))
        return np.asarray(names[np.where(known, codes, len(self.values)).astype(np.int64)])

    def words(self, codes: Array) -> NDArray[np.object_]:
        """Return the categories of codes as users gave them, whole numbers as such; None where there is none."""
        names = np.array([*self.as_array().tolist(), None], dtype=object)
        known = (codes >= 0.0) & (codes < len(self.values))
        return np.asarray(names[np.where(known, codes, len(self.values)).astype(np.int64)])

    def as_array(self) -> NDArray[np.generic]:
        """Return the categories: an array of text, of numbers (whole ones as integers) or of booleans."""
        values = np.array(self.values, dtype=object if self.holds == TEXT else None)
        whole = self.holds == NUMBER and len(values) > 0 and bool(np.all((values == np.round(values)) & (abs(values) <= EXACT)))
        return values.astype(np.int64) if whole else values


@dataclass(frozen=True)
class Codebook:
    """Levels of the columns that are categories, by the places of the columns."""

    columns: tuple[int, ...] = ()
    levels: tuple[Levels, ...] = ()

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of categories of each column."""
        return tuple(len(one) for one in self.levels)

    @classmethod
    def joint(cls, books: Sequence[Codebook]) -> Codebook:
        """Return the codebook of several: common categories keep their codes, and all others are in the order of their values.

        So it does not depend on the order of the books.
        """
        first = books[0]
        return cls(
            first.columns,
            tuple(
                _joint_levels(column, levels)
                for column, levels in zip(first.columns, zip(*(book.levels for book in books), strict=True), strict=True)
            ),
        )

    def codes_in(self, other: Codebook) -> tuple[Array, ...]:
        """Return the code that another codebook has for each code of this one, for each column."""
        found = []
        for one, two in zip(self.levels, other.levels, strict=True):
            places = {value: float(code) for code, value in enumerate(two.values)}
            found.append(np.array([places[value] for value in one.values]))
        return tuple(found)


def _refuse_many(values: Sequence[Category], name: str, capacity: int) -> None:
    if len(values) > capacity:
        raise ValueError(
            f"column {name} has more than {capacity} categories, such as {values[-1]!r}: raise max_categories, or "
            f"leave out what is an id or free text"
        )


def _joint_levels(column: int, levels: Sequence[Levels]) -> Levels:
    kinds = sorted({one.holds for one in levels} - {""})
    if len(kinds) > 1:
        raise ValueError(f"models must have the same categories, but column {column} holds {kinds[0]} and {kinds[1]}")
    common = []
    for values in zip(*(one.values for one in levels), strict=False):
        if len(set(values)) > 1:
            break
        common.append(values[0])
    others = sorted({value for one in levels for value in one.values} - set(common))
    return Levels(kinds[0] if kinds else "", (*common, *others))


def _unique(column: object, name: str) -> tuple[str, list[Category], NDArray[np.int64]]:
    """Return what a column holds, its values without gaps, each once and in order, and the place of each row's; -1 for gaps."""
    array = as_arrow(column, name)
    kind = _kind_of(array.type.value_type if pa.types.is_dictionary(array.type) else array.type, name)
    encoded = array if isinstance(array, pa.DictionaryArray) else array.dictionary_encode()
    values = encoded.dictionary
    indices = encoded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    plain = values.to_pylist()
    if kind == NUMBER:
        inexact = next((value for value in plain if isinstance(value, int) and abs(value) > EXACT), None)
        if inexact is not None:
            raise ValueError(f"column {name} holds {inexact}, too large to be exact as a float: give it as text")
        plain = [None if value is None or value != value else float(value) for value in plain]
        large = next((value for value in plain if value is not None and abs(value) > LARGEST), None)
        if large is not None:
            raise ValueError(f"column {name} holds {large:g}, which is not a category: it must be at most {LARGEST:g} in size")
    if encoded is not array and None not in plain:  # Arrow lists what it finds as the rows have it
        return (kind if plain else ""), plain, indices
    used, places = np.unique(indices, return_inverse=True)
    # In the order in which rows have them, so that codes do not depend on how rows came in chunks.
    first = np.full(len(used), len(indices))
    np.minimum.at(first, places, np.arange(len(indices)))
    order = [at for at in np.argsort(first, kind="stable") if used[at] >= 0 and plain[used[at]] is not None]
    new = np.full(len(used), -1)
    new[order] = np.arange(len(order))
    return (kind if order else ""), [plain[used[at]] for at in order], new[places]


def as_arrow(column: object, name: str) -> pa.Array:
    """Return a column of a frame, a table or an array; NaN is a gap."""
    if hasattr(column, "to_arrow"):  # a polars series
        column = column.to_arrow()
    elif getattr(getattr(column, "dtype", None), "kind", "") == "c":
        raise ValueError(f"Complex data not supported: column {name} holds {column.dtype}")  # type: ignore[attr-defined]
    try:
        found = column if isinstance(column, pa.Array | pa.ChunkedArray) else pa.array(column, from_pandas=True)
    except OverflowError as error:
        raise ValueError(f"column {name} contains a whole number too large for float64") from error
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise ValueError(f"column {name} mixes kinds of values, such as text and numbers: {_first_line(error)}") from error
    except UnicodeError as error:
        raise ValueError(f"column {name} holds text that is not valid Unicode: {_first_line(error)}") from error
    if isinstance(found, pa.ChunkedArray):  # text of a joined frame of pandas is such, too
        found = found.combine_chunks()
    return found.cast(pa.string()) if pa.types.is_large_string(found.type) else found


def _kind_of(kind: pa.DataType, name: str) -> str:
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return TEXT
    if pa.types.is_boolean(kind):
        return FLAG
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return NUMBER
    if pa.types.is_null(kind):
        return ""
    raise ValueError(f"column {name} holds {kind}, which cannot be a category: give text, whole numbers or booleans")


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def first_rows(before: Sequence[int], codes: Sequence[Array]) -> NDArray[np.int64]:
    """Return the rows, in order, in which some column has a code beyond those that it had before that row."""
    found: set[int] = set()
    for size, column in zip(before, codes, strict=True):
        if not np.nanmax(column, initial=-1.0) >= size:
            continue
        _, rows = np.unique(column, return_index=True)
        found.update(int(row) for row in rows if column[row] >= size)  # NaN is not
    return np.array(sorted(found), dtype=np.int64)
