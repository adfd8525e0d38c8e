"""Batch: validated rows with what belongs to them, dense or sparse; and rows that wait for the end of a warm-up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from headwater.core.gapped_rows import GappedRows, join_gapped
from headwater.core.noisy_rows import NoisyRows, join_noisy
from headwater.core.statistics import Array
from headwater.core.values import Matrix, Places

NARROW = "febB"  # float32, float16, int8, uint8: rows of these types are not converted where products are taken in float32
NO_WEIGHTS: Array = np.empty(0)
NO_LABELS: NDArray[np.int64] = np.empty(0, dtype=np.int64)
NO_SEQUENCES: NDArray[np.int64] = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class SparseRows:
    """Sparse rows: the nonzero columns of row i are `indices[indptr[i]:indptr[i + 1]]`, in rising order."""

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
        """Number of stored values."""
        return int(self.indptr[-1] - self.indptr[0])

    def __getitem__(self, rows: Places) -> SparseRows:
        if isinstance(rows, slice) and rows.step in (None, 1):
            start, stop, _ = rows.indices(len(self))
            return SparseRows(self.data, self.indices, self.indptr[start : max(start, stop) + 1], self.width)
        chosen = np.arange(len(self))[rows]
        lengths = np.diff(self.indptr)[chosen]
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        places = np.repeat(self.indptr[chosen] - indptr[:-1], lengths) + np.arange(indptr[-1])
        return SparseRows(self.data[places], self.indices[places], indptr, self.width)

    def without_zeros(self) -> SparseRows:
        """Return the rows without explicit zeros."""
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
        """Return a copy of the rows."""
        held = slice(int(self.indptr[0]), int(self.indptr[-1]))
        return SparseRows(self.data[held].copy(), self.indices[held].copy(), self.indptr - self.indptr[0], self.width)


def _join_rows(rows: list[Matrix]) -> Matrix:
    """Rows of several chunks as one; if some chunks are dense and some are not, all become sparse, or rows with gaps."""
    if any(isinstance(one, GappedRows) for one in rows):
        return join_noisy(rows) if any(isinstance(one, NoisyRows) for one in rows) else join_gapped(rows)
    if not any(isinstance(one, SparseRows) for one in rows):
        return np.concatenate(rows)
    parts = [one.copy() if isinstance(one, SparseRows) else drop_zeros(one) for one in rows]
    ends = np.cumsum([0] + [part.nnz for part in parts])
    indptr = [np.zeros(1, dtype=np.int64)] + [part.indptr[1:] + end for part, end in zip(parts, ends, strict=False)]
    return SparseRows(
        np.concatenate([part.data for part in parts]),
        np.concatenate([part.indices for part in parts]),
        np.concatenate(indptr),
        max(part.width for part in parts),
    )


def doubles(X: Matrix) -> Matrix:
    """Return rows as float64, which holds every number of a narrower type; sparse rows and rows with gaps already are."""
    return X.astype(np.float64) if isinstance(X, np.ndarray) and X.dtype.char in NARROW else X


def drop_zeros(X: Array) -> SparseRows:
    """Return dense rows as sparse rows."""
    held = X != 0.0
    indptr = np.concatenate([[0], np.cumsum(held.sum(axis=1))]).astype(np.int64)
    return SparseRows(X[held], np.nonzero(held)[1].astype(np.int32), indptr, X.shape[1])


@dataclass(frozen=True)
class Batch:
    """Validated rows. Empty weights mean 1 for every row, empty labels mean that no row is labelled.

    For models of sequences, `sequences` has the number of the sequence that each row belongs to; sequences with negative
    numbers are complete, the others may continue later.
    """

    X: Matrix  # a matrix, or SparseRows or GappedRows for models that take them
    weights: Array = field(default_factory=lambda: NO_WEIGHTS)
    labels: NDArray[np.int64] = field(default_factory=lambda: NO_LABELS)
    sequences: NDArray[np.int64] = field(default_factory=lambda: NO_SEQUENCES)

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, rows: Places) -> Batch:
        # Kernels are compiled for contiguous arrays; a run of rows is one already, and is not copied. Listed rows are taken,
        # which is faster than an index.
        if isinstance(self.X, SparseRows | GappedRows):
            X: Matrix = self.X[rows]
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
    def in_doubles(self) -> Batch:
        """The same rows as float64; the batch itself if they already are."""
        X = doubles(self.X)
        return self if X is self.X else replace(self, X=X)

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


def join_batches(batches: Sequence[Batch]) -> Batch:
    """Join several batches with the same columns.

    If only some have weights or labels, the other rows get weight 1, or label -1.
    """
    weighted, labelled = any(one.weights.size for one in batches), any(one.labels.size for one in batches)
    return Batch(
        _join_rows([one.X for one in batches]),
        np.concatenate([one.row_weights for one in batches]) if weighted else NO_WEIGHTS,
        np.concatenate([one.row_labels for one in batches]) if labelled else NO_LABELS,
        np.concatenate([one.sequences for one in batches]),
    )


def without_empty(batch: Batch) -> tuple[Batch, NDArray[np.int64]]:
    """Return a batch without the rows that have no value, and the places of the others, if there are gaps."""
    if not isinstance(batch.X, GappedRows):
        return batch, NO_SEQUENCES
    places = np.flatnonzero(~batch.X.is_empty)
    return (batch if len(places) == len(batch) else batch[places]), places


def append_batch(batches: tuple[Batch, ...], batch: Batch) -> tuple[Batch, ...]:
    """Return the batches with a copy of another one. Small ones are joined, so that single rows cost little."""
    parts = [*batches, replace(batch, X=batch.X.copy(), sequences=batch.sequences.copy())]
    while len(parts) > 1 and len(parts[-2]) <= 2 * len(parts[-1]):
        last = parts.pop()
        parts[-1] = join_batches([parts[-1], last])
    return tuple(parts)


class Buffer:
    """Rows that wait for the end of the warm-up, and the components that their labels name."""

    def __init__(self) -> None:
        self.rows = 0
        self.named: frozenset[int] = frozenset()
        self.milestone: tuple[int, object] | None = None  # a cache: parameters of a start on the first so many rows
        self.followed: tuple[object, int, object] | None = None  # a cache: parameters, rows followed, what is carried on
        self._chunks: list[Batch] = []
        self._width = 0  # of sparse rows, if it is more than that of the waiting rows

    def fork(self) -> Buffer:
        """Return a buffer of the same rows; adding to it does not disturb readers of this one."""
        other = Buffer()
        other.__dict__.update(self.__dict__)
        other._chunks = self._chunks.copy()
        return other

    def append(self, batch: Batch) -> None:
        """Add a copy of rows. Small chunks are joined, so that there are few of them."""
        labels = batch.row_labels.copy()
        X = doubles(batch.X)
        X = batch.X.copy() if X is batch.X else X
        chunks = [*self._chunks, Batch(X, batch.row_weights.copy(), labels, batch.sequences.copy())]
        while len(chunks) > 1 and len(chunks[-2]) <= len(chunks[-1]):
            last = chunks.pop()
            chunks[-1] = join_batches([chunks[-1], last])
        self._chunks = chunks
        self.rows += len(batch)
        if batch.labels.size:
            self.named |= frozenset(labels[labels >= 0].tolist())

    def without_starts(self) -> Buffer:
        """Return the same rows without cached starts, which depend on the settings."""
        return self.map(lambda batch: batch)

    def widened(self, width: int) -> Buffer:
        """Return the same rows with more columns, which are zero."""
        wide = Buffer()
        wide.rows, wide.named, wide._chunks, wide._width = self.rows, self.named, self._chunks.copy(), width
        return wide

    def map(self, change: Callable[[Batch], Batch]) -> Buffer:
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
            self._chunks = [join_batches(self._chunks)]
        batch = self._chunks[0]
        if self._width > batch.X.shape[1]:
            batch = self._chunks[0] = replace(batch, X=batch.X.widened(self._width))
        return batch if rows is None else batch[:rows]
