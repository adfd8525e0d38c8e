"""E-steps over slabs of rows, each of which adds to moments of its own; they are summed in a fixed order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from headwater.core.batch import Batch
from headwater.core.statistics import Array
from headwater.families.gaussian_records import GaussianStatistics
from headwater.kernels.parallel import run_slabs, slabs

EMPTY: Array = np.empty(0)
EMPTY_TABLE: Array = np.empty((0, 0))
EMPTY_CUBE: Array = np.empty((0, 0, 0))

Moments = tuple[Array, Array, Array]  # counts, first and second moments, which a kernel adds to


def sum_slabs(
    work: Callable[[int, int, Moments], float],
    batch: Batch,
    totals: GaussianStatistics | None,
    zeros: Callable[[int], GaussianStatistics],
    no_second: Array,
    n_threads: int | None,
) -> float:
    """Call work(start, stop, moments) for every slab, add what they gather to `totals`, in place, and return the sum of scores.

    Without totals, the moments are empty arrays.
    """
    number = len(slabs(len(batch)))
    shared: Moments = (EMPTY, EMPTY_TABLE, no_second) if totals is None else (totals.count, totals.first, totals.second)
    if number == 1:
        return work(0, len(batch), shared)
    targets = [shared] * number
    if totals is not None:
        parts = [zeros(totals.first.shape[1]) for _ in range(number)]
        targets = [(part.count, part.first, part.second) for part in parts]
    values = run_slabs(lambda slab, start, stop: work(start, stop, targets[slab]), len(batch), n_threads)
    if totals is not None:
        for count, first, second in targets:
            totals.count[...] += count
            totals.first[...] += first
            totals.second[...] += second
    return float(sum(values))
