"""Filter, smoother and best path of a hidden Markov chain of K states.

Densities of a row come as `shares` (n, K), relative to a scale of their own whose logarithm is in `scores` (n,), so nothing
here can underflow however long the chain is. Rows of one sequence stand together: those of sequence s are edges[s] to
edges[s + 1], and it goes on from `filters[s]` if it is `known`, or begins at `start`.
"""

import math

import numpy as np

from headwater.kernels._jit import helper, helper_exact, kernel
from headwater.kernels.fastmath import log
from headwater.kernels.mixture import LOWEST, TINY

# A row with a smaller density than this under the possible states is computed again, in logarithms.
LEAST = 1e-280


@helper
def condition(chances, densities, logs, after):
    """States given one more row, from where the chain may be and the row's densities; returns their sum, or, negative, its log.

    `logs` are the log-densities of the row on the same scale, if they are at hand; where they are wanted and missing, NaN is
    returned. A row that is impossible in every state that the chain can be in says nothing of it: the sum is 0.
    """
    n_states = chances.size
    total = 0.0
    for j in range(n_states):
        after[j] = chances[j] * densities[j]
    for j in range(n_states):
        total += after[j]
    if total >= LEAST:
        inverse = 1.0 / total
        for j in range(n_states):
            after[j] *= inverse
        return total
    if not logs.size:
        return np.nan
    peak, everywhere = -np.inf, 0.0
    for j in range(n_states):
        after[j] = math.log(chances[j]) + logs[j] if chances[j] > 0.0 else -np.inf
    for j in range(n_states):
        peak = max(peak, after[j])
        everywhere += chances[j]
    possible = peak > LOWEST
    total = 0.0
    for j in range(n_states):
        after[j] = math.exp(after[j] - peak) if possible else chances[j] / everywhere
    for j in range(n_states):
        total += after[j]
    for j in range(n_states):
        after[j] /= total
    return min(peak + math.log(total), -TINY) if possible else 0.0


@helper
def add_log_scores(totals, scores):
    """Add the logarithms of what `condition` has returned for each row to their scores."""
    for t in range(scores.size):
        if totals[t] > 0.0:
            scores[t] += log(totals[t])
        elif totals[t] < 0.0:
            scores[t] += totals[t]
        else:
            scores[t] = -np.inf


@kernel
def run_filter(shares, logs, edges, known, filters, start, transitions, ahead, scores):
    """Filter the rows: `shares` become the states given all rows so far, `ahead` those given the rows before.

    The log-scores are added to `scores`. Returns the row at which logarithms are wanted, or -1. `filters` are left as they are.
    """
    n, n_states = shares.shape
    totals, now, raw = np.empty(n), np.empty(n_states), np.empty(n_states)
    into = np.ascontiguousarray(transitions.T)
    for s in range(edges.size - 1):
        begin = edges[s]
        for j in range(n_states):
            chance = start[j]
            if known[s]:
                chance = 0.0
                for i in range(n_states):
                    chance += filters[s, i] * into[j, i]
            ahead[begin, j] = chance
        totals[begin] = condition(ahead[begin], shares[begin], logs[begin] if logs.shape[0] else logs.ravel(), now)
        if math.isnan(totals[begin]):
            return begin
        for j in range(n_states):
            shares[begin, j] = now[j]
        for t in range(begin + 1, edges[s + 1]):
            total = 0.0
            for j in range(n_states):
                chance = 0.0
                for i in range(n_states):
                    chance += now[i] * into[j, i]
                ahead[t, j] = chance
                raw[j] = chance * shares[t, j]
                total += raw[j]
            if total >= LEAST:
                inverse = 1.0 / total
                for j in range(n_states):
                    now[j] = raw[j] * inverse
            else:
                total = condition(ahead[t], shares[t], logs[t] if logs.shape[0] else logs.ravel(), now)
                if math.isnan(total):
                    return t
            for j in range(n_states):
                shares[t, j] = now[j]
            totals[t] = total
    add_log_scores(totals, scores)
    return -1


@helper_exact
def part_of(share, transition, chance, after):
    """The share of a state in a step, computed in an order without infinite values, however small the probability is."""
    return share * transition / chance * after


@helper
def step_back(shares, ahead, t, transitions, steps, counts):
    """A step of `smooth` for a state that is so improbable that the inverse of its probability may be infinite."""
    n_states = shares.shape[1]
    for i in range(n_states):
        share, total = shares[t - 1, i], 0.0
        for j in range(n_states):
            if ahead[t, j] > 0.0:
                total += part_of(share, transitions[i, j], ahead[t, j], shares[t, j])
        if counts:
            for j in range(n_states):
                if transitions[i, j] > 0.0 and ahead[t, j] > 0.0:
                    steps[i, j] += part_of(share, transitions[i, j], ahead[t, j], shares[t, j]) / transitions[i, j]
        shares[t - 1, i] = total


