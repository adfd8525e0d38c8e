"""How rows of counts are cut: into slabs for threads, into stretches for sweeps; and which dense rows become sparse."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import Batch, SparseRows
from headwater.core.statistics import Array
from headwater.families.table import Blend, Table, outgrown
from headwater.kernels.parallel import MOST_SLABS

SLAB_WORK = 2**20
SLAB_BYTES = 2**28
SMALL = 2.0**-300  # of a factor: below it, or above its inverse, the rows are scaled


def worth_thinning(X: Array) -> bool:
    """Whether dense rows are so few, or so empty, that a product with the whole table is slower."""
    return X.shape[1] > 256 and (len(X) < 16 or int(np.count_nonzero(X)) * 16 < X.size)


def slab_edges(X: SparseRows, words: int, n_components: int) -> NDArray[np.int64]:
    """Rows at which the work is cut into slabs: by its size alone, and not into more than their tables are worth."""
    nnz = X.nnz
    number = min(
        MOST_SLABS,
        nnz * n_components // SLAB_WORK,
        max(nnz // (64 * max(words, 1)), 2 if nnz >= 8 * words else 1),
        max(2, SLAB_BYTES // (8 * max(words, 1) * n_components)),
    )
    if number < 2:
        return np.array([0, len(X)])
    inner = np.searchsorted(X.indptr, X.indptr[0] + nnz * np.arange(1, number) // number)
    return np.concatenate([[0], np.clip(inner, 0, len(X)), [len(X)]])


def stretches(batch: Batch, steps: Array, gains: Array) -> list[tuple[int, int]]:
    """Cut rows so that a step of 1 is alone, a gain of 1 comes first, and dense rows are few at a time.

    The factor of a table must not underflow, nor fall far below its share in an average, if there is one.
    """
    n = len(batch)
    first = np.zeros(n, dtype=bool)
    first[:: n if isinstance(batch.X, SparseRows) else 1024] = True
    first |= steps >= 1.0
    first[1:] |= steps[:-1] >= 1.0
    if gains.size:
        first |= gains >= 1.0
    for part, most in ((steps, 6.0 if gains.size else 250.0), (gains, 250.0)):
        shrunk = np.cumsum(np.log2(np.maximum(1.0 - part, SMALL)))
        first[1:] |= np.diff(np.floor(shrunk / most)) != 0.0 if part.size else False
    starts = np.flatnonzero(first)
    return list(zip(starts.tolist(), [*starts[1:].tolist(), n], strict=True))


def split_average(average: Table | Blend, newest: Table) -> tuple[float, Table]:
    """An average as a share of the newest table and the rest."""
    if isinstance(average, Blend) and average.table.same_rows(newest) and not outgrown(average.table.factor, newest.factor):
        rest = average.rest
        return average.table.factor, rest if SMALL < rest.factor < 1.0 / SMALL else rest.copy()
    return 0.0, average.copy()
