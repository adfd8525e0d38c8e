"""Credible intervals of a mixture of Gaussians, from its belief."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from headwater.families.gaussian import Gaussian
from headwater.families.gaussian_records import GaussianBelief
from headwater.statistics import Array


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
    weights = stats.beta.ppf(tails, concentration[:, None], (concentration.sum() - concentration)[:, None])
    k, width = belief.means.shape
    scale, dof, precision = belief.scale, belief.dof.reshape(k, -1), belief.mean_precision.reshape(k, -1)
    if family.kind.matrix:
        scale, dof = np.diagonal(scale, axis1=-2, axis2=-1), dof - width + 1.0
    elif family.spherical:
        scale, dof = scale.reshape(k, -1) * width, dof * width
    scale, dof = np.broadcast_to(scale, (k, width)), np.broadcast_to(dof, (k, width))
    spread = np.sqrt(scale / (precision * dof))
    means = belief.means[..., None] + spread[..., None] * stats.t.ppf(tails, dof[..., None])
    variances = stats.invgamma.ppf(tails, 0.5 * dof[..., None], scale=0.5 * scale[..., None])
    # One component has all the weight, of which the Beta distribution knows nothing.
    return CredibleIntervals(level, np.nan_to_num(weights, nan=1.0), means, variances)
