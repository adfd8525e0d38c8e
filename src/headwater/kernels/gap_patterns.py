"""Blocks of rows that lack as many values, and what is common to those that lack the same: factors, side by side.

Let P = F'F be a precision and S the diagonal matrix of its square roots, so that R = S^-1 P S^-1 has ones on its diagonal. For
each pattern of m gaps, the (m, m) block of R is L D L', with ones on the diagonal of L. Patterns lie side by side in memory:
`factors` has a row for every entry of a lower triangle, those of L and, on the diagonal, those of D^-1.
"""

import math

from headwater.kernels._jit import helper, routine
from headwater.kernels.fastmath import log

LEAST_PIVOT = 1e-14  # of a diagonal that is one: a smaller pivot is rounding
SHARED = 6  # rows of a pattern, on average, from which each pattern is done with by itself
PIVOTS = 16  # of which the product has no overflow: one logarithm for so many


@helper
def count_gaps(missing, row):
    """Return how many values a row lacks."""
    number = 0
    for j in range(missing.shape[1]):
        number += int(missing[row, j])
    return number


@routine
def load_alike(X, missing, listed, start, most, origin, m, block, places, begins):
    """Copy up to `most` listed rows, while they lack m values, into a block about the origin; return rows and patterns.

    The block has one row of memory for each column, with 0 in gaps, and `places` (m, rows) are the gaps of each row. Rows
    begins[u] to begins[u + 1] have pattern u.
    """
    width = missing.shape[1]
    rows = most
    patterns = 0
    for b in range(most):
        row = listed[start + b]
        a = 0
        for j in range(width):
            if missing[row, j]:
                if a < m:
                    places[a, b] = j
                block[j, b] = 0.0
                a += 1
            else:
                block[j, b] = X[row, j] - origin[j]
        if a != m:
            rows = b
            break
        same = b > 0
        for i in range(m):
            same = same and places[i, b] == places[i, b - 1]
        if not same:
            begins[patterns] = b
            patterns += 1
    begins[patterns] = rows
    return rows, patterns


@routine
def decompose_patterns(shape, log_scale, gaps, patterns, m, factors, half, least, pivot, product):
    """Write L and D^-1 of each pattern, half the log-determinant of its precision, and its least pivot.

    `shape` is R, `log_scale` the logarithms of S.
    """
    for u in range(patterns):
        half[u] = 0.0
        least[u] = 1.0
        product[u] = 1.0
    for a in range(m):
        head = a * (a + 1) // 2
        for c in range(a):
            at, other = head + c, c * (c + 1) // 2
            for u in range(patterns):
                factors[at, u] = shape[gaps[a, u], gaps[c, u]]
            for q in range(c):
                for u in range(patterns):
                    factors[at, u] -= factors[head + q, u] * factors[other + q, u]
        for u in range(patterns):
            pivot[u] = 1.0
        for c in range(a):
            at, below = head + c, c * (c + 1) // 2 + c
            for u in range(patterns):
                value = factors[at, u]
                pivot[u] -= value * value * factors[below, u]
                factors[at, u] = value * factors[below, u]
        for u in range(patterns):
            value = max(pivot[u], LEAST_PIVOT)
            least[u] = min(least[u], value)
            product[u] *= value
            factors[head + a, u] = 1.0 / value
            half[u] += log_scale[gaps[a, u]]
        if a % PIVOTS == PIVOTS - 1 or a == m - 1:
            for u in range(patterns):
                half[u] += 0.5 * log(product[u])
                product[u] = 1.0


@routine
def spread_values(values, block, places, m, rows, begins, lanes):
    """Write a value for each column (d,) into the gaps of a block."""
    if lanes == rows:
        for a in range(m):
            for b in range(rows):
                block[places[a, b], b] = values[places[a, b]]
    else:
        for u in range(lanes):
            for a in range(m):
                j = places[a, begins[u]]
                value = values[j]
                for b in range(begins[u], begins[u + 1]):
                    block[j, b] = value


@helper
def read_gaps(block, places, m, rows, begins, lanes, values):
    """Write what a block has in the gaps of each row (m, rows)."""
    if lanes == rows:
        for a in range(m):
            for b in range(rows):
                values[a, b] = block[places[a, b], b]
    else:
        for u in range(lanes):
            for a in range(m):
                j = places[a, begins[u]]
                for b in range(begins[u], begins[u + 1]):
                    values[a, b] = block[j, b]


@routine
def complete_rows(mean, scale, y, block, places, m, rows, begins, lanes):
    """Write mean - scale * y (m, rows) into the gaps of a block."""
    if lanes == rows:
        for a in range(m):
            for b in range(rows):
                block[places[a, b], b] = mean[places[a, b]] - y[a, b] * scale[places[a, b]]
    else:
        for u in range(lanes):
            for a in range(m):
                j = places[a, begins[u]]
                centre, unit = mean[j], scale[j]
                for b in range(begins[u], begins[u + 1]):
                    block[j, b] = centre - y[a, b] * unit


