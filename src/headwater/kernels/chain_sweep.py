"""Learning a hidden Markov chain step by step: Cappé's recursion (paper 002), E-step, fold and refresh of a row in one kernel.

Statistics are laid out in one row of numbers, `mean` (size,): states that sequences began in (K), passages (K x K), then what
the family has, beginning with the count of each state (K). `given` (K, size) is the same given the state that the chain is in
now, so mean = filter @ given. A step g turns given[k] into sum_l back[l, k] * ((1 - g) * given[l] + g * (what the row says if
it went from l to k)), where back[l, k] is the probability to have been in l before k: K^2 times the size, which is K^4 and
more, for every row.
"""

import math

import numpy as np

from headwater.kernels._jit import helper, kernel
from headwater.kernels.chains import LEAST, condition
from headwater.kernels.fastmath import digamma, exp
from headwater.kernels.gaussian import refresh_diag, refresh_full, refresh_tied
from headwater.kernels.gaussian_sweep import fold_factors
from headwater.kernels.mixture import EXPECT_LOG, LOWEST, MODE, TINY


@helper
def read_start(code, prior, shift, totals, start):
    """Probabilities of the first state from the totals, or exp E[log]; 0 where the prior is."""
    n_states, total = start.size, 0.0
    for j in range(n_states):
        start[j] = max((prior[j] - shift[j]) + totals[j], TINY) if code == MODE else prior[j] + totals[j]
        if prior[j] == 0.0:
            start[j] = 0.0
    for j in range(n_states):
        total += start[j]
    for j in range(n_states):
        if start[j] > 0.0:
            start[j] = math.exp(digamma(start[j]) - digamma(total)) if code == EXPECT_LOG else start[j] / total


@helper
def read_transitions(code, prior, shift, totals, transitions):
    """Probabilities of the passages from the totals, or exp E[log]; 0 where the prior is."""
    n_states, at = transitions.shape[0], transitions.shape[0]
    for i in range(n_states):
        total = 0.0
        for j in range(n_states):
            value = prior[i, j] + totals[at + j]
            if code == MODE:
                value = max((prior[i, j] - shift[i, j]) + totals[at + j], TINY)
            if prior[i, j] == 0.0:
                value = 0.0
            transitions[i, j] = value
        for j in range(n_states):
            total += transitions[i, j]
        at += n_states
        if code == EXPECT_LOG:
            level = digamma(total)
            for j in range(n_states):
                if transitions[i, j] > 0.0:
                    transitions[i, j] = math.exp(digamma(transitions[i, j]) - level)
        else:
            inverse = 1.0 / total
            for j in range(n_states):
                transitions[i, j] *= inverse


# Arrays are passed one by one: unpacking a tuple counts references, which costs more than the rest.


@helper
def look_ahead(known, now, start, transitions, chances, back):
    """Probabilities of the next state, and of the state before it given the next."""
    n_states = now.size
    for j in range(n_states):
        chances[j] = 0.0 if known else start[j]
    if not known:
        return
    for i in range(n_states):
        for j in range(n_states):
            back[i, j] = now[i] * transitions[i, j]
            chances[j] += back[i, j]
    for j in range(n_states):
        if chances[j] >= LEAST:
            inverse = 1.0 / chances[j]
            for i in range(n_states):
                back[i, j] *= inverse
        elif chances[j] > 0.0:  # so small that its inverse may be infinite
            for i in range(n_states):
                back[i, j] /= chances[j]


@helper
def weigh(after, k, given, weights, scale):
    """after[k] = scale * sum_l weights[l, k] * given[l], up to four rows at a time: a row of a product of matrices."""
    n_states, size = given.shape
    i = n_states % 4
    if i == 1:
        b0 = scale * weights[0, k]
        for q in range(size):
            after[k, q] = b0 * given[0, q]
    elif i == 2:
        b0, b1 = scale * weights[0, k], scale * weights[1, k]
        for q in range(size):
            after[k, q] = b0 * given[0, q] + b1 * given[1, q]
    elif i == 3:
        b0, b1, b2 = scale * weights[0, k], scale * weights[1, k], scale * weights[2, k]
        for q in range(size):
            after[k, q] = b0 * given[0, q] + b1 * given[1, q] + b2 * given[2, q]
    else:
        for q in range(size):
            after[k, q] = 0.0
    while i < n_states:
        b0, b1 = scale * weights[i, k], scale * weights[i + 1, k]
        b2, b3 = scale * weights[i + 2, k], scale * weights[i + 3, k]
        for q in range(size):
            after[k, q] += b0 * given[i, q] + b1 * given[i + 1, q] + b2 * given[i + 2, q] + b3 * given[i + 3, q]
        i += 4


@helper
def filter_missing(chances, now):
    """Make a transition without a row; the score of a missing row is 0."""
    total = 0.0
    for j in range(now.size):
        total += chances[j]
    for j in range(now.size):
        now[j] = chances[j] / total
    return 0.0


