"""Tables and matrices in memory: pandas, polars and Arrow, NumPy and SciPy, alone or one after the other from a generator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from headwater.core.validation import one_line
from headwater.io.options import Options
from headwater.io.pieces import Held, Meter
from headwater.io.read_errors import NoRows, StreamError, reading
from headwater.io.readers.arrays import column_names, matrix_head
from headwater.io.recipes.kinds import refuse_kind
from headwater.io.recipes.sparse import SparseHead, SparseRows, check_width, row_bytes
from headwater.io.recipes.tables import Head

JUMPS = False
ROWS = 65536  # of a record batch that is made of a frame


def head(piece: Held, options: Options) -> Head | SparseHead:
    """Look at the first rows."""
    first = next((rows for rows in _peeked(piece) if len_of(rows)), None)
    if first is None:
        raise NoRows(f"{piece.name} has no rows")
    if isinstance(first, SparseRows):
        return SparseHead(check_width(first.rows.shape[1], piece.name), row_bytes=row_bytes(first.rows))
    if isinstance(first, np.ndarray):
        return matrix_head(first.shape[0], first.shape[1], first.dtype, piece.name)
    schema = first.schema
    return Head(tuple(schema.names), dict(zip(schema.names, schema.types, strict=True)), first.column)


def blocks(piece: Held, options: Options, recipe: Any, skip: int, meter: Meter) -> Iterator[Any]:
    """Yield record batches or matrices."""
    with reading(piece.name):
        for rows in _batches(piece.items, piece.name):
            refuse_kind(recipe, "sparse" if isinstance(rows, SparseRows) else "tables", piece.name)
            if isinstance(rows, SparseRows):
                yield rows
                continue
            matrix = isinstance(rows, np.ndarray)
            wanted = recipe.wanted(column_names(rows.shape[1]) if matrix else rows.schema.names, piece.name)
            yield rows if matrix else rows.select(wanted)


def count(piece: Held, options: Options) -> int | None:
    """Return the number of rows of a table or matrix."""
    shape = getattr(piece.items, "shape", None)
    return int(shape[0]) if shape else None


def len_of(rows: Any) -> int:
    """Return the number of rows of a batch or a matrix."""
    return rows.num_rows if isinstance(rows, SparseRows) else int(rows.shape[0])


def _peeked(piece: Held) -> Iterator[Any]:
    """Give the rows for a look; what comes once is put back in front of the rest."""
    with reading(piece.name):
        if not piece.once:
            yield from _batches(piece.items, piece.name)
            return
        rest = iter(piece.items)
        seen = []
        for item in rest:
            seen.append(item)
            found = list(_batches_of(item, piece.name, alone=True))
            if any(map(len_of, found)):
                break
        else:
            found = []
        object.__setattr__(piece, "items", chain(seen, rest))
        yield from found


def _batches(items: Any, name: str) -> Iterator[Any]:
    if _is_table(items):
        yield from _batches_of(items, name)
    elif isinstance(items, list | tuple) and items and not _is_table(items[0]):
        yield from _batches_of(np.asarray(items), name)
    else:
        for item in items:
            yield from _batches_of(item, name, alone=True)


def _is_table(item: Any) -> bool:
    return any(hasattr(item, name) for name in ("__arrow_c_stream__", "__arrow_c_array__", "shape"))


def _batches_of(item: Any, name: str, alone: bool = False) -> Iterator[Any]:
    """Yield the record batches of a table, or a matrix. A vector is a column, or a row if it is one item of many."""
    import pyarrow as pa

    if issparse(item):
        if item.dtype.kind not in "biuf":
            raise StreamError(f"{name} must hold real numbers, got a sparse matrix of {item.dtype}")
        yield SparseRows(csr_array(item, dtype=np.float64))
        return
    if hasattr(item, "iloc"):  # a frame of pandas, whose index is no column
        item = pa.Table.from_pandas(item.to_frame() if item.ndim == 1 else item, preserve_index=False)
    if isinstance(item, pa.RecordBatch):
        yield item
    elif isinstance(item, pa.Table):
        yield from item.to_batches(max_chunksize=ROWS)
    elif hasattr(item, "__arrow_c_stream__"):
        yield from pa.RecordBatchReader.from_stream(item)
    elif hasattr(item, "__arrow_c_array__"):
        yield pa.record_batch(item)
    elif isinstance(item, np.ndarray) or (isinstance(item, Iterable) and not isinstance(item, str | bytes | dict)):
        if np.ma.is_masked(item):
            number = int(np.ma.count_masked(item))
            raise StreamError(f"{name} is a masked array with {number} masked value{'s' * (number != 1)}: fill them in first")
        matrix = np.asarray(item)
        if matrix.dtype.kind not in "biufc":
            raise StreamError(f"{name} must hold numbers, got an array of {matrix.dtype}")
        if matrix.ndim not in (1, 2):
            raise StreamError(f"{name} must hold matrices, got an array of shape {matrix.shape}")
        yield matrix if matrix.ndim == 2 else matrix[None, :] if alone else matrix[:, None]
    else:
        raise StreamError(f"{name} must hold tables or matrices, got {one_line(item, 80)}")
