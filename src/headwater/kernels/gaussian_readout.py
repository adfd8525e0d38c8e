"""Readouts of K Gaussians: totals and prior in, parameters that are ready for the E-step out.

The belief about component k with mass N_k is Normal-Wishart (full, tied) or Normal-Gamma (diag, spherical):
kappa = kappa0 + N_k, nu = nu0 + N_k (tied: + all the mass), mean m and scale V = scale0 + scatter about m. What is read out:

- MODE: covariance V / (nu - mode_shift) + floor. The flat prior (kappa0 = 0, nu0 = mode_shift, scale0 = 0) gives ML.
- MEAN: covariance V / nu, the inverse of the mean precision.
- EXPECT_LOG: exp E[log density], the variational E-step of paper 004.
- PREDICTIVE: the Student-t density of the next row.

A spherical component has one precision ~ Gamma(nu d / 2, d V / 2), V being the mean over columns, so that V / nu is its
covariance like everybody's. All arrays are about the origin. `second` is read in its lower triangle.
"""

import math

from headwater.kernels._jit import helper, kernel, routine
from headwater.kernels.fastmath import digamma
from headwater.kernels.mixture import EXPECT_LOG, MODE, PREDICTIVE, TINY

# A pivot below this part of its second moments is rounding: it is raised, so that no result is NaN.
ROUNDING = 2e-15


@helper
def posterior_mean(prior_mean, kappa0, mass, first, mean):
    """Write the mean of a component; return its kappa. A component without any mass sits at the prior mean."""
    kappa = kappa0 + mass
    for j in range(mean.size):
        mean[j] = (kappa0 * prior_mean[j] + first[j]) / kappa if kappa > TINY else prior_mean[j]
    return kappa


@helper
def divisor(code, dof, beyond_mode, kappa0):
    """The divisor of V for the covariance of the readout; `beyond_mode` is dof - mode_shift.

    A proper prior with few degrees of freedom has no mode before some rows were seen: it is taken at one row.
    """
    if code == MODE:
        return max(beyond_mode, 1.0 if kappa0 > 0.0 else TINY)
    if code == PREDICTIVE:
        return 1.0
    return dof


@helper
def invert_factor(matrix, noise, factor):
    """Write the lower triangular inverse of the Cholesky factor; return log-determinant and number of pivots lifted."""
    width = matrix.shape[0]
    log_det = 0.0
    lifted = 0
    for i in range(width):  # Cholesky in place, in the lower triangle of `factor`
        for j in range(i + 1):
            value = matrix[i, j]
            for q in range(j):
                value -= factor[i, q] * factor[j, q]
            if i == j:
                lifted += value <= 0.0
                value = max(value, noise[i])
                factor[i, i] = math.sqrt(value)
                log_det += 2.0 * math.log(factor[i, i])
            else:
                factor[i, j] = value / factor[j, j]
    for i in range(width):  # forward substitution, row by row, in place
        inverse = 1.0 / factor[i, i]
        for j in range(i):
            value = 0.0
            for q in range(j, i):
                value -= factor[i, q] * factor[q, j]
            factor[i, j] = value * inverse
        factor[i, i] = inverse
    return log_det, lifted


@helper
def shift_of(factor, mean, shift):
    """factor @ mean for a lower triangular factor."""
    for i in range(mean.size):
        value = 0.0
        for j in range(i + 1):
            value += factor[i, j] * mean[j]
        shift[i] = value


@helper
def wishart_constant(code, dof, kappa, width, log_det):
    """Log-density constant of a component whose readout has this log-determinant; full and tied."""
    if code == PREDICTIVE:
        ratio = kappa / (kappa + 1.0)
        return (
            math.lgamma(0.5 * (dof + 1.0)) - math.lgamma(0.5 * (dof + 1.0 - width))
            + 0.5 * width * math.log(ratio / math.pi) - 0.5 * log_det
        )  # fmt: skip
    constant = -0.5 * log_det - 0.5 * width * math.log(2.0 * math.pi)
    if code == EXPECT_LOG:
        constant += 0.5 * width * (math.log(2.0 / dof) - 1.0 / kappa)
        for i in range(width):
            constant += 0.5 * digamma(0.5 * (dof - i))
    return constant


