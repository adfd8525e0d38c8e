"""Power spectra as sums of components: weights of a row drawn from their posterior, and what the draws say about the spectra.

A row y of F powers has y_f ~ Exponential with mean v_f = sum_k theta_kf h_k. It is |sum_k c_kf|^2 of complex normal parts c_kf
with variances theta_kf h_k. Weights h_k ~ InverseGamma(shape, scale). The statistic of a row, whose mean over rows is the
next theta of EM, is s_kf = E|c_kf|^2 / h_k = theta_kf (1 + G (y_f / v_f - 1)), where G = theta_kf h_k / v_f is the share of a
component in a bin. It is A + theta (1 - G), where A = G^2 y_f / h_k is the power that Wiener's filter gives to the component.
What says how far to go, A / theta = G y_f / v_f, and G / theta = h_k / v_f make a faster step, which leaves the parts c out:
theta <- mean of G y_f / v_f over mean of h_k / v_f.

Tables are (K, F), so that loops over bins are long. All kernels take rows `start` to `stop` of Y. Samplers do only what there
is room for, and an empty array is no room:

- `weights` (n,): weights of the rows in the sums, 1 where empty;
- `target` (K, F): weight * mean statistic is added to it;
- `shares` (K, F): weight * mean share is added to it;
- `wiener` (K, F): weight * mean of A is added to it;
- `moments` (2, K): weight * means of log h and of its square are added to it;
- `means` (n, K): posterior means of h;
- `accepted` (n,): accepted proposals of a row.

Row i draws from the stream of the number `streams[i]`, so cuts and threads change nothing. v is held above FLOOR, for bins in
which all components are zero; such bins say nothing about h. Powers may be zero, and up to 1e150.
"""

import math

import numpy as np

from headwater.kernels._jit import kernel, kernel_exact
from headwater.kernels.fastmath import log
from headwater.kernels.random import begin_stream, log_gamma_variate, normal, uniform

FLOOR = 1e-150  # the product of two is still a normal number
DRAWS_AT_ONCE = 16

# How the mode of log h is approached before the draws: steps of MM, which never lose, then of Fisher scoring, fast once near.
CLIMB_STEPS = 4
SCORING_STEPS = 3
LONGEST_STEP = 1.5  # of log h, in a step of scoring
LONGEST_WALK = 5.0
LEAST_CURVATURE = 0.1  # of the prior in log h, as a part of that at its mode
TAIL = 8  # degrees of freedom of the proposal about the mode: an even number


# A row of powers


@kernel
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


@kernel_exact
def log_density_pair(y0, y1, v0, v1):
    """Log-density of two exponential powers, for one logarithm and one division."""
    product = v0 * v1
    return -log(product) - (y0 * v1 + y1 * v0) / product


@kernel
def log_density(power, v):
    """Log-density of a row of exponential powers with these means."""
    half = v.size // 2
    total = 0.0
    for f in range(half):
        total += log_density_pair(power[f], power[half + f], v[f], v[half + f])
    for f in range(2 * half, v.size):
        total -= log(v[f]) + power[f] / v[f]
    return total


@kernel
def log_density_moved(power, v, row, change, moved):
    """Log-density after the weight of one component, whose spectrum is `row`, has changed; the new means go to `moved`."""
    for f in range(v.size):
        moved[f] = max(v[f] + change * row[f], FLOOR)
    return log_density(power, moved)


@kernel
def load_powers(Y, i, reached, power):
    """Row i of Y, with zero where no component reaches a bin: there every choice of h is equally impossible."""
    for f in range(power.size):
        power[f] = Y[i, f] if reached[f] else 0.0


@kernel
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


@kernel
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


@kernel
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


@kernel
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


@kernel
def solve_upper(factor, x):
    """x becomes the inverse of the factor's transpose times x."""
    n = x.size
    for i in range(n - 1, -1, -1):
        value = x[i]
        for j in range(i + 1, n):
            value -= factor[j, i] * x[j]
        x[i] = value / factor[i, i]


