"""Records of the regression family: prior, parameters and belief of K regressions.

Statistics are those of a Gaussian over (inputs, target) with full covariance: counts, first and second moments.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headwater.core.statistics import Array
from headwater.families.gaussian_records import GaussianParameters, GaussianPrior


@dataclass(frozen=True)
class RegressionPrior:
    """The prior of a component; everything is about `origin`, as the statistics are.

    Coefficients (the intercept first, if there is one) are Normal with mean `mean` and variance noise / `precision`; the noise
    is inverse Gamma with shape dof / 2 and rate scale / 2. `floor` is the least noise that is a mode. `gate` is the prior of
    the Gaussians over the inputs, if there are any.
    """

    origin: Array
    mean: Array
    precision: Array
    dof: float
    scale: float
    floor: float
    gate: GaussianPrior | None = None

    @property
    def information(self) -> Array:
        """What the prior adds to the second moments over (design, target), as pseudo-rows would."""
        size, pull = len(self.mean), self.precision * self.mean
        matrix = np.zeros((size + 1, size + 1))
        matrix[range(size), range(size)] = self.precision
        matrix[:size, size] = matrix[size, :size] = pull
        matrix[size, size] = self.mean @ pull + self.scale
        return matrix


@dataclass(frozen=True)
class RegressionParameters:
    """Ready for the E-step kernels (see there); `coef` are about the origin, that of the intercept first."""

    origin: Array
    coef: Array
    factor: Array
    offset: Array
    power: Array
    leverage: Array
    gate: GaussianParameters | None = None


@dataclass(frozen=True)
class RegressionBelief:
    """Normal-inverse-Gamma belief about every component: means and precisions of coefficients, dof and scale of the noise."""

    means: Array
    precision: Array
    dof: Array
    scale: Array
