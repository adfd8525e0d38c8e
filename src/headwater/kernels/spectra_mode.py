"""Rows of powers as sums of components: their density, and the mode of their weights. See spectra.py for the model."""

import math

import numpy as np

from headwater.kernels._jit import helper, helper_exact, kernel, routine
from headwater.kernels.fastmath import log

FLOOR = 1e-150  # the product of two is still a normal number

LONGEST_STEP = 1.5  # of log h, in a step of scoring
LONGEST_WALK = 5.0
LEAST_CURVATURE = 0.1  # of the prior in log h, as a part of that at its mode


# A row of powers


@helper
def copy(source, target):
    """Copy a vector. `target[:] = source` would do the same, but takes a second to compile, for the message of an error."""
    for f in range(target.size):
        target[f] = source[f]


@routine
def mix(theta, h, v):
    """The mean powers v of a row with these weights."""
    n_components, bins = theta.shape
    for f in range(bins):
        v[f] = FLOOR
    k = 0
    while k + 4 <= n_components:
        h0, h1, h2, h3 = h[k], h[k + 1], h[k + 2], h[k + 3]
        for f in range(bins):
            v[f] += (h0 * theta[k, f] + h1 * theta[k + 1, f]) + (h2 * theta[k + 2, f] + h3 * theta[k + 3, f])
        k += 4
    while k < n_components:
        h0 = h[k]
        for f in range(bins):
            v[f] += h0 * theta[k, f]
        k += 1


@helper_exact
def log_density_pair(y0, y1, v0, v1):
    """Log-density of two exponential powers, for one logarithm and one division."""
    product = v0 * v1
    return -log(product) - (y0 * v1 + y1 * v0) / product


@helper
def log_density(power, v):
    """Log-density of a row of exponential powers with these means."""
    half = v.size // 2
    total = 0.0
    for f in range(half):
        total += log_density_pair(power[f], power[half + f], v[f], v[half + f])
    for f in range(2 * half, v.size):
        total -= log(v[f]) + power[f] / v[f]
    return total


@helper
def log_density_moved(power, v, row, change, moved):
    """Log-density after the weight of one component, whose spectrum is `row`, has changed; the new means go to `moved`."""
    for f in range(v.size):
        moved[f] = max(v[f] + change * row[f], FLOOR)
    return log_density(power, moved)


@routine
def load_powers(Y, i, reached, power):
    """Row i of Y, with zero where no component reaches a bin: there every choice of h is equally impossible."""
    for f in range(power.size):
        power[f] = Y[i, f] if reached[f] else 0.0


@routine
def reached_bins(theta, reached):
    """Whether any component is positive in a bin."""
    n_components, bins = theta.shape
    for f in range(bins):
        reached[f] = False
    for k in range(n_components):
        for f in range(bins):
            if theta[k, f] > 0.0:
                reached[f] = True


# The mode of the weights


@routine
def level_weights(theta, power, exponent, scale, v, h):
    """Start: the same weight for all components, of greatest density among such; `v` becomes that of h."""
    h[:] = 1.0
    mix(theta, h, v)
    level = 0.0
    for f in range(v.size):
        level += power[f] / v[f]
    level = max((level + h.size * scale) / (v.size + h.size * exponent), FLOOR)
    for k in range(h.size):
        h[k] = level
    for f in range(v.size):
        v[f] = max(level * v[f], FLOOR)


@routine
def climb(theta, power, exponent, scale, v, surplus, inverse, h):
    """One step of MM toward the maximum of log-density - exponent log h - scale / h; return the largest change of log h.

    y/v is bounded by Jensen's inequality and the logarithms by their tangents, so that no step loses. The mode in h has
    exponent shape + 1, the mode in log h has shape. `v` must be that of h, and is brought up to date.
    """
    n_components, bins = theta.shape
    for f in range(bins):
        inverse[f] = 1.0 / v[f]
        surplus[f] = power[f] * inverse[f] * inverse[f]
    largest = 0.0
    for k in range(n_components):
        up = 0.0
        down = 0.0
        for f in range(bins):
            up += theta[k, f] * surplus[f]
            down += theta[k, f] * inverse[f]
        old = h[k]
        down += exponent / old
        if down > 0.0:
            new = math.sqrt((up * old * old + scale) / down)
            h[k] = max(new, FLOOR)
            largest = max(largest, abs(math.log(h[k] / old)))
    mix(theta, h, v)
    return largest


