"""Records of linear regressions of several targets, and what matrix-normal inverse-Wishart beliefs expect."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, multigammaln

from headwater.core.statistics import Array
from headwater.families.components import ComponentStatistics

LOG_TWO_PI = float(np.log(2.0 * np.pi))
ROUNDING = 1e-14  # least eigenvalue of correlations, below which inputs are collinear
RIDGE = 1e-12  # what is added to their correlations
LEAST_ROOT = 1e-150  # whose square is a number


@dataclass(frozen=True)
class LinearGaussianStatistics(ComponentStatistics):
    """Rows (K,) of each component, and the sums (K, q + d, q + d) of products of design and targets, about the origin."""

    cross: Array


@dataclass(frozen=True)
class LinearGaussianPrior:
    """Origin (w,) of the rows; precision (q, q) of the coefficients, whose mean is 0 about the origin, in units of the noise.

    `dof` and `scale` (d, d) are those of the inverse-Wishart law of the noise; `floor` (d,) is added to variances of a mode.
    """

    origin: Array
    precision: Array
    dof: float
    scale: Array
    floor: Array


@dataclass(frozen=True)
class LinearGaussianParameters:
    """Coefficients (K, d, q) about the origin (w,), and factors (K, d, d): the precision of the noise is factor' factor.

    The log-density is offset - (|factor (y - B z)|^2 + |leverage z|^2) / 2 for a design z; the leverage (K, q, q) is 0 unless
    coefficients are uncertain.
    """

    origin: Array
    coef: Array
    factor: Array
    offset: Array
    leverage: Array


def _in_units(matrices: Array) -> tuple[Array, Array]:
    """Return symmetric matrices (K, q, q) with ones on their diagonals, and the roots (K, q) that they were divided by."""
    roots = np.sqrt(np.maximum(np.diagonal(matrices, axis1=1, axis2=2), 0.0))
    roots = np.where(roots > LEAST_ROOT, roots, LEAST_ROOT)
    return matrices / roots[:, :, None] / roots[:, None, :], roots


def solve_normal_equations(matrices: Array, moments: Array) -> Array:
    """Return the solutions (K, q, d) for matrices (K, q, q); inputs that are collinear but for rounding are shrunk."""
    units, roots = _in_units(matrices)
    collinear = np.linalg.eigvalsh(units)[:, 0] < ROUNDING
    units[collinear] += RIDGE * np.eye(units.shape[1])
    return np.asarray(np.linalg.solve(units, moments / roots[:, :, None]) / roots[:, :, None])


def lower_factor(matrices: Array) -> Array:
    """Return Cholesky factors of symmetric matrices (K, q, q); what rounding has made negative is left out."""
    try:
        return np.asarray(np.linalg.cholesky(matrices))
    except np.linalg.LinAlgError:
        units, roots = _in_units(matrices)
        return np.asarray(roots[:, :, None] * np.linalg.cholesky(units + 1e-10 * np.eye(units.shape[1])))


def inverses(matrices: Array) -> Array:
    """Return the inverses of symmetric matrices (K, q, q), as far as rounding lets them have one."""
    return solve_normal_equations(matrices, np.broadcast_to(np.eye(matrices.shape[1]), matrices.shape))


def log_determinants(matrices: Array) -> Array:
    """Return the logarithms (K,) of the determinants of positive definite matrices."""
    return np.asarray(2.0 * np.log(np.diagonal(lower_factor(matrices), axis1=1, axis2=2)).sum(axis=1))


def precision_root(covariances: Array) -> Array:
    """Return lower triangular factors (K, d, d) with factor' factor = the inverse of each covariance."""
    return np.asarray(np.linalg.inv(lower_factor(covariances)))


def expected_log_determinant(dof: Array, scale: Array) -> Array:
    """Return E log |precision| (K,) of inverse-Wishart beliefs about the covariance."""
    d = scale.shape[1]
    halves = digamma(0.5 * (dof[:, None] - np.arange(d))).sum(axis=1)
    return np.asarray(halves + d * np.log(2.0) - log_determinants(scale))


def belief_divergence(prior: LinearGaussianPrior, precision: Array, mean: Array, dof: Array, scale: Array) -> float:
    """Return KL(belief || prior), summed over the components."""
    d, q = scale.shape[1], len(prior.precision)
    inverse_scale = inverses(scale)
    noise = dof[:, None, None] * inverse_scale  # expected precision
    spread = np.einsum("ij,kji->k", prior.precision, inverses(precision))
    logs = log_determinants(precision) - np.linalg.slogdet(prior.precision)[1]
    away = np.einsum("kij,kjl,lm,kim->k", noise, mean, prior.precision, mean)
    found = 0.5 * (d * (spread - q + logs) + away)
    before, after = prior.dof, dof
    gammas = np.array([multigammaln(0.5 * one, d) for one in after]) - float(multigammaln(0.5 * before, d))
    halves = digamma(0.5 * (after[:, None] - np.arange(d))).sum(axis=1)
    wishart = 0.5 * (after - before) * halves - gammas
    wishart += 0.5 * before * (log_determinants(scale) - np.linalg.slogdet(prior.scale)[1])
    wishart += 0.5 * after * (np.einsum("ij,kji->k", prior.scale, inverse_scale) - d)
    return float((found + wishart).sum())
