"""Matrix Market files, sorted by columns as often as not: they are read whole, by SciPy, if they are not too large."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from headwater.streams.arrays import column_names, matrix_head
from headwater.streams.kinds import refuse_kind
from headwater.streams.options import Options
from headwater.streams.pieces import Meter, peeked
from headwater.streams.sentences import StreamError, reading
from headwater.streams.sparse import SparseHead, SparseRows, check_width, row_bytes
from headwater.streams.tables import Head

JUMPS = False
MOST_ENTRIES = 2**26  # a gigabyte, once it is sparse


def head(piece: Any, options: Options) -> Head | SparseHead:
    """Read the matrix for its shape and density."""
    found = _read(piece)
    if issparse(found):
        return SparseHead(check_width(found.shape[1], piece.name), row_bytes=row_bytes(found))
    return matrix_head(found.shape[0], found.shape[1], found.dtype, piece.name)


def blocks(piece: Any, options: Options, recipe: Any, skip: int, meter: Meter) -> Iterator[Any]:
    """Yield the matrix."""
    found = _read(piece)
    refuse_kind(recipe, "sparse" if issparse(found) else "tables", piece.name)
    if not issparse(found):
        recipe.wanted(column_names(found.shape[1]), piece.name)
    yield SparseRows(found) if issparse(found) else found


def count(piece: Any, options: Options) -> int | None:
    """Return the number of rows."""
    return _sizes(piece)[0]


def _sizes(piece: Any) -> tuple[int, int, int]:
    from scipy.io import mminfo

    peeked(piece, 64)
    with reading(piece.name):
        rows, width, entries, layout, values, _ = mminfo(piece.local())
    if values == "complex" or min(rows, width) < 1:
        raise StreamError(f"{piece.name} must hold a matrix of real numbers, got {values} ones, {rows} x {width}")
    if entries > MOST_ENTRIES or (layout == "coordinate" and rows > 10 * entries + 1000):
        raise StreamError(f"{piece.name} speaks of {rows} rows and {entries} entries, too many for a format that is read whole")
    return int(rows), int(width), int(entries)


def _read(piece: Any) -> Any:
    from scipy.io import mmread

    _sizes(piece)
    with reading(piece.name):
        found = mmread(piece.local())
    return csr_array(found, dtype=np.float64) if issparse(found) else np.asarray(found)
