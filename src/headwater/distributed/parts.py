"""Parts: what one task reads, how it is read, and the chunks that a worker makes of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from headwater.core.chunk import Chunk
from headwater.core.values import AnyArray, Keywords, Matrix, Values
from headwater.io import row_collection
from headwater.io.open_stream import stream
from headwater.io.recipes.tables import whole_sequences
from headwater.io.shuffle import select_items
from headwater.registry import companions_of

if TYPE_CHECKING:
    from headwater.estimators.base import StreamingEstimator
    from headwater.io.stream import Stream as RowStream


CHUNK_BYTES = 2**22  # of the chunks that a partition of an array is cut into
ROLES = ("target", "weight", "label", "key", "text")
# Options for the format of a file; all others are in the schema.
FORMAT_OPTIONS = ("format", "header", "delimiter", "decimal", "array", "missing")


@dataclass(frozen=True)
class Part:
    """What one task reads: a file or a stretch of its rows, or a partition of a collection. `name` is for messages."""

    number: int
    name: str
    path: str | None = None
    start: int = 0
    rows: int | None = None


@dataclass(frozen=True)
class ReadPlan:
    """How chunks are made of a part: by a stream of this schema with these options, or of arrays as they are."""

    kind: str  # "files", "frames", "records", "texts", "arrays", "rows" or "sequences"
    schema: Mapping[str, object] | None = None
    options: Keywords = field(default_factory=dict)
    chunk_rows: int = 0
    seekable: bool = False  # whether a file can be read from any row on

    @property
    def names(self) -> list[str]:
        """The names of the columns; none, if rows are arrays."""
        inputs = cast(list[dict[str, object]], (self.schema or {}).get("inputs") or [])
        return [str(one["name"]) for one in inputs]

    def text(self) -> str:
        """Return a text that is the same for the same plan. Checkpoints hold its digest, so it may not change."""
        fields = {"kind": self.kind, "schema": self.schema, "options": self.options, "chunk_rows": self.chunk_rows}
        named = [f"{name}={value!r}" for name, value in {**fields, "counted": self.seekable}.items()]
        return f"Way({', '.join(named)})"


@dataclass(frozen=True)
class DataToRead:
    """What a call of `fit` asks to read: names of files or a collection, and how.

    `like` is the schema of a model that continues; `defaults` are options of what has columns, where others are not given;
    `unread_before` are files that an earlier run could not read, with the rows
    they were then said to have.
    """

    source: Any
    y: Values = None
    sample_weight: Values = None
    part_rows: int | None = None
    like: Mapping[str, object] | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    defaults: Mapping[str, object] = field(default_factory=dict)
    unread_before: Mapping[str, int | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """Parts, their values in the engine (`blocks`; None for files), how they are read, and the identity of the data.

    `files` are name, rows, bytes and time of change of each; `token` stands for a collection. `unread_before` is as in
    `DataToRead`.
    """

    parts: tuple[Part, ...]
    blocks: tuple[object, ...]
    read_plan: ReadPlan
    token: str = ""
    files: tuple[tuple[str, int | None, object], ...] = ()
    unread_before: Mapping[str, int | None] = field(default_factory=dict)

    def missing(self, numbers: Sequence[int]) -> dict[str, int | None]:
        """Return the files of parts that could not be read, with those that could not be read before."""
        paths = {self.parts[number].path for number in numbers}
        return {**self.unread_before, **{path: rows for path, rows, *_ in self.files if path in paths}}

    def identity(self, unread: Mapping[str, int | None]) -> dict[str, object]:
        """Return the identity of this data for a checkpoint; unread files may change their sizes and times."""
        files = [[path, unread[path], None, None] if path in unread else [path, *more] for path, *more in self.files]
        cuts = [[part.path, part.start, part.rows] for part in self.parts]
        return {"data": self.token or _digest([files, cuts]), "way": _digest(self.read_plan.text()), "parts": len(self.parts)}

    @property
    def rows(self) -> int | None:
        """Rows in all, if they are known."""
        known = [part.rows for part in self.parts]
        return None if None in known else sum(known)  # type: ignore[arg-type]


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def read_plan_like(kind: str, opened: RowStream, reading: Mapping[str, object]) -> ReadPlan:
    """Return the plan to read rows like those of a stream; companions that were asked for must be there."""
    schema = opened.schema
    options = {name: reading[name] for name in FORMAT_OPTIONS if reading.get(name) is not None}
    options |= {name: schema[name] for name in ROLES if reading.get(name) is not None and schema.get(name) is not None}
    return ReadPlan(kind, schema, options, opened.chunk_rows, seekable=kind == "files" and opened.skips_rows)


def read_chunks(model: StreamingEstimator, part: Part, block: object, read_plan: ReadPlan) -> Iterator[Chunk]:
    """Yield the rows of a part with their companions; whole sequences only, if the model needs them."""
    yield from _drop_weightless(whole_sequences(model, _read_all_chunks(model, part, block, read_plan, 0)))


def _drop_weightless(found: Iterator[Chunk]) -> Iterator[Chunk]:
    """Leave out rows of weight 0, and chunks that have no others."""
    for chunk in found:
        if chunk.sample_weight is not None:
            kept = np.flatnonzero(np.asarray(chunk.sample_weight) != 0.0)
            if len(kept) < len(chunk.sample_weight):
                chunk = select_items(chunk, kept, chunk.start)
        if len(chunk):
            yield chunk


def _read_all_chunks(model: StreamingEstimator, part: Part, block: Any, read_plan: ReadPlan, begin: int) -> Iterator[Chunk]:
    if read_plan.kind == "sequences":
        held = [np.asarray(one) for one in block if len(one)]
        if held:
            yield Chunk(np.concatenate(held), lengths=np.array([len(one) for one in held]))
        return
    if read_plan.kind in ("arrays", "rows"):
        yield from _array_chunks(model, block if read_plan.kind == "arrays" else (np.asarray(list(block)), None, None))
        return
    source = part.path if block is None else stream_source(read_plan.kind, block)
    opened = stream(source, like=read_plan.schema, chunk_rows=read_plan.chunk_rows, prefetch=False, **read_plan.options)
    if part.rows is None or not read_plan.seekable:
        yield from opened
    else:
        yield from opened.stretch(part.start + begin, part.rows - begin)


def stream_source(kind: str, block: Any) -> object:
    """Return a partition as a source of `stream`: an iterator of texts, since a list would be names of files."""
    if kind == "records":
        import pyarrow as pa

        return pa.Table.from_pylist(list(block))
    return iter(block) if kind == "texts" else block


def _array_chunks(model: StreamingEstimator, block: tuple[Matrix, AnyArray | None, AnyArray | None]) -> Iterator[Chunk]:
    """Yield chunks of a partition of an array; sequences are not cut."""
    X, y, weights = block
    if not X.shape[0]:
        return
    if model._traits.chained:
        yield Chunk(X, lengths=np.array([len(X)]), y=None if y is None else np.asarray(y))
        return
    size = max(1, CHUNK_BYTES // max(1, row_collection.size_in_bytes(X[:1])))
    for at in range(0, X.shape[0], size):
        rows = slice(at, at + size)
        target, weight = (None if one is None else np.asarray(one)[rows] for one in (y, weights))
        yield Chunk(X[rows], start=at, y=target, sample_weight=weight)


def first_rows(model: StreamingEstimator, chunk: Chunk) -> Chunk:
    """Return a few rows of a chunk, enough to see its columns; sequences are left whole."""
    if model._traits.chained or chunk.lengths is not None:
        return chunk
    return row_collection.select_rows(chunk, slice(0, 16))


def check_companions(model: StreamingEstimator, chunk: Chunk) -> None:
    """Refuse data that the model cannot learn from, or that lacks what the model needs."""
    owner, kind = type(model).__name__, type(model)
    taken_by = companions_of(kind)
    for name in chunk.keys():  # noqa: SIM118
        if name != "X" and name not in taken_by:
            raise ValueError(f"{owner} does not learn from {name}, with which the rows come")
    if kind._traits.target_columns and chunk.y is None:
        raise ValueError(f"{owner} needs a target: name its column by target=, or pass y")
    if kind._traits.takes_sequences and chunk.lengths is None:
        raise ValueError(f"{owner} learns from sequences: name the column that tells them apart by key=")


def sample_part(
    model: StreamingEstimator, part: Part, block: object, read_plan: ReadPlan, rows: int, places: int, key: int
) -> Chunk | None:
    """Return some rows of a part, from several places of it if the file is seekable; None if it has no rows."""
    if part.rows == 0:
        return None
    known = read_plan.kind == "files" and read_plan.seekable and part.rows is not None and part.rows > 2 * rows
    places = places if known else 1  # each place has more rows than are taken there
    found: list[Chunk] = []
    share = -(-rows // places)
    for place in range(places):
        held = 0
        for chunk in _drop_weightless(
            whole_sequences(model, _read_all_chunks(model, part, block, read_plan, place * (part.rows or 0) // places))
        ):
            found.append(_sample_chunk(model, chunk, share - held, key, spread=read_plan.kind != "files"))
            held += len(found[-1])
            if held >= share:
                break
    return row_collection.concatenate_chunks(found) if found else None


def _sample_chunk(model: StreamingEstimator, chunk: Chunk, rows: int, key: int, spread: bool) -> Chunk:
    """Return some rows of a chunk: spread over it, or the first ones; of sequences, rows that follow each other."""
    if model._traits.chained:
        whole = row_collection.by_sequence(chunk if chunk.key is None else row_collection.select_rows(chunk, slice(0, rows)))
        if whole.lengths is not None:
            return _first_sequences(whole, rows)
        return _cut_sequences(whole, np.array([min(rows, len(whole))]))
    number = len(chunk) if chunk.lengths is None else len(chunk.lengths)
    wanted = rows if chunk.lengths is None else max(1, round(rows * number / len(chunk)))
    if wanted >= number:
        return chunk
    order: NDArray[np.int64] = np.arange(wanted)
    if spread:
        order = np.sort(np.random.default_rng(np.random.SeedSequence((key, number))).permutation(number)[:wanted])
    return select_items(chunk, order, 0)


def _first_sequences(chunk: Chunk, rows: int) -> Chunk:
    """Return the first sequences, the last of them cut, with at most this many rows."""
    assert chunk.lengths is not None
    ends = np.minimum(np.cumsum(chunk.lengths), rows)
    lengths = np.diff(ends, prepend=0)
    return _cut_sequences(chunk, lengths[lengths > 0])


def _cut_sequences(chunk: Chunk, lengths: NDArray[np.int64]) -> Chunk:
    """Return the first rows, which are sequences of these lengths, and their targets."""
    rows = int(lengths.sum())
    return replace(chunk, X=chunk.X[:rows], y=None if chunk.y is None else chunk.y[:rows], lengths=lengths)
