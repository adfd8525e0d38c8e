"""What flows through the loop: batches of rows, summaries, and the state of a learner."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array, Statistics

NO_WEIGHTS: Array = np.empty(0)
NO_LABELS: NDArray[np.int64] = np.empty(0, dtype=np.int64)
NO_SEQUENCES: NDArray[np.int64] = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class SparseRows:
    """Rows of which only some columns are not zero: those of row i are `indices[indptr[i]:indptr[i + 1]]`, in rising order."""

    data: Array
    indices: NDArray[np.int32]
    indptr: NDArray[np.int64]
    width: int

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), self.width

    @property
    def nnz(self) -> int:
        """Number of values that are held."""
        return int(self.indptr[-1] - self.indptr[0])

    def __getitem__(self, rows: Any) -> SparseRows:
        if isinstance(rows, slice) and rows.step in (None, 1):
            start, stop, _ = rows.indices(len(self))
            return SparseRows(self.data, self.indices, self.indptr[start : max(start, stop) + 1], self.width)
        chosen = np.arange(len(self))[rows]
        lengths = np.diff(self.indptr)[chosen]
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        places = np.repeat(self.indptr[chosen] - indptr[:-1], lengths) + np.arange(indptr[-1])
        return SparseRows(self.data[places], self.indices[places], indptr, self.width)

    def without_zeros(self) -> SparseRows:
        """Return the rows without values that are held and yet zero."""
        held = self.copy()
        kept = held.data != 0.0
        if kept.all():
            return self
        ends = np.concatenate([[0], np.cumsum(kept)])
        return SparseRows(held.data[kept], held.indices[kept], ends[held.indptr], self.width)

    def widened(self, width: int) -> SparseRows:
        """Return the rows with more columns, which are zero."""
        return SparseRows(self.data, self.indices, self.indptr, width)

    def copy(self) -> SparseRows:
        """Return the rows in memory of their own."""
        held = slice(int(self.indptr[0]), int(self.indptr[-1]))
        return SparseRows(self.data[held].copy(), self.indices[held].copy(), self.indptr - self.indptr[0], self.width)


def _joined(rows: list[Any]) -> Any:
    """Rows of several chunks as one; if some chunks are dense and some are not, all become sparse."""
    if not any(isinstance(one, SparseRows) for one in rows):
        return np.concatenate(rows)
    parts = [one.copy() if isinstance(one, SparseRows) else sparse_rows(one) for one in rows]
    ends = np.cumsum([0] + [part.nnz for part in parts])
    indptr = [np.zeros(1, dtype=np.int64)] + [part.indptr[1:] + end for part, end in zip(parts, ends, strict=False)]
    return SparseRows(
        np.concatenate([part.data for part in parts]),
        np.concatenate([part.indices for part in parts]),
        np.concatenate(indptr),
        max(part.width for part in parts),
    )


def sparse_rows(X: Array) -> SparseRows:
    """Return dense rows without their zeros."""
    held = X != 0.0
    indptr = np.concatenate([[0], np.cumsum(held.sum(axis=1))]).astype(np.int64)
    return SparseRows(X[held], np.nonzero(held)[1].astype(np.int32), indptr, X.shape[1])


@dataclass(frozen=True)
class Batch:
    """Validated rows. Empty weights mean 1 for every row, empty labels mean that no row is labelled.

    Where rows hang together, `sequences` names the sequence that each belongs to, by a number of its own; sequences with
    negative numbers are complete, the others may go on later.
    """

    X: Any  # a matrix, or SparseRows for models that take them
    weights: Array = field(default_factory=lambda: NO_WEIGHTS)
    labels: NDArray[np.int64] = field(default_factory=lambda: NO_LABELS)
    sequences: NDArray[np.int64] = field(default_factory=lambda: NO_SEQUENCES)

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, rows: Any) -> Batch:
        # Kernels are compiled for contiguous arrays; a run of rows is one already, and is not copied. Listed rows are taken,
        # which is faster than an index.
        if isinstance(self.X, SparseRows):
            X: Any = self.X[rows]
        elif isinstance(rows, np.ndarray) and rows.dtype.kind == "i":
            X = np.take(self.X, rows, axis=0)
        else:
            X = np.ascontiguousarray(self.X[rows])
        return Batch(
            X,
            np.ascontiguousarray(self.weights[rows]) if self.weights.size else NO_WEIGHTS,
            np.ascontiguousarray(self.labels[rows]) if self.labels.size else NO_LABELS,
            np.ascontiguousarray(self.sequences[rows]) if self.sequences.size else NO_SEQUENCES,
        )

    @property
    def size(self) -> float:
        """Total weight of the rows."""
        return float(self.weights.sum()) if self.weights.size else float(len(self.X))

    @property
    def row_weights(self) -> Array:
        """Weight of every row, ones if none were given."""
        return self.weights if self.weights.size else np.ones(len(self.X))

    @property
    def row_labels(self) -> NDArray[np.int64]:
        """Label of every row, -1 if none were given."""
        return self.labels if self.labels.size else np.full(len(self.X), -1)


def joined(batches: Sequence[Batch]) -> Batch:
    """Return the rows of several batches, which have the same columns, as one.

    Where some have weights or labels and others not, rows without weigh 1, or have the label -1.
    """
    weighted, labelled = any(one.weights.size for one in batches), any(one.labels.size for one in batches)
    return Batch(
        _joined([one.X for one in batches]),
        np.concatenate([one.row_weights for one in batches]) if weighted else NO_WEIGHTS,
        np.concatenate([one.row_labels for one in batches]) if labelled else NO_LABELS,
        np.concatenate([one.sequences for one in batches]),
    )


def appended(batches: tuple[Batch, ...], batch: Batch) -> tuple[Batch, ...]:
    """Return the batches with a copy of another one. Small ones are joined, so that rows that come one by one cost little."""
    parts = [*batches, replace(batch, X=batch.X.copy(), sequences=batch.sequences.copy())]
    while len(parts) > 1 and len(parts[-2]) <= 2 * len(parts[-1]):
        last = parts.pop()
        parts[-1] = joined([parts[-1], last])
    return tuple(parts)


class Buffer:
    """Rows that wait for the end of the warm-up, and the components that their labels name."""

    def __init__(self) -> None:
        self.rows = 0
        self.named: frozenset[int] = frozenset()
        self.milestone: tuple[int, Any] | None = None  # a cache: parameters of a start on the first so many rows
        self.followed: tuple[Any, int, Any] | None = None  # a cache: what is carried on after so many rows, by such parameters
        self.chosen: tuple[int, int] | None = None  # a cache: the number of components that suits the first so many rows
        self._chunks: list[Batch] = []
        self._width = 0  # of sparse rows, if it is more than that of those that wait

    def forked(self) -> Buffer:
        """Return a buffer of the same rows, to which others may be added while somebody reads this one."""
        other = Buffer()
        other.__dict__.update(self.__dict__)
        other._chunks = self._chunks.copy()
        return other

    def append(self, batch: Batch) -> None:
        """Add a copy of rows. Small chunks are joined, so that there are few of them."""
        labels = batch.row_labels.copy()
        chunks = [*self._chunks, Batch(batch.X.copy(), batch.row_weights.copy(), labels, batch.sequences.copy())]
        while len(chunks) > 1 and len(chunks[-2]) <= len(chunks[-1]):
            last = chunks.pop()
            chunks[-1] = joined([chunks[-1], last])
        self._chunks = chunks
        self.rows += len(batch)
        if batch.labels.size:
            self.named |= frozenset(labels[labels >= 0].tolist())

    def widened(self, width: int) -> Buffer:
        """Return the same rows with more columns, which are zero."""
        wide = Buffer()
        wide.rows, wide.named, wide._chunks, wide._width = self.rows, self.named, self._chunks.copy(), width
        return wide

    def changed(self, change: Callable[[Batch], Batch]) -> Buffer:
        """Return the same rows with something about them changed."""
        other = Buffer()
        other.rows, other.named, other._width = self.rows, self.named, self._width
        other._chunks = [change(chunk) for chunk in self._chunks]
        return other

    def batch(self, rows: int | None = None) -> Batch:
        """Return the first rows (all of them by default) as a batch."""
        if not self._chunks:
            raise ValueError("the buffer is empty")
        if len(self._chunks) > 1:
            self._chunks = [joined(self._chunks)]
        batch = self._chunks[0]
        if self._width > batch.X.shape[1]:
            batch = self._chunks[0] = replace(batch, X=batch.X.widened(self._width))
        return batch if rows is None else batch[:rows]


@dataclass(frozen=True)
class Progress:
    """How far the stream has come.

    `mass` is the weight that the last step stood on, m / g for a step g with a batch of weight m; `n_eff` the number of
    rows the statistics are worth: after that step 1/n' = (1-g)^2/n + g^2/m.
    """

    rows_seen: int = 0
    weight_seen: float = 0.0
    folds: float = 0.0
    mass: float = 0.0
    n_eff: float = 0.0

    def after(self, rows: int, size: float, step: float, folds: float) -> Progress:
        """Return the progress after one fold of `rows` rows that weigh `size`, with this step."""
        return Progress(
            rows_seen=self.rows_seen + rows,
            weight_seen=self.weight_seen + size,
            folds=self.folds + folds,
            mass=size / step,
            n_eff=1.0 / ((1.0 - step) ** 2 / self.n_eff + step**2 / size),
        )


@dataclass(frozen=True)
class Summary:
    """What the rows of a batch yield at fixed parameters: totals, their weight, and the score before learning."""

    statistics: Statistics
    rows: int = 0
    size: float = 0.0
    score: float = 0.0

    def __add__(self, other: Summary) -> Summary:
        statistics = self.statistics + other.statistics
        return Summary(statistics, self.rows + other.rows, self.size + other.size, self.score + other.score)

    @property
    def mean(self) -> Statistics:
        """Statistics per observation."""
        return self.statistics.scaled(1.0 / self.size)


@dataclass(frozen=True)
class Base:
    """What streams that can be merged have in common: the end of a warm-up, or all that was learned before a branch.

    Holds the prior, statistics with the progress they came from, a name (lineage), the names of the bases below it, and what
    policies knew there, by their names.
    """

    prior: Any
    statistics: Statistics
    progress: Progress
    lineage: str
    ancestors: tuple[str, ...] = ()
    records: Mapping[str, Any] = field(default_factory=dict)

    def with_record(self, name: str, record: Any) -> Base:
        """Return the base with what a policy knew there; None removes it."""
        return replace(self, records=_put(self.records, name, record))


@dataclass(frozen=True)
class WarmUp:
    """Rows that wait until there are enough to choose a prior and a start."""

    key: int
    buffer: Buffer = field(default_factory=Buffer)

    @property
    def rows(self) -> int:
        """Rows that wait."""
        return self.buffer.rows


class Unfolded(Protocol):
    """Rows that a step has taken and not folded yet. Each step has a record of its own for them (steps.py, shards.py)."""

    @property
    def rows(self) -> int: ...

    def finish(self, plan: Any, stream: Any) -> Any: ...  # the stream with all of them folded

    def widen(self, plan: Any) -> Any: ...  # the same for rows with more columns


@dataclass(frozen=True)
class Stream:
    """Everything that a stream knows after its warm-up.

    It carries its own model, since the number of components may change. `parameters` are those of the next E-step. `unfolded`
    belongs to the step of the plan. `records` holds what each policy knows, by its name; a policy without a record is idle.
    """

    key: int
    model: Any = field(compare=False)  # which follows from what was chosen and the number of components
    base: Base
    statistics: Statistics
    parameters: Any
    progress: Progress
    unfolded: Unfolded
    records: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Rows taken: those folded and those that the step has begun."""
        return self.progress.rows_seen + self.unfolded.rows

    def with_record(self, name: str, record: Any) -> Stream:
        """Return the stream with what a policy knows; None removes it."""
        return replace(self, records=_put(self.records, name, record))

    def without(self, *names: str) -> Stream:
        """Return the stream without the records of some policies."""
        if not any(name in self.records for name in names):
            return self
        return replace(self, records={name: one for name, one in self.records.items() if name not in names})


