"""E-step of K Gaussians on rows with gaps: as in gaussian.py, with the missing values integrated out.

Full and tied covariance. With P = factor' factor, and zeros in the gaps m of x, the squared distance of what was observed is
the least over what may be in the gaps: that of the row completed by -y, where P_mm y = (P x - P mean)_m, with covariance
P_mm^-1, which is added to the second moments. The completed row is whitened, no two squares are subtracted, so an error in y is
felt in the second order only. The log-density gains
(m log 2 pi - log|P_mm|) / 2 by the columns integrated out; a Student-t keeps its degrees of freedom.

Diagonal and spherical covariance: columns are independent given the component, so missing ones are left out.

`missing` (n, d) is the mask; rows with as many gaps follow one another, and among these such as have the same, so that they
share a factorisation, or are factorised side by side. Rows without a gap, or without a value, do not come here. Beside the
moments there are `observed` (K, d), the responsibility for values that were there, and `known` (K, d), in which a gap counts by
what the other columns tell of it.
"""

import math

import numpy as np

from headwater.kernels._jit import helper, kernel
from headwater.kernels.fastmath import log
from headwater.kernels.gaussian import BLOCK_DIAG, LEAST_GATHERED, NEGLIGIBLE, add_moments, whiten
from headwater.kernels.mixture import responsibilities_block

BLOCK = 128
LEAST_RUN = 8  # rows with the same gaps from which they share a factorisation
LANES_MEMORY, LEAST_LANES = 32768, 8  # numbers that factorisations side by side may take, and rows that they are for
LEAST_PIVOT = 1e-14  # of a diagonal element: a smaller one is rounding


@helper
def load_gapped_block(X, missing, start, rows, origin, block):
    """Copy rows into a block with one row of memory per column, about the origin; gaps are 0."""
    for j in range(X.shape[1]):
        for b in range(rows):
            block[j, b] = 0.0 if missing[start + b, j] else X[start + b, j] - origin[j]


@helper
def load_listed_block(X, missing, listed, start, rows, origin, block):
    """Copy listed rows into such a block."""
    for b in range(rows):
        row = listed[start + b]
        for j in range(X.shape[1]):
            block[j, b] = 0.0 if missing[row, j] else X[row, j] - origin[j]


@helper
def find_gaps(missing, listed, start, rows, places, number, same):
    """List the gaps of each row of a block (width, rows), how many they are, and whether they are those of the row before."""
    width = missing.shape[1]
    for b in range(rows):
        m = 0
        for j in range(width):
            if missing[listed[start + b], j]:
                places[m, b] = j
                m += 1
        number[b] = m
        same[b] = b > 0 and number[b - 1] == m
        if same[b]:
            for a in range(m):
                if places[a, b] != places[a, b - 1]:
                    same[b] = False


@helper
def decompose(precision, places, m, root):
    """Write the Cholesky factor of the (m, m) block of a precision."""
    for a in range(m):
        for c in range(a + 1):
            value = precision[places[a], places[c]]
            for q in range(c):
                value -= root[a, q] * root[c, q]
            if a == c:
                root[a, a] = math.sqrt(max(value, LEAST_PIVOT * precision[places[a], places[a]]))
            else:
                root[a, c] = value / root[c, c]


@helper
def factorize(precision, places, m, root):
    """Do the same, and return half the log-determinant of the block."""
    decompose(precision, places, m, root)
    half = 0.0
    product = 1.0
    for a in range(m):
        product *= root[a, a]
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
def solve_shared(root, m, begin, end, y):
    """Solve root root' y = y in place for rows begin to end of a block, which have the same gaps; one row of `y` for each."""
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


