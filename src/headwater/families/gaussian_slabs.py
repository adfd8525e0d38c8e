"""E-steps over slabs of rows, each of which adds to moments of its own; they are summed in a fixed order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from headwater.core.state import Batch
from headwater.core.statistics import Array
from headwater.families.gaussian_records import GaussianStatistics
from headwater.kernels.parallel import run_slabs, slabs

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
    if totals is None:
        targets: list[Moments] = [(np.empty(0), np.empty((0, 0)), no_second)] * number
    elif number == 1:
        targets = [(totals.count, totals.first, totals.second)]
    else:
        parts = [zeros(totals.first.shape[1]) for _ in range(number)]
        targets = [(part.count, part.first, part.second) for part in parts]
    values = run_slabs(lambda slab, start, stop: work(start, stop, targets[slab]), len(batch), n_threads)
    if totals is not None and number > 1:
        for count, first, second in targets:
            totals.count[...] += count
            totals.first[...] += first
            totals.second[...] += second
    return float(sum(values))
