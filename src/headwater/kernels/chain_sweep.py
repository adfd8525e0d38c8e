"""Learning a hidden Markov chain step by step: Cappé's recursion (paper 002), E-step, fold and refresh of a row in one kernel.

Statistics are laid out in one row of numbers, `mean` (size,): states that sequences began in (K), passages (K x K), then what
the family has, beginning with the count of each state (K). `given` (K, size) is the same given the state that the chain is in
now, so mean = filter @ given. A step g turns given[k] into sum_l back[l, k] * ((1 - g) * given[l] + g * (what the row says if
it went from l to k)), where back[l, k] is the probability to have been in l before k: K^2 times the size, which is K^4 and
more, for every row.
"""

import math

import numpy as np

from headwater.kernels._jit import kernel
from headwater.kernels.chains import condition
from headwater.kernels.fastmath import digamma, exp
from headwater.kernels.gaussian_readout import refresh_diag, refresh_full, refresh_tied
from headwater.kernels.gaussian_sweep import fold_factors
from headwater.kernels.mixture import EXPECT_LOG, LOWEST, MODE, TINY


@kernel
def probabilities(code, prior, shift, counts, out):
    """Probabilities of the belief with these Dirichlet parameters and counts, or exp E[log]."""
    total = 0.0
    for j in range(out.size):
        out[j] = max((prior[j] - shift[j]) + counts[j], TINY) if code == MODE else prior[j] + counts[j]
        total += out[j]
    if code == EXPECT_LOG:
        level = digamma(total)
        for j in range(out.size):
            out[j] = math.exp(digamma(out[j]) - level)
    else:
        for j in range(out.size):
            out[j] /= total


@kernel
def chain_readout(code, chain, totals, start, transitions):
    """Probabilities of the chain from the totals of its statistics."""
    prior_start, prior_steps, start_shift, steps_shift = chain
    n_states = start.size
    probabilities(code, prior_start, start_shift, totals[:n_states], start)
    for i in range(n_states):
        counts = totals[n_states * (1 + i) : n_states * (2 + i)]
        probabilities(code, prior_steps[i], steps_shift[i], counts, transitions[i])


@kernel
def look_back(known, now, start, transitions, chances, back):
    """Where the chain may be at the next row, and where it was before if it is there."""
    n_states = now.size
    if not known:
        for j in range(n_states):
            chances[j] = start[j]
        return
    for j in range(n_states):
        chances[j] = 0.0
    for i in range(n_states):
        for j in range(n_states):
            back[i, j] = now[i] * transitions[i, j]
            chances[j] += back[i, j]
    for j in range(n_states):
        inverse = 1.0 / chances[j] if chances[j] > 0.0 else 0.0
        for i in range(n_states):
            back[i, j] *= inverse


@kernel
def carry_back(given, after, back, keep):
    """after[k] = keep * sum_l back[l, k] * given[l]: a product of matrices, four rows at a time."""
    n_states, size = given.shape
    for k in range(n_states):
        row = after[k]
        for q in range(size):
            row[q] = 0.0
        i = 0
        while i + 4 <= n_states:
            b0, b1, b2, b3 = keep * back[i, k], keep * back[i + 1, k], keep * back[i + 2, k], keep * back[i + 3, k]
            g0, g1, g2, g3 = given[i], given[i + 1], given[i + 2], given[i + 3]
            for q in range(size):
                row[q] += b0 * g0[q] + b1 * g1[q] + b2 * g2[q] + b3 * g3[q]
            i += 4
        while i < n_states:
            b0, g0 = keep * back[i, k], given[i]
            for q in range(size):
                row[q] += b0 * g0[q]
            i += 1


@kernel
def add_passages(known, step, back, after):
    """Add what the row says of the chain: where it began, or from where to where it went."""
    n_states = after.shape[0]
    for k in range(n_states):
        if known:
            for i in range(n_states):
                after[k, n_states * (1 + i) + k] += step * back[i, k]
        else:
            after[k, k] += step


@kernel
def gather(now, given, mean, average, gain):
    """mean = filter @ given, and the running average moved towards it."""
    n_states, size = given.shape
    for q in range(size):
        mean[q] = 0.0
    for k in range(n_states):
        share = now[k]
        for q in range(size):
            mean[q] += share * given[k, q]
    if average.size:
        for q in range(size):
            average[q] += gain * (mean[q] - average[q])


@kernel
def advance_row(known, missing, log_densities, chances, back, now, densities):
    """Filter one row by its log-densities; return its score."""
    n_states = now.size
    if missing:
        for j in range(n_states):
            now[j] = chances[j]
        return 0.0
    peak = LOWEST
    for j in range(n_states):
        peak = max(peak, log_densities[j])
    for j in range(n_states):
        log_densities[j] -= peak
        densities[j] = exp(log_densities[j])
    total = condition(chances, densities, log_densities, now)
    if total > 0.0:
        return peak + math.log(total)
    return peak + total if total < 0.0 else -np.inf


