"""Records of the Gaussian family: statistics, prior, parameters and belief of K components."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import ClassVar

import numpy as np

from headwater.core.statistics import Array, Statistics
from headwater.families.components import ComponentStatistics


@dataclass(frozen=True)
class GaussianStatistics(ComponentStatistics):
    """Counts, first and second moments per component about the origin; of symmetric second moments the lower triangle."""

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
    """Statistics of a belief whose masses differ, as moment matching makes them.

    They are the natural parameters of the belief less those of the prior, so they add like any others. `mean_count` and
    `dof_count` are (K, 1), or (K, d) where every column has its own belief (diag).
    """

    mean_count: Array
    dof_count: Array

    @property
    def forms(self) -> tuple[Statistics, ...]:
        """Only this form: rows with gaps are not included."""
        return (self,)


@dataclass(frozen=True)
class GappedStatistics(GaussianStatistics):
    """Statistics of rows of which some had gaps.

    `observed` (K, d) is the responsibility for observed values. `known` (K, d) is the information about each column, in
    rows: a gap counts by the part of the column's variance that the other columns explain. Where columns are
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
    """Information about each mean and each covariance, in rows: the count of the component, unless they differ.

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
    """The prior of a component; everything is about `origin`, as the statistics are.

    `dof` and `scale` are nu0 and V0 of the Wishart with mean precision dof * inverse(scale), or of the corresponding Gamma.
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

    `power` and `stretch` are (K,), or (K, d) where every column has its own tail. Means and factor are in `units`, if
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

    @property
    def forms(self) -> tuple[GaussianParameters, ...]:
        """These parameters in each form that streams of the model may keep, for model files."""
        if self.factor.ndim == 3:
            return (self,)
        own = {part.name: getattr(self, part.name) for part in fields(GaussianParameters)}
        return GaussianParameters(**own), ColumnParameters(**own, constants=np.zeros_like(self.factor))


@dataclass(frozen=True)
class ColumnParameters(GaussianParameters):
    """Parameters of components whose columns have their own masses: what each adds to the log-density (K, d)."""

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
