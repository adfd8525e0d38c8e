"""The conjugate belief about K Gaussians: Normal-Wishart (full, tied) or Normal-Gamma (diag, spherical), in closed form."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, multigammaln

from headwater.core.statistics import Array
from headwater.families.gaussian_records import (
    GaussianBelief,
    GaussianParameters,
    GaussianPrior,
    GaussianStatistics,
    masses,
)
from headwater.kernels.gaussian_readout import ROUNDING

LEAST = 1e-13  # eigenvalue, relative to the variances, of a matrix that rounding has left indefinite


def inverses(matrices: Array) -> Array:
    """Inverses of covariances or precisions (..., D, D), some of which may be indefinite or singular by rounding."""
    unsound = _unsound(np.linalg.slogdet(matrices)[0], matrices)
    found = np.linalg.inv(np.where(unsound[..., None, None], np.eye(matrices.shape[-1]), matrices))
    if unsound.any():
        units, values, vectors = _made_definite(matrices[unsound])
        found[unsound] = (vectors / values[:, None]) @ np.swapaxes(vectors, 1, 2) / units[:, :, None] / units[:, None]
    return np.asarray(found)


def log_determinants(matrices: Array) -> Array:
    """Logarithms of their determinants (...,)."""
    signs, found = np.linalg.slogdet(matrices)
    unsound, found = _unsound(signs, matrices), np.array(found)
    if unsound.any():
        units, values, _ = _made_definite(matrices[unsound])
        found[unsound] = np.log(values).sum(axis=1) + 2.0 * np.log(units).sum(axis=1)
    return found


def _unsound(signs: Array, matrices: Array) -> NDArray[np.bool_]:
    return np.asarray(~(signs > 0.0) & np.isfinite(matrices).all(axis=(-2, -1)))


def _made_definite(matrices: Array) -> tuple[Array, Array, Array]:
    """Units of the columns (N, D), and eigenvalues, none too small, and eigenvectors of matrices (N, D, D) in these."""
    variances = np.abs(np.diagonal(matrices, axis1=-2, axis2=-1))
    units = np.sqrt(np.where(variances > 0.0, variances, 1.0))
    values, vectors = np.linalg.eigh(matrices / units[:, :, None] / units[:, None])
    return units, np.maximum(values, LEAST), vectors


def belief(covariance_type: str, prior: GaussianPrior, totals: GaussianStatistics) -> GaussianBelief:
    """Return prior plus totals: the belief that the readouts summarise."""
    matrix, spherical = covariance_type in ("full", "tied"), covariance_type == "spherical"
    mean_count, dof_count = masses(totals, covariance_type)
    if covariance_type == "tied":
        dof_count = np.broadcast_to(dof_count.sum(axis=0), dof_count.shape)
    kappa, dof = prior.mean_precision + mean_count, prior.dof + dof_count
    with np.errstate(divide="ignore", invalid="ignore"):  # without mass there is no mean
        means = (prior.mean_precision * prior.mean + totals.first) / kappa
    outer = prior.mean_precision * _product(prior.mean, prior.mean, matrix)
    centres = np.where(kappa > 0.0, means, 0.0)
    squares = (kappa[:, :, None] if matrix else kappa) * _product(centres, centres, matrix)
    second = totals.second
    if matrix:
        second = second + np.swapaxes(np.tril(second, -1), -1, -2)
    if covariance_type == "tied":
        scale = prior.scale + second + (outer - squares).sum(axis=0)
    else:
        scale = prior.scale + second + outer - squares
    if spherical:
        scale = scale.mean(axis=1)
    if kappa.shape[1] == 1:
        kappa = kappa[:, 0]
    if dof.shape[1] == 1:
        dof = dof[:, 0]
    return GaussianBelief(means + prior.origin, kappa, dof, scale)


def columns_readout(name: str, prior: GaussianPrior, totals: GaussianStatistics) -> GaussianParameters:
    """Parameters of components whose columns have a Normal-Gamma belief each (diag): the mean, or Student-t tails."""
    known = belief("diag", prior, totals)
    means, kappa, dof, scale = known.means - prior.origin, known.mean_precision, known.dof, known.scale
    square = prior.scale + totals.second + prior.mean_precision * prior.mean**2
    scale = np.maximum(scale, ROUNDING * square)  # as the kernel has it
    width = means.shape[1]
    if name == "mean":
        factor, power, stretch = np.sqrt(dof / scale), np.zeros(len(means)), np.ones(len(means))
        offset = np.log(factor).sum(axis=1) - 0.5 * width * np.log(2.0 * np.pi)
    else:
        factor, power, stretch = scale**-0.5, 0.5 * (dof + 1.0), kappa / (kappa + 1.0)
        constants = gammaln(power) - gammaln(0.5 * dof) + 0.5 * np.log(stretch / np.pi)
        offset = (np.log(factor) + constants).sum(axis=1)
    return GaussianParameters(prior.origin, means, factor, factor * means, offset, power, stretch)


def valid(covariance_type: str, known: GaussianBelief) -> NDArray[np.bool_]:
    """Which components have a proper belief: positive masses, enough degrees of freedom, a positive definite scale."""
    k, width = known.means.shape
    kappa, dof = known.mean_precision.reshape(k, -1), known.dof.reshape(k, -1)
    if covariance_type in ("full", "tied"):
        scale = np.broadcast_to(known.scale, (k, width, width))
        positive = np.array([_positive_definite(matrix) for matrix in scale])
        dof = dof - (width - 1.0)
    else:
        positive = np.asarray((known.scale.reshape(k, -1) > 0.0).all(axis=1))
    return np.asarray(positive & (kappa > 0.0).all(axis=1) & (dof > 0.0).all(axis=1))


def _positive_definite(matrix: Array) -> bool:
    variances = np.diagonal(matrix)
    if not np.isfinite(matrix).all() or (variances <= 0.0).any():
        return False
    units = np.sqrt(variances)
    return bool(np.linalg.eigvalsh(matrix / units / units[:, None])[0] > 0.0)


def separation(covariance_type: str, known: GaussianBelief, other: GaussianBelief) -> Array:
    """Jeffreys' divergence KL(a || b) + KL(b || a) of every pair of components (K, K); infinite if a belief is invalid."""
    possible = valid(covariance_type, known)[:, None] & valid(covariance_type, other)
    with np.errstate(all="ignore"):
        divergence = _separation(covariance_type, known, other, possible)
    return np.where(possible & np.isfinite(divergence), divergence, np.inf)


