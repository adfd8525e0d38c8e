"""Row-by-row learning of K Gaussians from rows with gaps: for every row E-step, fold and refresh inside one kernel.

As gaussian_sweep.py, with the missing values integrated out as in gaussian_gaps.py. A row that was completed adds more than
itself to the second moments, so a component that it has touched is read out of its totals. Rows without a value do not come
here.
"""

import math

import numpy as np

from headwater.kernels._jit import helper, kernel
from headwater.kernels.fastmath import digamma
from headwater.kernels.gaussian_gap_rows import LOG_2_PI, complete_moments, load_row, log_joint_of, measure_row, turn
from headwater.kernels.gaussian_readout import ROUNDING, divisor, readout_full, readout_tied
from headwater.kernels.gaussian_sweep import STALE, fold_factors, move_average, responsibilities_row
from headwater.kernels.mixture import EXPECT_LOG, LOWEST, MODE, PREDICTIVE, TINY, log_normaliser, log_share


@helper
def readout_columns(k, code, prior, observed, first, second, means, factor, shift, constants, power, stretch):
    """Refresh component k of diagonal or spherical covariance, whose columns have masses of their own.

    `constants` (K, d) is what each column adds to the log-density; with one tail for all columns (spherical, PREDICTIVE) its
    stretch is in the factor, and `power` is that of a complete row.
    """
    prior_mean, kappa0, nu0, scale0, floor, mode_shift, spherical = prior
    width = prior_mean.size
    pooled, pooled_value, mass = 0.0, 0.0, 0.0
    for j in range(width):
        kappa = kappa0 + observed[k, j]
        mean = (kappa0 * prior_mean[j] + first[k, j]) / kappa if kappa > TINY else prior_mean[j]
        means[k, j] = mean
        value = second[k, j] + scale0[j] + kappa0 * prior_mean[j] * prior_mean[j]
        factor[k, j] = value - kappa * mean * mean  # the scale of the belief, for now
        shift[k, j] = value
    for j in range(width):
        pooled += factor[k, j] / width
        pooled_value += shift[k, j] / width
        mass += observed[k, j] / width
    for j in range(width):
        kappa = kappa0 + observed[k, j]
        own = mass if spherical else observed[k, j]
        scale, value = (pooled, pooled_value) if spherical else (factor[k, j], shift[k, j])
        dof = nu0 + own
        shape = 0.5 * dof * (width if spherical else 1)
        ratio = kappa / (kappa + 1.0)
        power[k, j], stretch[k, j] = 0.0, 1.0
        if code == PREDICTIVE:
            if spherical:
                factor[k, j] = math.sqrt(ratio / (width * scale))
                constants[k, j] = math.log(factor[k, j]) - 0.5 * math.log(math.pi)
                power[k, j] = shape + 0.5 * width
            else:
                factor[k, j] = 1.0 / math.sqrt(scale)
                power[k, j], stretch[k, j] = 0.5 * (dof + 1.0), ratio
                constants[k, j] = (
                    math.log(factor[k, j]) + math.lgamma(power[k, j]) - math.lgamma(0.5 * dof)
                    + 0.5 * math.log(ratio / math.pi)
                )  # fmt: skip
        else:
            by = divisor(code, dof, own + (nu0 - mode_shift), kappa0)
            variance = scale / by + (floor if code == MODE else 0.0)
            factor[k, j] = 1.0 / math.sqrt(max(variance, ROUNDING * value / by, TINY))
            constants[k, j] = math.log(factor[k, j]) - 0.5 * LOG_2_PI
            if code == EXPECT_LOG:
                constants[k, j] += 0.5 * (digamma(shape) - math.log(shape) - 1.0 / kappa)
        shift[k, j] = factor[k, j] * means[k, j]


@helper
def log_density_columns(k, code, x, missing, row, m, spherical, factor, shift, constants, power, stretch):
    """Log-density of what was observed of a row under a component of diagonal or spherical covariance."""
    width = x.size
    total, distance = 0.0, 0.0
    for j in range(width):
        if missing[row, j]:
            continue
        white = factor[k, j] * x[j] - shift[k, j]
        total += constants[k, j]
        if code == PREDICTIVE and not spherical:
            total -= power[k, j] * math.log(1.0 + min(stretch[k, j] * white * white, 1e300))
        else:
            distance += white * white
    if code == PREDICTIVE and spherical:
        left = power[k, 0] - 0.5 * m
        total += math.lgamma(left) - math.lgamma(power[k, 0] - 0.5 * width) - left * math.log(1.0 + min(distance, 1e300))
        return max(total, LOWEST)
    return max(total - 0.5 * distance, LOWEST)


@helper
def scale_gapped(keep, count, first, second, observed, known):
    for array in (count, first.ravel(), second.ravel(), observed.ravel(), known.ravel()):
        for i in range(array.size):
            array[i] *= keep


@helper
def move_gapped(averages, count, first, second, observed, known, n_eff, gain):
    """Polyak-Ruppert: move the averaged mean statistics towards the current ones."""
    move_average(averages[0], count, n_eff, gain)
    move_average(averages[1].ravel(), first.ravel(), n_eff, gain)
    move_average(averages[2].ravel(), second.ravel(), n_eff, gain)
    move_average(averages[3].ravel(), observed.ravel(), n_eff, gain)
    move_average(averages[4].ravel(), known.ravel(), n_eff, gain)


