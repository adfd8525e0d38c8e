"""Slabs of documents: the words of some documents, gathered so that topics are read for these words alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from headwater.core.batch import Batch, SparseRows
from headwater.core.statistics import Array
from headwater.families.multinomial_geometry import row_lengths
from headwater.families.table import Words
from headwater.kernels.tables import gather_words


@dataclass(frozen=True)
class Slab:
    """Some documents: their words, and the place of each word in that list."""

    indptr: NDArray[np.int64]
    local: NDArray[np.int32]
    data: Array
    words: Words
    slots: NDArray[np.int32]
    weights: Array
    first: int

    def __len__(self) -> int:
        return len(self.indptr) - 1


def usual_length(batch: Batch) -> float:
    """The mean length of rows."""
    return float(batch.row_weights @ row_lengths(batch.X)) / max(batch.size, 1e-300)


def slab_of(X: SparseRows, weights: Array, first: int) -> Slab:
    """A slab of all these documents, the first of which has this place."""
    held = slice(int(X.indptr[0]), int(X.indptr[-1]))
    indices, data, indptr = X.indices[held], X.data[held], X.indptr - X.indptr[0]
    words, local, slots = np.empty(X.nnz, np.int32), np.empty(X.nnz, np.int32), np.zeros(X.width, np.int32)
    words = words[: gather_words(indices, slots, words, local)].copy()
    return Slab(indptr, local, data, words, slots, weights, first)


def count_words(X: SparseRows, weights: Array, shares: Array) -> tuple[Words, Array]:
    """The words of documents in rising order, and how often each came in clusters that have these shares in the documents."""
    slab = slab_of(X, weights, 0)
    data = slab.data if not weights.size else slab.data * np.repeat(weights, np.diff(slab.indptr))
    counts = csr_array((data, slab.local, slab.indptr), shape=(len(slab), len(slab.words))).T @ shares
    order = np.argsort(slab.words)
    order = order[counts[order].sum(axis=1) > 0.0]
    return slab.words[order], counts[order]
