"""Records of linear regressions of several targets, and what matrix-normal inverse-Wishart beliefs expect."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, multigammaln

from headwater.core.statistics import Array
from headwater.families.components import ComponentStatistics

LOG_TWO_PI = float(np.log(2.0 * np.pi))


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


def lower_factor(matrices: Array) -> Array:
    """Return Cholesky factors of symmetric matrices (K, q, q); what rounding has made negative is left out."""
    size = np.maximum(np.trace(matrices, axis1=1, axis2=2), 1e-300)[:, None, None] / matrices.shape[1]
    try:
        return np.asarray(np.linalg.cholesky(matrices))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.cholesky(matrices + 1e-10 * size * np.eye(matrices.shape[1])))


def precision_root(covariances: Array) -> Array:
    """Return lower triangular factors (K, d, d) with factor' factor = the inverse of each covariance."""
    return np.asarray(np.linalg.inv(lower_factor(covariances)))


def expected_log_determinant(dof: Array, scale: Array) -> Array:
    """Return E log |precision| (K,) of inverse-Wishart beliefs about the covariance."""
    d = scale.shape[1]
    halves = digamma(0.5 * (dof[:, None] - np.arange(d))).sum(axis=1)
    return np.asarray(halves + d * np.log(2.0) - np.linalg.slogdet(scale)[1])


def belief_divergence(prior: LinearGaussianPrior, precision: Array, mean: Array, dof: Array, scale: Array) -> float:
    """Return KL(belief || prior), summed over the components."""
    d, q = scale.shape[1], len(prior.precision)
    noise = dof[:, None, None] * np.linalg.inv(scale)  # expected precision
    spread = np.einsum("ij,kji->k", prior.precision, np.linalg.inv(precision))
    logs = np.linalg.slogdet(precision)[1] - np.linalg.slogdet(prior.precision)[1]
    away = np.einsum("kij,kjl,lm,kim->k", noise, mean, prior.precision, mean)
    found = 0.5 * (d * (spread - q + logs) + away)
    before, after = prior.dof, dof
    gammas = np.array([multigammaln(0.5 * one, d) for one in after]) - float(multigammaln(0.5 * before, d))
    halves = digamma(0.5 * (after[:, None] - np.arange(d))).sum(axis=1)
    wishart = 0.5 * (after - before) * halves - gammas
    wishart += 0.5 * before * (np.linalg.slogdet(scale)[1] - np.linalg.slogdet(prior.scale)[1])
    wishart += 0.5 * after * (np.einsum("ij,kji->k", prior.scale, np.linalg.inv(scale)) - d)
    return float((found + wishart).sum())
