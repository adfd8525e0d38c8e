"""Chunk: rows of a stream with the names of their columns and their companions, such as targets and weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from headwater.core.values import AnyArray, Matrix, Rows, Settings, Values

if TYPE_CHECKING:
    import pyarrow as pa

# What may come with the rows, by the names that `partial_fit` gives them.
SEQUENCES = ("lengths", "key")
COMPANIONS = ("y", "sample_weight", "labels", "noise", *SEQUENCES)


@dataclass(frozen=True, eq=False)
class Chunk:
    """Rows of a stream: `model.partial_fit(chunk)` takes the rows alone, `model.partial_fit(**chunk)` with their companions.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features), or sparse array
        The rows; with `lengths`, the rows of sequences, one after the other.
    columns : sequence of str, optional
        Names of the columns.
    y, sample_weight, labels, lengths, key : array-like, optional
        Target, weight and label of each row, lengths of complete sequences, or the key of each row's sequence.
    noise : array-like of shape (n_samples, n_features), optional
        Variances of the measurement errors of the rows.
    start : int
        Place of the first row in its stream.
    schema : mapping, optional
        How the rows were made of what was read, in values that JSON can hold; a model that learns from them keeps it.
    kept : mapping of str to pyarrow.Array
        Columns named by `keep=`, with the types of their file. No model learns from them.
    places : array-like, optional
        Place of each row in the data, if some between them were left out.
    """

    lost: ClassVar[tuple[str, ...]] = COMPANIONS  # what is lost where only the rows are taken

    X: Matrix  # a matrix, dense or sparse
    columns: Sequence[str] | None = None
    y: AnyArray | Sequence[float] | None = None
    sample_weight: AnyArray | Sequence[float] | None = None
    labels: AnyArray | Sequence[int] | None = None
    noise: Values = None
    lengths: AnyArray | None = None
    key: AnyArray | None = None
    start: int = 0
    schema: Settings | None = None
    kept: Mapping[str, pa.Array] = field(default_factory=dict)
    places: NDArray[np.int64] | Sequence[int] | None = None

    @property
    def row_numbers(self) -> NDArray[np.int64]:
        """The place of each row, or sequence, in the data, counted from 0."""
        if self.places is not None:
            return np.asarray(self.places)
        return self.start + np.arange(len(self) if self.lengths is None else len(self.lengths))

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the rows."""
        return tuple(self.X.shape)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> AnyArray:
        array = self.X.toarray() if hasattr(self.X, "toarray") else self.X
        return np.array(array, dtype=dtype, copy=copy)

    def keys(self) -> Iterator[str]:
        """Yield the names of the companions that are set, so that `**chunk` passes them on."""
        yield "X"
        yield from (name for name in COMPANIONS if getattr(self, name) is not None)

    def __getitem__(self, name: str) -> Matrix:
        if name == "X":
            return type(self)(self.X, self.columns, start=self.start, schema=self.schema)
        if name in COMPANIONS and getattr(self, name) is not None:
            return getattr(self, name)
        raise KeyError(name)


class Chunks(ABC):
    """An iterable of chunks. Models take it wherever they take rows."""

    @abstractmethod
    def __iter__(self) -> Iterator[Chunk]:
        """Make one pass."""

    @abstractmethod
    def whole_sequences(self) -> Iterator[Chunk]:
        """Make one pass in which rows of one key are a complete sequence, with `lengths` in place of keys."""

    @abstractmethod
    def at_once(self) -> Chunk:
        """Return all rows as one chunk, or refuse if they do not fit in memory."""


def by_sequence(chunk: Chunk) -> Chunk:
    """Return rows that have keys sorted by them, as complete sequences with lengths."""
    if chunk.key is None:
        return chunk
    names, first, places = np.unique(np.asarray(chunk.key), return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))[places]  # sequences in the order in which they begin
    order = np.argsort(rank, kind="stable")
    lengths = np.bincount(rank, minlength=len(names))
    return replace(chunk, X=chunk.X[order], key=None, lengths=lengths)


def values_of(X: Rows) -> Matrix:
    """Return the rows of a chunk, and anything else as it is. Predictions need no weights or labels, but whole sequences."""
    if not isinstance(X, Chunk):
        return X
    _refuse(X, SEQUENCES)
    return X.X


def refuse_lost(X: object) -> None:
    """Refuse to learn a chunk without its companions."""
    if isinstance(X, Chunk):
        _refuse(X, X.lost)


def _refuse(chunk: Chunk, names: Sequence[str]) -> None:
    lost = [name for name in names if getattr(chunk, name) is not None]
    if lost:
        raise ValueError(f"the chunk comes with {' and '.join(lost)}, which would be lost: pass it as partial_fit(**chunk)")
