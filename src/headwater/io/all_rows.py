"""All rows of a stream at once, for what cannot be learned from a stream; as long as they fit in memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from headwater.core.chunk import COMPANIONS, Chunk, by_sequence
from headwater.io.memory_limit import available_memory

__all__ = ["available_memory", "by_sequence", "gathered", "joined", "size_of", "stacked", "taken"]

# Learning holds the rows, a copy or two while they are put together, and what an E-step makes of them.
COPIES = 3


def gathered(chunks: Iterable[Chunk], limit: int | None = None, instead: str = "") -> Chunk:
    """Return all rows as one chunk, or refuse in a sentence when they would not fit in memory."""
    limit = available_memory() if limit is None else limit
    held: list[Chunk] = []
    bytes_held = 0
    for chunk in chunks:
        held.append(chunk)
        bytes_held += size_of(chunk.X)
        if limit is not None and COPIES * bytes_held > limit:
            raise MemoryError(
                f"the data does not fit in memory: {sum(map(len, held)):,} rows take {bytes_held / 1e6:,.0f} MB, and there is "
                f"room for {limit / COPIES / 1e6:,.0f} MB{instead}"
            )
    if not held:
        raise ValueError("the data has no rows")
    return joined(held)


def size_of(rows: Any) -> int:
    """Return the bytes that rows take, dense or sparse."""
    if hasattr(rows, "indptr"):
        return int(rows.data.nbytes + rows.indices.nbytes + rows.indptr.nbytes)
    return int(np.asarray(rows).nbytes)


def joined(chunks: list[Chunk]) -> Chunk:
    """Return chunks one after the other, as one."""
    if len(chunks) == 1:
        return chunks[0]
    last = max(chunks, key=lambda chunk: chunk.shape[1] if len(chunk.shape) > 1 else 0)  # a vocabulary may grow
    together: dict[str, Any] = {"X": stacked([chunk.X for chunk in chunks])}
    for name in COMPANIONS:
        values = [getattr(chunk, name) for chunk in chunks]
        if all(value is not None for value in values):
            together[name] = np.concatenate([np.asarray(value) for value in values])
    return replace(last, **together, start=chunks[0].start)


def stacked(parts: list[Any]) -> Any:
    """Return rows under one another; sparse ones may have become wider on the way."""
    if not hasattr(parts[0], "tocsr"):
        return np.concatenate(parts)
    from scipy import sparse

    width = max(part.shape[1] for part in parts)
    wide = [part if part.shape[1] == width else _widened(part, width) for part in parts]
    return sparse.vstack(wide, format="csr")


def _widened(part: Any, width: int) -> Any:
    part = part.copy()
    part.resize((part.shape[0], width))
    return part


def taken(chunk: Chunk, rows: Any) -> Chunk:
    """Return some rows of a chunk, with what belongs to them. Rows of complete sequences cannot be taken apart."""
    if chunk.lengths is not None:
        raise ValueError("rows of complete sequences cannot be taken apart")
    given = {name: np.asarray(getattr(chunk, name))[rows] for name in COMPANIONS if getattr(chunk, name) is not None}
    return replace(chunk, X=chunk.X[rows], **given)
