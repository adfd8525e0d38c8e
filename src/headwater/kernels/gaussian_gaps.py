"""E-step of K Gaussians on rows with gaps: as in gaussian.py, with the missing values integrated out.

Full and tied covariance. With w = factor (x - origin) - shift, zeros in the gaps m of x, and F_m the columns of the factor
there, the squared distance of what was observed is the least |w - F_m y|^2 over y: P_mm y = F_m' w, P = factor' factor.
The residual is squared, not the difference of two squares, so an error in y is felt in the second order only. The component
completes the row by -y, with covariance P_mm^-1, which is added to the second moments. The log-density gains
(m log 2 pi - log|P_mm|) / 2 by the columns integrated out; a Student-t keeps its degrees of freedom.

Diagonal and spherical covariance: columns are independent given the component, so missing ones are left out.

`missing` (n, d) is the mask; rows with the same gaps follow one another, so that they share a factorisation. Rows without a
gap, or without a value, do not come here. Beside the moments there are `observed` (K, d), the responsibility for values that
were there, and `known` (K, d), in which a gap counts by what the other columns tell of it.
"""

import math

import numpy as np

from headwater.kernels._jit import helper, kernel
from headwater.kernels.fastmath import log
from headwater.kernels.gaussian import BLOCK_DIAG, NEGLIGIBLE, add_moments, whiten
from headwater.kernels.mixture import responsibilities_block

BLOCK = 128
LEAST_RUN = 4  # rows with the same gaps from which they are completed side by side
LEAST_PIVOT = 1e-14  # of a diagonal element: a smaller one is rounding


@helper
def load_gapped_block(X, missing, start, rows, origin, block):
    """Copy rows into a block with one row of memory per column, about the origin; gaps are 0."""
    for j in range(X.shape[1]):
        for b in range(rows):
            block[j, b] = 0.0 if missing[start + b, j] else X[start + b, j] - origin[j]


@helper
def find_gaps(missing, start, rows, places, number, same):
    """List the gaps of each row of a block, how many they are, and whether they are those of the row before."""
    width = missing.shape[1]
    for b in range(rows):
        m = 0
        for j in range(width):
            if missing[start + b, j]:
                places[b, m] = j
                m += 1
        number[b] = m
        same[b] = b > 0 and number[b - 1] == m
        if same[b]:
            for a in range(m):
                if places[b, a] != places[b - 1, a]:
                    same[b] = False


@helper
def factorize(precision, places, m, root):
    """Write the Cholesky factor of the (m, m) block of a precision; return half its log-determinant."""
    product, half = 1.0, 0.0
    for a in range(m):
        for c in range(a + 1):
            value = precision[places[a], places[c]]
            for q in range(c):
                value -= root[a, q] * root[c, q]
            if a == c:
                pivot = math.sqrt(max(value, LEAST_PIVOT * precision[places[a], places[a]]))
                root[a, a] = pivot
                product *= pivot
            else:
                root[a, c] = value / root[c, c]
        if product > 1e100 or product < 1e-100:  # one logarithm for many pivots
            half += math.log(product)
            product = 1.0
    return half + math.log(product)


@helper
def solve(root, m, y):
    """Solve root root' y = y in place."""
    for a in range(m):
        value = y[a]
        for c in range(a):
            value -= root[a, c] * y[c]
        y[a] = value / root[a, a]
    for back in range(m):
        a = m - 1 - back
        value = y[a]
        for c in range(a + 1, m):
            value -= root[c, a] * y[c]
        y[a] = value / root[a, a]


@helper
def complete_row(turned, places, m, root, white, y):
    """Write y, by which a component completes a row, and return the squared distance of what was observed.

    `white` is changed into the residual. `turned` is the factor with its columns as rows.
    """
    width = white.size
    for a in range(m):
        column = places[a]
        value = 0.0
        for i in range(column, width):
            value += turned[column, i] * white[i]
        y[a] = value
    solve(root, m, y)
    for a in range(m):
        column, times = places[a], y[a]
        for i in range(column, width):
            white[i] -= times * turned[column, i]
    distance = 0.0
    for i in range(width):
        distance += white[i] * white[i]
    return distance


