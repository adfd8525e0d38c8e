"""The parts common to all families: weights, and the step from joint log-densities of a block to responsibilities."""

import math

import numpy as np

from headwater.kernels._jit import helper, helper_exact, kernel, routine
from headwater.kernels.fastmath import digamma, exp, log
from headwater.kernels.random import begin_stream, uniform

MODE, MEAN, EXPECT_LOG, PREDICTIVE = 0, 1, 2, 3
READOUTS = {
    "mode": MODE,
    "mean": MEAN,
    "expect_log": EXPECT_LOG,
    "predictive": PREDICTIVE,
    "match_moments": PREDICTIVE,  # the same E-step; rows are learned differently
}
TINY = 1e-300

BLOCK_ROWS = 128  # of a block that stays in the cache

# A floor for joint log-densities, which keeps a row finite that overflows in every component.
LOWEST = -1e300


@helper_exact
def log_share(code, concentration, count):
    """Log-weight of a component with this prior concentration and count, up to the normaliser below.

    Exact, like the normaliser: in another order, (concentration - 1) + count loses a small count.
    """
    if code == MODE:
        return math.log(max((concentration - 1.0) + count, TINY))
    if code == EXPECT_LOG:
        return digamma(concentration + count)
    return math.log(concentration + count)


@helper_exact
def log_normaliser(code, concentration, count):
    """What `log_share` lacks, the same for every component."""
    total = 0.0
    for k in range(count.size):
        total += max((concentration[k] - 1.0) + count[k], TINY) if code == MODE else concentration[k] + count[k]
    return digamma(total) if code == EXPECT_LOG else math.log(total)


@kernel
def weights_readout(code, concentration, count, log_weights):
    """Log-weights of the belief with these concentrations and counts, or what the readout puts in their place."""
    normaliser = log_normaliser(code, concentration, count)
    for k in range(count.size):
        log_weights[k] = log_share(code, concentration[k], count[k]) - normaliser


@helper
def responsibilities_block(
    squared, peak, total, rows, start, weights, labels, offset, power, stretch, scores, responsibilities, given
):
    """Turn squared distances (K, rows) into weight * responsibility in place; return the weighted sum of log-likelihoods.

    A joint log-density is offset - distance / 2, or that of Student's t where the power is not 0. A label clamps its row to
    one component, and the row then scores its joint log-density. `scores` and `responsibilities` are filled if they have
    room; responsibilities that are `given` are taken as they are.
    """
    n_components = squared.shape[0]
    if given:
        for k in range(n_components):
            for b in range(rows):
                squared[k, b] = responsibilities[start + b, k]
                peak[b] = 0.0
    else:
        for b in range(rows):
            peak[b] = LOWEST
            total[b] = 0.0
        for k in range(n_components):
            if power[k] > 0.0:
                for b in range(rows):
                    squared[k, b] = offset[k] - power[k] * log(1.0 + min(stretch[k] * squared[k, b], 1e300))
            else:
                for b in range(rows):
                    squared[k, b] = offset[k] - 0.5 * squared[k, b]
            for b in range(rows):
                squared[k, b] = max(squared[k, b], LOWEST)
        if labels.size:
            for b in range(rows):
                label = labels[start + b]
                if label >= 0:
                    kept = squared[label, b]
                    for k in range(n_components):
                        squared[k, b] = -np.inf
                    squared[label, b] = kept
        for k in range(n_components):
            for b in range(rows):
                peak[b] = max(peak[b], squared[k, b])
        for k in range(n_components):
            for b in range(rows):
                share = exp(squared[k, b] - peak[b])
                squared[k, b] = share
                total[b] += share
        for b in range(rows):
            peak[b] += log(total[b])
            total[b] = 1.0 / total[b]
        for k in range(n_components):
            for b in range(rows):
                squared[k, b] *= total[b]
        if scores.size:
            for b in range(rows):
                scores[start + b] = peak[b]
        if responsibilities.size:
            for k in range(n_components):
                for b in range(rows):
                    responsibilities[start + b, k] = squared[k, b]
    score = 0.0
    if weights.size:
        for b in range(rows):
            score += weights[start + b] * peak[b]
        for k in range(n_components):
            for b in range(rows):
                squared[k, b] *= weights[start + b]
    else:
        for b in range(rows):
            score += peak[b]
    return score


# The same, called by kernels that are large without it.
called_responsibilities_block = routine(responsibilities_block.py_func)


@kernel
def share_rows(joint, log_weights, labels, scores):
    """Turn log-densities (n, K) into responsibilities in place, and write the log-likelihood (n,) of each row.

    Rows with a label, which is not -1, belong to that component; without room for labels, no row has one.
    """
    n, n_components = joint.shape
    size = min(BLOCK_ROWS, n)
    squared = np.empty((n_components, size))
    peak = np.empty(size)
    total = np.empty(size)
    normal = np.zeros(n_components)
    unweighted = np.empty(0)
    for at in range(0, n, max(size, 1)):
        rows = min(size, n - at)
        for b in range(rows):
            for k in range(n_components):
                squared[k, b] = -2.0 * joint[at + b, k]  # of which half is taken off the weight, without rounding
        responsibilities_block(
            squared, peak, total, rows, at, unweighted, labels, log_weights, normal, normal, scores, joint, False
        )


@kernel
def converged(gain, last_gain, tol):
    """Whether less than tol was gained, and less than tol is to come if gains go on falling by the same ratio (Aitken)."""
    ratio = gain / last_gain if last_gain > 0.0 else 0.0
    to_come = gain * ratio / (1.0 - ratio) if ratio < 1.0 else np.inf
    return abs(gain) < tol and to_come < tol


@helper
def load_block(X, start, rows, origin, block):
    """Copy rows into a block with one row of memory per column, about the origin."""
    for j in range(X.shape[1]):
        for b in range(rows):
            block[j, b] = X[start + b, j] - origin[j]


@kernel
def draw_components(shares, n_samples, key, first):
    """Put the shares of `n_samples` draws of a component in the place of each row's probabilities.

    `first` is the place of the first row in the stream of random numbers.
    """
    n_components = shares.shape[1]
    running, counts = np.empty(n_components), np.empty(n_components)
    state = np.zeros(1, dtype=np.uint64)
    for i in range(shares.shape[0]):
        begin_stream(state, key, first + i)
        total = 0.0
        for k in range(n_components):
            total += shares[i, k]
            running[k] = total
            counts[k] = 0.0
        for _ in range(n_samples):
            u, k = uniform(state) * total, 0
            while k < n_components - 1 and running[k] <= u:
                k += 1
            counts[k] += 1.0
        for k in range(n_components):
            shares[i, k] = counts[k] / n_samples
