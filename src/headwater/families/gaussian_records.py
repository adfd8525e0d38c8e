"""What flows between the Gaussian family and the loop: statistics, prior, parameters and belief of K components."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.statistics import Array, Statistics


@dataclass(frozen=True)
class GaussianStatistics(Statistics):
    """Counts, first and second moments per component about the origin; of a symmetric `second` the lower triangle."""

    count: Array
    first: Array
    second: Array


@dataclass(frozen=True)
class GaussianPrior:
    """What is believed of a component before any row: everything about `origin`, which the statistics share.

    `dof` and `scale` are nu0 and V0 of the Wishart with mean precision dof * inverse(scale), or of its Gamma cousins.
    `floor` is added to the diagonal of covariances that are modes.
    """

    origin: Array
    mean: Array
    mean_precision: float
    dof: float
    scale: Array
    floor: float


@dataclass(frozen=True)
class GaussianParameters:
    """Ready for the E-step kernels (see there); `means` are about the origin."""

    origin: Array
    means: Array
    factor: Array
    shift: Array
    offset: Array
    power: Array
    stretch: Array


@dataclass(frozen=True)
class GaussianBelief:
    """Normal-Wishart or Normal-Gamma belief about every component, in the user's coordinates."""

    means: Array
    mean_precision: Array
    dof: Array
    scale: Array
