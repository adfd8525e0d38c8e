"""Records of the Gaussian family: statistics, prior, belief and parameters of K components, for kernels and for users."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array, Statistics
from headwater.families.components import ComponentStatistics
from headwater.families.triangles import invert_triangles

if TYPE_CHECKING:
    from headwater.families.gaussian import Gaussian


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


def blank_parameters(origin: Array, n_components: int, factor_shape: tuple[int, ...]) -> GaussianParameters:
    """Return parameters that a kernel has yet to fill."""
    factor = np.zeros(factor_shape)
    means, shift = np.zeros((2, n_components, len(origin)))
    offset, power, stretch = np.zeros((3, n_components))
    return GaussianParameters(origin, means, factor, shift, offset, power, stretch)


def make_parameters(matrix: bool, origin: Array, centred: Array, factor: Array) -> GaussianParameters:
    """Return parameters with these means about the origin, and factors that may be the same for all columns."""
    k, width = centred.shape
    # A copy: a broadcast array is read-only, and a kernel would be compiled again for it.
    factor = np.array(factor if matrix else np.broadcast_to(factor, (k, width)), order="C")
    if matrix:
        shift = np.einsum("...ij,kj->ki" if factor.ndim == 2 else "kij,kj->ki", factor, centred)
        log_diagonal = np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
    else:
        shift = factor * centred
        log_diagonal = np.log(factor).sum(axis=1)
    offset = np.broadcast_to(log_diagonal - 0.5 * width * np.log(2.0 * np.pi), (k,)).copy()
    return GaussianParameters(origin, centred, factor, shift, offset, np.zeros(k), np.ones(k))


def covariance_matrices(parameters: GaussianParameters) -> Array:
    """Return covariances from factors that are matrices."""
    root = invert_triangles(parameters.factor)
    return np.asarray(root @ np.swapaxes(root, -1, -2))


def sample_rows(matrix: bool, parameters: GaussianParameters, components: NDArray[np.int64], rng: np.random.Generator) -> Array:
    """Draw one row from each of the listed components."""
    k = len(parameters.means)
    noise = rng.standard_normal((len(components), parameters.means.shape[1]))
    if matrix:
        root = invert_triangles(parameters.factor)
        root = np.broadcast_to(root, (k, *root.shape[-2:]))
        for one in range(k):
            rows = components == one
            noise[rows] = noise[rows] @ root[one].T
    else:
        noise /= parameters.factor[components]
    return np.asarray(noise + parameters.means[components] + parameters.origin)


class SingularCovariance(np.linalg.LinAlgError):
    """Covariances that have no density; a `ValueError`, as scikit-learn raises it."""


def refuse_singular(pivots: int, prior: GaussianPrior) -> None:
    """Refuse covariances that a readout without any prior had to lift."""
    if pivots and prior.mean_precision == 0.0 and prior.floor == 0.0:
        raise SingularCovariance(
            "Fitting the mixture model failed because some components have ill-defined empirical covariance (for "
            "instance caused by singleton or collapsed samples). Try to decrease the number of components, increase "
            "reg_covar, or scale the input data."
        )


def column_variances(family: Gaussian, parameters: GaussianParameters) -> Array:
    """Return the variance (K, d) of each number in each component."""
    means, covariances = family.means(parameters), family.covariances(parameters)
    if family.covariance_type == "full":
        return np.diagonal(covariances, axis1=1, axis2=2)
    if family.covariance_type == "tied":
        return np.broadcast_to(np.diagonal(covariances), means.shape)
    return np.broadcast_to(covariances if covariances.ndim == 2 else covariances[:, None], means.shape)
