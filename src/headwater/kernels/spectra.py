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

from headwater.kernels._jit import helper_exact, kernel, routine
from headwater.kernels.random import begin_stream, log_gamma_variate, normal, uniform
from headwater.kernels.spectra_mode import (
    climb,
    copy,
    information,
    level_weights,
    load_powers,
    log_density,
    log_density_moved,
    mix,
    reached_bins,
    score_step,
    solve_upper,
    walking_steps,
)

DRAWS_AT_ONCE = 16

# How the mode of log h is approached before the draws: steps of MM, which never lose, then of Fisher scoring, fast once near.
CLIMB_STEPS = 4
SCORING_STEPS = 3
TAIL = 8  # degrees of freedom of the proposal about the mode: an even number


# What draws add up to


@routine
def keep_draw(power, h, v, j, kept, pull, inverse):
    """Note draw j: its weights, (y/v - 1) / v and 1 / v."""
    for k in range(h.size):
        kept[j, k] = h[k]
    for f in range(v.size):
        inverse[j, f] = 1.0 / v[f]
        pull[j, f] = (power[f] * inverse[j, f] - 1.0) * inverse[j, f]


@routine
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


@routine
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
            mean, square = 0.0, 0.0
            for j in range(draws):
                log_h = math.log(kept[j, k])
                mean += log_h
                square += log_h * log_h
            moments[0, k] += factor * mean
            moments[1, k] += factor * square


@routine
def draw_parts(theta, power, h, v, state, drawn, part):
    """Draw the parts of a row given its weights: |c_kf|^2 / theta_kf into `part`.

    Matheron's rule: parts c' drawn from their prior, which sum to x', become c' + G (x - x'). All is divided by sqrt(theta),
    so that a spectrum of zero is allowed. The phase of x does not matter: it is 0. `drawn` (2, K) is room for c'.
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


@routine
def add_parts(theta, part, h, factor, target):
    """Add `factor` times |c_kf|^2 / h_k, of parts that were drawn, to the target."""
    for k in range(h.size):
        inverse = factor / h[k]
        for f in range(theta.shape[1]):
            target[k, f] += inverse * theta[k, f] * part[k, f]


# Samplers


@helper_exact
def log_ratio(change, shape, scale, old, new):
    """Log-ratio of the posterior densities of log h, when one weight moves and the log-density of the row changes by this."""
    # The density of log h has h^-shape, not h^-(shape + 1).
    return change - shape * math.log(new / old) - scale * (1.0 / new - 1.0 / old)


@routine
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
            copy(moved, v)
            accepted += 1
    return accepted


@routine
def approach_mode(theta, power, shape, scale, v, surplus, inverse, h):
    """Weights h near the mode of log h, by steps that never lose; `v` becomes that of h."""
    level_weights(theta, power, shape, scale, v, h)
    for _ in range(CLIMB_STEPS):
        climb(theta, power, shape, scale, v, surplus, inverse, h)


@routine
def find_mode(theta, power, shape, scale, v, part, factor, gradient, h, centre):
    """From weights near it, the mode of log h into `centre`, and the factor of the information there; `v` follows h."""
    for _ in range(SCORING_STEPS):
        score_step(theta, power, shape, scale, v, part, factor, gradient, h)
    for k in range(h.size):
        centre[k] = math.log(h[k])
    information(theta, h, v, shape, scale, part, factor)


@routine
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


@routine
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
        copy(proposal, h)
        copy(moved, v)
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
        approach_mode(theta, power, shape, scale, v, pull[0], inverse[0], h)
        if step > 0.0:
            steps[:] = step
        else:
            find_mode(theta, power, shape, scale, v, part, factor, steps, h, centre)
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


@routine
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
        approach_mode(theta, power, shape, scale, v, pull[0], inverse[0], h)
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