@helper
def complete_run(turned, places, m, root, white, begin, end, y, distance):
    """Do what `complete_row` does for rows begin to end of a block, which have the same gaps, side by side.

    `white` has one row of memory per column, and `y` one per gap.
    """
    width = white.shape[0]
    for a in range(m):
        column = places[a]
        for b in range(begin, end):
            y[a, b] = 0.0
        for i in range(column, width):
            times = turned[column, i]
            for b in range(begin, end):
                y[a, b] += times * white[i, b]
    for a in range(m):
        for c in range(a):
            times = root[a, c]
            for b in range(begin, end):
                y[a, b] -= times * y[c, b]
        pivot = 1.0 / root[a, a]
        for b in range(begin, end):
            y[a, b] *= pivot
    for back in range(m):
        a = m - 1 - back
        for c in range(a + 1, m):
            times = root[c, a]
            for b in range(begin, end):
                y[a, b] -= times * y[c, b]
        pivot = 1.0 / root[a, a]
        for b in range(begin, end):
            y[a, b] *= pivot
    for a in range(m):
        column = places[a]
        for i in range(column, width):
            times = turned[column, i]
            for b in range(begin, end):
                white[i, b] -= times * y[a, b]
    for b in range(begin, end):
        distance[b] = 0.0
    for i in range(width):
        for b in range(begin, end):
            distance[b] += white[i, b] * white[i, b]


@helper
def invert(root, m, inverse):
    """Write the lower triangle of the inverse of root root'; `root` is changed into its own inverse."""
    for a in range(m):
        pivot = 1.0 / root[a, a]
        for c in range(a):
            value = 0.0
            for q in range(c, a):
                value -= root[a, q] * root[q, c]
            root[a, c] = value * pivot
        root[a, a] = pivot
    for a in range(m):
        for c in range(a + 1):
            value = 0.0
            for q in range(a, m):
                value += root[q, a] * root[q, c]
            inverse[a, c] = value


@helper
def add_spread(share, spread, precision, places, m, variances, root, inverse, second, observed, known):
    """Add what rows with the same gaps, of this share in all, leave open: the covariance of completed values, `spread` times.

    `observed` and `known` are one row of masses each.
    """
    factorize(precision, places, m, root)
    invert(root, m, inverse)
    for a in range(m):
        for c in range(a + 1):
            second[places[a], places[c]] += spread * inverse[a, c]
    for j in range(observed.size):
        observed[j] += share
        known[j] += share
    for a in range(m):
        j = places[a]
        observed[j] -= share
        known[j] -= share * min(inverse[a, a] / variances[j], 1.0)


@kernel
def estep_matrix_gaps(
    X, missing, start, stop, weights, labels, origin, factor, turned, precision, variances, shift, offset, gap_offset,
    gap_power, stretch, scores, responsibilities, given, count, first, second, observed, known,
):  # fmt: skip
    """E-step of full covariance; of tied covariance, factor, precision and second have one matrix."""
    n_components, width = shift.shape
    size = min(BLOCK, stop - start)
    block, white = np.empty((width, size)), np.empty((width, size))
    chosen = np.empty((width, size))
    places, number, same = np.empty((size, width), np.int64), np.empty(size, np.int64), np.empty(size, np.bool_)
    filled = np.empty((n_components, width, size))
    spread = np.ones((n_components, size))
    log_joint = np.empty((n_components, size))
    root, inverse = np.empty((width, width)), np.empty((width, width))
    row, solved, column = np.empty(width), np.empty(width), np.empty(size)
    some_shares, peak, total = np.empty(size), np.empty(size), np.empty(size)
    nothing, one = np.zeros(n_components), np.ones(n_components)
    score = 0.0
    for at in range(start, stop, size):
        rows = min(size, stop - at)
        load_gapped_block(X, missing, at, rows, origin, block)
        find_gaps(missing, at, rows, places, number, same)
        for k in range(n_components):
            own = k if factor.shape[0] > 1 else 0
            for i in range(width):
                whiten(factor[own], block, rows, i, white[i])
                centre = shift[k, i]
                for b in range(rows):
                    white[i, b] -= centre
            begin = 0
            while begin < rows:
                end = begin + 1
                while end < rows and same[end]:
                    end += 1
                m = number[begin]
                half = factorize(precision[own], places[begin], m, root)
                if end - begin >= LEAST_RUN:
                    complete_run(turned[own], places[begin], m, root, white, begin, end, filled[k], log_joint[k])
                else:
                    for b in range(begin, end):
                        for i in range(width):
                            row[i] = white[i, b]
                        log_joint[k, b] = complete_row(turned[own], places[b], m, root, row, solved)
                        for a in range(m):
                            filled[k, a, b] = solved[a]
                power, constant = gap_power[k, m], 2.0 * (half - offset[k] - gap_offset[k, m])
                if power > 0.0:
                    # of a Student-t whose degrees of freedom and columns are 2 power in all
                    wide = 1.0 / (max(2.0 * power - 2.0, 1.0) * stretch[k])
                    for b in range(begin, end):
                        tail = 1.0 + min(stretch[k] * log_joint[k, b], 1e300)
                        spread[k, b] = tail * wide
                        log_joint[k, b] = 2.0 * power * log(tail) + constant
                else:
                    for b in range(begin, end):
                        log_joint[k, b] += constant
                begin = end
        score += responsibilities_block(
            log_joint, peak, total, rows, at, weights, labels, nothing, nothing, one, scores, responsibilities, given
        )
        if count.size:
            for k in range(n_components):
                own = k if second.shape[0] > 1 else 0
                mass = 0.0
                for b in range(rows):
                    mass += log_joint[k, b]
                count[k] += mass
                some, last = 0, 0
                share, wide = 0.0, 0.0
                for b in range(rows):
                    if not same[b]:
                        if share > 0.0:
                            add_spread(
                                share, wide, precision[own], places[last], number[last], variances[own], root, inverse,
                                second[own], observed[k], known[k],
                            )  # fmt: skip
                        share, wide = 0.0, 0.0
                    if log_joint[k, b] > NEGLIGIBLE * (weights[at + b] if weights.size else 1.0):
                        last = b
                        share += log_joint[k, b]
                        wide += log_joint[k, b] * spread[k, b]
                        some_shares[some] = log_joint[k, b]
                        for i in range(width):
                            chosen[i, some] = block[i, b]
                        for a in range(number[b]):
                            chosen[places[b, a], some] = -filled[k, a, b]
                        some += 1
                if share > 0.0:
                    add_spread(
                        share, wide, precision[own], places[last], number[last], variances[own], root, inverse, second[own],
                        observed[k], known[k],
                    )  # fmt: skip
                add_moments(some_shares, chosen, some, first[k], second[own], column)
    return score


