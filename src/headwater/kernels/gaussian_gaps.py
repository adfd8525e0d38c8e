"""E-step of K Gaussians of full or tied covariance on rows with gaps: as in gaussian.py, with missing values integrated out.

A row is first completed by the mean of a component, and whitened: w = F (x - mu). With P = F'F and the gaps m of the row, the
squared distance of what was observed is the least over what may be in the gaps: |w|^2 - g'y, where g = (F'w)_m and P_mm y = g,
at x_m = mu_m - y, with covariance P_mm^-1, which is added to the second moments. Where that difference would lose digits, the
row is completed so and whitened again: no squares are subtracted then, and an error in y is felt in the second order only. The
log-density gains (m log 2 pi - log|P_mm|) / 2 by the columns integrated out; a Student-t keeps its degrees of freedom.

`missing` (n, d) is the mask; rows with as many gaps follow one another, and among these such as have the same, which share
factors (gap_patterns.py). Rows without a gap, or without a value, do not come here. Beside the moments there are `observed`
(K, d), the responsibility for values that were there, and `known` (K, d), in which a gap counts by what the other columns tell
of it.
"""

import numpy as np

from headwater.kernels._jit import kernel, routine
from headwater.kernels.fastmath import log
from headwater.kernels.gap_patterns import (
    SHARED,
    add_open_moments,
    add_scaled,
    complete_rows,
    count_gaps,
    decompose_patterns,
    find_floors,
    invert_factors,
    load_alike,
    read_gaps,
    solve_lower,
    solve_upper,
    spread_values,
    sum_by_pattern,
    widen,
)
from headwater.kernels.gaussian import LEAST_GATHERED, NEGLIGIBLE, add_moments, gather, whiten
from headwater.kernels.mixture import responsibilities_block

BLOCK, NARROW_BLOCK = 128, 256  # rows
NARROW = 24  # columns up to which a block may be long
MEMORY = 65536  # numbers that the factors of a block may take
LEAST_HELD = 32  # rows from which the factors of all components are held, rather than made twice
LEAST_ROWS = 8
FARTHEST = 1e300  # a squared distance
DIGITS = 1e4  # by so much squares may be larger than their difference


@routine
def measure(factor, shift, block, rows, white, distance):
    """Write w of each row of a block, and its square."""
    for b in range(rows):
        distance[b] = 0.0
    for i in range(shift.size):
        whiten(factor, block, rows, i, white[i])
        centre = shift[i]
        for b in range(rows):
            white[i, b] -= centre
        for b in range(rows):
            distance[b] += white[i, b] * white[i, b]


@routine
def find_slopes(turned, white, rows, wanted, slopes):
    """Write the slopes of the squared distance in the wanted columns, in units of S: those of F'w."""
    width = turned.shape[0]
    for j in range(width):
        if not wanted[j]:
            continue
        for b in range(rows):
            slopes[j, b] = 0.0
        i = j
        while i + 4 <= width:
            f0, f1, f2, f3 = turned[j, i], turned[j, i + 1], turned[j, i + 2], turned[j, i + 3]
            for b in range(rows):
                slopes[j, b] += f0 * white[i, b] + f1 * white[i + 1, b] + f2 * white[i + 2, b] + f3 * white[i + 3, b]
            i += 4
        while i < width:
            f0 = turned[j, i]
            for b in range(rows):
                slopes[j, b] += f0 * white[i, b]
            i += 1


@routine
def expect_rows(shares, mean, scale, y, listed, at, places, m, rows, filled):
    """Add to the gaps of rows what a component expects there, times its share."""
    for a in range(m):
        for b in range(rows):
            j = places[a, b]
            filled[listed[at + b], j] += shares[b] * (mean[j] - y[a, b] * scale[j])


