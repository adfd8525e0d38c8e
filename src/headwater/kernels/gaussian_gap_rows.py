"""One row with gaps under one Gaussian of full or tied covariance: its distance, what completes it, and what it says.

As in gaussian_gaps.py, for a row at a time: P_mm is factorised for each, and the residual is made before it is squared.
"""

import math

from headwater.kernels._jit import helper, routine
from headwater.kernels.mixture import LOWEST

LOG_2_PI = math.log(2.0 * math.pi)
LEAST_PIVOT = 1e-14  # of a diagonal element: a smaller one is rounding


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
def load_row(X, missing, row, origin, x, gaps):
    """Copy a row about the origin, 0 in its gaps; list these and return how many there are."""
    m = 0
    for j in range(x.size):
        if missing[row, j]:
            x[j] = 0.0
            gaps[m] = j
            m += 1
        else:
            x[j] = X[row, j] - origin[j]
    return m


@helper
def turn(factor, turned):
    """Write the columns of a lower triangular factor as rows."""
    for i in range(factor.shape[0]):
        for j in range(i + 1):
            turned[j, i] = factor[i, j]


@routine
def measure_row(x, gaps, m, order, factor, turned, shift, white, block, root, y):
    """Return the squared distance of what was observed and half the log-determinant of the precision of the gaps.

    `y` becomes what completes the row, and `root` the Cholesky factor of that precision. `order` counts from 0.
    """
    width = x.size
    for i in range(width):
        value = -shift[i]
        for j in range(i + 1):
            value += factor[i, j] * x[j]
        white[i] = value
    if m == 0:
        distance = 0.0
        for i in range(width):
            distance += white[i] * white[i]
        return distance, 0.0
    for a in range(m):
        for c in range(a + 1):
            one, other = gaps[a], gaps[c]
            value = 0.0
            for i in range(max(one, other), width):
                value += turned[one, i] * turned[other, i]
            block[a, c] = value
    half = factorize(block, order, m, root)
    return complete_row(turned, gaps, m, root, white, y), half


@helper
def log_joint_of(distance, half, m, offset, power, stretch):
    """Return the log-density of what was observed, and the factor of the covariance of what was completed."""
    if power > 0.0:  # a Student-t keeps its degrees of freedom, so its power falls by half of each gap
        left = power - 0.5 * m
        tail = 1.0 + min(stretch * distance, 1e300)
        constant = offset - half - left * math.log(tail)
        if m > 0:
            constant += math.lgamma(left) - math.lgamma(power) - 0.5 * m * math.log(stretch / math.pi)
        return max(constant, LOWEST), tail / (max(2.0 * left - 2.0, 1.0) * stretch)
    return max(offset - half + 0.5 * m * LOG_2_PI - 0.5 * distance, LOWEST), 1.0


@helper
def column_variance(factor, j, work):
    """Variance of a column under an inverse Cholesky factor: the squared length of a row of its inverse."""
    work[j] = 1.0 / factor[j, j]
    for back in range(j):
        c = j - 1 - back
        value = 0.0
        for q in range(c + 1, j + 1):
            value -= work[q] * factor[q, c]
        work[c] = value / factor[c, c]
    total = 0.0
    for c in range(j + 1):
        total += work[c] * work[c]
    return total


@routine
def complete_moments(x, gaps, m, y, root, inverse, factor, wide, work, filled, square, known):
    """Write what a row says if it came from a component: itself, completed, its second moments and what is known of columns.

    `root` is changed. `wide` times the covariance of what was completed is in the second moments.
    """
    width = x.size
    for j in range(width):
        filled[j] = x[j]
        known[j] = 1.0
    for a in range(m):
        filled[gaps[a]] = -y[a]
    for i in range(width):
        for j in range(i + 1):
            square[i, j] = filled[i] * filled[j]
    if m == 0:
        return
    invert(root, m, inverse)
    for a in range(m):
        for c in range(a + 1):
            square[gaps[a], gaps[c]] += wide * inverse[a, c]
        variance = column_variance(factor, gaps[a], work)
        known[gaps[a]] = 1.0 - min(inverse[a, a] / variance, 1.0)