@routine
def cholesky(matrix):
    """Lower triangular factor of a positive matrix, in its place."""
    n = matrix.shape[0]
    for j in range(n):
        pivot = matrix[j, j]
        for m in range(j):
            pivot -= matrix[j, m] * matrix[j, m]
        pivot = math.sqrt(max(pivot, 1e-12))
        matrix[j, j] = pivot
        for i in range(j + 1, n):
            value = matrix[i, j]
            for m in range(j):
                value -= matrix[i, m] * matrix[j, m]
            matrix[i, j] = value / pivot


@routine
def solve_upper(factor, x):
    """x becomes the inverse of the factor's transpose times x."""
    n = x.size
    for i in range(n - 1, -1, -1):
        value = x[i]
        for j in range(i + 1, n):
            value -= factor[j, i] * x[j]
        x[i] = value / factor[i, i]


@routine
def solve_lower(factor, x):
    """x becomes the inverse of the factor times x."""
    n = x.size
    for i in range(n):
        value = x[i]
        for j in range(i):
            value -= factor[i, j] * x[j]
        x[i] = value / factor[i, i]


@routine
def information(theta, h, v, shape, scale, part, factor):
    """Cholesky factor of the Fisher information about log h, with the curvature of the prior; shares go to `part`."""
    n_components, bins = theta.shape
    for k in range(n_components):
        for f in range(bins):
            part[k, f] = h[k] * theta[k, f] / v[f]
        for m in range(k + 1):
            total = 0.0
            for f in range(bins):
                total += part[k, f] * part[m, f]
            factor[k, m] = total
        factor[k, k] += max(scale / h[k], LEAST_CURVATURE * shape)
    cholesky(factor)


@routine
def score_step(theta, power, shape, scale, v, part, factor, gradient, h):
    """One step of Fisher scoring toward the mode of log h; `v` must be that of h, and is brought up to date."""
    n_components, bins = theta.shape
    information(theta, h, v, shape, scale, part, factor)
    for k in range(n_components):
        total = 0.0
        for f in range(bins):
            total += part[k, f] * (power[f] / v[f] - 1.0)
        gradient[k] = total - shape + scale / h[k]
    solve_lower(factor, gradient)
    solve_upper(factor, gradient)
    for k in range(n_components):
        h[k] = max(h[k] * math.exp(min(max(gradient[k], -LONGEST_STEP), LONGEST_STEP)), FLOOR)
    mix(theta, h, v)


@routine
def walking_steps(factor, steps):
    """The best step of a walk along each axis of a normal density whose inverse covariance has this factor."""
    for k in range(steps.size):
        curvature = 0.0
        for m in range(k + 1):
            curvature += factor[k, m] * factor[k, m]
        steps[k] = min(2.4 / math.sqrt(curvature), LONGEST_WALK)


@kernel
def map_weights(Y, start, stop, theta, shape, scale, iterations, tol, out):
    """The weights of greatest posterior density, by MM, into `out` (n, K); with shape -1 and scale 0 of greatest likelihood.

    A row is done when no log h changes by more than `tol`.
    """
    bins = theta.shape[1]
    reached = np.empty(bins, np.bool_)
    power, v, surplus, inverse = np.empty(bins), np.empty(bins), np.empty(bins), np.empty(bins)
    reached_bins(theta, reached)
    for i in range(start, stop):
        load_powers(Y, i, reached, power)
        h = out[i]
        level_weights(theta, power, shape + 1.0, scale, v, h)
        for _ in range(iterations):
            if climb(theta, power, shape + 1.0, scale, v, surplus, inverse, h) <= tol:
                break
