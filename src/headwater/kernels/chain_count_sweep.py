"""Learning a hidden Markov chain of counts step by step: Cappé's recursion, as in `chain_sweep`, over Poisson columns."""

import math

import numpy as np

from headwater.kernels._jit import kernel
from headwater.kernels.chain_sweep import (
    carry_on,
    filter_logs,
    filter_missing,
    gather,
    look_ahead,
    read_start,
    read_transitions,
)
from headwater.kernels.fastmath import digamma
from headwater.kernels.gaussian_sweep import fold_factors
from headwater.kernels.mixture import EXPECT_LOG, LOWEST


@kernel
def sweep_counts(
    counts, exposure, code, chain, shape, rate, least, steps, gains, n_eff, known, now, given, mean, average, scores
):
    """Counts (n, d) of events, NaN where they are missing, in the exposure (n,) of each row; no rate is below `least`.

    The emissions of a row of statistics are: rows of each state (K), exposure (K, d) and events (K, d).
    """
    n_states, size = given.shape
    prior_start, prior_steps, start_shift, steps_shift = chain
    start, transitions, back = np.empty(n_states), np.empty((n_states, n_states)), np.empty((n_states, n_states))
    chances, densities, logs = np.empty(n_states), np.empty(n_states), np.empty(n_states)
    totals, after = n_eff * mean, np.empty((n_states, size))
    width = counts.shape[1]
    head = n_states * (1 + n_states)
    at = head + n_states
    place = at + n_states * width
    for row in range(counts.shape[0]):
        if known:
            read_transitions(code, prior_steps, steps_shift, totals, transitions)
        else:
            read_start(code, prior_start, start_shift, totals, start)
        look_ahead(known, now, start, transitions, chances, back)
        missing, base, step, time = True, 0.0, steps[row], exposure[row]
        for k in range(n_states):
            logs[k] = 0.0
        for j in range(width):
            x = counts[row, j]
            if math.isnan(x):
                continue
            missing = False
            base += x * math.log(time) - math.lgamma(x + 1.0)
            for k in range(n_states):
                events = shape[k, j] + totals[place + k * width + j]
                rows = rate[k, j] + totals[at + k * width + j]
                if code == EXPECT_LOG:
                    logs[k] += x * (digamma(events) - math.log(rows)) - time * events / rows
                else:
                    usual = max(events / max(rows, least), least)
                    logs[k] += x * math.log(usual) - time * usual
        for k in range(n_states):
            logs[k] = max(logs[k] + base, LOWEST)
        scores[row] = filter_missing(chances, now) if missing else filter_logs(chances, logs, densities, now)
        carry_on(known, step, given, after, back)
        if not missing:
            for k in range(n_states):
                after[k, head + k] += step
                for j in range(width):
                    if not math.isnan(counts[row, j]):
                        after[k, at + k * width + j] += step * time
                        after[k, place + k * width + j] += step * counts[row, j]
        given, after, known = after, given, True
        n_eff, _, _ = fold_factors(n_eff, step, 1.0)
        gather(now, given, mean, average, gains[row] if gains.size else 0.0, n_eff, totals)
    return n_eff, given
