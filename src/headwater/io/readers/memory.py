"""Tables and matrices in memory: pandas, polars and Arrow, NumPy and SciPy, alone or one after the other from a generator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy.sparse import csr_array, issparse

from headwater.core.validation import one_line
from headwater.core.values import AnyArray
from headwater.io.blocks import count_rows
from headwater.io.options import Options
from headwater.io.read_errors import NoRows, StreamError, explain_read_errors
from headwater.io.readers.arrays import column_names, matrix_head
from headwater.io.recipes.recipe import ColumnRecipe
from headwater.io.recipes.row_kinds import refuse_kind
from headwater.io.recipes.sparse import SparseHead, SparseRows, check_width, row_bytes
from headwater.io.recipes.tables import TableHead
from headwater.io.sources import InMemory, Meter

if TYPE_CHECKING:
    import pyarrow as pa

    MemoryRows: TypeAlias = pa.RecordBatch | AnyArray | SparseRows

RANDOM_ACCESS = False
ROWS_PER_BATCH = 65536  # of a record batch that is made of a frame


def head(source: InMemory, options: Options) -> TableHead | SparseHead:
    """Look at the first rows."""
    first = next((rows for rows in _peek(source) if count_rows(rows)), None)
    if first is None:
        raise NoRows(f"{source.name} has no rows")
    if isinstance(first, SparseRows):
        return SparseHead(check_width(first.rows.shape[1], source.name), row_bytes=row_bytes(first.rows))
    if isinstance(first, np.ndarray):
        return matrix_head(first.shape[0], first.shape[1], first.dtype, source.name)
    schema = first.schema
    return TableHead(tuple(schema.names), dict(zip(schema.names, schema.types, strict=True)), first.column)


def blocks(source: InMemory, options: Options, recipe: ColumnRecipe, skip: int, meter: Meter) -> Iterator[MemoryRows]:
    """Yield record batches or matrices."""
    with explain_read_errors(source.name):
        for rows in _batches(source.items, source.name):
            refuse_kind(recipe, "sparse" if isinstance(rows, SparseRows) else "tables", source.name)
            if isinstance(rows, SparseRows):
                yield rows
                continue
            if isinstance(rows, np.ndarray):
                recipe.columns_to_read(column_names(rows.shape[1]), source.name)
                yield rows
                continue
            yield rows.select(recipe.columns_to_read(rows.schema.names, source.name))


def count(source: InMemory, options: Options) -> int | None:
    """Return the number of rows of a table or matrix."""
    shape = getattr(source.items, "shape", None)
    return int(shape[0]) if shape else None


def _peek(source: InMemory) -> Iterator[MemoryRows]:
    """Yield the first rows. If the source can be read only once, they are put back in front of the rest."""
    with explain_read_errors(source.name):
        if not source.once:
            yield from _batches(source.items, source.name)
            return
        rest = iter(source.items)
        seen = []
        for item in rest:
            seen.append(item)
            found = list(_batches_of(item, source.name, alone=True))
            if any(map(count_rows, found)):
                break
        else:
            found = []
        source.items = chain(seen, rest)
        yield from found


def _batches(items: Any, name: str) -> Iterator[MemoryRows]:
    if _is_table(items):
        yield from _batches_of(items, name)
    elif isinstance(items, list | tuple) and items and not _is_table(items[0]):
        yield from _batches_of(np.asarray(items), name)
    else:
        for item in items:
            yield from _batches_of(item, name, alone=True)


def _is_table(item: object) -> bool:
    return any(hasattr(item, name) for name in ("__arrow_c_stream__", "__arrow_c_array__", "shape"))


def _batches_of(item: Any, name: str, alone: bool = False) -> Iterator[MemoryRows]:
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
        yield from item.to_batches(max_chunksize=ROWS_PER_BATCH)
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
