"""Credible intervals of a mixture of Gaussians, from its belief."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, gammainccinv, stdtrit

from headwater.core.statistics import Array
from headwater.families.gaussian import Gaussian
from headwater.families.gaussian_records import GaussianBelief


@dataclass(frozen=True)
class CredibleIntervals:
    """Central intervals of the belief, lower and upper end last: weights (K, 2), means and variances (K, d, 2)."""

    level: float
    weights: Array
    means: Array
    variances: Array


def credible_intervals(family: Gaussian, concentration: Array, belief: GaussianBelief, level: float) -> CredibleIntervals:
    """Return central intervals of the marginals: Beta for weights, Student's t for means, inverse Gamma for variances."""
    tails = np.array([0.5 - 0.5 * level, 0.5 + 0.5 * level])
    # One component has all the weight, of which the Beta distribution knows nothing.
    others = concentration.sum() - concentration
    weights = betaincinv(concentration[:, None], np.where(others > 0.0, others, np.nan)[:, None], tails)
    scale, dof, _ = _marginals(family, belief)
    variances = 0.5 * scale[..., None] / gammainccinv(0.5 * dof[..., None], tails)
    return CredibleIntervals(level, np.nan_to_num(weights, nan=1.0), mean_intervals(family, belief, level), variances)


def mean_intervals(
    family: Gaussian, belief: GaussianBelief, level: float, columns: slice | NDArray[np.int64] = slice(None)
) -> Array:
    """Return central intervals (K, d, 2) of the means, or of some columns of them."""
    tails = np.array([0.5 - 0.5 * level, 0.5 + 0.5 * level])
    scale, dof, precision = (part[:, columns, None] for part in _marginals(family, belief))
    return np.asarray(belief.means[:, columns, None] + np.sqrt(scale / (precision * dof)) * stdtrit(dof, tails))


def _marginals(family: Gaussian, belief: GaussianBelief) -> tuple[Array, Array, Array]:
    """Scale, degrees of freedom and precision of the mean (K, d), of each column alone."""
    k, width = belief.means.shape
    scale, dof, precision = belief.scale, belief.dof.reshape(k, -1), belief.mean_precision.reshape(k, -1)
    if family.kind.matrix:
        scale, dof = np.diagonal(scale, axis1=-2, axis2=-1), dof - width + 1.0
    elif family.spherical:
        scale, dof = scale.reshape(k, -1) * width, dof * width
    shape = (k, width)
    return np.broadcast_to(scale, shape), np.broadcast_to(dof, shape), np.broadcast_to(precision, shape)
