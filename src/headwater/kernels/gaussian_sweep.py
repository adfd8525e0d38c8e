"""Row-by-row learning of K Gaussians inside one kernel: for every row E-step, fold and refresh, without leaving it.

The totals (`count`, `first`, `second`) are n_eff times the mean statistics. A fold with step g of a row of weight w turns
them into keep * totals + gain * w * (row), with n_eff' = 1 / ((1-g)^2 / n_eff + g^2 / w), keep = (1-g) n_eff' / n_eff and
gain = g n_eff' / w; for equal weights that is keep = gain = 1, and only the components that rows have touched are refreshed.
"""

import math

import numpy as np

from headwater.kernels._jit import helper, kernel
from headwater.kernels.fastmath import exp
from headwater.kernels.gaussian_rank_one import unit_rows, update_factor, whiten_row
from headwater.kernels.gaussian_readout import divisor, readout_diag, readout_full, readout_tied, wishart_constant
from headwater.kernels.lanes import padded
from headwater.kernels.mixture import LOWEST, MODE, PREDICTIVE, log_normaliser, log_share

# A component is refreshed when it has got more than this part of its mass since the last time; less than that
# changes its parameters by no more than that. Its statistics miss nothing, and the kernel begins with what they say.
STALE = 1e-12
# A row at a larger squared distance than this (in units of the covariance) gets a full readout.
FAR = 1e12


@helper
def fold_factors(n_eff, step, weight):
    """Return (n_eff', keep, gain)."""
    after = 1.0 / ((1.0 - step) ** 2 / n_eff + step * step / weight)
    keep = (1.0 - step) * after / n_eff
    gain = step * after / weight
    if abs(keep - 1.0) < 1e-12 and abs(gain - 1.0) < 1e-9:
        keep = 1.0
        gain = 1.0
    return after, keep, gain


@helper
def tail(distance, offset, power, stretch):
    if power > 0.0:
        return max(offset - power * math.log(1.0 + min(stretch * distance, 1e300)), LOWEST)
    return max(offset - 0.5 * distance, LOWEST)


@helper
def responsibilities_row(log_joint, label):
    """Turn joint log-densities of one row into responsibilities; return the row's score."""
    n_components = log_joint.size
    if label >= 0:
        score = log_joint[label]
        for k in range(n_components):
            log_joint[k] = 0.0
        log_joint[label] = 1.0
        return score
    peak = LOWEST
    for k in range(n_components):
        peak = max(peak, log_joint[k])
    total = 0.0
    for k in range(n_components):
        log_joint[k] = exp(log_joint[k] - peak)
    for k in range(n_components):
        total += log_joint[k]
    inverse = 1.0 / total
    for k in range(n_components):
        log_joint[k] *= inverse
    return peak + math.log(total)


@helper
def move_average(average, totals, n_eff, gain):
    for i in range(average.size):
        average[i] += gain * (totals[i] / n_eff - average[i])


@helper
def move_averages(averages, count, first, second, n_eff, gain):
    """Polyak-Ruppert: move the averaged mean statistics towards the current ones."""
    move_average(averages[0], count, n_eff, gain)
    move_average(averages[1].ravel(), first.ravel(), n_eff, gain)
    move_average(averages[2].ravel(), second.ravel(), n_eff, gain)


@helper
def scale_all(keep, count, first, second):
    for array in (count, first.ravel(), second.ravel()):
        for i in range(array.size):
            array[i] *= keep


