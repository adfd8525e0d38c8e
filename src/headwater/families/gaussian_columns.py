"""Readouts of components whose columns have their own masses, since some rows had gaps.

With diagonal covariance each column has a Normal-Gamma belief; with spherical covariance the means have their own masses, and
all columns one precision ~ Gamma(nu d / 2, d V / 2). The readouts are those of kernels/gaussian_readout.py.
"""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, gammaln

from headwater.families.gaussian_belief import belief
from headwater.families.gaussian_records import ColumnParameters, GappedStatistics, GaussianPrior, masses
from headwater.kernels.gaussian_readout import ROUNDING
from headwater.kernels.mixture import TINY

LOG_2_PI = float(np.log(2.0 * np.pi))


def gapped_readout(
    name: str, kind: str, prior: GaussianPrior, totals: GappedStatistics, mode_shift: float
) -> tuple[ColumnParameters, int]:
    """Return parameters of the named kind, and how many variances were not positive and had to be lifted."""
    known = belief(kind, prior, totals)
    k, width = known.means.shape
    kappa = known.mean_precision.reshape(k, -1)
    means = np.where(kappa > TINY, known.means - prior.origin, prior.mean)  # without mass, that of the prior
    spherical = kind == "spherical"
    dof, scale = (np.broadcast_to(one.reshape(k, -1), (k, width)) for one in (known.dof, known.scale))
    shape = 0.5 * dof * (width if spherical else 1)
    none, one = np.zeros(k), np.ones(k)
    if name in ("predictive", "match_moments"):  # the same density
        stretch = kappa / (kappa + 1.0)
        if spherical:  # one tail for the row: the stretch of each column is in its factor
            factor, power = np.sqrt(stretch / (width * scale)), shape[:, 0] + 0.5 * width
            constants = np.log(factor) - 0.5 * np.log(np.pi)
            offset = constants.sum(axis=1) + gammaln(power) - gammaln(shape[:, 0])
            return ColumnParameters(prior.origin, means, factor, factor * means, offset, power, one, constants=constants), 0
        factor, power = scale**-0.5, 0.5 * (dof + 1.0)
        constants = gammaln(power) - gammaln(0.5 * dof) + 0.5 * np.log(stretch / np.pi)
        offset = (np.log(factor) + constants).sum(axis=1)
        constants = np.log(factor) + constants
        return ColumnParameters(prior.origin, means, factor, factor * means, offset, power, stretch, constants=constants), 0
    divisor, lift = dof, 0.0
    if name == "mode":
        count = np.broadcast_to(masses(totals, kind)[1], (k, width))
        divisor = np.maximum(count + (prior.dof - mode_shift), 1.0 if prior.mean_precision > 0.0 else TINY)
        lift = prior.floor
    variance = scale / divisor + lift
    value = totals.second + prior.scale + prior.mean_precision * prior.mean**2
    noise = np.maximum(ROUNDING * (value.mean(axis=1, keepdims=True) if spherical else value) / divisor, TINY)
    lifted = int(np.count_nonzero(variance[:, :1] <= 0.0 if spherical else variance <= 0.0))
    factor = np.maximum(variance, noise) ** -0.5
    constants = np.log(factor) - 0.5 * LOG_2_PI
    if name == "expect_log":
        constants += 0.5 * (digamma(shape) - np.log(shape) - 1.0 / kappa)
    offset = constants.sum(axis=1)
    return ColumnParameters(prior.origin, means, factor, factor * means, offset, none, one, constants=constants), lifted