@helper
def solve_lanes(precision, places, m, begin, end, roots, y, half):
    """Do so for rows that have m gaps, each its own: all factorisations side by side. `half` are their log-determinants.

    `roots` has one row of memory for each entry of a lower triangle, and the inverses of the pivots.
    """
    lanes = end - begin
    for b in range(begin, end):
        half[b] = 0.0
    for a in range(m):
        head = a * (a + 1) // 2
        for c in range(a + 1):
            at, other = head + c, c * (c + 1) // 2
            for lane in range(lanes):
                roots[at, lane] = precision[places[a, begin + lane], places[c, begin + lane]]
            if a == c:
                for lane in range(lanes):
                    y[m, begin + lane] = LEAST_PIVOT * roots[at, lane]  # room for one more
            for q in range(c):
                for lane in range(lanes):
                    roots[at, lane] -= roots[head + q, lane] * roots[other + q, lane]
            if a == c:
                for lane in range(lanes):
                    value = max(roots[at, lane], y[m, begin + lane])
                    half[begin + lane] += 0.5 * log(value)
                    roots[at, lane] = 1.0 / math.sqrt(value)
            else:
                for lane in range(lanes):
                    roots[at, lane] *= roots[other + c, lane]
    for a in range(m):
        head = a * (a + 1) // 2
        for c in range(a):
            for lane in range(lanes):
                y[a, begin + lane] -= roots[head + c, lane] * y[c, begin + lane]
        for lane in range(lanes):
            y[a, begin + lane] *= roots[head + a, lane]
    for back in range(m):
        a = m - 1 - back
        for c in range(a + 1, m):
            for lane in range(lanes):
                y[a, begin + lane] -= roots[c * (c + 1) // 2 + a, lane] * y[c, begin + lane]
        for lane in range(lanes):
            y[a, begin + lane] *= roots[a * (a + 1) // 2 + a, lane]


@helper
def complete_block(precision, pull, block, rows, places, number, same, wanted, slopes, root, roots, y, half):
    """Write y (m, rows), by which a component completes the rows of a block, and half the log-determinant of each P_mm.

    P_mm y = g_m, where g = P x - pull is the slope of the squared distance; `wanted` are the columns that some row lacks.
    """
    width = precision.shape[0]
    for j in range(width):
        if not wanted[j]:
            continue
        level = pull[j]
        for b in range(rows):
            slopes[j, b] = -level
        i = 0
        while i + 4 <= width:
            p0, p1, p2, p3 = precision[j, i], precision[j, i + 1], precision[j, i + 2], precision[j, i + 3]
            for b in range(rows):
                slopes[j, b] += p0 * block[i, b] + p1 * block[i + 1, b] + p2 * block[i + 2, b] + p3 * block[i + 3, b]
            i += 4
        while i < width:
            p0 = precision[j, i]
            for b in range(rows):
                slopes[j, b] += p0 * block[i, b]
            i += 1
    begin = 0
    while begin < rows:
        m, end = number[begin], begin + 1
        while end < rows and same[end]:
            end += 1
        shared = end - begin >= LEAST_RUN
        if not shared:
            most = min(rows, begin + roots.shape[1])
            end = min(end, most)
            while end < most and number[end] == m:
                end += 1
        for a in range(m):
            for b in range(begin, end):
                y[a, b] = slopes[places[a, b], b]
        if shared:
            level = factorize(precision, places[:, begin], m, root)
            for b in range(begin, end):
                half[b] = level
            solve_shared(root, m, begin, end, y)
        else:
            solve_lanes(precision, places, m, begin, end, roots, y, half)
        begin = end


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

    `observed` and `known`, one row of masses each, lose what was not there.
    """
    if m == 1:
        j = places[0]
        variance = 1.0 / precision[j, j]
        second[j, j] += spread * variance
        observed[j] -= share
        known[j] -= share * min(variance / variances[j], 1.0)
        return
    decompose(precision, places, m, root)
    invert(root, m, inverse)
    for a in range(m):
        for c in range(a + 1):
            second[places[a], places[c]] += spread * inverse[a, c]
    for a in range(m):
        j = places[a]
        observed[j] -= share
        known[j] -= share * min(inverse[a, a] / variances[j], 1.0)


@helper
def complete_rows(completed, rows, places, number, y):
    """Write -y into the gaps of a block of rows; what was observed is there."""
    for b in range(rows):
        for a in range(number[b]):
            completed[places[a, b], b] = -y[a, b]


@helper
def gather_completed(shares, block, rows, places, number, y, weights, at, some_shares, chosen):
    """Copy the rows whose shares are not negligible, completed by y."""
    some = 0
    for b in range(rows):
        if shares[b] > NEGLIGIBLE * (weights[at + b] if weights.size else 1.0):
            some_shares[some] = shares[b]
            for i in range(block.shape[0]):
                chosen[i, some] = block[i, b]
            for a in range(number[b]):
                chosen[places[a, b], some] = -y[a, b]
            some += 1


@helper
def add_spreads(
    shares, rows, spread, precision, places, number, same, variances, root, inverse, second, observed, known, weights, at
):
    """Add what a block of rows leaves open, of those whose shares are not negligible."""
    share = 0.0
    wide = 0.0
    last = 0
    for b in range(rows + 1):
        if b == rows or not same[b]:
            if share > 0.0:
                m = number[last]
                add_spread(
                    share, wide, precision, places[:, last], m, variances, root, inverse, second, observed, known
                )  # fmt: skip
            share = 0.0
            wide = 0.0
        if b < rows and shares[b] > NEGLIGIBLE * (weights[at + b] if weights.size else 1.0):
            last = b
            share += shares[b]
            wide += shares[b] * spread[b]


@kernel
def estep_matrix_gaps(
    X, missing, listed, start, stop, weights, labels, origin, factor, pull, precision, variances, shift, offset, gap_offset,
    gap_power, stretch, scores, responsibilities, given, count, first, second, observed, known,
):  # fmt: skip
    """E-step of full covariance; of tied covariance, factor, precision and second have one matrix.

    Rows are those `listed`, in this order, in which weights, labels, scores and responsibilities are, too. `pull` is P times
    the means.
    """
    n_components, width = shift.shape
    size = min(BLOCK, stop - start)
    gathers = n_components * width >= LEAST_GATHERED
    triangle = width * (width + 1) // 2
    lanes = max(min(size, LANES_MEMORY // triangle), LEAST_LANES)
    block, completed, slopes = np.empty((width, size)), np.empty((width, size)), np.empty((width, size))
    chosen, column = np.empty((width, size)), np.empty(size)
    places, number, same = np.empty((width, size), np.int64), np.empty(size, np.int64), np.empty(size, np.bool_)
    wanted = np.empty(width, np.bool_)
    filled = np.empty((n_components, width + 1, size))
    half, spread = np.empty(size), np.ones((n_components, size))
    log_joint = np.empty((n_components, size))
    root, inverse, roots = np.empty((width, width)), np.empty((width, width)), np.empty((triangle, lanes))
    some_shares, peak, total = np.empty(size), np.empty(size), np.empty(size)
    nothing, one = np.zeros(n_components), np.ones(n_components)
    score = 0.0
    for at in range(start, stop, size):
        rows = min(size, stop - at)
        load_listed_block(X, missing, listed, at, rows, origin, block)
        find_gaps(missing, listed, at, rows, places, number, same)
        for j in range(width):
            wanted[j] = False
            for b in range(rows):
                completed[j, b] = block[j, b]
        for b in range(rows):
            for a in range(number[b]):
                wanted[places[a, b]] = True
        for k in range(n_components):
            own = k if factor.shape[0] > 1 else 0
            complete_block(
                precision[own], pull[k], block, rows, places, number, same, wanted, slopes, root, roots, filled[k], half
            )  # fmt: skip
            if given:
                continue
            complete_rows(completed, rows, places, number, filled[k])
            for b in range(rows):
                log_joint[k, b] = 0.0
            for i in range(width):
                whiten(factor[own], completed, rows, i, column)
                centre = shift[k, i]
                for b in range(rows):
                    log_joint[k, b] += (column[b] - centre) * (column[b] - centre)
            if gap_power[k, 0] > 0.0:  # of a Student-t whose degrees of freedom and columns are 2 power in all
                for b in range(rows):
                    power = gap_power[k, number[b]]
                    tail = 1.0 + min(stretch[k] * log_joint[k, b], 1e300)
                    spread[k, b] = tail / (max(2.0 * power - 2.0, 1.0) * stretch[k])
                    log_joint[k, b] = 2.0 * power * log(tail)
            for b in range(rows):
                log_joint[k, b] += 2.0 * (half[b] - offset[k] - gap_offset[k, number[b]])
        score += responsibilities_block(
            log_joint, peak, total, rows, at, weights, labels, nothing, nothing, one, scores, responsibilities, given
        )
        for k in range(n_components if count.size else 0):
            own = k if second.shape[0] > 1 else 0
            mass = 0.0
            for b in range(rows):
                mass += log_joint[k, b]
            count[k] += mass
            for j in range(width):
                observed[k, j] += mass
                known[k, j] += mass
            some = rows
            if gathers:
                some = 0
                for b in range(rows):
                    some += log_joint[k, b] > NEGLIGIBLE * (weights[at + b] if weights.size else 1.0)
            if 4 * some > 3 * rows:
                complete_rows(completed, rows, places, number, filled[k])
                add_moments(log_joint[k], completed, rows, first[k], second[own], column)
            else:
                gather_completed(log_joint[k], block, rows, places, number, filled[k], weights, at, some_shares, chosen)
                add_moments(some_shares, chosen, some, first[k], second[own], column)
            add_spreads(
                log_joint[k], rows, spread[k], precision[own], places, number, same, variances[own], root, inverse, second[own],
                observed[k], known[k], weights, at,
            )  # fmt: skip
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
                            y = scale * block[j, b] - centre * there[j, b]  # 0 in a gap
                            log_joint[k, b] += y * y - constant * there[j, b]
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
