"""Row-by-row learning of K linear regressions inside one kernel; see gaussian_sweep.py for what a fold does to totals.

Where counts add, a row changes a regression by recursive least squares: L grows by a rank-one matrix (gaussian_rank_one.py),
beta by the residual times the gain, V by the squared prediction error. Else it is read out of its totals, as the
Gaussians of a gate always are.
"""

import math

import numpy as np

from headwater.kernels._jit import helper, kernel
from headwater.kernels.gaussian_rank_one import unit_rows, update_factor, whiten_row
from headwater.kernels.gaussian_readout import readout_full
from headwater.kernels.gaussian_sweep import (
    FAR,
    STALE,
    fold_factors,
    move_averages,
    responsibilities_row,
    scale_all,
    tail,
)
from headwater.kernels.lanes import padded
from headwater.kernels.mixture import LOWEST, log_normaliser, log_share
from headwater.kernels.regression_readout import constants, noise_of, readout_regression

HUGE = 1e300


@helper
def log_target(residual, reach, noise, offset, power, leverage):
    """Log-density of a target with this residual and leverage."""
    squared = min(residual * residual / noise, HUGE)
    if power > 0.0:
        wide = 1.0 + reach
        return offset - 0.5 * math.log(wide) - power * math.log(1.0 + squared / wide)
    return offset - 0.5 * (squared + leverage * reach)


@helper
def read_unit(k, code, prior, count, first, second, coef, factor, offset, power, leverage, units, pivots, scale, noise, work):
    """Refresh component k, and the factor of its L in the form that rank-one updates take."""
    high = work.shape[1]
    scale[k] = readout_regression(k, code, prior, count, first, second, coef, factor, offset, power, leverage, work)
    noise[k] = factor[k, high - 1, high - 1] ** -2.0
    for i in range(high - 1):
        for j in range(i + 1):
            units[k, i, j] = factor[k, i, j]
    unit_rows(units[k], pivots[k])


@kernel
def sweep_regression(
    X, weights, labels, origin, code, concentration, prior, gate_prior, steps, gains, n_eff, count, first, second, averages,
    scores,
):  # fmt: skip
    n_components, width = first.shape
    high = prior[0].shape[0]
    size, ahead = high - 1, high - width
    wide = padded(size)
    row, phi, gain_of = np.empty(width), np.ones(size), np.empty(size)
    work, sums = np.empty((high + 1, high)), np.empty(wide)
    log_joint, inputs, reach, residual = np.empty((4, n_components))
    coef, factor = np.empty((n_components, size)), np.zeros((n_components, high, high))
    units, pivots, turned = np.zeros((n_components, size, wide)), np.empty((n_components, size)), np.empty((n_components, size))
    offset, power, leverage, scale, noise = np.empty((5, n_components))
    shares, given = np.empty(n_components), np.zeros(n_components)
    gated = gate_prior[0].size > 0
    inner = width - 1 if gated else 0
    means, shift = np.empty((n_components, inner)), np.empty((n_components, inner))
    gate_factor, gate_work = np.empty((n_components, inner, inner)), np.empty((inner + 1, inner))
    gate_offset, gate_power, gate_stretch = np.empty((3, n_components))
    for k in range(n_components):
        read_unit(
            k, code, prior, count, first, second, coef, factor, offset, power, leverage, units, pivots, scale, noise, work
        )
        if gated:
            readout_full(
                k, code, gate_prior, count, count, first, second, means, gate_factor, shift, gate_offset, gate_power,
                gate_stretch, gate_work,
            )  # fmt: skip
        shares[k] = log_share(code, concentration[k], count[k])
    for at in range(X.shape[0]):
        for j in range(width):
            row[j] = X[at, j] - origin[j]
        for j in range(ahead, size):
            phi[j] = row[j - ahead]
        for k in range(n_components):
            inputs[k] = shares[k]
            if gated:
                distance = 0.0
                for i in range(inner):
                    y = -shift[k, i]
                    for j in range(i + 1):
                        y += gate_factor[k, i, j] * row[j]
                    distance += y * y
                inputs[k] = tail(distance, shares[k] + gate_offset[k], gate_power[k], gate_stretch[k])
            left = row[width - 1]
            for j in range(size):
                left -= coef[k, j] * phi[j]
            residual[k] = left
            reach[k] = whiten_row(units[k], pivots[k], phi, turned[k])
            if not reach[k] < HUGE:  # nor if it overflowed to NaN
                reach[k] = HUGE
            target = log_target(residual[k], reach[k], noise[k], offset[k], power[k], leverage[k])
            log_joint[k] = max(inputs[k] + target, LOWEST)
        score = responsibilities_row(log_joint, labels[at] if labels.size else -1)
        if scores.size:
            known = responsibilities_row(inputs, -1) if gated else log_normaliser(code, concentration, count)
            scores[at] = score - known
        weight = weights[at] if weights.size else 1.0
        n_eff, keep, gain = fold_factors(n_eff, steps[at], weight)
        if keep != 1.0:
            scale_all(keep, count, first, second)
        for k in range(n_components):
            mass = gain * weight * log_joint[k]
            count[k] += mass
            if mass > 0.0:
                for i in range(width):
                    first[k, i] += mass * row[i]
                    for j in range(i + 1):
                        second[k, i, j] += mass * row[i] * row[j]
            given[k] += mass
            if keep == 1.0 and given[k] <= STALE * count[k]:
                continue
            shares[k] = log_share(code, concentration[k], count[k])
            if keep == 1.0 and reach[k] < FAR:
                for i in range(size):
                    gain_of[i] = 0.0
                for i in range(size):
                    along = pivots[k, i] * turned[k, i]
                    for j in range(i + 1):
                        gain_of[j] += units[k, i, j] * along
                grown = update_factor(units[k], pivots[k], turned[k], 1.0, mass, sums)
                for j in range(size):
                    coef[k, j] += mass * residual[k] / grown * gain_of[j]
                scale[k] += mass * residual[k] * residual[k] / grown
                noise[k] = noise_of(code, prior, count[k], scale[k])
                offset[k], power[k], leverage[k] = constants(code, prior[1] + count[k], scale[k], noise[k])
            else:
                read_unit(
                    k, code, prior, count, first, second, coef, factor, offset, power, leverage, units, pivots, scale, noise,
                    work,
                )  # fmt: skip
            if gated:
                readout_full(
                    k, code, gate_prior, count, count, first, second, means, gate_factor, shift, gate_offset, gate_power,
                    gate_stretch, gate_work,
                )  # fmt: skip
            given[k] = 0.0
        if gains.size:
            move_averages(averages, count, first, second, n_eff, gains[at])
    return n_eff
