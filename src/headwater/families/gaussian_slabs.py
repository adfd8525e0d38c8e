"""E-steps over slabs of rows, each with its own moments, which are summed in a fixed order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from headwater.core.statistics import Array
from headwater.kernels.parallel import run_slabs, slabs

EMPTY: Array = np.empty(0)
EMPTY_TABLE: Array = np.empty((0, 0))
EMPTY_CUBE: Array = np.empty((0, 0, 0))

Moments = tuple[Array, Array, Array]  # counts, first and second moments, which a kernel adds to


def sum_slabs(work: Callable[[int, int, Moments], float], rows: int, moments: Moments, n_threads: int | None) -> float:
    """Call work(start, stop, moments) for every slab, add what they gather to `moments`, in place; return the sum of scores.

    Moments that are empty stay so.
    """
    number = len(slabs(rows))
    if number == 1:
        return work(0, rows, moments)
    count, first, second = moments
    targets = [(np.zeros(count.shape), np.zeros(first.shape), np.zeros(second.shape)) for _ in range(number)]
    values = run_slabs(lambda slab, start, stop: work(start, stop, targets[slab]), rows, n_threads)
    for part in targets:
        for total, one in zip(moments, part, strict=True):
            total[...] += one
    return float(sum(values))