@kernel
def smooth(shares, ahead, edges, known, filters, counted, transitions, first, steps):
    """Smooth rows that were filtered: `shares` become the states given all rows of the sequence.

    Of each sequence the `counted` first rows are added to `first` (K,), which counts the states that sequences began in, and to
    `steps` (K, K), which wants to be multiplied by the transitions, then. `filters` become what they were after these rows.
    """
    n_states = shares.shape[1]
    ratio = np.empty(n_states)
    before = np.empty(n_states)
    for s in range(edges.size - 1):
        begin, end = edges[s], edges[s + 1]
        for j in range(n_states):
            before[j] = filters[s, j]
        if counted[s] > 0:
            for j in range(n_states):
                filters[s, j] = shares[begin + counted[s] - 1, j]
        for t in range(end - 1, begin, -1):
            seldom = False
            for j in range(n_states):
                seldom |= 0.0 < ahead[t, j] < LEAST
            for j in range(n_states):
                ratio[j] = shares[t, j] / ahead[t, j] if ahead[t, j] > 0.0 else 0.0
            if seldom:
                step_back(shares, ahead, t, transitions, steps, t < begin + counted[s])
            elif t < begin + counted[s]:
                for i in range(n_states):
                    share, back = shares[t - 1, i], 0.0
                    for j in range(n_states):
                        back += transitions[i, j] * ratio[j]
                    for j in range(n_states):
                        steps[i, j] += share * ratio[j]
                    shares[t - 1, i] = share * back
            else:
                for i in range(n_states):
                    back = 0.0
                    for j in range(n_states):
                        back += transitions[i, j] * ratio[j]
                    shares[t - 1, i] *= back
        if counted[s] > 0 and known[s]:
            for j in range(n_states):
                ratio[j] = shares[begin, j] / ahead[begin, j] if ahead[begin, j] > 0.0 else 0.0
            for i in range(n_states):
                for j in range(n_states):
                    if ahead[begin, j] >= LEAST:
                        steps[i, j] += before[i] * ratio[j]
                    elif transitions[i, j] > 0.0 and ahead[begin, j] > 0.0:
                        part = part_of(before[i], transitions[i, j], ahead[begin, j], shares[begin, j])
                        steps[i, j] += part / transitions[i, j]
        elif counted[s] > 0:
            for j in range(n_states):
                first[j] += shares[begin, j]


@kernel
def best_path(logs, edges, log_start, log_transitions, back, path):
    """Viterbi: the most probable states of each sequence; returns the log-probability of them all. `back` is (n, K)."""
    n_states = logs.shape[1]
    now, after = np.empty(n_states), np.empty(n_states)
    total = 0.0
    for s in range(edges.size - 1):
        begin, end = edges[s], edges[s + 1]
        for j in range(n_states):
            now[j] = log_start[j] + logs[begin, j]
        for t in range(begin + 1, end):
            for j in range(n_states):
                best, place = now[0] + log_transitions[0, j], 0
                for i in range(1, n_states):
                    value = now[i] + log_transitions[i, j]
                    if value > best:
                        best, place = value, i
                after[j] = best + logs[t, j]
                back[t, j] = place
            for j in range(n_states):
                now[j] = after[j]
        best, place = now[0], 0
        for j in range(1, n_states):
            if now[j] > best:
                best, place = now[j], j
        total += best
        for t in range(end - 1, begin - 1, -1):
            path[t] = place
            if t > begin:
                place = back[t, place]
    return total


@kernel
def draw_path(uniform, start, transitions, states):
    """Draw the states of a chain from uniform numbers; a first state that is not negative is kept."""
    n_states = start.size
    for t in range(states.size):
        if t == 0 and states[0] >= 0:
            continue
        left, place = uniform[t], 0
        while place < n_states - 1:
            left -= start[place] if t == 0 else transitions[states[t - 1], place]
            if left < 0.0:
                break
            place += 1
        states[t] = place


@kernel
def add_symbols(symbols, responsibilities, counts):
    """Add the responsibilities of each row to those of its symbol."""
    n_states = counts.shape[1]
    for t in range(symbols.size):
        at = symbols[t]
        for k in range(n_states):
            counts[at, k] += responsibilities[t, k]
