"""K Gaussians as components: their statistics are moved to another origin, put in order, recombined and mended."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

import numpy as np

from headwater.core.statistics import Array
from headwater.core.values import Index
from headwater.families.components import find_near, find_supported, recombine_components, replace_components, select_components
from headwater.families.family import Family
from headwater.families.gaussian_covariance import Covariance
from headwater.families.gaussian_records import (
    GappedStatistics,
    GaussianBelief,
    GaussianParameters,
    GaussianPrior,
    GaussianStatistics,
    MomentStatistics,
    masses,
)

ROUNDED = 1e-13  # of a sum, relative to the terms that cancel in it


def split_masses(statistics: GaussianStatistics, kind: str) -> MomentStatistics:
    """Return statistics in the form that moment matching keeps; with diagonal covariance every column has its own masses.

    The columns of a sphere have one mass there: those that lacked values are scaled up to it.
    """
    if isinstance(statistics, MomentStatistics):
        return statistics
    if isinstance(statistics, GappedStatistics) and kind == "spherical":
        times = statistics.count[:, None] / np.maximum(statistics.observed, 1e-300)
        first, second = statistics.first * times, statistics.second * times
        statistics = GaussianStatistics(statistics.from_base, statistics.count, first, second)
    columns = (len(statistics.count), statistics.first.shape[1] if kind == "diag" else 1)
    mean_count, dof_count = (np.array(np.broadcast_to(mass, columns)) for mass in masses(statistics, kind))
    return MomentStatistics(
        statistics.from_base, statistics.count, statistics.first, statistics.second, mean_count, dof_count
    )  # fmt: skip


def rebase_moments(covariance_type: str, statistics: GaussianStatistics, shift: Array) -> GaussianStatistics:
    """Return statistics about an origin that lies at -shift of theirs, so that a row x is x + shift now."""
    first, mass, matrix = statistics.first, masses(statistics, covariance_type)[0], covariance_type in ("full", "tied")
    if matrix:
        cross = first[:, :, None] * shift + shift[:, None] * first[:, None, :] + mass[:, :, None] * np.outer(shift, shift)
        cross = np.tril(cross.sum(axis=0) if covariance_type == "tied" else cross)
    else:
        cross = 2.0 * first * shift + mass * shift**2
    second = _raise_above_rounding(statistics.second + cross, statistics.second, matrix)
    return replace(statistics, first=first + mass * shift, second=second)


def _raise_above_rounding(second: Array, before: Array, matrix: bool) -> Array:
    """Second moments about another origin, none of them less than the rounding error of the moments before.

    A component far from its origin has no accurate variance about a near one: its sign would be arbitrary.
    """
    if not matrix:
        return np.where(before > 0.0, np.maximum(second, ROUNDED * before), second)  # a difference may be negative
    now, then = (np.diagonal(one, axis1=-2, axis2=-1) for one in (second, before))
    raised = np.where(then > 0.0, np.maximum(ROUNDED * then - now, 0.0), 0.0)
    return second + raised[..., None] * np.eye(second.shape[-1]) if raised.any() else second


class GaussianComponents(Family[GaussianPrior, GaussianStatistics, GaussianParameters]):
    """What the Gaussian family does with statistics, whatever rows they are of."""

    n_components: int
    covariance_type: str

    @property
    @abstractmethod
    def kind(self) -> Covariance:
        """The covariance, with its kernels."""

    @abstractmethod
    def belief(self, prior: GaussianPrior, totals: GaussianStatistics) -> GaussianBelief:
        """Return prior plus totals: the belief that the readouts summarise."""

    def zeros(self, width: int) -> GaussianStatistics:
        """Return statistics that hold nothing."""
        k = self.n_components
        return GaussianStatistics.of(np.zeros(k), np.zeros((k, width)), np.zeros(self.kind.second_shape(k, width)))

    def split_masses(self, statistics: GaussianStatistics) -> MomentStatistics:
        """Return statistics in the form that moment matching keeps, where a component's masses may differ."""
        return split_masses(statistics, self.covariance_type)

    def move_to_prior(self, prior: GaussianPrior, own: GaussianPrior, statistics: GaussianStatistics) -> GaussianStatistics:
        """Return statistics that were gathered under the prior `own` about the origin of another."""
        return self.shift_origin(statistics, own.origin - prior.origin)

    def shift_origin(self, statistics: GaussianStatistics, shift: Array) -> GaussianStatistics:
        """Return statistics about an origin that lies at -shift of theirs, so that a row x is x + shift now."""
        return rebase_moments(self.covariance_type, statistics, shift)

    def select_statistics(self, statistics: GaussianStatistics, order: Index) -> GaussianStatistics:
        """Return statistics with the components in another order."""
        return select_components(statistics, order, self._shared)

    def select_prior(self, prior: GaussianPrior, order: Index) -> GaussianPrior:
        """Return the prior of some of the components: all share one."""
        return prior

    def recombine(
        self,
        statistics: GaussianStatistics,
        matrix: Array,
        others: GaussianStatistics | None = None,
        other_matrix: Array | None = None,
    ) -> GaussianStatistics:
        """Return matrix @ statistics + other_matrix @ others, over the components."""
        return recombine_components(statistics, matrix, others, other_matrix, self._shared)

    @property
    def has_own_moments(self) -> bool:
        """Whether every component has moments of its own: a covariance that all share is a sum over all rows."""
        return self.covariance_type != "tied"

    @property
    def _shared(self) -> tuple[str, ...]:
        """Names of the arrays that all components share, in statistics and in parameters."""
        return ("origin", "units", *(() if self.has_own_moments else ("second", "factor")))

    def mend(
        self, prior: GaussianPrior, totals: GaussianStatistics, sound: GaussianStatistics, share: float
    ) -> GaussianStatistics:
        """Return totals in which invalid or implausible components are replaced by those of reservoir rows.

        `sound` are the totals of reservoir rows, which are a `share` of all rows, scaled up to all.
        """
        rows = share * sound.count
        good = find_supported(totals.count, sound.count, rows)
        found, known = self.belief(prior, totals).scale, self.belief(prior, sound).scale
        if self.covariance_type == "tied":  # they share the covariance that may be invalid
            good &= find_near(found[None], known[None], rows.sum(keepdims=True))
            return totals if good.all() else sound
        if self.covariance_type == "spherical":
            found, known, rows = found.reshape(len(found), -1), known.reshape(len(known), -1), rows * prior.origin.size
        good &= find_near(found, known, rows)
        return totals if good.all() else replace_components(totals, sound, ~good)

    def select_parameters(self, parameters: GaussianParameters, order: Index) -> GaussianParameters:
        """Return the parameters of some of the components."""
        return select_components(parameters, order, self._shared)
