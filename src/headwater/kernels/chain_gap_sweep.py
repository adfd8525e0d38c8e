"""Learning a hidden Markov chain step by step from rows with gaps: as chain_sweep.py, with the missing values integrated out.

What the family has is count (K), first (K x d) and second moments, then `observed` and `known` (K x d each; see
gaussian_gaps.py). A row without any value passes time.
"""

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
from headwater.kernels.gaussian_gap_rows import complete_moments, load_row, log_joint_of, measure_row, turn
from headwater.kernels.gaussian_gap_sweep import log_density_columns, readout_columns
from headwater.kernels.gaussian_readout import readout_full, readout_tied
from headwater.kernels.gaussian_sweep import fold_factors


@kernel
def sweep_chain_matrix_gaps(
    X, missing, origin, code, chain, prior, tied, steps, gains, n_eff, known, now, given, mean, average, scores
):
    """Full covariance, or tied covariance, of which there is one matrix."""
    n_states, size = given.shape
    prior_start, prior_steps, start_shift, steps_shift = chain
    start, transitions, back = np.empty(n_states), np.empty((n_states, n_states)), np.empty((n_states, n_states))
    chances, densities, logs = np.empty(n_states), np.empty(n_states), np.empty(n_states)
    width, matrices = X.shape[1], 1 if tied else n_states
    totals, after = n_eff * mean, np.empty((n_states, size))
    head = n_states * (1 + n_states)
    at, place = head + n_states, head + n_states * (1 + width)
    seen = place + matrices * width * width
    told = seen + n_states * width
    count, first = totals[head:at], totals[at:place].reshape((n_states, width))
    second = totals[place:seen].reshape((matrices, width, width))
    means, shift = np.empty((n_states, width)), np.empty((n_states, width))
    factor, turned = np.zeros((matrices, width, width)), np.zeros((matrices, width, width))
    offset, power, stretch = np.empty(n_states), np.empty(n_states), np.empty(n_states)
    x, gaps, order = np.empty(width), np.empty(width, np.int64), np.arange(width)
    work, white, row_work = np.empty((width + 1, width)), np.empty(width), np.empty(width)
    block, inverse = np.empty((width, width)), np.empty((width, width))
    roots, solved = np.empty((n_states, width, width)), np.empty((n_states, width))
    filled, square, worth = np.empty(width), np.empty((width, width)), np.empty(width)
    for row in range(X.shape[0]):
        if known:
            read_transitions(code, prior_steps, steps_shift, totals, transitions)
        else:
            read_start(code, prior_start, start_shift, totals, start)
        look_ahead(known, now, start, transitions, chances, back)
        m, step = load_row(X, missing, row, origin, x, gaps), steps[row]
        if m < width:
            if tied:
                readout_tied(
                    0, code, prior, count, count, first, second[0], means, factor[0], shift, offset, power, stretch, work
                )  # fmt: skip
            for k in range(n_states):
                if not tied:
                    readout_full(
                        k, code, prior, count, count, first, second, means, factor, shift, offset, power, stretch, work
                    )  # fmt: skip
            for k in range(matrices):
                turn(factor[k], turned[k])
            for k in range(n_states):
                own = 0 if tied else k
                distance, half = measure_row(
                    x, gaps, m, order, factor[own], turned[own], shift[k], white, block, roots[k], solved[k]
                )  # fmt: skip
                logs[k], _ = log_joint_of(distance, half, m, offset[k], power[k], stretch[k])
        scores[row] = filter_missing(chances, now) if m == width else filter_logs(chances, logs, densities, now)
        carry_on(known, step, given, after, back)
        for k in range(n_states if m < width else 0):
            own = 0 if tied else k
            complete_moments(x, gaps, m, solved[k], roots[k], inverse, factor[own], 1.0, row_work, filled, square, worth)
            after[k, head + k] += step
            for i in range(width):
                after[k, at + k * width + i] += step * filled[i]
                after[k, told + k * width + i] += step * worth[i]
                if not missing[row, i]:
                    after[k, seen + k * width + i] += step
                for j in range(i + 1):
                    after[k, place + (own * width + i) * width + j] += step * square[i, j]
        given, after, known = after, given, True
        n_eff, _, _ = fold_factors(n_eff, step, 1.0)
        gather(now, given, mean, average, gains[row] if gains.size else 0.0, n_eff, totals)
    return n_eff, given


@kernel
def sweep_chain_columns_gaps(
    X, missing, origin, code, chain, prior, steps, gains, n_eff, known, now, given, mean, average, scores
):
    """Diagonal and spherical covariance: missing columns are left out."""
    n_states, size = given.shape
    prior_start, prior_steps, start_shift, steps_shift = chain
    start, transitions, back = np.empty(n_states), np.empty((n_states, n_states)), np.empty((n_states, n_states))
    chances, densities, logs = np.empty(n_states), np.empty(n_states), np.empty(n_states)
    width = X.shape[1]
    totals, after = n_eff * mean, np.empty((n_states, size))
    head = n_states * (1 + n_states)
    at, place = head + n_states, head + n_states * (1 + width)
    seen, told = place + n_states * width, place + 2 * n_states * width
    first, second = totals[at:place].reshape((n_states, width)), totals[place:seen].reshape((n_states, width))
    observed = totals[seen:told].reshape((n_states, width))
    means, factor, shift = np.empty((n_states, width)), np.empty((n_states, width)), np.empty((n_states, width))
    constants, power, stretch = np.empty((n_states, width)), np.empty((n_states, width)), np.empty((n_states, width))
    x, gaps = np.empty(width), np.empty(width, np.int64)
    for row in range(X.shape[0]):
        if known:
            read_transitions(code, prior_steps, steps_shift, totals, transitions)
        else:
            read_start(code, prior_start, start_shift, totals, start)
        look_ahead(known, now, start, transitions, chances, back)
        m, step = load_row(X, missing, row, origin, x, gaps), steps[row]
        for k in range(n_states if m < width else 0):
            readout_columns(k, code, prior, observed, first, second, means, factor, shift, constants, power, stretch)
            logs[k] = log_density_columns(
                k, code, x, missing, row, m, prior[6], factor, shift, constants, power, stretch
            )  # fmt: skip
        scores[row] = filter_missing(chances, now) if m == width else filter_logs(chances, logs, densities, now)
        carry_on(known, step, given, after, back)
        for k in range(n_states if m < width else 0):
            after[k, head + k] += step
            for j in range(width):
                if not missing[row, j]:
                    after[k, at + k * width + j] += step * x[j]
                    after[k, place + k * width + j] += step * x[j] * x[j]
                    after[k, seen + k * width + j] += step
                    after[k, told + k * width + j] += step
        given, after, known = after, given, True
        n_eff, _, _ = fold_factors(n_eff, step, 1.0)
        gather(now, given, mean, average, gains[row] if gains.size else 0.0, n_eff, totals)
    return n_eff, given
