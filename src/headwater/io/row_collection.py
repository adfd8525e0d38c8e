"""Rows of several chunks together: all rows of a stream, if they fit in memory, and selections of rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headwater.core.chunk import COMPANIONS, Chunk, by_sequence
from headwater.core.table_rows import TableRows, stack_tables
from headwater.core.values import AnyArray, Keywords, Matrix
from headwater.io.memory_limit import available_memory

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Rows: TypeAlias = AnyArray | csr_array

__all__ = [
    "available_memory",
    "by_sequence",
    "collect_rows",
    "concatenate_chunks",
    "size_in_bytes",
    "stack_rows",
    "select_rows",
]

MEMORY_COPIES = 3  # of the rows: themselves, a copy during concatenation, and the arrays of an E-step


def collect_rows(chunks: Iterable[Chunk], limit: int | None = None, instead: str = "") -> Chunk:
    """Return all rows as one chunk, or refuse if they do not fit in memory."""
    limit = available_memory() if limit is None else limit
    held: list[Chunk] = []
    bytes_held = 0
    for chunk in chunks:
        held.append(chunk)
        bytes_held += size_in_bytes(chunk.X)
        if limit is not None and MEMORY_COPIES * bytes_held > limit:
            raise MemoryError(
                f"the data does not fit in memory: {sum(map(len, held)):,} rows take {bytes_held / 1e6:,.0f} MB, and there is "
                f"room for {limit / MEMORY_COPIES / 1e6:,.0f} MB{instead}"
            )
    if not held:
        raise ValueError("the data has no rows")
    return concatenate_chunks(held)


def size_in_bytes(rows: Matrix) -> int:
    """Return the bytes that rows take, dense or sparse."""
    if hasattr(rows, "indptr"):
        return int(rows.data.nbytes + rows.indices.nbytes + rows.indptr.nbytes)
    return int(rows.nbytes if isinstance(rows, TableRows) else np.asarray(rows).nbytes)


def concatenate_chunks(chunks: list[Chunk]) -> Chunk:
    """Return the rows of several chunks as one chunk."""
    if len(chunks) == 1:
        return chunks[0]
    last = max(chunks, key=lambda chunk: chunk.shape[1] if len(chunk.shape) > 1 else 0)  # a vocabulary may have grown
    together: dict[str, Any] = {"X": stack_rows([chunk.X for chunk in chunks])}
    for name in COMPANIONS:
        values = [getattr(chunk, name) for chunk in chunks]
        if all(value is not None for value in values):
            together[name] = np.concatenate([np.asarray(value) for value in values])
    return replace(last, **together, start=chunks[0].start)


def stack_rows(parts: list[Rows]) -> Rows:
    """Return stacked rows. Sparse rows of an open vocabulary may have different widths."""
    if isinstance(parts[0], TableRows):
        return stack_tables([part for part in parts if isinstance(part, TableRows)])
    if not hasattr(parts[0], "tocsr"):
        return np.concatenate(parts)
    from scipy import sparse

    width = max(part.shape[1] for part in parts)
    wide = [part if part.shape[1] == width else _widen(part, width) for part in parts]
    return sparse.vstack(wide, format="csr")


def _widen(part: csr_array, width: int) -> csr_array:
    part = part.copy()
    part.resize((part.shape[0], width))
    return part


def select_rows(chunk: Chunk, rows: slice | NDArray[np.int64] | NDArray[np.bool_]) -> Chunk:
    """Return some rows of a chunk with their companions. Rows of complete sequences are refused."""
    if chunk.lengths is not None:
        raise ValueError("rows of complete sequences cannot be taken apart")
    given: Keywords = {name: np.asarray(getattr(chunk, name))[rows] for name in COMPANIONS if getattr(chunk, name) is not None}
    return replace(chunk, X=chunk.X[rows], **given)