@routine
def readout_full(k, code, prior, mean_count, dof_count, first, second, means, factor, shift, offset, power, stretch, work):
    """Refresh component k; `prior` is (mean, kappa0, nu0, scale0, floor, mode_shift, spherical).

    Return how many pivots were not positive and had to be lifted: more than none is a singular covariance.
    """
    prior_mean, kappa0, nu0, scale0, floor, mode_shift, _ = prior
    width = prior_mean.size
    kappa = posterior_mean(prior_mean, kappa0, mean_count[k], first[k], means[k])
    dof = nu0 + dof_count[k]
    scale = 1.0 / divisor(code, dof, dof_count[k] + (nu0 - mode_shift), kappa0)
    matrix, noise = work[:width], work[width]
    for i in range(width):
        for j in range(i + 1):
            value = second[k, i, j] + scale0[i, j] + kappa0 * prior_mean[i] * prior_mean[j]
            if i == j:
                noise[i] = max(ROUNDING * value * scale, TINY)
            matrix[i, j] = (value - kappa * means[k, i] * means[k, j]) * scale
        if code == MODE:
            matrix[i, i] += floor
    log_det, lifted = invert_factor(matrix, noise, factor[k])
    shift_of(factor[k], means[k], shift[k])
    offset[k] = wishart_constant(code, dof, kappa, width, log_det)
    power[k] = 0.5 * (dof + 1.0) if code == PREDICTIVE else 0.0
    stretch[k] = kappa / (kappa + 1.0)
    return lifted


@kernel  # a helper, but as one its products and sums are contracted, which changes the last bits of tied covariances
def readout_tied(k, code, prior, count, dof_count, first, second, means, factor, shift, offset, power, stretch, work):
    """Refresh all components, which share one covariance; k is not looked at."""
    prior_mean, kappa0, nu0, scale0, floor, mode_shift, _ = prior
    width = prior_mean.size
    n_components = count.size
    matrix, noise = work[:width], work[width]
    for c in range(n_components):
        posterior_mean(prior_mean, kappa0, count[c], first[c], means[c])
    dof = nu0 + dof_count.sum()
    scale = 1.0 / divisor(code, dof, dof_count.sum() + (nu0 - mode_shift), kappa0)
    for i in range(width):
        for j in range(i + 1):
            value = second[i, j] + scale0[i, j] + n_components * kappa0 * prior_mean[i] * prior_mean[j]
            if i == j:
                noise[i] = max(ROUNDING * value * scale, TINY)
            for c in range(n_components):
                value -= (kappa0 + count[c]) * means[c, i] * means[c, j]
            matrix[i, j] = value * scale
        if code == MODE:
            matrix[i, i] += floor
    log_det, lifted = invert_factor(matrix, noise, factor)
    for c in range(n_components):
        kappa = kappa0 + count[c]
        shift_of(factor, means[c], shift[c])
        offset[c] = wishart_constant(code, dof, kappa, width, log_det)
        power[c] = 0.5 * (dof + 1.0) if code == PREDICTIVE else 0.0
        stretch[c] = kappa / (kappa + 1.0)
    return lifted


@helper
def readout_diag(k, code, prior, mean_count, dof_count, first, second, means, factor, shift, offset, power, stretch, work):
    """Refresh component k; with `spherical` in the prior its columns share one variance."""
    prior_mean, kappa0, nu0, scale0, floor, mode_shift, spherical = prior
    width = prior_mean.size
    kappa = posterior_mean(prior_mean, kappa0, mean_count[k], first[k], means[k])
    dof = nu0 + dof_count[k]
    scale = 1.0 / divisor(code, dof, dof_count[k] + (nu0 - mode_shift), kappa0)
    lift = floor if code == MODE else 0.0
    lifted = 0
    raw = 0.0
    pooled = 0.0
    log_det = 0.0
    for j in range(width):
        value = second[k, j] + scale0[j] + kappa0 * prior_mean[j] * prior_mean[j]
        noise = max(ROUNDING * value * scale, TINY)
        variance = (value - kappa * means[k, j] * means[k, j]) * scale + lift
        lifted += variance <= 0.0
        raw += variance
        variance = max(variance, noise)
        pooled += variance / width
        log_det += math.log(variance)
    for j in range(width):
        value = second[k, j] + scale0[j] + kappa0 * prior_mean[j] * prior_mean[j]
        variance = (value - kappa * means[k, j] * means[k, j]) * scale + lift
        factor[k, j] = 1.0 / math.sqrt(max(variance, ROUNDING * value * scale, TINY))
    if spherical:
        lifted = int(raw <= 0.0)
        if code == PREDICTIVE:
            pooled *= width
        log_det = width * math.log(pooled)
        for j in range(width):
            factor[k, j] = 1.0 / math.sqrt(pooled)
    for j in range(width):
        shift[k, j] = factor[k, j] * means[k, j]
    ratio = kappa / (kappa + 1.0)
    shape = 0.5 * dof * width if spherical else 0.5 * dof  # of the Gamma of one precision
    constant = -0.5 * log_det
    power[k] = 0.0
    if code == PREDICTIVE:
        rise = 0.5 * width if spherical else 0.5
        gammas = math.lgamma(shape + rise) - math.lgamma(shape)
        constant += (gammas if spherical else width * gammas) + 0.5 * width * math.log(ratio / math.pi)
        power[k] = shape + rise
    else:
        constant -= 0.5 * width * math.log(2.0 * math.pi)
        if code == EXPECT_LOG:
            constant += 0.5 * width * (digamma(shape) - math.log(shape) - 1.0 / kappa)
    offset[k] = constant
    stretch[k] = ratio
    return lifted
