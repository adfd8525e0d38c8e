"""Patterns of gaps: their sizes, and an order of rows that puts equal patterns side by side."""

import numpy as np

from headwater.kernels._jit import kernel

HASHES = 1024  # classes of patterns among rows with the same number of gaps
FIRST_BITS = 63  # a pattern of wider rows is folded to so many bits


@kernel
def sort_by_gaps(missing, order, ends):
    """Write an order of rows by their number of gaps, in which those with the same gaps are near one another.

    `ends` (width + 2,) becomes where rows with no gap, one gap, and so on begin, and the number of rows.
    """
    n, width = missing.shape
    keys = np.empty(n, np.int64)
    counts = np.zeros((width + 1) * HASHES + 1, np.int64)
    for i in range(n):
        number = 0
        for j in range(width):
            number += int(missing[i, j])
        key = number * HASHES
        if 0 < number < width:
            pattern = 0
            for j in range(width):
                pattern ^= int(missing[i, j]) << (j % FIRST_BITS)
            # The upper bits of a product mix those of a pattern (Knuth's multiplicative hashing).
            key += ((pattern * 0x1E3779B97F4A7C15) >> 40) & (HASHES - 1)
        keys[i] = key
        counts[key + 1] += 1
    for key in range(counts.size - 1):
        counts[key + 1] += counts[key]
    for number in range(width + 2):
        ends[number] = counts[number * HASHES]
    for i in range(n):
        order[counts[keys[i]]] = i
        counts[keys[i]] += 1