def contrast(covariance_type: str, known: GaussianBelief, other: GaussianBelief) -> Array:
    """Jeffreys' divergence of the Gaussians with mean precision, of components with the same number; infinite if invalid."""
    matrix = covariance_type in ("full", "tied")
    k, width = known.means.shape
    possible = valid(covariance_type, known) & valid(covariance_type, other)
    gap = known.means - other.means
    with np.errstate(all="ignore"):
        if matrix:
            one, two = (
                np.where(possible[:, None, None], known_scale / dof[:, None, None], np.eye(width))
                for known_scale, dof in ((known.scale, known.dof), (other.scale, other.dof))
            )
            mine, theirs = inverses(one), inverses(two)
            shapes = np.einsum("kij,kji->k", mine, two) + np.einsum("kij,kji->k", theirs, one) - 2.0 * width
            apart = np.einsum("ki,kij,kj->k", gap, mine + theirs, gap)
        else:
            one, two = (
                np.broadcast_to(belief.scale.reshape(k, -1) / belief.dof.reshape(k, -1), (k, width))
                for belief in (known, other)
            )
            shapes = (one / two + two / one - 2.0).sum(axis=1)
            apart = (gap**2 * (1.0 / one + 1.0 / two)).sum(axis=1)
    return np.where(possible, 0.5 * (shapes + apart), np.inf)