State: TypeAlias = WarmUp | Stream


def _put(records: Mapping[str, Any], name: str, record: Any) -> Mapping[str, Any]:
    if record is None:
        return {other: one for other, one in records.items() if other != name}
    return {**records, name: record}


@dataclass(frozen=True)
class Info:
    """What one call to the loop did, for those who watch: rows, their mean score before learning, the last step size."""

    rows: int
    score: float
    step_size: float


def arrays_of(value: Any, dense: bool = True) -> Iterator[NDArray[Any]]:
    """Yield every array and number in a state, or in any part of one, in order; a table as a matrix, or as what it holds."""
    if isinstance(value, np.ndarray):
        yield value
    elif hasattr(value, "held"):  # a table
        yield from (np.asarray(value),) if dense else value.held()
    elif isinstance(value, Buffer):
        yield from arrays_of(value.batch() if value.rows else None, dense)
    elif is_dataclass(value):
        value = getattr(value, "settled", value)  # a reservoir, however it came about
        for part in fields(value):
            if part.compare:  # what is not is a cache
                yield from arrays_of(getattr(value, part.name), dense)
    elif isinstance(value, dict):
        for name in sorted(value):
            if not isinstance(name, str):  # the number of an open sequence
                yield np.asarray(name)
            yield from arrays_of(value[name], dense)
    elif isinstance(value, tuple):
        for part in (joined(value),) if value and isinstance(value[0], Batch) else value:  # however they were cut
            yield from arrays_of(part, dense)
    elif isinstance(value, int | float):
        yield np.asarray(value)


def fingerprint(*parts: Any, size: int) -> str:
    """Return a name for what these are, made of every array and number in them."""
    digest = hashlib.blake2b(digest_size=size)
    for part in parts:
        for array in arrays_of(part, dense=False):
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
