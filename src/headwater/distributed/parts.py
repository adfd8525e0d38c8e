"""Parts: what one task reads, and the chunks that a worker makes of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwater.chunk import Chunk
from headwater.registry import companions_of
from headwater.streams import gathering, stream
from headwater.streams.shuffling import taken
from headwater.streams.whole import whole_sequences

PLACES = 4  # of a part, from which a sample of it is taken
CHUNK_BYTES = 2**22


@dataclass(frozen=True)
class Part:
    """What one task reads: a file or a stretch of its rows, or a partition that Dask makes. `name` is for sentences."""

    number: int
    name: str
    path: str | None = None
    start: int = 0
    rows: int | None = None


@dataclass(frozen=True)
class Way:
    """How chunks are made of what is read: by a stream like others, with these options, or of arrays as they are."""

    kind: str  # "files", "frames", "texts" or "arrays"
    schema: Mapping[str, Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    chunk_rows: int = 0
    counted: bool = False  # whether places in a file can be gone to


def chunks(model: Any, part: Part, block: Any, way: Way) -> Iterator[Chunk]:
    """Yield the rows of a part, with what belongs to them; of sequences only whole ones, if the model asks for that."""
    yield from whole_sequences(model, _chunks(model, part, block, way, 0))


def _chunks(model: Any, part: Part, block: Any, way: Way, begin: int) -> Iterator[Chunk]:
    if way.kind == "arrays":
        yield from _slices(model, block)
        return
    if part.rows == 0 or (block is not None and not len(block)):
        return  # a stream would not know what its columns are
    source = part.path if block is None else rows_of(way.kind, block)
    end = None if part.rows is None else part.start + part.rows
    opened = stream(source, like=way.schema, chunk_rows=way.chunk_rows, prefetch=False, **way.options)
    for chunk in opened.chunks(start_row=part.start + begin):
        if end is not None and chunk.start >= end:
            return
        yield chunk


def rows_of(kind: str, block: Any) -> Any:
    """Return what a stream is made of; a list of texts would be one of names of files."""
    return iter(block) if kind == "texts" else block


def _slices(model: Any, block: Any) -> Iterator[Chunk]:
    """Cut a partition of an array into chunks; sequences are not cut."""
    X, y, weights = block
    if isinstance(X, list):  # of sequences
        X = [np.asarray(one) for one in X]
        yield Chunk(np.concatenate(X), lengths=np.array([len(one) for one in X]))
        return
    if model._chained:
        yield Chunk(X, lengths=np.array([len(X)]))
        return
    size = max(1, CHUNK_BYTES // max(1, gathering.size_of(X[:1])))
    for at in range(0, X.shape[0], size):
        rows = slice(at, at + size)
        target, weight = (None if one is None else np.asarray(one)[rows] for one in (y, weights))
        yield Chunk(X[rows], start=at, y=target, sample_weight=weight)


def first_rows(model: Any, chunk: Chunk) -> Chunk:
    """Return a few rows of a chunk, to see what it is made of; sequences are left whole."""
    if model._chained or chunk.lengths is not None:
        return chunk
    return gathering.taken(chunk, slice(0, 16))


def check_companions(model: Any, chunk: Chunk) -> None:
    """Refuse data that comes with what the model cannot learn from, or without what it must have."""
    owner, kind = type(model).__name__, type(model)
    taken_by = companions_of(kind)
    for name in chunk.keys():  # noqa: SIM118
        if name != "X" and name not in taken_by:
            raise ValueError(f"{owner} does not learn from {name}, with which the rows come")
    if kind._target_columns and chunk.y is None:
        raise ValueError(f"{owner} needs a target: name its column by target=, or pass y")
    if kind._takes_sequences and chunk.lengths is None:
        raise ValueError(f"{owner} learns from sequences: name the column that tells them apart by key=")


def sample(model: Any, part: Part, block: Any, way: Way, rows: int, key: int) -> Chunk | None:
    """Return some rows of a part, from several places where they can be gone to; None if it has none."""
    if part.rows == 0:
        return None
    places = range(1)
    if way.kind == "files" and way.counted and part.rows is not None:
        size = -(-part.rows // way.chunk_rows)
        places = range(0, size, max(1, size // PLACES))[:PLACES]
    found: list[Chunk] = []
    share = -(-rows // len(places))
    for place in places:
        held = 0
        for chunk in whole_sequences(model, _chunks(model, part, block, way, place * (way.chunk_rows or 1))):
            if not len(chunk):
                continue
            found.append(_some(model, chunk, share - held, key, spread=way.kind != "files"))
            held += len(found[-1])
            if held >= share:
                break
    return gathering.joined(found) if found else None


def _some(model: Any, chunk: Chunk, rows: int, key: int, spread: bool) -> Chunk:
    """Some rows of a chunk: from all over it, or the first ones; those of sequences hang together."""
    if model._chained:
        whole = gathering.by_sequence(chunk if chunk.key is None else gathering.taken(chunk, slice(0, rows)))
        if whole.lengths is not None:
            return _first_sequences(whole, rows)
        return replace(whole, X=whole.X[:rows], lengths=np.array([min(rows, len(whole))]))
    number = len(chunk) if chunk.lengths is None else len(chunk.lengths)
    wanted = rows if chunk.lengths is None else max(1, round(rows * number / len(chunk)))
    if wanted >= number:
        return chunk
    order: NDArray[np.int64] = np.arange(wanted)
    if spread:
        order = np.sort(np.random.default_rng(np.random.SeedSequence((key, number))).permutation(number)[:wanted])
    return taken(chunk, order, 0)


def _first_sequences(chunk: Chunk, rows: int) -> Chunk:
    """The first sequences, the last of them cut, so that there are so many rows at most."""
    ends = np.minimum(np.cumsum(chunk.lengths), rows)
    lengths = np.diff(ends, prepend=0)
    return replace(chunk, X=chunk.X[: int(ends[-1])], lengths=lengths[lengths > 0])