@helper
def filter_logs(chances, logs, densities, now):
    """Filter one row by its log-densities; return its score."""
    n_states = now.size
    peak = LOWEST
    for j in range(n_states):
        peak = max(peak, logs[j])
    for j in range(n_states):
        logs[j] -= peak
        densities[j] = exp(logs[j])
    total = condition(chances, densities, logs, now)
    if total > 0.0:
        return peak + math.log(total)
    return peak + total if total < 0.0 else -np.inf


@helper
def filter_densities(chances, densities, logs, now):
    """Filter one row by its densities; return its score."""
    n_states = now.size
    total = 0.0
    for j in range(n_states):
        now[j] = chances[j] * densities[j]
    for j in range(n_states):
        total += now[j]
    if total >= LEAST:
        inverse = 1.0 / total
        for j in range(n_states):
            now[j] *= inverse
        return math.log(total)
    for j in range(n_states):
        logs[j] = math.log(densities[j])
    return filter_logs(chances, logs, densities, now)


@helper
def carry_on(known, step, given, after, back):
    """Carry the statistics to the next row, and add the first state, or the transition."""
    n_states, size = given.shape
    for k in range(n_states):
        if known:
            weigh(after, k, given, back, 1.0 - step)
            for i in range(n_states):
                after[k, n_states * (1 + i) + k] += step * back[i, k]
        else:
            for q in range(size):
                after[k, q] = (1.0 - step) * given[k, q]
            after[k, k] += step


@helper
def gather(now, given, mean, average, gain, n_eff, totals):
    """mean = filter @ given, the running average moved towards it, and totals = n_eff * mean."""
    n_states, size = given.shape
    share = now[0]
    for q in range(size):
        mean[q] = share * given[0, q]
    for k in range(1, n_states):
        share = now[k]
        for q in range(size):
            mean[q] += share * given[k, q]
    if average.size:
        for q in range(size):
            average[q] += gain * (mean[q] - average[q])
    for q in range(size):
        totals[q] = n_eff * mean[q]


@kernel
def sweep_gaussian_full(X, origin, code, chain, prior, steps, gains, n_eff, known, now, given, mean, average, scores):
    n_states, size = given.shape
    prior_start, prior_steps, start_shift, steps_shift = chain
    start, transitions, back = np.empty(n_states), np.empty((n_states, n_states)), np.empty((n_states, n_states))
    chances, densities, logs = np.empty(n_states), np.empty(n_states), np.empty(n_states)
    width = X.shape[1]
    x, totals, after = np.empty(width), n_eff * mean, np.empty((n_states, size))
    head = n_states * (1 + n_states)
    at, place = head + n_states, head + n_states * (1 + width)
    count, first = totals[head:at], totals[at:place].reshape((n_states, width))
    second = totals[place:].reshape((n_states, width, width))
    means, shift = np.empty((n_states, width)), np.empty((n_states, width))
    factor = np.zeros((n_states, width, width))
    offset, power, stretch = np.empty(n_states), np.empty(n_states), np.empty(n_states)
    for row in range(X.shape[0]):
        if known:
            read_transitions(code, prior_steps, steps_shift, totals, transitions)
        else:
            read_start(code, prior_start, start_shift, totals, start)
        look_ahead(known, now, start, transitions, chances, back)
        refresh_full(code, prior, count, count, first, second, means, factor, shift, offset, power, stretch)
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
        missing, step = math.isnan(X[row, 0]), steps[row]
        scores[row] = filter_missing(chances, now) if missing else filter_logs(chances, logs, densities, now)
        carry_on(known, step, given, after, back)
        if not missing:
            for k in range(n_states):
                after[k, head + k] += step
                for i in range(width):
                    after[k, at + k * width + i] += step * x[i]
                    for j in range(i + 1):
                        after[k, place + (k * width + i) * width + j] += step * x[i] * x[j]
        given, after, known = after, given, True
        n_eff, _, _ = fold_factors(n_eff, step, 1.0)
        gather(now, given, mean, average, gains[row] if gains.size else 0.0, n_eff, totals)
    return n_eff, given


@kernel
def sweep_gaussian_tied(X, origin, code, chain, prior, steps, gains, n_eff, known, now, given, mean, average, scores):
    n_states, size = given.shape
    prior_start, prior_steps, start_shift, steps_shift = chain
    start, transitions, back = np.empty(n_states), np.empty((n_states, n_states)), np.empty((n_states, n_states))
    chances, densities, logs = np.empty(n_states), np.empty(n_states), np.empty(n_states)
    width = X.shape[1]
    x, totals, after = np.empty(width), n_eff * mean, np.empty((n_states, size))
    head = n_states * (1 + n_states)
    at, place = head + n_states, head + n_states * (1 + width)
    count, first = totals[head:at], totals[at:place].reshape((n_states, width))
    second = totals[place:].reshape((width, width))
    means, shift = np.empty((n_states, width)), np.empty((n_states, width))
    factor = np.zeros((width, width))
    offset, power, stretch = np.empty(n_states), np.empty(n_states), np.empty(n_states)
    for row in range(X.shape[0]):
        if known:
            read_transitions(code, prior_steps, steps_shift, totals, transitions)
        else:
            read_start(code, prior_start, start_shift, totals, start)
        look_ahead(known, now, start, transitions, chances, back)
        refresh_tied(code, prior, count, count, first, second, means, factor, shift, offset, power, stretch)
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
        missing, step = math.isnan(X[row, 0]), steps[row]
        scores[row] = filter_missing(chances, now) if missing else filter_logs(chances, logs, densities, now)
        carry_on(known, step, given, after, back)
        if not missing:
            for k in range(n_states):
                after[k, head + k] += step
                for i in range(width):
                    after[k, at + k * width + i] += step * x[i]
                    for j in range(i + 1):
                        after[k, place + i * width + j] += step * x[i] * x[j]
        given, after, known = after, given, True
        n_eff, _, _ = fold_factors(n_eff, step, 1.0)
        gather(now, given, mean, average, gains[row] if gains.size else 0.0, n_eff, totals)
    return n_eff, given


