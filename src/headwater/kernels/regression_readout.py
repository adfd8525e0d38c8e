"""Readouts of K linear regressions: totals and prior in, parameters that are ready for the E-step out.

The belief about component k with mass N_k is Normal-inverse-Gamma: coefficients ~ N(m, noise L^-1), noise ~ IG(nu / 2, V / 2).
L, m and V come from one matrix over (phi, y): that of the prior plus the second moments. In blocks it is ((L, c), (c', s)); its
Cholesky factor holds that of L, its inverse -m and, as the last pivot, V = s - c' L^-1 c. What is read out:

- MODE: noise V / (nu - mode_shift), no less than the floor. The flat prior (all zero, nu0 = mode_shift) gives least squares.
- MEAN: noise V / nu, the inverse of the mean precision.
- EXPECT_LOG: exp E[log density], the variational E-step of paper 004.
- PREDICTIVE: the Student-t density of the next target.
"""

import math

import numpy as np

from headwater.kernels._jit import helper, kernel
from headwater.kernels.fastmath import digamma
from headwater.kernels.gaussian_readout import ROUNDING, divisor, invert_factor
from headwater.kernels.mixture import EXPECT_LOG, MODE, PREDICTIVE, TINY

# A part of its own square is added to each column of the design, so that columns which depend on one another share what they
# explain instead of dividing rounding by rounding.
RIDGE = 1e-13


@helper
def moment_matrix(information, mass, first, second, matrix):
    """Write the lower triangle of prior plus second moments over (phi, y); phi begins with 1 if there is room for it."""
    width = first.size
    ahead = information.shape[0] - width
    if ahead:
        matrix[0, 0] = information[0, 0] + mass
    for i in range(width):
        if ahead:
            matrix[i + 1, 0] = information[i + 1, 0] + first[i]
        for j in range(i + 1):
            matrix[i + ahead, j + ahead] = information[i + ahead, j + ahead] + second[i, j]


@helper
def noise_of(code, prior, mass, scale):
    """Noise variance of the readout (of the predictive density, V itself)."""
    information, dof, floor, mode_shift = prior
    noise = scale / divisor(code, dof + mass, mass + (dof - mode_shift), information[0, 0])
    return max(noise, floor, TINY) if code == MODE else noise


@helper
def constants(code, dof, scale, noise):
    """Return (offset, power, leverage) of a component."""
    if code == PREDICTIVE:
        gammas = math.lgamma(0.5 * (dof + 1.0)) - math.lgamma(0.5 * dof)
        return gammas - 0.5 * math.log(math.pi * scale), 0.5 * (dof + 1.0), 1.0
    offset = -0.5 * math.log(2.0 * math.pi)
    if code == EXPECT_LOG:
        return offset + 0.5 * (digamma(0.5 * dof) - math.log(0.5 * scale)), 0.0, 1.0
    return offset - 0.5 * math.log(noise), 0.0, 0.0


@helper
def readout_regression(k, code, prior, count, first, second, coef, factor, offset, power, leverage, work):
    """Refresh component k; `prior` is (information, nu0, floor, mode_shift). Return V."""
    information, dof, _, _ = prior
    last = information.shape[0] - 1
    matrix, noise = work[: last + 1], work[last + 1]
    moment_matrix(information, count[k], first[k], second[k], matrix)
    for i in range(last + 1):
        noise[i] = max(ROUNDING * matrix[i, i], TINY)
        if i < last:
            matrix[i, i] *= 1.0 + RIDGE
    invert_factor(matrix, noise, factor[k])
    unit = 1.0 / factor[k, last, last]
    scale = unit * unit
    variance = noise_of(code, prior, count[k], scale)
    for i in range(last):
        coef[k, i] = -factor[k, last, i] * unit
        factor[k, last, i] = -coef[k, i] / math.sqrt(variance)
    factor[k, last, last] = 1.0 / math.sqrt(variance)
    offset[k], power[k], leverage[k] = constants(code, dof + count[k], scale, variance)
    return scale


@kernel
def refresh_regression(code, prior, count, first, second, coef, factor, offset, power, leverage):
    high = prior[0].shape[0]
    work = np.empty((high + 1, high))
    for k in range(count.size):
        readout_regression(k, code, prior, count, first, second, coef, factor, offset, power, leverage, work)
