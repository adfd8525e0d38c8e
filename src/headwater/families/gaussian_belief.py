"""The conjugate belief about K Gaussians: Normal-Wishart (full, tied) or Normal-Gamma (diag, spherical), in closed form."""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, gammaln, multigammaln

from headwater.families.gaussian_records import GaussianBelief, GaussianParameters, GaussianPrior, GaussianStatistics
from headwater.statistics import Array


def belief(covariance_type: str, prior: GaussianPrior, totals: GaussianStatistics) -> GaussianBelief:
    """Return prior plus totals: the belief that the readouts summarise."""
    matrix, spherical = covariance_type in ("full", "tied"), covariance_type == "spherical"
    kappa = prior.mean_precision + totals.count
    means = (prior.mean_precision * prior.mean + totals.first) / kappa[:, None]
    dof = prior.dof + (totals.count.sum(keepdims=True) if covariance_type == "tied" else totals.count)
    dof = np.broadcast_to(dof, totals.count.shape).copy()
    outer = prior.mean_precision * _product(prior.mean, prior.mean, matrix)
    squares = kappa.reshape(-1, *[1] * outer.ndim) * _product(means, means, matrix)
    second = totals.second
    if matrix:
        second = second + np.swapaxes(np.tril(second, -1), -1, -2)
    if covariance_type == "tied":
        scale = prior.scale + second + (outer - squares).sum(axis=0)
    else:
        scale = prior.scale + second + outer - squares
    if spherical:
        scale = scale.mean(axis=1)
    return GaussianBelief(means + prior.origin, kappa, dof, scale)


def log_prior(covariance_type: str, prior: GaussianPrior, parameters: GaussianParameters) -> float:
    """Log-density of means and precisions under the prior, up to a constant: what MAP-EM adds to the likelihood.

    Of the flat prior it is zero.
    """
    matrix, spherical = covariance_type in ("full", "tied"), covariance_type == "spherical"
    k, width = parameters.means.shape
    factor, centred = parameters.factor, parameters.means - prior.mean
    if matrix:
        factor = factor[None] if factor.ndim == 2 else factor
        log_det = 2.0 * np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
        trace = np.einsum("kij,jl,kil->k", factor, prior.scale, factor)
        shape = 0.5 * (prior.dof - width - 1.0)
        distance = np.einsum("kij,kj->ki", np.broadcast_to(factor, (k, width, width)), centred)
    else:
        log_det = 2.0 * np.log(factor).sum(axis=1)
        trace = (factor**2 * prior.scale).sum(axis=1)
        shape = 0.5 * prior.dof - (1.0 / width if spherical else 1.0)
        distance = factor * centred
    means = 0.5 * np.broadcast_to(log_det, (k,)).sum() - 0.5 * prior.mean_precision * np.sum(distance**2)
    return float(np.sum(shape * log_det - 0.5 * trace) + means)


def divergence(covariance_type: str, prior: GaussianPrior, totals: GaussianStatistics) -> float:
    """KL(belief || prior), summed over components: the price of complexity in the free energy."""
    matrix, spherical = covariance_type in ("full", "tied"), covariance_type == "spherical"
    k, width = totals.first.shape
    after = belief(covariance_type, prior, totals)
    centred = after.means - prior.origin - prior.mean
    total = (
        0.5
        * width
        * np.sum(np.log(after.mean_precision / prior.mean_precision) + prior.mean_precision / after.mean_precision - 1.0)
    )
    if matrix:
        shared = covariance_type == "tied"
        scale = after.scale[None] if shared else after.scale
        dof = after.dof[:1] if shared else after.dof
        precision = dof[:, None, None] * np.linalg.inv(scale)
        per_mean = np.broadcast_to(precision, (k, width, width))
        total += 0.5 * prior.mean_precision * np.einsum("ki,kij,kj->", centred, per_mean, centred)
        total += sum(_wishart_divergence(nu, v, prior.dof, prior.scale, width) for nu, v in zip(dof, scale, strict=True))
    else:
        scale = after.scale[:, None] if spherical else after.scale
        precision = np.broadcast_to(after.dof[:, None] / scale, (k, width))
        total += 0.5 * prior.mean_precision * np.sum(precision * centred**2)
        half = 0.5 * width if spherical else 0.5
        prior_scale = prior.scale[:1] if spherical else prior.scale
        total += np.sum(_gamma_divergence(half * after.dof[:, None], half * scale, half * prior.dof, half * prior_scale))
    return float(total)


def _product(a: Array, b: Array, matrix: bool) -> Array:
    return a[..., :, None] * b[..., None, :] if matrix else a * b


def _gamma_divergence(shape: Array, rate: Array, shape0: float, rate0: Array) -> Array:
    """KL between Gammas; `shape` counts half rows, so E[precision] = shape / rate."""
    return (
        (shape - shape0) * digamma(shape)
        - gammaln(shape)
        + gammaln(shape0)
        + shape0 * np.log(rate / rate0)
        + shape * (rate0 / rate - 1.0)
    )


def _wishart_divergence(dof: float, scale: Array, dof0: float, scale0: Array, width: int) -> float:
    """KL between Wisharts whose `scale` matrices are the inverses of the usual ones."""
    expected_log = digamma(0.5 * (dof - np.arange(width))).sum()
    log_ratio = np.linalg.slogdet(scale)[1] - np.linalg.slogdet(scale0)[1]
    return float(
        0.5 * (dof - dof0) * expected_log
        - multigammaln(0.5 * dof, width)
        + multigammaln(0.5 * dof0, width)
        + 0.5 * dof0 * log_ratio
        + 0.5 * dof * (np.trace(np.linalg.solve(scale, scale0)) - width)
    )