def _separation(covariance_type: str, known: GaussianBelief, other: GaussianBelief, possible: NDArray[np.bool_]) -> Array:
    matrix, spherical = covariance_type in ("full", "tied"), covariance_type == "spherical"
    k, width = known.means.shape
    gap = known.means[:, None] - other.means
    if matrix:
        scale, scales = (
            np.where(np.reshape(good, (k, 1, 1)), one.scale, np.eye(width))
            for one, good in ((known, possible.any(axis=1)), (other, possible.any(axis=0)))
        )
        mine, theirs = inverses(scale), inverses(scales)
        nu, nus = known.dof[:, None], other.dof
        along = nu * np.einsum("abi,aij,abj->ab", gap, mine, gap), nus * np.einsum("abi,bij,abj->ab", gap, theirs, gap)
        trace = nu * np.einsum("aij,bij->ab", mine, scales) + nus * np.einsum("bij,aij->ab", theirs, scale)
        log_dets = log_determinants(scale), log_determinants(scales)
        logs = [
            digamma(0.5 * (one.dof[:, None] - np.arange(width))).sum(axis=1) - log_det
            for one, log_det in zip((known, other), log_dets, strict=True)
        ]
        covariance = 0.5 * (nu - nus) * (logs[0][:, None] - logs[1]) + 0.5 * (trace - width * (nu + nus))
        kappa, kappas = known.mean_precision[:, None], other.mean_precision
        means = width * (kappa / kappas + kappas / kappa - 2.0) + kappas * along[0] + kappa * along[1]
        return np.asarray(covariance + 0.5 * means)
    if spherical and max(known.mean_precision.ndim, other.mean_precision.ndim) == 2:
        return _sphere_separation(known, other, gap)
    columns = width if spherical else 1  # that share a precision
    (kappa, shape, rate), (kappas, shapes, rates) = (
        (
            np.broadcast_to(one.mean_precision.reshape(k, -1), (k, width // columns)),
            0.5 * columns * np.broadcast_to(one.dof.reshape(k, -1), (k, width // columns)),
            0.5 * columns * one.scale.reshape(k, -1),
        )
        for one in (known, other)
    )
    kappa, shape, rate = kappa[:, None], shape[:, None], rate[:, None]
    squared = (gap**2).reshape(k, k, width // columns, columns).sum(axis=3)
    precision = (shape - shapes) * (digamma(shape) - np.log(rate) - digamma(shapes) + np.log(rates))
    precision = precision - (rate - rates) * (shape / rate - shapes / rates)
    means = columns * (kappa / kappas + kappas / kappa - 2.0) + squared * (kappas * shape / rate + kappa * shapes / rates)
    return np.asarray((precision + 0.5 * means).sum(axis=2))


def _sphere_separation(known: GaussianBelief, other: GaussianBelief, gap: Array) -> Array:
    """The divergences of spheres whose columns have their own masses, and one precision."""
    k, width = known.means.shape
    shape, shapes = 0.5 * width * known.dof[:, None], 0.5 * width * other.dof
    rate, rates = 0.5 * width * known.scale[:, None], 0.5 * width * other.scale
    precision = (shape - shapes) * (digamma(shape) - np.log(rate) - digamma(shapes) + np.log(rates))
    precision = precision - (rate - rates) * (shape / rate - shapes / rates)
    kappa, kappas = (np.broadcast_to(one.mean_precision.reshape(k, -1), (k, width)) for one in (known, other))
    means = kappa[:, None] / kappas + kappas / kappa[:, None] - 2.0
    means = means + gap**2 * (kappas * (shape / rate)[..., None] + kappa[:, None] * (shapes / rates)[..., None])
    return np.asarray(precision + 0.5 * means.sum(axis=2))


def log_prior(covariance_type: str, prior: GaussianPrior, parameters: GaussianParameters) -> float:
    """Log-density of means and precisions under the prior, up to a constant: the penalty of MAP-EM.

    For the flat prior it is zero.
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
    """KL(belief || prior), summed over components: the penalty in the free energy."""
    matrix, spherical = covariance_type in ("full", "tied"), covariance_type == "spherical"
    k, width = totals.first.shape
    after = belief(covariance_type, prior, totals)
    centred = after.means - prior.origin - prior.mean
    columns = width if after.mean_precision.ndim == 1 else 1  # that share a mass
    total = (
        0.5
        * columns
        * np.sum(np.log(after.mean_precision / prior.mean_precision) + prior.mean_precision / after.mean_precision - 1.0)
    )
    if matrix:
        shared = covariance_type == "tied"
        scale = after.scale[None] if shared else after.scale
        dof = after.dof[:1] if shared else after.dof
        precision = dof[:, None, None] * inverses(scale)
        per_mean = np.broadcast_to(precision, (k, width, width))
        total += 0.5 * prior.mean_precision * np.einsum("ki,kij,kj->", centred, per_mean, centred)
        total += sum(_wishart_divergence(nu, v, prior.dof, prior.scale, width) for nu, v in zip(dof, scale, strict=True))
    else:
        scale = after.scale[:, None] if spherical else after.scale
        rows = after.dof[:, None] if after.dof.ndim == 1 else after.dof
        precision = np.broadcast_to(rows / scale, (k, width))
        total += 0.5 * prior.mean_precision * np.sum(precision * centred**2)
        half = 0.5 * width if spherical else 0.5
        prior_scale = prior.scale[:1] if spherical else prior.scale
        total += np.sum(_gamma_divergence(half * rows, half * scale, half * prior.dof, half * prior_scale))
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
    log_ratio = float(log_determinants(scale) - log_determinants(scale0))
    if np.linalg.slogdet(scale)[0] > 0.0:
        trace = np.trace(np.linalg.solve(scale, scale0))
    else:
        trace = np.trace(inverses(scale) @ scale0)
    return float(
        0.5 * (dof - dof0) * expected_log
        - multigammaln(0.5 * dof, width)
        + multigammaln(0.5 * dof0, width)
        + 0.5 * dof0 * log_ratio
        + 0.5 * dof * (trace - width)
    )
