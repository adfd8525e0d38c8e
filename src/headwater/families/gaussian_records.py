"""What flows between the Gaussian family and the loop: statistics, prior, parameters and belief of K components."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from headwater.core.statistics import Array
from headwater.families.components import ComponentStatistics


@dataclass(frozen=True)
class GaussianStatistics(ComponentStatistics):
    """Counts, first and second moments per component about the origin; of a symmetric `second` the lower triangle."""

    first: Array
    second: Array


@dataclass(frozen=True)
class MomentStatistics(GaussianStatistics):
    """Statistics of a belief whose masses have drifted apart, as moment matching makes them.

    They are the natural parameters of the belief less those of the prior, so they add like any others. `mean_count` and
    `dof_count` are (K, 1), or (K, d) where every column has a belief of its own (diag).
    """

    mean_count: Array
    dof_count: Array


def masses(totals: GaussianStatistics) -> tuple[Array, Array]:
    """Rows' worth of knowledge about each mean and each covariance: the count of the component, unless they differ."""
    if isinstance(totals, MomentStatistics):
        return totals.mean_count, totals.dof_count
    return totals.count[:, None], totals.count[:, None]


@dataclass(frozen=True)
class GaussianPrior:
    """What is believed of a component before any row: everything about `origin`, which the statistics share.

    `dof` and `scale` are nu0 and V0 of the Wishart with mean precision dof * inverse(scale), or of its Gamma cousins.
    `floor` is added to the diagonal of covariances that are modes. `units` are those of the columns, if they have any: then all
    but the origin is measured in them.
    """

    origin: Array
    mean: Array
    mean_precision: float
    dof: float
    scale: Array
    floor: float
    units: Array = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True)
class GaussianParameters:
    """Ready for the E-step kernels (see there); `means` are about the origin.

    `power` and `stretch` are (K,), or (K, d) where every column has a tail of its own. Means and factor are in `units`, if
    columns have any.
    """

    origin: Array
    means: Array
    factor: Array
    shift: Array
    offset: Array
    power: Array
    stretch: Array
    units: Array = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True)
class GaussianBelief:
    """Normal-Wishart or Normal-Gamma belief about every component, in the user's coordinates.

    `mean_precision` and `dof` are (K,), or (K, d) where every column has its own.
    """

    means: Array
    mean_precision: Array
    dof: Array
    scale: Array
