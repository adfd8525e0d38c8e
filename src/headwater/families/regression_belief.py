"""The conjugate belief about K linear regressions, Normal-inverse-Gamma, in closed form."""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, gammaln

from headwater.core.statistics import Array
from headwater.families.gaussian_records import GaussianStatistics
from headwater.families.regression_records import RegressionBelief, RegressionParameters, RegressionPrior
from headwater.kernels.regression_readout import RIDGE


def moments(totals: GaussianStatistics, intercept: bool) -> Array:
    """Second moments (K, p + 1, p + 1) of (design, target)."""
    second = totals.second + np.swapaxes(np.tril(totals.second, -1), -1, -2)
    if not intercept:
        return second
    first = totals.first[:, :, None]
    return np.block([[totals.count[:, None, None], np.swapaxes(first, 1, 2)], [first, second]])


def belief(prior: RegressionPrior, totals: GaussianStatistics, intercept: bool) -> RegressionBelief:
    """Return prior plus totals: the belief that the readouts summarise."""
    matrix = prior.information + moments(totals, intercept)
    precision, pull = matrix[:, :-1, :-1], matrix[:, :-1, -1]
    units, shape = _shape(precision)
    means = np.linalg.solve(shape, (pull / units)[..., None])[..., 0] / units
    scale = np.maximum(matrix[:, -1, -1] - (means * pull).sum(axis=1), prior.scale)
    return RegressionBelief(means, precision, prior.dof + totals.count, scale)


def log_prior(prior: RegressionPrior, parameters: RegressionParameters) -> float:
    """Log-density of coefficients and precisions under the prior, up to a constant: the penalty of MAP-EM.

    For the flat prior it is zero.
    """
    precision = parameters.factor[:, -1, -1] ** 2
    squares = (parameters.coef - prior.mean) ** 2 @ prior.precision
    shape = 0.5 * (prior.dof - 2.0 + len(prior.mean))
    return float(np.sum(shape * np.log(precision) - 0.5 * precision * (prior.scale + squares)))


def divergence(one: RegressionBelief, other: RegressionBelief) -> Array:
    """KL(one || other) of every pair of components (K, K'), of coefficients and noise together."""
    shape, shapes = 0.5 * one.dof[:, None], 0.5 * other.dof
    rate, rates = 0.5 * one.scale[:, None], 0.5 * other.scale
    noise = (
        (shape - shapes) * digamma(shape) - gammaln(shape) + gammaln(shapes)
        + shapes * np.log(rate / rates) + shape * (rates / rate - 1.0)
    )  # fmt: skip
    (units, form), (unit, forms) = _shape(one.precision), _shape(other.precision)
    log_det, log_dets = (
        np.linalg.slogdet(matrix)[1] + 2.0 * np.log(scale).sum(axis=1) for matrix, scale in ((form, units), (forms, unit))
    )
    ratio = unit / units[:, None]
    trace = np.einsum("aij,abi,abj,bij->ab", np.linalg.inv(form), ratio, ratio, forms)
    gap = one.means[:, None] - other.means
    along = np.einsum("abi,bij,abj->ab", gap * unit, forms, gap * unit) * shape / rate
    size = one.means.shape[1]
    return np.asarray(noise + 0.5 * (trace - size + log_det[:, None] - log_dets + along))


def _shape(precision: Array) -> tuple[Array, Array]:
    """Units of the coefficients (K, p) and the precision in these, with the ridge of the kernels."""
    units = np.sqrt(np.diagonal(precision, axis1=1, axis2=2))
    shape = precision / units[:, :, None] / units[:, None]
    return units, shape + RIDGE * np.eye(units.shape[1])


def contrast(one: RegressionBelief, other: RegressionBelief, designs: Array) -> Array:
    """Jeffreys' divergence of the targets of components with the same number, at inputs with these second moments (K, p, p)."""
    noise, noises = one.scale / one.dof, other.scale / other.dof
    gap = one.means - other.means
    apart = np.einsum("ki,kij,kj->k", gap, designs, gap)
    return np.asarray(0.5 * (noise / noises + noises / noise - 2.0) + 0.5 * apart * (1.0 / noise + 1.0 / noises))