@kernel
def solve_lower(factor, x):
    """x becomes the inverse of the factor times x."""
    n = x.size
    for i in range(n):
        value = x[i]
        for j in range(i):
            value -= factor[i, j] * x[j]
        x[i] = value / factor[i, i]


@kernel
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


@kernel
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


@kernel
def walking_steps(factor, steps):
    """The best step of a walk along each axis of a normal density whose inverse covariance has this factor."""
    for k in range(steps.size):
        curvature = 0.0
        for m in range(k + 1):
            curvature += factor[k, m] * factor[k, m]
        steps[k] = min(2.4 / math.sqrt(curvature), LONGEST_WALK)


# What draws add up to


@kernel
def keep_draw(power, h, v, j, kept, pull, inverse):
    """Note draw j: its weights, (y/v - 1) / v and 1 / v."""
    for k in range(h.size):
        kept[j, k] = h[k]
    for f in range(v.size):
        inverse[j, f] = 1.0 / v[f]
        pull[j, f] = (power[f] * inverse[j, f] - 1.0) * inverse[j, f]


@kernel
def sum_products(kept, table, k, draws, out):
    """out[f] = sum of kept[j, k] * table[j, f] over draws."""
    bins = out.size
    for f in range(bins):
        out[f] = 0.0
    j = 0
    while j + 4 <= draws:
        h0, h1, h2, h3 = kept[j, k], kept[j + 1, k], kept[j + 2, k], kept[j + 3, k]
        for f in range(bins):
            out[f] += (h0 * table[j, f] + h1 * table[j + 1, f]) + (h2 * table[j + 2, f] + h3 * table[j + 3, f])
        j += 4
    while j < draws:
        h0 = kept[j, k]
        for f in range(bins):
            out[f] += h0 * table[j, f]
        j += 1


@kernel
def add_draws(theta, kept, pull, inverse, draws, factor, rao_blackwell, pulled, shared, target, shares, wiener, moments):
    """Add `factor` times the sums over the noted draws to all that has room; `pulled` and `shared` (F,) are room for sums."""
    n_components, bins = theta.shape
    for k in range(n_components):
        if shares.size or wiener.size:
            sum_products(kept, inverse, k, draws, shared)
        if (rao_blackwell and target.size) or wiener.size:
            sum_products(kept, pull, k, draws, pulled)
        if rao_blackwell and target.size:
            for f in range(bins):
                target[k, f] += factor * theta[k, f] * max(draws + theta[k, f] * pulled[f], 0.0)
        if shares.size:
            for f in range(bins):
                shares[k, f] += factor * theta[k, f] * shared[f]
        if wiener.size:
            for f in range(bins):
                wiener[k, f] += factor * theta[k, f] * theta[k, f] * max(pulled[f] + shared[f], 0.0)
        if moments.size:
            for j in range(draws):
                log_h = math.log(kept[j, k])
                moments[0, k] += factor * log_h
                moments[1, k] += factor * log_h * log_h


@kernel
def draw_parts(theta, power, h, v, state, drawn, part):
    """Draw the parts of a row given its weights: |c_kf|^2 / theta_kf into `part`.

    Matheron's rule: parts c' drawn from their prior, which sum to x', become c' + G (x - x'). All is divided by sqrt(theta),
    so that a spectrum of zero is fine. The phase of x says nothing: it is 0. `drawn` (2, K) is room for c'.
    """
    n_components, bins = theta.shape
    for f in range(bins):
        real = math.sqrt(power[f])
        imaginary = 0.0
        for k in range(n_components):
            radius = math.sqrt(-h[k] * math.log(uniform(state)))
            angle = 2.0 * math.pi * uniform(state)
            drawn[0, k] = radius * math.cos(angle)
            drawn[1, k] = radius * math.sin(angle)
            real -= math.sqrt(theta[k, f]) * drawn[0, k]
            imaginary -= math.sqrt(theta[k, f]) * drawn[1, k]
        for k in range(n_components):
            gain = math.sqrt(theta[k, f]) * h[k] / v[f]
            x = drawn[0, k] + gain * real
            y = drawn[1, k] + gain * imaginary
            part[k, f] = x * x + y * y