@kernel
def sweep_gaussian_full(X, origin, code, chain, prior, steps, gains, n_eff, known, now, given, mean, average, scores):
    n_states, size = given.shape
    width = X.shape[1]
    start, transitions, back = np.empty(n_states), np.empty((n_states, n_states)), np.empty((n_states, n_states))
    chances, densities, logs, x = np.empty(n_states), np.empty(n_states), np.empty(n_states), np.empty(width)
    totals, after = np.empty(size), np.empty((n_states, size))
    head = n_states * (1 + n_states)
    count = totals[head : head + n_states]
    first = totals[head + n_states : head + n_states * (1 + width)].reshape((n_states, width))
    second = totals[head + n_states * (1 + width) :].reshape((n_states, width, width))
    means, shift, factor = (
        np.empty((n_states, width)),
        np.empty((n_states, width)),
        np.zeros((n_states, width, width)),
    )
    offset, power, stretch = np.empty(n_states), np.empty(n_states), np.empty(n_states)
    for row in range(X.shape[0]):
        for q in range(size):
            totals[q] = n_eff * mean[q]
        chain_readout(code, chain, totals, start, transitions)
        refresh_full(code, prior, count, count, first, second, means, factor, shift, offset, power, stretch)
        missing = math.isnan(X[row, 0])
        for j in range(width):
            x[j] = X[row, j] - origin[j]
        for k in range(n_states):
            distance = 0.0
            for i in range(width):
                value = -shift[k, i]
                for j in range(i + 1):
                    value += factor[k, i, j] * x[j]
                distance += value * value
            logs[k] = max(offset[k] - 0.5 * distance, LOWEST)
        look_back(known, now, start, transitions, chances, back)
        scores[row] = advance_row(known, missing, logs, chances, back, now, densities)
        step = steps[row]
        if known:
            carry_back(given, after, back, 1.0 - step)
        else:
            for k in range(n_states):
                for q in range(size):
                    after[k, q] = (1.0 - step) * given[k, q]
        add_passages(known, step, back, after)
        if not missing:
            for k in range(n_states):
                after[k, head + k] += step
                at, place = head + n_states + k * width, head + n_states * (1 + width) + k * width * width
                for i in range(width):
                    after[k, at + i] += step * x[i]
                    for j in range(i + 1):
                        after[k, place + i * width + j] += step * x[i] * x[j]
        given, after = after, given
        gather(now, given, mean, average, gains[row] if gains.size else 0.0)
        n_eff, _, _ = fold_factors(n_eff, step, 1.0)
        known = True
    return n_eff, given


@kernel
def sweep_gaussian_tied(X, origin, code, chain, prior, steps, gains, n_eff, known, now, given, mean, average, scores):
    n_states, size = given.shape
    width = X.shape[1]
    start, transitions, back = np.empty(n_states), np.empty((n_states, n_states)), np.empty((n_states, n_states))
    chances, densities, logs, x = np.empty(n_states), np.empty(n_states), np.empty(n_states), np.empty(width)
    totals, after = np.empty(size), np.empty((n_states, size))
    head = n_states * (1 + n_states)
    count = totals[head : head + n_states]
    first = totals[head + n_states : head + n_states * (1 + width)].reshape((n_states, width))
    second = totals[head + n_states * (1 + width) :].reshape((width, width))
    means, shift, factor = np.empty((n_states, width)), np.empty((n_states, width)), np.zeros((width, width))
    offset, power, stretch = np.empty(n_states), np.empty(n_states), np.empty(n_states)
    for row in range(X.shape[0]):
        for q in range(size):
            totals[q] = n_eff * mean[q]
        chain_readout(code, chain, totals, start, transitions)
        refresh_tied(code, prior, count, count, first, second, means, factor, shift, offset, power, stretch)
        missing = math.isnan(X[row, 0])
        for j in range(width):
            x[j] = X[row, j] - origin[j]
        for k in range(n_states):
            logs[k] = 0.0
        for i in range(width):
            value = 0.0
            for j in range(i + 1):
                value += factor[i, j] * x[j]
            for k in range(n_states):
                logs[k] += (value - shift[k, i]) ** 2
        for k in range(n_states):
            logs[k] = max(offset[k] - 0.5 * logs[k], LOWEST)
        look_back(known, now, start, transitions, chances, back)
        scores[row] = advance_row(known, missing, logs, chances, back, now, densities)
        step = steps[row]
        if known:
            carry_back(given, after, back, 1.0 - step)
        else:
            for k in range(n_states):
                for q in range(size):
                    after[k, q] = (1.0 - step) * given[k, q]
        add_passages(known, step, back, after)
        if not missing:
            place = head + n_states * (1 + width)
            for k in range(n_states):
                after[k, head + k] += step
                at = head + n_states + k * width
                for i in range(width):
                    after[k, at + i] += step * x[i]
                    for j in range(i + 1):
                        after[k, place + i * width + j] += step * x[i] * x[j]
        given, after = after, given
        gather(now, given, mean, average, gains[row] if gains.size else 0.0)
        n_eff, _, _ = fold_factors(n_eff, step, 1.0)
        known = True
    return n_eff, given


