"""E-step of K Gaussians of diagonal or spherical covariance on rows with gaps.

Columns are independent given the component, so missing ones are left out. Beside the moments there is `observed` (K, d), the
responsibility for values that were there.
"""

import numpy as np

from headwater.kernels._jit import helper, kernel
from headwater.kernels.fastmath import log
from headwater.kernels.gaussian import BLOCK_DIAG
from headwater.kernels.mixture import responsibilities_block

FARTHEST = 1e300  # a squared distance, which times 0 is 0


@helper
def load_gapped_block(X, missing, start, rows, origin, block, there):
    """Copy rows into a block with one row of memory per column, about the origin; gaps are 0, there and in `there`."""
    for j in range(X.shape[1]):
        centre = origin[j]
        for b in range(rows):
            lacking = int(missing[start + b, j])
            value = X[start + b, j] - centre  # read either way: a branch that is taken at random costs more
            there[j, b] = 1.0 - lacking
            block[j, b] = 0.0 if lacking else value


@helper
def add_squares(block, there, rows, factor, shift, constants, squared):
    """Add the squared distances of what was observed, less twice what each observed column adds to the log-density."""
    width = factor.size
    j = 0
    while j + 2 <= width:
        f0, f1, s0, s1, c0, c1 = factor[j], factor[j + 1], shift[j], shift[j + 1], 2.0 * constants[j], 2.0 * constants[j + 1]
        for b in range(rows):
            y = f0 * block[j, b] - s0
            z = f1 * block[j + 1, b] - s1
            squared[b] += there[j, b] * (min(y * y, FARTHEST) - c0) + there[j + 1, b] * (min(z * z, FARTHEST) - c1)
        j += 2
    if j < width:
        f0, s0, c0 = factor[j], shift[j], 2.0 * constants[j]
        for b in range(rows):
            y = f0 * block[j, b] - s0
            squared[b] += there[j, b] * (min(y * y, FARTHEST) - c0)


@helper
def add_tails(block, there, rows, factor, shift, constants, power, stretch, squared):
    """Do the same where each column has the tail of a Student-t."""
    for j in range(factor.size):
        scale, centre, twice, wide, constant = factor[j], shift[j], 2.0 * power[j], stretch[j], 2.0 * constants[j]
        for b in range(rows):
            y = scale * block[j, b] - centre
            squared[b] += there[j, b] * (twice * log(1.0 + min(wide * y * y, 1e300)) - constant)


@helper
def add_row_tails(there, rows, constants, log_weight, gap_offset, gap_power, number, peak, squared):
    """Turn squared distances into -2 log-densities where all columns that were observed have the tail of one Student-t."""
    for b in range(rows):
        peak[b] = log_weight + gap_offset[number[b]]
    for j in range(constants.size):
        for b in range(rows):
            peak[b] += there[j, b] * constants[j]
    for b in range(rows):
        tail = log(1.0 + min(squared[b], 1e300))
        squared[b] = 2.0 * (gap_power[number[b]] * tail - peak[b])


@helper
def add_column_moments(shares, block, there, rows, first, second, observed):
    """Add the first and second moments of columns, and the shares of values that were there."""
    width = first.size
    j = 0
    while j + 2 <= width:
        m0, m1, q0, q1, n0, n1 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for b in range(rows):
            p0, p1 = shares[b] * block[j, b], shares[b] * block[j + 1, b]
            m0 += p0
            m1 += p1
            q0 += p0 * block[j, b]
            q1 += p1 * block[j + 1, b]
            n0 += shares[b] * there[j, b]
            n1 += shares[b] * there[j + 1, b]
        first[j] += m0
        first[j + 1] += m1
        second[j] += q0
        second[j + 1] += q1
        observed[j] += n0
        observed[j + 1] += n1
        j += 2
    if j < width:
        m0, q0, n0 = 0.0, 0.0, 0.0
        for b in range(rows):
            p0 = shares[b] * block[j, b]
            m0 += p0
            q0 += p0 * block[j, b]
            n0 += shares[b] * there[j, b]
        first[j] += m0
        second[j] += q0
        observed[j] += n0


@kernel
def estep_columns_gaps(
    X, missing, start, stop, weights, labels, origin, factor, shift, log_weights, constants, gap_offset, gap_power, power,
    stretch, columns_tail, row_tail, scores, responsibilities, given, count, first, second, observed,
):  # fmt: skip
    """Add rows. `constants` (K, d) is what each column adds to the log-density.

    With `columns_tail` each column has the tail of a Student-t; with `row_tail` all columns that were observed have one, of
    power `gap_power` (K, d + 1) by the number of gaps, which adds `gap_offset`; its stretch is in the factor.
    """
    n_components, width = shift.shape
    size = min(BLOCK_DIAG, stop - start)
    block, there = np.empty((width, size)), np.empty((width, size))
    number = np.empty(size, np.int64)
    log_joint = np.empty((n_components, size))
    peak, total = np.empty(size), np.empty(size)
    nothing, one, no_constants = np.zeros(n_components), np.ones(n_components), np.zeros(width)
    score = 0.0
    for at in range(start, stop, size):
        rows = min(size, stop - at)
        load_gapped_block(X, missing, at, rows, origin, block, there)
        if row_tail:
            for b in range(rows):
                number[b] = width
            for j in range(width):
                for b in range(rows):
                    number[b] -= int(there[j, b])
        if not given:
            for k in range(n_components):
                for b in range(rows):
                    log_joint[k, b] = 0.0 if row_tail else -2.0 * log_weights[k]
                if columns_tail:
                    add_tails(block, there, rows, factor[k], shift[k], constants[k], power[k], stretch[k], log_joint[k])
                else:
                    added = no_constants if row_tail else constants[k]
                    add_squares(block, there, rows, factor[k], shift[k], added, log_joint[k])
                if row_tail:
                    add_row_tails(
                        there, rows, constants[k], log_weights[k], gap_offset[k], gap_power[k], number, peak, log_joint[k]
                    )
        score += responsibilities_block(
            log_joint, peak, total, rows, at, weights, labels, nothing, nothing, one, scores, responsibilities, given
        )
        if count.size:
            for k in range(n_components):
                mass = 0.0
                for b in range(rows):
                    mass += log_joint[k, b]
                count[k] += mass
                add_column_moments(log_joint[k], block, there, rows, first[k], second[k], observed[k])
    return score
