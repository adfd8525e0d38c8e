"""Parts: what one task reads, and the chunks that a worker makes of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwater.core.chunk import Chunk
from headwater.io import row_collection
from headwater.io.recipes.table_sequences import whole_sequences
from headwater.io.shuffle import select_items
from headwater.io.stream import stream
from headwater.registry import companions_of

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

    kind: str  # "files", "frames", "records", "texts", "arrays", "rows" or "sequences"
    schema: Mapping[str, Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    chunk_rows: int = 0
    counted: bool = False  # whether places in a file can be gone to


@dataclass(frozen=True)
class Plan:
    """Parts, how each is read, the values that Dask makes for them (None for files), and what tells this data from other.

    Of files that is their names, rows, bytes and times of change. `again` are those of them that could not be read before,
    and the rows that they were then said to have.
    """

    parts: tuple[Part, ...]
    blocks: tuple[Any, ...]
    way: Way
    token: str = ""
    files: tuple[tuple[Any, ...], ...] = ()
    again: Mapping[str, int | None] = field(default_factory=dict)

    def missing(self, numbers: Sequence[int]) -> dict[str, int | None]:
        """Return the files of parts that could not be read, with those that could not be read before."""
        paths = {self.parts[number].path for number in numbers}
        return {**self.again, **{path: rows for path, rows, *_ in self.files if path in paths}}

    def identity(self, again: Mapping[str, int | None]) -> dict[str, Any]:
        """Return what tells this data from other, whatever becomes of some files."""
        files = [[path, again[path], None, None] if path in again else [path, *more] for path, *more in self.files]
        cuts = [[part.path, part.start, part.rows] for part in self.parts]
        return {"data": self.token or _digest([files, cuts]), "way": _digest(repr(self.way)), "parts": len(self.parts)}

    @property
    def rows(self) -> int | None:
        """Rows in all, if they are known."""
        known = [part.rows for part in self.parts]
        return None if None in known else sum(known)  # type: ignore[arg-type]


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def chunks(model: Any, part: Part, block: Any, way: Way) -> Iterator[Chunk]:
    """Yield the rows of a part, with what belongs to them; of sequences only whole ones, if the model asks for that."""
    yield from _weighty(whole_sequences(model, _chunks(model, part, block, way, 0)))


def _weighty(found: Iterator[Chunk]) -> Iterator[Chunk]:
    """Leave out rows that do not count, and chunks without any other."""
    for chunk in found:
        if chunk.sample_weight is not None:
            kept = np.flatnonzero(np.asarray(chunk.sample_weight) != 0.0)
            if len(kept) < len(chunk.sample_weight):
                chunk = select_items(chunk, kept, chunk.start)
        if len(chunk):
            yield chunk


def _chunks(model: Any, part: Part, block: Any, way: Way, begin: int) -> Iterator[Chunk]:
    if way.kind == "sequences":
        held = [np.asarray(one) for one in block if len(one)]
        if held:
            yield Chunk(np.concatenate(held), lengths=np.array([len(one) for one in held]))
        return
    if way.kind in ("arrays", "rows"):
        yield from _slices(model, block if way.kind == "arrays" else (np.asarray(list(block)), None, None))
        return
    source = part.path if block is None else rows_of(way.kind, block)
    opened = stream(source, like=way.schema, chunk_rows=way.chunk_rows, prefetch=False, **way.options)
    if part.rows is None or not way.counted:
        yield from opened
    else:
        yield from opened.stretch(part.start + begin, part.rows - begin)


def rows_of(kind: str, block: Any) -> Any:
    """Return what a stream is made of; a list of texts would be one of names of files."""
    if kind == "records":
        import pyarrow as pa

        return pa.Table.from_pylist(list(block))
    return iter(block) if kind == "texts" else block


def _slices(model: Any, block: Any) -> Iterator[Chunk]:
    """Cut a partition of an array into chunks; sequences are not cut."""
    X, y, weights = block
    if not X.shape[0]:
        return
    if model._chained:
        yield Chunk(X, lengths=np.array([len(X)]))
        return
    size = max(1, CHUNK_BYTES // max(1, row_collection.size_in_bytes(X[:1])))
    for at in range(0, X.shape[0], size):
        rows = slice(at, at + size)
        target, weight = (None if one is None else np.asarray(one)[rows] for one in (y, weights))
        yield Chunk(X[rows], start=at, y=target, sample_weight=weight)


def first_rows(model: Any, chunk: Chunk) -> Chunk:
    """Return a few rows of a chunk, to see what it is made of; sequences are left whole."""
    if model._chained or chunk.lengths is not None:
        return chunk
    return row_collection.select_rows(chunk, slice(0, 16))


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


def sample(model: Any, part: Part, block: Any, way: Way, rows: int, places: int, key: int) -> Chunk | None:
    """Return some rows of a part, from several places where they can be gone to; None if it has none."""
    if part.rows == 0:
        return None
    known = way.kind == "files" and way.counted and part.rows is not None and part.rows > 2 * rows
    places = places if known else 1  # each of them has more rows than are taken from it
    found: list[Chunk] = []
    share = -(-rows // places)
    for place in range(places):
        held = 0
        for chunk in _weighty(whole_sequences(model, _chunks(model, part, block, way, place * (part.rows or 0) // places))):
            found.append(_some(model, chunk, share - held, key, spread=way.kind != "files"))
            held += len(found[-1])
            if held >= share:
                break
    return row_collection.concatenate_chunks(found) if found else None


def _some(model: Any, chunk: Chunk, rows: int, key: int, spread: bool) -> Chunk:
    """Some rows of a chunk: from all over it, or the first ones; those of sequences hang together."""
    if model._chained:
        whole = row_collection.by_sequence(chunk if chunk.key is None else row_collection.select_rows(chunk, slice(0, rows)))
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
    return select_items(chunk, order, 0)


def _first_sequences(chunk: Chunk, rows: int) -> Chunk:
    """The first sequences, the last of them cut, so that there are so many rows at most."""
    ends = np.minimum(np.cumsum(chunk.lengths), rows)
    lengths = np.diff(ends, prepend=0)
    return replace(chunk, X=chunk.X[: int(ends[-1])], lengths=lengths[lengths > 0])
