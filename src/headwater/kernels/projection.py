"""One row of Bayesian moment matching (paper 003): project the exact posterior, a mixture of K beliefs, on one belief.

The row belongs to component k with probability p, and then counts as `weight` rows: the posterior of component k is
p (its belief after the row) + (1 - p) (its belief before). What replaces it has the same E[L], E[L mu] and E[mu' L mu] of
mean mu and precision L, and one more moment for the degrees of freedom: either E tr (A^-1 L)^2 with A = E[L]
("second-moments"), or E log|L| ("kl", which makes it the nearest belief in the sense of Kullback and Leibler).
The Dirichlet keeps all E[w] and the sum of E[w^2], or all E[log w].

All terms are sums of positive ones, so nothing cancels: a row at 10^8 sigma is no worse than any other.
"""

import math

from headwater.kernels._jit import helper, routine

SECOND_MOMENTS, KL = 0, 1
PROJECTIONS = {"second-moments": SECOND_MOMENTS, "kl": KL}

NEWTON_STEPS = 50


@helper
def trigamma(x):
    """Derivative of digamma for x > 0."""
    total = 0.0
    while x < 8.0:
        total += 1.0 / (x * x)
        x += 1.0
    w = 1.0 / (x * x)
    series = 1.0 / 6.0 - w * (1.0 / 30.0 - w * (1.0 / 42.0 - w * (1.0 / 30.0 - w * (5.0 / 66.0 - w * 691.0 / 2730.0))))
    return total + 1.0 / x + 0.5 * w + series * w / x


@helper
def digamma_less_log(x):
    """digamma(x) - log(x) for x > 0, to its own precision however large x is."""
    total = 0.0
    if x < 8.0:
        low = x
        while x < 8.0:
            total -= 1.0 / x
            x += 1.0
        total += math.log(x / low)
    w = 1.0 / (x * x)
    series = 1.0 / 12.0 - w * (1.0 / 120.0 - w * (1.0 / 252.0 - w * (1.0 / 240.0 - w * (1.0 / 132.0 - w * 691.0 / 32760.0))))
    return total - 0.5 / x - series * w


@helper
def digamma_rise(x, step):
    """digamma(x + step) - digamma(x), to its own precision however large x is."""
    return math.log1p(step / x) + (digamma_less_log(x + step) - digamma_less_log(x))


@helper
def wishart_log_gap(dof, width):
    """E log|L| - log|E L| of a Wishart: negative, and about -width (width + 1) / (2 dof)."""
    total = 0.0
    for i in range(width):
        total += math.log1p(-i / dof) + digamma_less_log(0.5 * (dof - i))
    return total


@helper
def dof_of_log_gap(gap, dof, width, lowest):
    """The degrees of freedom of a Wishart with this gap: Newton's method for -1 / gap, which is nearly linear in them."""
    for _ in range(NEWTON_STEPS):
        before, value, slope = dof, wishart_log_gap(dof, width), 0.0
        for i in range(width):
            x = 0.5 * (dof - i)
            slope += i / (dof * (dof - i)) + 0.5 * (trigamma(x) - 1.0 / x)
        dof = max(dof + value * (1.0 - value / gap) / slope, lowest)
        if abs(dof - before) <= 1e-11 * dof:
            break
    return dof


@helper
def shape_of_log_gap(gap, shape, lowest):
    """The shape of a Gamma with this E log - log E."""
    for _ in range(NEWTON_STEPS):
        before, value = shape, digamma_less_log(shape)
        shape = max(shape + value * (1.0 - value / gap) / (trigamma(shape) - 1.0 / shape), lowest)
        if abs(shape - before) <= 1e-11 * shape:
            break
    return shape


@helper
def log_shrinkage(p, rest, weight, mass, y, b):
    """p log(after / mean) + rest log(before / mean) along the row, where the mean is b: a Jensen gap, never positive."""
    ratio = (mass + weight) * y / b
    if 0.5 < ratio < 2.0:  # close to the mean: as differences, of which the first orders cancel
        rise = rest * ((mass + weight) * y - mass) / b
        fall = -p * ((mass + weight) * y - mass) / b
        return p * math.log1p(rise) + rest * math.log1p(fall)
    total = p * math.log(ratio)
    return total + rest * math.log(mass / b) if rest > 0.0 else total


