"""Filter and smoother of a hidden Markov chain in logarithms, where a state with a tiny probability can come back.

Where some transitions do not exist, a state may be reached from itself alone, so that it must keep a probability of less than
1e-308 until a later row makes it likely again. Everything here takes and returns what `kernels/chains.py` has, in logarithms.
"""

import math

import numpy as np

from headwater.kernels._jit import helper, kernel
from headwater.kernels.mixture import LOWEST


@helper
def log_sum(terms):
    """Logarithm of the sum of numbers, of which their logarithms are given; minus infinity for nothing."""
    peak, total = -np.inf, 0.0
    for i in range(terms.size):
        peak = max(peak, terms[i])
    if peak <= LOWEST:
        return -np.inf
    for i in range(terms.size):
        if terms[i] > LOWEST:
            total += math.exp(terms[i] - peak)
    return peak + math.log(total)


@helper
def condition_logs(ahead, logs, terms, filtered):
    """Fill the logarithms of the states given one more row, from those before it; returns its log-score."""
    n_states = ahead.size
    peak = LOWEST  # taken off first: beside a huge log-density, what states differ by would be rounded away
    for j in range(n_states):
        if ahead[j] > LOWEST:
            peak = max(peak, logs[j])
    top = -np.inf
    for j in range(n_states):
        terms[j] = ahead[j] + (logs[j] - peak)
        top = max(top, terms[j])
    possible = peak + top > LOWEST
    for j in range(n_states):
        terms[j] -= top
    rest = log_sum(terms)
    for j in range(n_states):
        filtered[j] = terms[j] - rest if possible else ahead[j]
    return peak + top + rest if possible else -np.inf


@kernel
def run_log_filter(logs, edges, log_filters, log_start, log_steps, filtered, ahead, scores):
    """Filter rows with log-densities `logs` (n, K): fill `filtered` and `ahead`, and the log-score of each row.

    A sequence goes on from its row of `log_filters` if that holds anything above minus infinity, else it begins.
    """
    n_states = logs.shape[1]
    terms = np.empty(n_states)
    for s in range(edges.size - 1):
        known = log_sum(log_filters[s]) > LOWEST
        for t in range(edges[s], edges[s + 1]):
            for j in range(n_states):
                if t == edges[s] and not known:
                    ahead[t, j] = log_start[j]
                else:
                    for i in range(n_states):
                        before = log_filters[s, i] if t == edges[s] else filtered[t - 1, i]
                        terms[i] = before + log_steps[i, j]
                    ahead[t, j] = log_sum(terms)
            scores[t] = condition_logs(ahead[t], logs[t], terms, filtered[t])


@kernel
def smooth_logs(filtered, ahead, edges, known, filters, counted, log_filters, log_steps, shares, first, steps):
    """Smooth rows that were filtered in logarithms: fill `shares`, and add to `first` and `steps` as `smooth` does."""
    n_states = filtered.shape[1]
    part = np.empty((n_states, n_states))
    for s in range(edges.size - 1):
        begin, end = edges[s], edges[s + 1]
        if counted[s] > 0:
            for j in range(n_states):
                filters[s, j] = math.exp(filtered[begin + counted[s] - 1, j])
        for j in range(n_states):
            shares[end - 1, j] = math.exp(filtered[end - 1, j])
        for t in range(end - 1, begin - 1, -1):
            if t == begin and not known[s]:
                break
            for j in range(n_states):
                total = 0.0  # 1, but for rounding of huge logarithms
                for i in range(n_states):
                    before = log_filters[s, i] if t == begin else filtered[t - 1, i]
                    value = before + log_steps[i, j] - ahead[t, j] if ahead[t, j] > LOWEST else -np.inf
                    part[i, j] = math.exp(value) if value > LOWEST and shares[t, j] > 0.0 else 0.0
                for i in range(n_states):
                    total += part[i, j]
                for i in range(n_states):
                    part[i, j] *= shares[t, j] / total if total > 0.0 else 0.0
            if t > begin:
                for i in range(n_states):
                    total = 0.0
                    for j in range(n_states):
                        total += part[i, j]
                    shares[t - 1, i] = total
            if t < begin + counted[s]:
                for i in range(n_states):
                    for j in range(n_states):
                        if part[i, j] > 0.0:
                            steps[i, j] += part[i, j] / math.exp(log_steps[i, j])
        if counted[s] > 0 and not known[s]:
            for j in range(n_states):
                first[j] += shares[begin, j]