@kernel
def sweep_full(
    X, weights, labels, origin, code, concentration, prior, steps, gains, n_eff, count, first, second, averages, scores
):
    """Where counts add, a touched component changes by a rank-one update; else it is read out of its totals."""
    _, kappa0, nu0, _, floor, mode_shift, _ = prior
    n_components, width = first.shape
    wide = padded(width)
    x, work, sums = np.empty(width), np.empty((width + 1, width)), np.empty(wide)
    log_joint, distance = np.empty(n_components), np.empty(n_components)
    apart, turned, pivots = np.empty((n_components, width)), np.empty((n_components, width)), np.empty((n_components, width))
    means, shift = np.empty((n_components, width)), np.empty((n_components, width))
    factor = np.zeros((n_components, width, wide))
    offset, power, stretch = np.empty(n_components), np.empty(n_components), np.empty(n_components)
    log_det, by = np.empty(n_components), np.empty(n_components)
    shares, given = np.empty(n_components), np.zeros(n_components)
    rank_one = code != MODE or floor == 0.0
    for k in range(n_components):
        readout_full(k, code, prior, count, count, first, second, means, factor, shift, offset, power, stretch, work)
        log_det[k] = unit_rows(factor[k], pivots[k])
        by[k] = divisor(code, nu0 + count[k], count[k] + (nu0 - mode_shift), kappa0)
        shares[k] = log_share(code, concentration[k], count[k])
    for row in range(X.shape[0]):
        for j in range(width):
            x[j] = X[row, j] - origin[j]
        for k in range(n_components):
            for j in range(width):
                apart[k, j] = x[j] - means[k, j]
            distance[k] = whiten_row(factor[k], pivots[k], apart[k], turned[k])
            log_joint[k] = tail(distance[k], shares[k] + offset[k], power[k], stretch[k])
        score = responsibilities_row(log_joint, labels[row] if labels.size else -1)
        if scores.size:
            scores[row] = score - log_normaliser(code, concentration, count)
        weight = weights[row] if weights.size else 1.0
        n_eff, keep, gain = fold_factors(n_eff, steps[row], weight)
        if keep != 1.0:
            scale_all(keep, count, first, second)
        for k in range(n_components):
            mass = gain * weight * log_joint[k]
            count[k] += mass
            if mass > 0.0:
                for i in range(width):
                    first[k, i] += mass * x[i]
                    for j in range(i + 1):
                        second[k, i, j] += mass * x[i] * x[j]
            given[k] += mass
            if keep == 1.0 and given[k] <= STALE * count[k]:
                continue
            shares[k] = log_share(code, concentration[k], count[k])
            kappa, dof = kappa0 + count[k], nu0 + count[k]
            if keep == 1.0 and rank_one and kappa > mass and distance[k] < FAR:
                after = divisor(code, dof, count[k] + (nu0 - mode_shift), kappa0)
                s, t = by[k] / after, (kappa - mass) * mass / (kappa * by[k])
                grown = update_factor(factor[k], pivots[k], turned[k], s, t, sums)
                log_det[k] += width * math.log(s) + math.log(grown)
                by[k] = after
                for i in range(width):
                    means[k, i] += mass / kappa * apart[k, i]
                offset[k] = wishart_constant(code, dof, kappa, width, log_det[k])
                power[k] = 0.5 * (dof + 1.0) if code == PREDICTIVE else 0.0
                stretch[k] = kappa / (kappa + 1.0)
            else:
                readout_full(k, code, prior, count, count, first, second, means, factor, shift, offset, power, stretch, work)
                log_det[k] = unit_rows(factor[k], pivots[k])
                by[k] = divisor(code, dof, count[k] + (nu0 - mode_shift), kappa0)
            given[k] = 0.0
        if gains.size:
            move_averages(averages, count, first, second, n_eff, gains[row])
    return n_eff


