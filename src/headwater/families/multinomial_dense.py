"""The E-step of dense rows of counts: two matrix products for each block of rows."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np

from headwater.core.batch import Batch
from headwater.core.statistics import Array
from headwater.families.multinomial_records import MultinomialParameters
from headwater.kernels.multinomial import softmax_rows
from headwater.kernels.parallel import one_blas_thread, run_slabs, slabs

EMPTY_TABLE: Array = np.empty((0, 0))
BLOCK_ROWS = 2048  # rows whose responsibilities are held at once
SMALL_PRODUCT = 2**17  # multiplications that BLAS makes on one thread anyway


def dense_estep(
    parameters: MultinomialParameters, log_weights: Array, batch: Batch, learning: bool, scores: Array,
    responsibilities: Array, given: bool, n_threads: int | None,
) -> tuple[float, Array, Array]:  # fmt: skip
    """Fill `scores` and `responsibilities`; return the score, the rows (K,) and the counts (V, K) of each component.

    If it is not `learning`, there are no rows and no counts.
    """
    X, weights, labels = batch.X, batch.weights, batch.labels
    number, k = len(slabs(len(X))), len(log_weights)
    counts = np.zeros((number, k if learning else 0))
    targets = [np.zeros((X.shape[1], k)) if learning else EMPTY_TABLE for _ in range(number)]
    table = EMPTY_TABLE if given else parameters.all(n_threads)

    def work(slab: int, start: int, stop: int) -> float:
        score = 0.0
        for at in range(start, stop, BLOCK_ROWS):
            rows = slice(at, min(at + BLOCK_ROWS, stop))
            own_weights = weights[rows]
            if given:
                shares = responsibilities[rows]
                counts[slab] += own_weights @ shares if own_weights.size else shares.sum(axis=0)
            else:
                shares = X[rows] @ table
                shares += log_weights
                score += softmax_rows(shares, own_weights, labels[rows], scores[rows], counts[slab])
                if responsibilities.size:
                    responsibilities[rows] = shares
            if learning:
                targets[slab] += X[rows].T @ (shares * own_weights[:, None] if own_weights.size else shares)
        return score

    with one_blas_thread() if X.size * k > SMALL_PRODUCT else nullcontext():
        score = float(sum(run_slabs(work, len(X), n_threads)))
    if not learning:
        return score, counts[0], EMPTY_TABLE
    for target in targets[1:]:
        targets[0] += target
    return score, counts.sum(axis=0), targets[0]
