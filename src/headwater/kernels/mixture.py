"""The part of an E-step that no family changes: from joint log-densities of a block of rows to responsibilities."""

import numpy as np

from headwater.kernels._jit import kernel
from headwater.kernels.fastmath import exp, log

# A joint log-density below this is as good as impossible; the floor keeps a row that overflows in every component finite.
LOWEST = -1e300


@kernel
def responsibilities_block(log_joint, peak, total, rows, start, weights, labels, scores):
    """Turn `log_joint` (K, rows) into weight * responsibility in place; return the weighted sum of log-likelihoods.

    A label clamps its row to one component, and the row then scores its joint log-density. `scores` is filled if it
    has room.
    """
    n_components = log_joint.shape[0]
    if labels.size:
        for b in range(rows):
            label = labels[start + b]
            if label >= 0:
                kept = log_joint[label, b]
                for k in range(n_components):
                    log_joint[k, b] = -np.inf
                log_joint[label, b] = kept
    for b in range(rows):
        peak[b] = LOWEST
        total[b] = 0.0
    for k in range(n_components):
        for b in range(rows):
            peak[b] = max(peak[b], log_joint[k, b])
    for k in range(n_components):
        for b in range(rows):
            share = exp(log_joint[k, b] - peak[b])
            log_joint[k, b] = share
            total[b] += share
    score = 0.0
    for b in range(rows):
        peak[b] += log(total[b])
        total[b] = 1.0 / total[b]
    if scores.size:
        for b in range(rows):
            scores[start + b] = peak[b]
    if weights.size:
        for b in range(rows):
            score += weights[start + b] * peak[b]
        for b in range(rows):  # a loop of its own: beside a store, the order of the sum would depend on addresses
            total[b] *= weights[start + b]
    else:
        for b in range(rows):
            score += peak[b]
    for k in range(n_components):
        for b in range(rows):
            log_joint[k, b] *= total[b]
    return score


@kernel
def given_block(log_joint, rows, start, weights, responsibilities):
    """Fill `log_joint` with weight * given responsibility."""
    for k in range(log_joint.shape[0]):
        for b in range(rows):
            log_joint[k, b] = responsibilities[start + b, k]
    if weights.size:
        for k in range(log_joint.shape[0]):
            for b in range(rows):
                log_joint[k, b] *= weights[start + b]


@kernel
def store_block(log_joint, rows, start, weights, responsibilities):
    """Write the responsibilities of a block out, without the weights that were multiplied in."""
    for k in range(log_joint.shape[0]):
        for b in range(rows):
            responsibilities[start + b, k] = log_joint[k, b]
    if weights.size:
        for b in range(rows):
            inverse = 1.0 / weights[start + b]
            for k in range(log_joint.shape[0]):
                responsibilities[start + b, k] *= inverse


@kernel
def tail_block(squared, rows, offset, power, stretch):
    """Turn squared distances (K, rows) into joint log-densities: Gaussian where the power is 0, else Student-t."""
    for k in range(squared.shape[0]):
        constant = offset[k]
        if power[k] > 0.0:
            for b in range(rows):
                squared[k, b] = max(constant - power[k] * log(1.0 + min(stretch[k] * squared[k, b], 1e300)), LOWEST)
        else:
            for b in range(rows):
                squared[k, b] = max(constant - 0.5 * squared[k, b], LOWEST)


@kernel
def load_block(X, start, rows, origin, block):
    """Copy rows into a block with one row of memory per column, about the origin."""
    for j in range(X.shape[1]):
        for b in range(rows):
            block[j, b] = X[start + b, j] - origin[j]