@kernel
def sweep_tied(
    X, weights, labels, origin, code, concentration, prior, steps, gains, n_eff, count, first, second, averages, scores
):
    n_components, width = first.shape
    x = np.empty(width)
    log_joint = np.empty(n_components)
    means = np.empty((n_components, width))
    factor = np.empty((width, width))
    shift = np.empty((n_components, width))
    offset, power, stretch = np.empty(n_components), np.empty(n_components), np.empty(n_components)
    work = np.empty((width + 1, width))
    readout_tied(0, code, prior, count, count, first, second, means, factor, shift, offset, power, stretch, work)
    for row in range(X.shape[0]):
        for j in range(width):
            x[j] = X[row, j] - origin[j]
        log_joint[:] = 0.0
        for i in range(width):
            y = 0.0
            for j in range(i + 1):
                y += factor[i, j] * x[j]
            for k in range(n_components):
                log_joint[k] += (y - shift[k, i]) ** 2
        for k in range(n_components):
            share = log_share(code, concentration[k], count[k])
            log_joint[k] = tail(log_joint[k], share + offset[k], power[k], stretch[k])
        score = responsibilities_row(log_joint, labels[row] if labels.size else -1)
        if scores.size:
            scores[row] = score - log_normaliser(code, concentration, count)
        weight = weights[row] if weights.size else 1.0
        n_eff, keep, gain = fold_factors(n_eff, steps[row], weight)
        scale_all(keep, count, first, second)
        for k in range(n_components):
            mass = gain * weight * log_joint[k]
            count[k] += mass
            for i in range(width):
                first[k, i] += mass * x[i]
        for i in range(width):
            for j in range(i + 1):
                second[i, j] += gain * weight * x[i] * x[j]
        readout_tied(0, code, prior, count, count, first, second, means, factor, shift, offset, power, stretch, work)
        if gains.size:
            move_averages(averages, count, first, second, n_eff, gains[row])
    return n_eff


@kernel
def sweep_diag(
    X, weights, labels, origin, code, concentration, prior, steps, gains, n_eff, count, first, second, averages, scores
):
    n_components, width = first.shape
    columns_tail = not prior[6]
    x = np.empty(width)
    log_joint = np.empty(n_components)
    means = np.empty((n_components, width))
    factor = np.empty((n_components, width))
    shift = np.empty((n_components, width))
    offset, power, stretch = np.empty(n_components), np.empty(n_components), np.empty(n_components)
    shares, given = np.empty(n_components), np.zeros(n_components)
    work = np.empty((0, 0))
    for k in range(n_components):
        readout_diag(k, code, prior, count, count, first, second, means, factor, shift, offset, power, stretch, work)
        shares[k] = log_share(code, concentration[k], count[k])
    for row in range(X.shape[0]):
        for j in range(width):
            x[j] = X[row, j] - origin[j]
        for k in range(n_components):
            distance = 0.0
            if columns_tail and power[k] > 0.0:
                for j in range(width):
                    y = factor[k, j] * x[j] - shift[k, j]
                    distance += math.log(1.0 + min(stretch[k] * y * y, 1e300))
                log_joint[k] = max(shares[k] + offset[k] - power[k] * distance, LOWEST)
            else:
                for j in range(width):
                    y = factor[k, j] * x[j] - shift[k, j]
                    distance += y * y
                log_joint[k] = tail(distance, shares[k] + offset[k], power[k], stretch[k])
        score = responsibilities_row(log_joint, labels[row] if labels.size else -1)
        if scores.size:
            scores[row] = score - log_normaliser(code, concentration, count)
        weight = weights[row] if weights.size else 1.0
        n_eff, keep, gain = fold_factors(n_eff, steps[row], weight)
        if keep != 1.0:
            scale_all(keep, count, first, second)
        for k in range(n_components):
            mass = gain * weight * log_joint[k]
            count[k] += mass
            for j in range(width):
                first[k, j] += mass * x[j]
                second[k, j] += mass * x[j] * x[j]
            given[k] += mass
            if keep != 1.0 or given[k] > STALE * count[k]:
                readout_diag(k, code, prior, count, count, first, second, means, factor, shift, offset, power, stretch, work)
                shares[k] = log_share(code, concentration[k], count[k])
                given[k] = 0.0
        if gains.size:
            move_averages(averages, count, first, second, n_eff, gains[row])
    return n_eff