@routine
def project_wishart(p, rest, weight, width, kappa, dof, q, code, lowest):
    """Project a Normal-Wishart for a row at q = D' V^-1 D < 1e300, where D = x - m and V is the inverse of the Wishart's scale.

    Returns kappa', dof' and (g, s, t) with m' = m + g D and V' = s (V + t D D').
    """
    after, far = dof + weight, kappa + weight
    r = kappa * weight / far
    y = 1.0 / (1.0 + r * q)
    b = dof * rest + p * after * y
    c = dof + p * weight
    g = p * after * y * weight / (far * b)
    if rest == 0.0:
        return far, after, g, 1.0, r
    h1, h0 = y * (c / b), c / b
    if code == SECOND_MOMENTS:
        spread = after * h1 - dof * h0
        square = (
            (width - 1) * (dof * rest + p * after + p * rest * weight * weight)
            + (p * rest * spread) * spread
            + p * after * (h1 * h1 + (width - 1 + h1) ** 2)
            + (rest * dof * h0) * h0 + (rest * dof * (width - 1 + h0)) * (width - 1 + h0)
        )  # fmt: skip
        found = width * (width + 1) * c * (c / square)
    else:
        gap = p * wishart_log_gap(after, width) + rest * wishart_log_gap(dof, width)
        gap += (width - 1) * (p * math.log1p(weight * rest / c) + rest * math.log1p(-weight * p / c))
        gap += log_shrinkage(p, rest, weight, dof, y, b)
        found = dof_of_log_gap(gap, c, width, lowest)
    found = max(found, lowest)
    away = weight * (dof * rest / b) / far  # weight / far - g
    back = (rest * dof / b) * (p * after * (y * q) * weight / far) * g
    inverse = p * (width / far + after * away * away * (q * y)) + rest * width / kappa + back
    return width / inverse, found, g, found / c, p * after * r * y / b


@helper
def project_gamma(p, rest, weight, width, kappa, shape, q, code, lowest):
    """Project a Normal-Gamma whose precision is shared by `width` columns, for a row at q = |D|^2 / (2 rate).

    Returns kappa', shape' and (g, s, t) as above, with rate' = s (rate + t |D|^2 / 2). There are no branches on the way to
    second moments, so that a loop over columns runs in vectors.
    """
    half = 0.5 * weight * width
    after, far = shape + half, kappa + weight
    r = kappa * weight / far
    y = 1.0 / (1.0 + r * q)
    b = shape * rest + p * after * y
    c = shape + p * half
    inverse_b = 1.0 / b
    share = weight / far
    g = p * after * y * share * inverse_b
    if code == SECOND_MOMENTS:
        high, low = y * inverse_b, inverse_b  # of b, so that nothing underflows
        spread = after * high - shape * low
        found = 1.0 / ((rest * shape * low) * low + p * after * high * high + (p * rest * spread) * spread)
    else:
        gap = p * digamma_less_log(after) + rest * digamma_less_log(shape) + log_shrinkage(p, rest, half, shape, y, b)
        found = shape_of_log_gap(gap, c, lowest)
    found = max(found, lowest)
    kept = shape * rest * inverse_b
    away = share * kept
    inverse = p * (width / far + 2.0 * after * away * away * (q * y)) + rest * width / kappa
    inverse += 2.0 * kept * (p * after * (y * q) * share) * g
    # Without a rest it is Bayes' theorem, and 0 * infinity above must not be looked at.
    found = found if rest > 0.0 else after
    return width / inverse, found, g, found / c, p * after * r * y * inverse_b


@routine
def project_dirichlet(p, weight, code, alpha, work):
    """Project the Dirichlet in place; return the factor on components without a part in the row, 1 if there is no such."""
    n_components = alpha.size
    total = 0.0
    for k in range(n_components):
        total += alpha[k]
    if n_components == 1:
        alpha[0] += weight
    elif code == SECOND_MOMENTS:
        within, between = 0.0, 0.0
        for k in range(n_components):
            others = total - alpha[k]
            within += p[k] * (alpha[k] + weight) * others + (1.0 - p[k]) * alpha[k] * (others + weight)
            between += p[k] * (1.0 - p[k])
        factor = within / (within + weight * weight * (total + weight + 1.0) * between)
        for k in range(n_components):
            alpha[k] = factor * (alpha[k] + weight * p[k])
        return factor
    else:
        nearest_dirichlet(p, weight, total, alpha, work[0], work[1])
    return 1.0


@helper
def nearest_dirichlet(p, weight, total, alpha, wanted, grown):
    """Match E[log w] of every weight: Newton's method for what each parameter grows by.

    All differences of digamma are taken as such: along `alpha` itself they are flat, and rounding would drown the step.
    """
    n_components = alpha.size
    rise = digamma_rise(total, weight)
    for k in range(n_components):
        wanted[k] = p[k] * digamma_rise(alpha[k], weight) - rise  # of digamma(alpha[k]) - digamma(total)
        grown[k] = 0.0
    more = 0.0
    for _ in range(NEWTON_STEPS):
        z, rise = trigamma(total + more), digamma_rise(total, more)
        inverse, moved = 0.0, 0.0
        for k in range(n_components):
            slope = 1.0 / trigamma(alpha[k] + grown[k])
            inverse += slope
            moved += slope * (wanted[k] - digamma_rise(alpha[k], grown[k]) + rise)
        moved /= 1.0 - z * inverse
        largest, more = 0.0, 0.0
        for k in range(n_components):
            here = alpha[k] + grown[k]
            step = (wanted[k] - digamma_rise(alpha[k], grown[k]) + rise + z * moved) / trigamma(here)
            grown[k] += max(step, -0.5 * here)
            largest = max(largest, abs(step) / here)
        for k in range(n_components):
            more += grown[k]
        if largest * total < 1e-10 * weight:
            break
    for k in range(n_components):
        alpha[k] += grown[k]