@helper
def widen(each, rows, begins, lanes, values):
    """Write for every row what its pattern has."""
    if lanes == rows:
        for b in range(rows):
            values[b] = each[b]
    else:
        for u in range(lanes):
            value = each[u]
            for b in range(begins[u], begins[u + 1]):
                values[b] = value


@routine
def solve_lower(factors, m, rows, begins, lanes, z, taken):
    """Solve L z = z in place for every row, and write z'D^-1 z."""
    for b in range(rows):
        taken[b] = 0.0
    if lanes == rows:
        for a in range(m):
            head = a * (a + 1) // 2
            for c in range(a):
                for b in range(rows):
                    z[a, b] -= factors[head + c, b] * z[c, b]
            for b in range(rows):
                taken[b] += z[a, b] * z[a, b] * factors[head + a, b]
    else:
        for u in range(lanes):
            for a in range(m):
                head = a * (a + 1) // 2
                for c in range(a):
                    times = factors[head + c, u]
                    for b in range(begins[u], begins[u + 1]):
                        z[a, b] -= times * z[c, b]
                times = factors[head + a, u]
                for b in range(begins[u], begins[u + 1]):
                    taken[b] += z[a, b] * z[a, b] * times


@routine
def solve_upper(factors, m, rows, begins, lanes, z, y):
    """Solve D L' y = z for every row."""
    if lanes == rows:
        for back in range(m):
            a = m - 1 - back
            for b in range(rows):
                y[a, b] = z[a, b] * factors[a * (a + 1) // 2 + a, b]
            for c in range(a + 1, m):
                for b in range(rows):
                    y[a, b] -= factors[c * (c + 1) // 2 + a, b] * y[c, b]
    else:
        for u in range(lanes):
            for back in range(m):
                a = m - 1 - back
                times = factors[a * (a + 1) // 2 + a, u]
                for b in range(begins[u], begins[u + 1]):
                    y[a, b] = z[a, b] * times
                for c in range(a + 1, m):
                    times = factors[c * (c + 1) // 2 + a, u]
                    for b in range(begins[u], begins[u + 1]):
                        y[a, b] -= times * y[c, b]


@helper
def find_floors(weights, at, begins, patterns, least, floor):
    """Write this part of the weights of the rows of each pattern."""
    for u in range(patterns):
        weight = float(begins[u + 1] - begins[u])
        if weights.size:
            weight = 0.0
            for b in range(begins[u], begins[u + 1]):
                weight += weights[at + b]
        floor[u] = least * weight


@routine
def sum_by_pattern(shares, spread, floor, rows, begins, patterns, lanes, places, m, mass, wide, lane, kinds):
    """Add up the shares of the rows of each pattern; return how many are above the floor, and write their lanes and gaps."""
    found = 0
    for u in range(patterns):
        share = 0.0
        open_share = 0.0
        for b in range(begins[u], begins[u + 1]):
            share += shares[b]
            open_share += shares[b] * spread[b]
        if share > floor[u]:
            mass[found] = share
            wide[found] = open_share
            lane[found] = begins[u] if lanes == rows else u
            for a in range(m):
                kinds[a, found] = places[a, begins[u]]
            found += 1
    return found


@routine
def invert_factors(factors, m, some, chosen, roots):
    """Write W = D^-1/2 L^-1 of the chosen patterns, so that W'W is the inverse of the block of R."""
    for a in range(m):
        head = a * (a + 1) // 2
        for c in range(a):
            at = head + c
            for i in range(some):
                roots[at, i] = -factors[at, chosen[i]]
            for q in range(c + 1, a):
                other = q * (q + 1) // 2 + c
                for i in range(some):
                    roots[at, i] -= factors[head + q, chosen[i]] * roots[other, i]
    for a in range(m):
        head = a * (a + 1) // 2
        for i in range(some):
            roots[head + a, i] = math.sqrt(factors[head + a, chosen[i]])
        for c in range(a):
            for i in range(some):
                roots[head + c, i] *= roots[head + a, i]


@routine
def add_open_moments(roots, kinds, m, some, shares, wide, narrow, moments, observed, known, value):
    """Add the inverses of blocks of R, `wide` times each, to moments in units of S^-1, and take gaps off the masses.

    `narrow` is the square of S^-1 in units of the variances of columns.
    """
    for a in range(m):
        for c in range(a + 1):
            for i in range(some):
                value[i] = 0.0
            for q in range(a, m):
                head = q * (q + 1) // 2
                for i in range(some):
                    value[i] += roots[head + a, i] * roots[head + c, i]
            for i in range(some):
                moments[kinds[a, i], kinds[c, i]] += wide[i] * value[i]
        for i in range(some):  # value is that of the diagonal
            j = kinds[a, i]
            observed[j] -= shares[i]
            known[j] -= shares[i] * min(value[i] * narrow[j], 1.0)


@helper
def add_scaled(moments, scale, second):
    """Add moments in these units to second moments."""
    for i in range(scale.size):
        for j in range(i + 1):
            second[i, j] += moments[i, j] * scale[i] * scale[j]