@kernel
def add_parts(theta, part, h, factor, target):
    """Add `factor` times |c_kf|^2 / h_k, of parts that were drawn, to the target."""
    for k in range(h.size):
        inverse = factor / h[k]
        for f in range(theta.shape[1]):
            target[k, f] += inverse * theta[k, f] * part[k, f]


# Samplers


@kernel_exact
def log_ratio(change, shape, scale, old, new):
    """Log-ratio of the posterior densities of log h, when one weight moves and the log-density of the row changes by this."""
    # The density of log h has h^-shape, not h^-(shape + 1).
    return change - shape * math.log(new / old) - scale * (1.0 / new - 1.0 / old)


@kernel
def walk(theta, power, shape, scale, steps, state, v, moved, h, now):
    """One sweep of the random walk on log h, one component at a time; return how many proposals were accepted.

    `now` holds the log-density of the row given h.
    """
    mix(theta, h, v)  # what is kept up to date by differences loses digits
    now[0] = log_density(power, v)
    accepted = 0
    for k in range(h.size):
        proposal = h[k] * math.exp(steps[k] * normal(state))
        then = log_density_moved(power, v, theta[k], proposal - h[k], moved)
        if math.log(uniform(state)) < log_ratio(then - now[0], shape, scale, h[k], proposal):
            h[k] = proposal
            now[0] = then
            v[:] = moved
            accepted += 1
    return accepted


@kernel
def find_mode(theta, power, shape, scale, v, part, factor, surplus, inverse, gradient, h, centre):
    """The mode of log h into `centre`, or nearly, and the factor of the information there; `v` becomes that of h."""
    level_weights(theta, power, shape, scale, v, h)
    for _ in range(CLIMB_STEPS):
        climb(theta, power, shape, scale, v, surplus, inverse, h)
    for _ in range(SCORING_STEPS):
        score_step(theta, power, shape, scale, v, part, factor, gradient, h)
    for k in range(h.size):
        centre[k] = math.log(h[k])
    information(theta, h, v, shape, scale, part, factor)


