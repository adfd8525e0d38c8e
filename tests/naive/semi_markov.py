"""Semi-Markov chains by enumeration of all divisions of a sequence into stays."""

import numpy as np


def divisions(rows, n_states, longest):
    """Yield every way to cut the rows into stays: lists of (state, first row, rows in sight, whether it goes on beyond)."""

    def extend(begun, at):
        if at == rows:
            yield begun
            return
        for state in range(n_states):
            if begun and begun[-1][0] == state:
                continue
            for length in range(1, longest + 1):
                seen = min(length, rows - at)
                if length <= rows - at:
                    yield from extend([*begun, (state, at, length, False)], at + length)
                if length >= seen and length > rows - at:
                    yield [*begun, (state, at, seen, True)]
                    break  # all longer stays look alike

    yield from extend([], 0)


def enumerate_stays(start, passages, durations, logs):
    """Return the log-likelihood, the states (n, K) and the most probable states of rows with log-densities (n, K)."""
    n, k = logs.shape
    total, states, best, path = 0.0, np.zeros((n, k)), -1.0, None
    for stays in divisions(n, k, durations.shape[1]):
        weight, before, places = 1.0, None, np.empty(n, dtype=int)
        for state, at, seen, beyond in stays:
            weight *= start[state] if before is None else passages[before, state]
            weight *= durations[state, seen:].sum() if beyond else durations[state, seen - 1]
            weight *= np.exp(logs[at : at + seen, state].sum())
            places[at : at + seen], before = state, state
        total += weight
        states[np.arange(n), places] += weight
        if weight > best:
            best, path = weight, places
    return np.log(total), states / total, path
