"""What flows between the Gaussian family and the loop: statistics, prior, parameters and belief of K components."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from headwater.core.statistics import Array, Statistics
from headwater.families.components import ComponentStatistics


@dataclass(frozen=True)
class GaussianStatistics(ComponentStatistics):
    """Counts, first and second moments per component about the origin; of a symmetric `second` the lower triangle."""

    first: Array
    second: Array

    def in_form(self, form: type[Statistics]) -> Statistics:
        """Return the statistics with masses for each column, if that is what others have."""
        return self.with_gaps() if form is GappedStatistics else self

    @property
    def forms(self) -> tuple[Statistics, ...]:
        """As they are, and with masses for each column."""
        return (self, self.with_gaps())

    def with_gaps(self) -> GappedStatistics:
        """Return the statistics with masses for each column, so that rows with gaps can be added to them."""
        if isinstance(self, GappedStatistics):
            return self
        mass = np.repeat(self.count[:, None], self.first.shape[1], axis=1)
        return GappedStatistics(self.from_base, self.count, self.first, self.second, mass, mass.copy())


@dataclass(frozen=True)
class MomentStatistics(GaussianStatistics):
    """Statistics of a belief whose masses have drifted apart, as moment matching makes them.

    They are the natural parameters of the belief less those of the prior, so they add like any others. `mean_count` and
    `dof_count` are (K, 1), or (K, d) where every column has a belief of its own (diag).
    """

    mean_count: Array
    dof_count: Array

    @property
    def forms(self) -> tuple[Statistics, ...]:
        """As they are: rows with gaps are not among them."""
        return (self,)


@dataclass(frozen=True)
class GappedStatistics(GaussianStatistics):
    """Statistics of rows of which some had gaps.

    `observed` (K, d) is the responsibility for values that were there. `known` (K, d) is the rows' worth of information about
    each column: a gap counts by the part of the column's variance that the other columns explain. Where columns are
    independent given the component, both are the same, and they are what means and variances divide by.
    """

    observed: Array
    known: Array

    gapped: ClassVar[bool] = True

    @property
    def forms(self) -> tuple[Statistics, ...]:
        """As they are, and as those of complete rows."""
        return (self, GaussianStatistics(self.from_base, self.count, self.first, self.second))


def masses(totals: GaussianStatistics, kind: str) -> tuple[Array, Array]:
    """Rows' worth of knowledge about each mean and each covariance: the count of the component, unless they differ.

    `kind` is that of the covariance. Matrices are learned from completed rows, of which all count.
    """
    if isinstance(totals, MomentStatistics):
        return totals.mean_count, totals.dof_count
    if isinstance(totals, GappedStatistics) and kind in ("diag", "spherical"):
        mean = totals.observed
        return mean, mean.mean(axis=1, keepdims=True) if kind == "spherical" else mean
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
class RoundedPrior(GaussianPrior):
    """The prior of components whose columns are rounded to `steps` (d,), 0 where they are not; in units, if there are any."""

    steps: Array = field(default_factory=lambda: np.empty(0))

    @property
    def variances(self) -> Array:
        """Variance (d,) of the rounding error of each column: that of a uniform law as wide as the step."""
        return self.steps**2 / 12.0


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
class ColumnParameters(GaussianParameters):
    """Parameters of components whose columns have masses of their own: what each adds to the log-density (K, d)."""

    constants: Array = field(default_factory=lambda: np.empty((0, 0)))


@dataclass(frozen=True)
class GaussianBelief:
    """Normal-Wishart or Normal-Gamma belief about every component, in the user's coordinates.

    `mean_precision` and `dof` are (K,), or (K, d) where every column has its own.
    """

    means: Array
    mean_precision: Array
    dof: Array
    scale: Array