@kernel
def draw_about(centre, factor, state, proposal):
    """Draw log h from Student's t about the mode, h into `proposal`; return its squared distance by the information."""
    away = 0.0
    for k in range(proposal.size):
        proposal[k] = normal(state)
        away += proposal[k] * proposal[k]
    product = 1.0  # -2 log of a product of m uniform numbers is chi-squared with 2 m degrees of freedom
    for _ in range(TAIL // 2):
        product *= uniform(state)
    stretch = math.sqrt(TAIL / (-2.0 * math.log(product)))
    solve_upper(factor, proposal)
    for k in range(proposal.size):
        proposal[k] = math.exp(centre[k] + stretch * proposal[k])
    return away * stretch * stretch


@kernel
def leap(theta, power, shape, scale, centre, factor, state, proposal, moved, v, h, now):
    """Propose all weights at once about the mode, wherever they are now: Student's t on log h; return 1 if accepted."""
    n = h.size
    away = draw_about(centre, factor, state, proposal)
    mix(theta, proposal, moved)
    then = log_density(power, moved)
    here = 0.0
    ratio = then - now[0]
    for k in range(n):
        ratio = log_ratio(ratio, shape, scale, h[k], proposal[k])
        value = 0.0
        for m in range(k, n):
            value += factor[m, k] * (math.log(h[m]) - centre[m])
        here += value * value
    ratio += 0.5 * (TAIL + n) * math.log((TAIL + away) / (TAIL + here))
    if math.log(uniform(state)) < ratio:
        h[:] = proposal
        v[:] = moved
        now[0] = then
        return 1
    return 0


@kernel
def draw_weights_metropolis(
    Y, start, stop, theta, shape, scale, step, burn_in, n_samples, rao_blackwell, key, streams, weights, target, shares, wiener,
    moments, means, accepted,
):  # fmt: skip
    """Metropolis on log h. A `step` above 0 is that of a plain random walk, one component at a time.

    A `step` of 0 lets the row decide, before the first draw and never after it: the mode and the information there make a
    proposal for all weights at once, and the steps of the walk that follows it in every sweep.
    """
    n_components, bins = theta.shape
    state = np.empty(1, np.uint64)
    reached = np.empty(bins, np.bool_)
    power, v, moved, column = np.empty(bins), np.empty(bins), np.empty(bins), np.empty(bins)
    h, proposal, total = np.empty(n_components), np.empty(n_components), np.empty(n_components)
    centre, steps, now = np.empty(n_components), np.empty(n_components), np.empty(1)
    factor, part, drawn = np.empty((n_components, n_components)), np.empty((n_components, bins)), np.empty((2, n_components))
    held = min(DRAWS_AT_ONCE, n_samples)
    kept, pull, inverse = np.empty((held, n_components)), np.empty((held, bins)), np.empty((held, bins))
    reached_bins(theta, reached)
    for i in range(start, stop):
        begin_stream(state, key, streams[i])
        load_powers(Y, i, reached, power)
        share = (weights[i] if weights.size else 1.0) / n_samples
        if step > 0.0:
            level_weights(theta, power, shape, scale, v, h)
            for _ in range(CLIMB_STEPS):
                climb(theta, power, shape, scale, v, pull[0], inverse[0], h)
            steps[:] = step
        else:
            find_mode(theta, power, shape, scale, v, part, factor, pull[0], inverse[0], steps, h, centre)
            walking_steps(factor, steps)
            now[0] = log_density(power, v)
        total[:] = 0.0
        moves = 0
        filled = 0
        for sweep in range(burn_in + n_samples):
            if step <= 0.0:
                moves += leap(theta, power, shape, scale, centre, factor, state, proposal, moved, v, h, now)
            moves += walk(theta, power, shape, scale, steps, state, v, moved, h, now)
            if sweep >= burn_in:
                if target.size and not rao_blackwell:
                    draw_parts(theta, power, h, v, state, drawn, part)
                    add_parts(theta, part, h, share, target)
                keep_draw(power, h, v, filled, kept, pull, inverse)
                filled += 1
                for k in range(n_components):
                    total[k] += h[k]
                if filled == held or sweep == burn_in + n_samples - 1:
                    add_draws(
                        theta, kept, pull, inverse, filled, share, rao_blackwell, moved, column, target, shares, wiener, moments
                    )  # fmt: skip
                    filled = 0
        if means.size:
            for k in range(n_components):
                means[i, k] = total[k] / n_samples
        if accepted.size:
            accepted[i] = moves


@kernel
def alternate(theta, power, shape, scale, state, drawn, part, v, h):
    """One sweep of Gibbs: the parts of the row given the weights, then the weights given the parts."""
    draw_parts(theta, power, h, v, state, drawn, part)
    for k in range(h.size):
        energy = scale
        for f in range(v.size):
            energy += part[k, f]
        h[k] = energy * math.exp(-log_gamma_variate(state, shape + v.size))
    mix(theta, h, v)


@kernel
def draw_weights_gibbs(
    Y, start, stop, theta, shape, scale, burn_in, n_samples, rao_blackwell, key, streams, weights, target, shares, wiener,
    moments, means,
):  # fmt: skip
    """Gibbs on parts and weights in turn: no step to choose, and slower to forget where it began."""
    n_components, bins = theta.shape
    state = np.empty(1, np.uint64)
    reached = np.empty(bins, np.bool_)
    power, v, moved, column = np.empty(bins), np.empty(bins), np.empty(bins), np.empty(bins)
    h, total = np.empty(n_components), np.empty(n_components)
    part, drawn = np.empty((n_components, bins)), np.empty((2, n_components))
    held = min(DRAWS_AT_ONCE, n_samples)
    kept, pull, inverse = np.empty((held, n_components)), np.empty((held, bins)), np.empty((held, bins))
    reached_bins(theta, reached)
    for i in range(start, stop):
        begin_stream(state, key, streams[i])
        load_powers(Y, i, reached, power)
        share = (weights[i] if weights.size else 1.0) / n_samples
        level_weights(theta, power, shape, scale, v, h)
        for _ in range(CLIMB_STEPS):
            climb(theta, power, shape, scale, v, pull[0], inverse[0], h)
        total[:] = 0.0
        filled = 0
        for sweep in range(burn_in + n_samples):
            alternate(theta, power, shape, scale, state, drawn, part, v, h)
            if sweep >= burn_in:
                if target.size and not rao_blackwell:
                    add_parts(theta, part, h, share, target)
                keep_draw(power, h, v, filled, kept, pull, inverse)
                filled += 1
                for k in range(n_components):
                    total[k] += h[k]
                if filled == held or sweep == burn_in + n_samples - 1:
                    add_draws(
                        theta, kept, pull, inverse, filled, share, rao_blackwell, moved, column, target, shares, wiener, moments
                    )  # fmt: skip
                    filled = 0
        if means.size:
            for k in range(n_components):
                means[i, k] = total[k] / n_samples


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


@kernel
def row_scores(Y, start, stop, theta, h, scores):
    """Log-densities of rows given their weights h (n, K)."""
    bins = theta.shape[1]
    power, v = np.empty(bins), np.empty(bins)
    for i in range(start, stop):
        for f in range(bins):
            power[f] = Y[i, f]
        mix(theta, h[i], v)
        scores[i] = log_density(power, v)


@kernel
def marginal_scores(Y, start, stop, theta, shape, scale, draws, key, streams, scores):
    """Log-densities of rows with their weights integrated out, by importance sampling: the mean over draws is unbiased.

    Weights are drawn from Student's t on log h about the mode, the proposal of `leap`.
    """
    n_components, bins = theta.shape
    state = np.empty(1, np.uint64)
    reached = np.empty(bins, np.bool_)
    power, v, surplus, inverse = np.empty(bins), np.empty(bins), np.empty(bins), np.empty(bins)
    h, gradient, centre = np.empty(n_components), np.empty(n_components), np.empty(n_components)
    factor, part = np.empty((n_components, n_components)), np.empty((n_components, bins))
    half = 0.5 * (TAIL + n_components)
    constant = n_components * (shape * math.log(scale) - math.lgamma(shape))
    constant += math.lgamma(0.5 * TAIL) + 0.5 * n_components * math.log(TAIL * math.pi) - math.lgamma(half)
    reached_bins(theta, reached)
    for i in range(start, stop):
        begin_stream(state, key, streams[i])
        load_powers(Y, i, reached, power)
        find_mode(theta, power, shape, scale, v, part, factor, surplus, inverse, gradient, h, centre)
        largest = -math.inf
        total = 0.0
        for _ in range(draws):
            away = draw_about(centre, factor, state, h)
            mix(theta, h, v)
            value = log_density(power, v) + half * math.log(1.0 + away / TAIL)
            for k in range(n_components):
                value -= shape * math.log(h[k]) + scale / h[k]
            if value > largest:
                total = total * math.exp(largest - value) + 1.0
                largest = value
            else:
                total += math.exp(value - largest)
        scores[i] = constant + largest + math.log(total / draws)
        for k in range(n_components):
            scores[i] -= math.log(factor[k, k])
