"""Columns of Arrow as numbers, text, levels of a category, or keys of sequences."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headwater.io.read_errors import StreamError

if TYPE_CHECKING:
    import pyarrow as pa

LEVEL_LIMIT = 1000  # different values of a one-hot column
KEY_LETTERS_LIMIT = 200  # characters of a key; keys of open sequences are kept
NUMERIC_SHARE = 0.9  # of the values of a text column; with a larger share of numbers, the others are taken for typing errors

DECIMAL_COMMA = re.compile(r"\s*[-+]?\d*,\d+([eE][-+]?\d+)?\s*")


def is_number(kind: pa.DataType) -> bool:
    """Whether a type of Arrow is a number: integers, floats, decimals, booleans, and the null type."""
    from pyarrow import types

    return any(
        holds(kind) for holds in (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean, types.is_null)
    )


def is_category(kind: pa.DataType) -> bool:
    """Whether a type of Arrow can be one-hot encoded: text, dictionaries, dates and times."""
    from pyarrow import types

    return any(
        holds(kind)
        for holds in (types.is_string, types.is_large_string, types.is_string_view, types.is_dictionary, types.is_temporal)
    )


def to_numbers(column: pa.Array, place: str) -> NDArray[np.float64]:
    """Return a column as numbers, NaN where there is none."""
    import pyarrow as pa

    if not is_number(column.type):
        raise StreamError(f"{place} holds {column.type}, where numbers were before")
    if column.type != pa.float64():
        column = column.cast(pa.float64(), safe=False)
    found: NDArray[np.float64] = column.to_numpy(zero_copy_only=False)
    return found


def is_mostly_numbers(column: pa.Array) -> bool:
    """Whether nearly all values of a column of text are numbers, so that the others are taken for typing errors."""
    found = to_text(column).drop_null().to_pylist()
    return sum(map(_is_number, found)) >= NUMERIC_SHARE * len(found)


def has_decimal_commas(column: pa.Array) -> bool:
    """Whether all values of a column of text are numbers, some with a comma for a decimal point."""
    found = to_text(column).drop_null().to_pylist()
    commas = [DECIMAL_COMMA.fullmatch(one) is not None for one in found]
    return any(commas) and all(comma or _is_number(one) for comma, one in zip(commas, found, strict=True))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def to_text(column: pa.Array) -> pa.StringArray:
    """Return a column as text."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column if pa.types.is_string(column.type) else column.cast(pa.string())


def find_levels(column: pa.Array, place: str) -> tuple[str, ...]:
    """Return the different values of a column as text, sorted, or refuse a column that has too many."""
    found = to_text(column).unique().drop_null().to_pylist()
    if len(found) > LEVEL_LIMIT:
        raise StreamError(
            f"{place} has {len(found)} different values, more than the {LEVEL_LIMIT} that one-hot takes: exclude it, or use "
            f"categories='drop'"
        )
    return tuple(sorted(found))


def level_codes(column: pa.Array, known: tuple[str, ...]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the place of each value among the known ones, -1 for others, and where there is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = to_text(column)
    found = pc.index_in(text, value_set=pa.array(known, pa.string())).fill_null(-1)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int64), text.is_null().to_numpy(zero_copy_only=False)


def sequence_keys(column: pa.Array, place: str) -> NDArray[np.str_]:
    """Return the keys of sequences as text, whatever type they have in the file."""
    import pyarrow.compute as pc

    text = to_text(column)
    if text.null_count:
        raise StreamError(f"{place} must name the sequence of each row, but has {text.null_count} missing values")
    longest = pc.max(pc.utf8_length(text)).as_py() or 0
    if longest > KEY_LETTERS_LIMIT:
        raise StreamError(f"{place} must name sequences by at most {KEY_LETTERS_LIMIT} characters, got one of {longest}")
    return np.array(text.to_pylist(), dtype=np.str_)


def value_mask(column: pa.Array) -> pa.BooleanArray | None:
    """Return where a column has a value that is not NaN; None if it has one everywhere."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = None
    if column.null_count:
        found = column.is_valid()
    if pa.types.is_floating(column.type):
        nan = pc.is_nan(column)
        if pc.any(nan).as_py():
            real = pc.invert(nan).fill_null(False)
            found = real if found is None else pc.and_(found, real)
    return found