@kernel
def estep_matrix_gaps(
    X, missing, listed, start, stop, weights, labels, origin, means, factor, turned, shape, scale, log_scale, narrow, shift,
    offset, gap_offset, gap_power, stretch, scores, responsibilities, given, filled, count, first, second, observed, known,
):  # fmt: skip
    """E-step of full covariance; of tied covariance, factor and second have one matrix, and what is made of factors.

    Rows are those `listed`, in this order, in which weights, labels, scores and responsibilities are, too. `scale` is S^-1,
    `turned` are the rows of S^-1 F', `shape` is R; `narrow` is the square of S^-1 in units of the variances. To the gaps of
    `filled`, which has all rows, or none, is added what is expected there, about the origin.
    """
    n_components, width = shift.shape
    matrices = factor.shape[0]
    size = min(NARROW_BLOCK if width <= NARROW else BLOCK, stop - start)
    most = count_gaps(missing, listed[stop - 1])
    largest = most * (most + 1) // 2
    memory = np.empty(max(min(MEMORY, matrices * largest * size), LEAST_ROWS * largest))
    inverses = np.empty(max(min(MEMORY, largest * size), LEAST_ROWS * largest))
    gathers = n_components * width >= LEAST_GATHERED
    chosen = np.empty((width if gathers else 0, size))
    block, white, slopes = np.empty((width, size)), np.empty((width, size)), np.empty((width, size))
    places, kinds = np.empty((most, size), np.uint32), np.empty((most, size), np.uint32)
    some_kinds, floor = np.empty((most, size), np.uint32), np.empty(size)
    begins, lane = np.empty(size + 1, np.uint32), np.empty(size, np.uint32)
    moments = np.zeros((matrices if count.size else 0, width, width))
    solved, y = np.empty((n_components, most, size)), np.empty((most, size))
    wanted = np.empty(width, np.bool_)
    half, least = np.empty((matrices, size)), np.empty((matrices, size))
    half_row, least_row = np.empty(size), np.empty(size)
    distance, taken, spread, column = np.empty(size), np.empty(size), np.ones((n_components, size)), np.empty(size)
    log_joint, peak, total = np.empty((n_components, size)), np.empty(size), np.empty(size)
    nothing, one = np.zeros(n_components), np.ones(n_components)
    score = 0.0
    at = start
    while at < stop:
        m = count_gaps(missing, listed[at])
        triangle = m * (m + 1) // 2
        held = MEMORY // (matrices * triangle) >= LEAST_HELD
        slots = matrices if held else 1
        rows = min(size, stop - at, max(MEMORY // (slots * triangle), LEAST_ROWS))
        rows, patterns = load_alike(X, missing, listed, at, rows, origin, m, block, places, begins)
        lanes = rows if SHARED * patterns > rows else patterns  # where few rows share a pattern, each has factors of its own
        for a in range(m):
            for u in range(lanes):
                kinds[a, u] = places[a, u if lanes == rows else begins[u]]
        factors = memory[: slots * triangle * lanes].reshape((slots, triangle, lanes))
        inverse = inverses[: triangle * patterns].reshape((triangle, patterns))
        for j in range(width):
            wanted[j] = False
        for a in range(m):
            for u in range(patterns):
                wanted[places[a, begins[u]]] = True
        for k in range(n_components):
            own = k if matrices > 1 else 0
            slot = own if held else 0
            if k == own:
                decompose_patterns(
                    shape[own], log_scale[own], kinds, lanes, m, factors[slot], half[own], least[own], column, taken
                )  # fmt: skip
            spread_values(means[k], block, places, m, rows, begins, lanes)
            measure(factor[own], shift[k], block, rows, white, distance)
            find_slopes(turned[own], white, rows, wanted, slopes)
            read_gaps(slopes, places, m, rows, begins, lanes, solved[k])
            solve_lower(factors[slot], m, rows, begins, lanes, solved[k], taken)
            if given:
                continue
            for b in range(rows):
                log_joint[k, b] = np.inf if distance[b] > FARTHEST else max(distance[b] - taken[b], 0.0)
            widen(half[own], rows, begins, lanes, half_row)
            widen(least[own], rows, begins, lanes, least_row)
            lost = 0
            for b in range(rows):
                lost += distance[b] > DIGITS * (1.0 + log_joint[k, b]) * least_row[b]
            if lost > 0:
                for b in range(rows):
                    taken[b] = distance[b]
                solve_upper(factors[slot], m, rows, begins, lanes, solved[k], y)
                complete_rows(means[k], scale[own], y, block, places, m, rows, begins, lanes)
                measure(factor[own], shift[k], block, rows, white, distance)
                for b in range(rows):
                    if taken[b] > DIGITS * (1.0 + log_joint[k, b]) * least_row[b]:
                        log_joint[k, b] = distance[b]
            if gap_power[k, 0] > 0.0:  # of a Student-t whose degrees of freedom and columns are 2 power in all
                power = gap_power[k, m]
                for b in range(rows):
                    tail = 1.0 + min(stretch[k] * log_joint[k, b], 1e300)
                    spread[k, b] = tail / (max(2.0 * power - 2.0, 1.0) * stretch[k])
                    log_joint[k, b] = 2.0 * power * log(tail)
            constant = offset[k] + gap_offset[k, m]
            for b in range(rows):
                log_joint[k, b] += 2.0 * (half_row[b] - constant)
        score += responsibilities_block(
            log_joint, peak, total, rows, at, weights, labels, nothing, nothing, one, scores, responsibilities, given
        )
        for k in range(n_components if filled.size else 0):
            slot = (k if matrices > 1 else 0) if held else 0
            own = k if matrices > 1 else 0
            if not held and matrices > 1:
                decompose_patterns(
                    shape[own], log_scale[own], kinds, lanes, m, factors[slot], half[own], least[own], column, taken
                )  # fmt: skip
            solve_upper(factors[slot], m, rows, begins, lanes, solved[k], y)
            expect_rows(log_joint[k], means[k], scale[own], y, listed, at, places, m, rows, filled)
        find_floors(weights, at, begins, patterns, NEGLIGIBLE, floor)
        for k in range(n_components if count.size else 0):
            own = k if matrices > 1 else 0
            slot = own if held else 0
            if not held and matrices > 1:
                decompose_patterns(
                    shape[own], log_scale[own], kinds, lanes, m, factors[slot], half[own], least[own], column, taken
                )  # fmt: skip
            mass = 0.0
            for b in range(rows):
                mass += log_joint[k, b]
            count[k] += mass
            for j in range(width):
                observed[k, j] += mass
                known[k, j] += mass
            solve_upper(factors[slot], m, rows, begins, lanes, solved[k], y)
            complete_rows(means[k], scale[own], y, block, places, m, rows, begins, lanes)
            some = gather(log_joint[k], block, rows, weights, at, column, chosen) if gathers else rows
            if some < rows:
                add_moments(column, chosen, some, first[k], second[own], peak)
            else:
                add_moments(log_joint[k], block, rows, first[k], second[own], column)
            found = sum_by_pattern(
                log_joint[k], spread[k], floor, rows, begins, patterns, lanes, places, m, taken, distance, lane, some_kinds
            )
            invert_factors(factors[slot], m, found, lane, inverse)
            add_open_moments(
                inverse, some_kinds, m, found, taken, distance, narrow[own], moments[own], observed[k], known[k], column
            )  # fmt: skip
        at += rows
    if count.size:
        for own in range(matrices):
            add_scaled(moments[own], scale[own], second[own])
    return score