@kernel
def sweep_gaussian_diag(X, origin, code, chain, prior, steps, gains, n_eff, known, now, given, mean, average, scores):
    n_states, size = given.shape
    width = X.shape[1]
    start, transitions, back = np.empty(n_states), np.empty((n_states, n_states)), np.empty((n_states, n_states))
    chances, densities, logs, x = np.empty(n_states), np.empty(n_states), np.empty(n_states), np.empty(width)
    totals, after = np.empty(size), np.empty((n_states, size))
    head = n_states * (1 + n_states)
    count = totals[head : head + n_states]
    first = totals[head + n_states : head + n_states * (1 + width)].reshape((n_states, width))
    second = totals[head + n_states * (1 + width) :].reshape((n_states, width))
    means, shift, factor = np.empty((n_states, width)), np.empty((n_states, width)), np.zeros((n_states, width))
    offset, power, stretch = np.empty(n_states), np.empty(n_states), np.empty(n_states)
    for row in range(X.shape[0]):
        for q in range(size):
            totals[q] = n_eff * mean[q]
        chain_readout(code, chain, totals, start, transitions)
        refresh_diag(code, prior, count, count, first, second, means, factor, shift, offset, power, stretch)
        missing = math.isnan(X[row, 0])
        for j in range(width):
            x[j] = X[row, j] - origin[j]
        for k in range(n_states):
            distance = 0.0
            for j in range(width):
                value = factor[k, j] * x[j] - shift[k, j]
                distance += value * value
            logs[k] = max(offset[k] - 0.5 * distance, LOWEST)
        look_back(known, now, start, transitions, chances, back)
        scores[row] = advance_row(known, missing, logs, chances, back, now, densities)
        step = steps[row]
        if known:
            carry_back(given, after, back, 1.0 - step)
        else:
            for k in range(n_states):
                for q in range(size):
                    after[k, q] = (1.0 - step) * given[k, q]
        add_passages(known, step, back, after)
        if not missing:
            for k in range(n_states):
                after[k, head + k] += step
                at, place = head + n_states + k * width, head + n_states * (1 + width) + k * width
                for j in range(width):
                    after[k, at + j] += step * x[j]
                    after[k, place + j] += step * x[j] * x[j]
        given, after = after, given
        gather(now, given, mean, average, gains[row] if gains.size else 0.0)
        n_eff, _, _ = fold_factors(n_eff, step, 1.0)
        known = True
    return n_eff, given


@kernel
def sweep_symbols(symbols, code, chain, beta, shift, norms, steps, gains, n_eff, known, now, given, mean, average, scores):
    """Symbols, -1 where they are missing. `beta` and `shift` are (V, K), and `norms` (K) their sum before any count."""
    n_states, size = given.shape
    start, transitions, back = np.empty(n_states), np.empty((n_states, n_states)), np.empty((n_states, n_states))
    chances, densities, logs = np.empty(n_states), np.empty(n_states), np.empty(n_states)
    totals, after = np.empty(size), np.empty((n_states, size))
    head = n_states * (1 + n_states)
    for row in range(symbols.size):
        for q in range(head):
            totals[q] = n_eff * mean[q]
        chain_readout(code, chain, totals, start, transitions)
        symbol = symbols[row]
        look_back(known, now, start, transitions, chances, back)
        if symbol >= 0:
            for k in range(n_states):
                count, total = n_eff * mean[head + n_states * (1 + symbol) + k], norms[k] + n_eff * mean[head + k]
                if code == MODE:
                    densities[k] = max((beta[symbol, k] - shift[symbol, k]) + count, TINY) / max(total, TINY)
                elif code == EXPECT_LOG:
                    densities[k] = math.exp(digamma(beta[symbol, k] + count) - digamma(total))
                else:
                    densities[k] = (beta[symbol, k] + count) / total
                logs[k] = math.log(max(densities[k], TINY))
            scores[row] = advance_row(known, False, logs, chances, back, now, densities)
        else:
            scores[row] = advance_row(known, True, logs, chances, back, now, densities)
        step = steps[row]
        if known:
            carry_back(given, after, back, 1.0 - step)
        else:
            for k in range(n_states):
                for q in range(size):
                    after[k, q] = (1.0 - step) * given[k, q]
        add_passages(known, step, back, after)
        if symbol >= 0:
            for k in range(n_states):
                after[k, head + k] += step
                after[k, head + n_states * (1 + symbol) + k] += step
        given, after = after, given
        gather(now, given, mean, average, gains[row] if gains.size else 0.0)
        n_eff, _, _ = fold_factors(n_eff, step, 1.0)
        known = True
    return n_eff, given