@kernel
def estep_columns_gaps(
    X, missing, start, stop, weights, labels, origin, factor, shift, log_weights, constants, gap_offset, gap_power, power,
    stretch, columns_tail, row_tail, scores, responsibilities, given, count, first, second, observed,
):  # fmt: skip
    """E-step of diagonal and spherical covariance. `constants` (K, d) is what each column adds to the log-density.

    With `columns_tail` each column has the tail of a Student-t; with `row_tail` all columns that were observed have one, of
    power `gap_power` (K, d + 1) by the number of gaps, which adds `gap_offset`; its stretch is in the factor.
    """
    n_components, width = shift.shape
    size = min(BLOCK_DIAG, stop - start)
    block, there = np.empty((width, size)), np.empty((width, size))
    number = np.empty(size, np.int64)
    log_joint = np.empty((n_components, size))
    peak, total = np.empty(size), np.empty(size)
    nothing, one = np.zeros(n_components), np.ones(n_components)
    score = 0.0
    for at in range(start, stop, size):
        rows = min(size, stop - at)
        load_gapped_block(X, missing, at, rows, origin, block)
        for j in range(width):
            for b in range(rows):
                there[j, b] = 0.0 if missing[at + b, j] else 1.0
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
                for j in range(width):
                    scale, centre = factor[k, j], shift[k, j]
                    if columns_tail:
                        twice, wide, constant = 2.0 * power[k, j], stretch[k, j], 2.0 * constants[k, j]
                        for b in range(rows):
                            y = scale * block[j, b] - centre
                            log_joint[k, b] += there[j, b] * (twice * log(1.0 + min(wide * y * y, 1e300)) - constant)
                    else:
                        constant = 0.0 if row_tail else 2.0 * constants[k, j]
                        for b in range(rows):
                            y = scale * block[j, b] - centre
                            log_joint[k, b] += there[j, b] * (y * y - constant)
                if row_tail:
                    for b in range(rows):
                        peak[b] = log_weights[k] + gap_offset[k, number[b]]
                    for j in range(width):
                        for b in range(rows):
                            peak[b] += there[j, b] * constants[k, j]
                    for b in range(rows):
                        tail = log(1.0 + min(log_joint[k, b], 1e300))
                        log_joint[k, b] = 2.0 * (gap_power[k, number[b]] * tail - peak[b])
        score += responsibilities_block(
            log_joint, peak, total, rows, at, weights, labels, nothing, nothing, one, scores, responsibilities, given
        )
        if count.size:
            for k in range(n_components):
                mass = 0.0
                for b in range(rows):
                    mass += log_joint[k, b]
                count[k] += mass
                for j in range(width):
                    moment = 0.0
                    square = 0.0
                    seen = 0.0
                    for b in range(rows):
                        product = log_joint[k, b] * block[j, b]
                        moment += product
                        square += product * block[j, b]
                        seen += log_joint[k, b] * there[j, b]
                    first[k, j] += moment
                    second[k, j] += square
                    observed[k, j] += seen
    return score