@kernel
def sweep_gaussian_diag(X, origin, code, chain, prior, steps, gains, n_eff, known, now, given, mean, average, scores):
    n_states, size = given.shape
    prior_start, prior_steps, start_shift, steps_shift = chain
    start, transitions, back = np.empty(n_states), np.empty((n_states, n_states)), np.empty((n_states, n_states))
    chances, densities, logs = np.empty(n_states), np.empty(n_states), np.empty(n_states)
    width = X.shape[1]
    x, totals, after = np.empty(width), n_eff * mean, np.empty((n_states, size))
    head = n_states * (1 + n_states)
    at, place = head + n_states, head + n_states * (1 + width)
    count, first = totals[head:at], totals[at:place].reshape((n_states, width))
    second = totals[place:].reshape((n_states, width))
    means, shift, factor = np.empty((n_states, width)), np.empty((n_states, width)), np.empty((n_states, width))
    offset, power, stretch = np.empty(n_states), np.empty(n_states), np.empty(n_states)
    for row in range(X.shape[0]):
        if known:
            read_transitions(code, prior_steps, steps_shift, totals, transitions)
        else:
            read_start(code, prior_start, start_shift, totals, start)
        look_ahead(known, now, start, transitions, chances, back)
        refresh_diag(code, prior, count, count, first, second, means, factor, shift, offset, power, stretch)
        for j in range(width):
            x[j] = X[row, j] - origin[j]
        for k in range(n_states):
            distance = 0.0
            for j in range(width):
                value = factor[k, j] * x[j] - shift[k, j]
                distance += value * value
            logs[k] = max(offset[k] - 0.5 * distance, LOWEST)
        missing, step = math.isnan(X[row, 0]), steps[row]
        scores[row] = filter_missing(chances, now) if missing else filter_logs(chances, logs, densities, now)
        carry_on(known, step, given, after, back)
        if not missing:
            for k in range(n_states):
                after[k, head + k] += step
                for j in range(width):
                    after[k, at + k * width + j] += step * x[j]
                    after[k, place + k * width + j] += step * x[j] * x[j]
        given, after, known = after, given, True
        n_eff, _, _ = fold_factors(n_eff, step, 1.0)
        gather(now, given, mean, average, gains[row] if gains.size else 0.0, n_eff, totals)
    return n_eff, given


@kernel
def sweep_symbols(symbols, code, chain, beta, shift, norms, steps, gains, n_eff, known, now, given, mean, average, scores):
    """Symbols, -1 where they are missing. `beta` and `shift` are (V, K), and `norms` (K) their sum before any count."""
    n_states, size = given.shape
    prior_start, prior_steps, start_shift, steps_shift = chain
    start, transitions, back = np.empty(n_states), np.empty((n_states, n_states)), np.empty((n_states, n_states))
    chances, densities, logs = np.empty(n_states), np.empty(n_states), np.empty(n_states)
    totals, after = n_eff * mean, np.empty((n_states, size))
    head = n_states * (1 + n_states)
    at = head + n_states
    for row in range(symbols.size):
        if known:
            read_transitions(code, prior_steps, steps_shift, totals, transitions)
        else:
            read_start(code, prior_start, start_shift, totals, start)
        look_ahead(known, now, start, transitions, chances, back)
        symbol, step = symbols[row], steps[row]
        missing = symbol < 0
        for k in range(0 if missing else n_states):
            count, total = totals[at + symbol * n_states + k], norms[k] + totals[head + k]
            if code == MODE:
                densities[k] = max((beta[symbol, k] - shift[symbol, k]) + count, TINY) / max(total, TINY)
            elif code == EXPECT_LOG:
                densities[k] = math.exp(digamma(beta[symbol, k] + count) - digamma(total))
            else:
                densities[k] = (beta[symbol, k] + count) / total
        scores[row] = filter_missing(chances, now) if missing else filter_densities(chances, densities, logs, now)
        carry_on(known, step, given, after, back)
        if not missing:
            for k in range(n_states):
                after[k, head + k] += step
                after[k, at + symbol * n_states + k] += step
        given, after, known = after, given, True
        n_eff, _, _ = fold_factors(n_eff, step, 1.0)
        gather(now, given, mean, average, gains[row] if gains.size else 0.0, n_eff, totals)
    return n_eff, given
