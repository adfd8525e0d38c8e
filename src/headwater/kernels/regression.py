"""E-step of K linear regressions: rows of inputs and target in, statistics (and scores, and responsibilities) out.

A row is (x, y); its design is phi = (1, x), or x without an intercept; all is about the origin. Parameters come ready for use:
`factor` of a component is lower triangular over (phi, y). Its last row turns a row into the residual y - phi'beta in units of
the noise, e; the others turn phi into a vector whose squared length is the leverage, h = phi' L^-1 phi. The log-density is

- offset - e^2 / 2, or offset - (e^2 + h) / 2 where `leverage` is 1 (the variational E-step);
- offset - log(1 + h) / 2 - power * log(1 + e^2 / (1 + h)) where `power` is not 0 (Student's t of the next target).

`gate` holds Gaussians over the inputs as in gaussian.py, (factor, shift, offset, power, stretch), or empties. With a gate what
is learned is the joint density of inputs and target, whose sum over rows is returned; `scores` are those of the target given
the inputs either way. The other arguments are those of gaussian.py: statistics are `count`, `first` and `second` of (x, y).
"""

import numpy as np

from headwater.kernels._jit import helper, kernel
from headwater.kernels.fastmath import exp, log
from headwater.kernels.gaussian import add_products, whiten
from headwater.kernels.mixture import LOWEST, load_block, responsibilities_block

BLOCK = 128
HUGE = 1e300


@helper
def gate_distances(block, rows, gate, column, squared):
    """Write -2 log-densities of the inputs under each Gaussian, up to the offset."""
    factor, shift, _, power, stretch = gate
    for k in range(shift.shape[0]):
        for b in range(rows):
            squared[k, b] = 0.0
        for i in range(shift.shape[1]):
            whiten(factor[k], block, rows, i, column)
            for b in range(rows):
                squared[k, b] += (column[b] - shift[k, i]) * (column[b] - shift[k, i])
        if power[k] > 0.0:
            for b in range(rows):
                squared[k, b] = 2.0 * power[k] * log(1.0 + min(stretch[k] * squared[k, b], HUGE))


@helper
def log_inputs(squared, rows, offset, peak, out):
    """Log-density of the inputs of each row under the mixture of these Gaussians."""
    for b in range(rows):
        peak[b] = LOWEST
        out[b] = 0.0
    for k in range(offset.size):
        for b in range(rows):
            peak[b] = max(peak[b], offset[k] - 0.5 * squared[k, b])
    for k in range(offset.size):
        for b in range(rows):
            out[b] += exp(max(offset[k] - 0.5 * squared[k, b], LOWEST) - peak[b])
    for b in range(rows):
        out[b] = peak[b] + log(out[b])


@helper
def add_residuals(block, rows, factor, leverage, power, column, reach, squared):
    """Add -2 log-densities of the targets under one regression, up to the offset."""
    last = factor.shape[0] - 1
    if leverage > 0.0:
        for b in range(rows):
            reach[b] = 0.0
        for i in range(last):
            whiten(factor, block, rows, i, column)
            for b in range(rows):
                reach[b] += column[b] * column[b]
    whiten(factor, block, rows, last, column)
    if power > 0.0:
        for b in range(rows):
            wide = 1.0 + min(reach[b], HUGE)
            squared[b] += log(wide) + 2.0 * power * log(1.0 + min(column[b] * column[b], HUGE) / wide)
    elif leverage > 0.0:
        for b in range(rows):
            squared[b] += column[b] * column[b] + reach[b]
    else:
        for b in range(rows):
            squared[b] += column[b] * column[b]


@kernel
def estep_regression(
    X, start, stop, weights, labels, origin, factor, offset, power, leverage, gate, scores, responsibilities, given,
    count, first, second,
):  # fmt: skip
    n_components, high = factor.shape[:2]
    width = X.shape[1]
    size = min(BLOCK, stop - start)
    design = np.ones((high, size))
    block = design[high - width :]
    column, reach, inputs = np.empty(size), np.empty(size), np.empty(size)
    log_joint = np.empty((n_components, size))
    peak = np.empty(size)
    total = np.empty(size)
    normal, unit = np.zeros(n_components), np.ones(n_components)
    gated = gate[2].size > 0
    score = 0.0
    for at in range(start, stop, size):
        rows = min(size, stop - at)
        load_block(X, at, rows, origin, block)
        if not given:
            if gated:
                gate_distances(block, rows, gate, column, log_joint)
                if scores.size:
                    log_inputs(log_joint, rows, gate[2], peak, inputs)
            else:
                log_joint[:, :rows] = 0.0
            for k in range(n_components):
                add_residuals(design, rows, factor[k], leverage[k], power[k], column, reach, log_joint[k])
        score += responsibilities_block(
            log_joint, peak, total, rows, at, weights, labels, offset, normal, unit, scores, responsibilities, given
        )
        if gated and scores.size and not given:
            for b in range(rows):
                scores[at + b] -= inputs[b]
        if count.size:
            for k in range(n_components):
                mass = 0.0
                for b in range(rows):
                    mass += log_joint[k, b]
                count[k] += mass
                for i in range(width):
                    for b in range(rows):
                        column[b] = log_joint[k, b] * block[i, b]
                    moment = 0.0
                    for b in range(rows):
                        moment += column[b]
                    first[k, i] += moment
                    add_products(column, block, rows, i, second[k])
    return score