@kernel
def sweep_matrix_gaps(
    X, missing, weights, labels, origin, code, concentration, prior, tied, steps, gains, n_eff, count, first, second, observed,
    known, averages, scores,
):  # fmt: skip
    """Full covariance; of tied covariance, `second` has one matrix."""
    n_components, width = first.shape
    matrices = second.shape[0]
    x, gaps, order = np.empty(width), np.empty(width, np.int64), np.arange(width)
    work, white, row_work = np.empty((width + 1, width)), np.empty(width), np.empty(width)
    block, inverse = np.empty((width, width)), np.empty((width, width))
    roots, solved = np.empty((n_components, width, width)), np.empty((n_components, width))
    log_joint, wide = np.empty(n_components), np.empty(n_components)
    means, shift = np.empty((n_components, width)), np.empty((n_components, width))
    factor, turned = np.zeros((matrices, width, width)), np.zeros((matrices, width, width))
    offset, power, stretch = np.empty(n_components), np.empty(n_components), np.empty(n_components)
    filled, square, told = np.empty(width), np.empty((width, width)), np.empty(width)
    shares, given = np.empty(n_components), np.full(n_components, np.inf)
    keep = 1.0
    for row in range(X.shape[0]):
        if tied:
            readout_tied(
                0, code, prior, count, count, first, second[0], means, factor[0], shift, offset, power, stretch, work
            )  # fmt: skip
            turn(factor[0], turned[0])
        for k in range(n_components):
            if keep == 1.0 and given[k] <= STALE * count[k]:
                continue
            shares[k] = log_share(code, concentration[k], count[k])
            if not tied:
                readout_full(k, code, prior, count, count, first, second, means, factor, shift, offset, power, stretch, work)
                turn(factor[k], turned[k])
            given[k] = 0.0
        m = load_row(X, missing, row, origin, x, gaps)
        for k in range(n_components):
            own = 0 if tied else k
            distance, half = measure_row(
                x, gaps, m, order, factor[own], turned[own], shift[k], white, block, roots[k], solved[k]
            )  # fmt: skip
            log_joint[k], wide[k] = log_joint_of(distance, half, m, shares[k] + offset[k], power[k], stretch[k])
        score = responsibilities_row(log_joint, labels[row] if labels.size else -1)
        if scores.size:
            scores[row] = score - log_normaliser(code, concentration, count)
        weight = weights[row] if weights.size else 1.0
        n_eff, keep, gain = fold_factors(n_eff, steps[row], weight)
        if keep != 1.0:
            scale_gapped(keep, count, first, second, observed, known)
        for k in range(n_components):
            own = 0 if tied else k
            mass = gain * weight * log_joint[k]
            count[k] += mass
            given[k] += mass
            if mass <= 0.0:
                continue
            complete_moments(
                x, gaps, m, solved[k], roots[k], inverse, factor[own], wide[k], row_work, filled, square, told
            )  # fmt: skip
            for i in range(width):
                first[k, i] += mass * filled[i]
                known[k, i] += mass * told[i]
                if not missing[row, i]:
                    observed[k, i] += mass
                for j in range(i + 1):
                    second[own, i, j] += mass * square[i, j]
        if gains.size:
            move_gapped(averages, count, first, second, observed, known, n_eff, gains[row])
    return n_eff


@kernel
def sweep_columns_gaps(
    X, missing, weights, labels, origin, code, concentration, prior, steps, gains, n_eff, count, first, second, observed, known,
    averages, scores,
):  # fmt: skip
    """Diagonal and spherical covariance: missing columns are left out."""
    n_components, width = first.shape
    spherical = prior[6]
    x, gaps = np.empty(width), np.empty(width, np.int64)
    log_joint, shares, given = np.empty(n_components), np.empty(n_components), np.full(n_components, np.inf)
    means, factor, shift = np.empty((n_components, width)), np.empty((n_components, width)), np.empty((n_components, width))
    constants, power = np.empty((n_components, width)), np.empty((n_components, width))
    stretch = np.empty((n_components, width))
    keep = 1.0
    for row in range(X.shape[0]):
        for k in range(n_components):
            if keep == 1.0 and given[k] <= STALE * count[k]:
                continue
            shares[k] = log_share(code, concentration[k], count[k])
            readout_columns(k, code, prior, observed, first, second, means, factor, shift, constants, power, stretch)
            given[k] = 0.0
        m = load_row(X, missing, row, origin, x, gaps)
        for k in range(n_components):
            log_joint[k] = shares[k] + log_density_columns(
                k, code, x, missing, row, m, spherical, factor, shift, constants, power, stretch
            )  # fmt: skip
        score = responsibilities_row(log_joint, labels[row] if labels.size else -1)
        if scores.size:
            scores[row] = score - log_normaliser(code, concentration, count)
        weight = weights[row] if weights.size else 1.0
        n_eff, keep, gain = fold_factors(n_eff, steps[row], weight)
        if keep != 1.0:
            scale_gapped(keep, count, first, second, observed, known)
        for k in range(n_components):
            mass = gain * weight * log_joint[k]
            count[k] += mass
            given[k] += mass
            for j in range(width):
                if missing[row, j]:
                    continue
                first[k, j] += mass * x[j]
                second[k, j] += mass * x[j] * x[j]
                observed[k, j] += mass
                known[k, j] += mass
        if gains.size:
            move_gapped(averages, count, first, second, observed, known, n_eff, gains[row])
    return n_eff
