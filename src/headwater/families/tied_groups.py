"""Gaussians in groups of which each has one covariance: a state of a chain whose members differ by their means alone.

Rows are counted under full covariances, so the kernels of these do the work. Only what a group has in common is read out of the
sums of its members: by the tied family, group by group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from headwater.core.statistics import Array
from headwater.families.gaussian import Gaussian
from headwater.families.gaussian_prior import flat_prior
from headwater.families.gaussian_records import GaussianBelief, GaussianParameters, GaussianPrior, GaussianStatistics


@dataclass(frozen=True)
class TiedGroups(Gaussian):
    """The family: of every `group` Gaussians, one after the other, the covariances are the same."""

    group: int = 1

    @property
    def one(self) -> Gaussian:
        """The family of one group."""
        return Gaussian(
            self.group, "tied", self.reg_covar, self.mean_prior, self.mean_precision_prior, self.degrees_of_freedom_prior,
            self.covariance_prior,
        )  # fmt: skip

    def n_parameters(self, width: int) -> int:
        return self.n_components // self.group * self.one.n_parameters(width)

    def flat_prior(self, origin: Array) -> GaussianPrior:
        return flat_prior(self.one, origin)

    def readout(self, name: str, prior: GaussianPrior, totals: GaussianStatistics) -> GaussianParameters:
        found = [self.one.readout(name, prior, part) for part in self._groups(totals)]
        factor = np.repeat(np.stack([one.factor for one in found]), self.group, axis=0)

        def joined(part: Callable[[GaussianParameters], Array]) -> Array:
            return np.concatenate([part(one) for one in found])

        return GaussianParameters(
            prior.origin, joined(lambda one: one.means), factor, joined(lambda one: one.shift), joined(lambda one: one.offset),
            joined(lambda one: one.power), joined(lambda one: one.stretch),
        )  # fmt: skip

    def belief(self, prior: GaussianPrior, totals: GaussianStatistics) -> GaussianBelief:
        found = [self.one.belief(prior, part) for part in self._groups(totals)]
        return GaussianBelief(
            np.concatenate([one.means for one in found]),
            np.concatenate([one.mean_precision for one in found]),
            np.concatenate([one.dof for one in found]),
            np.repeat(np.stack([one.scale for one in found]), self.group, axis=0),
        )

    def log_prior(self, prior: GaussianPrior, parameters: GaussianParameters) -> float:
        total = 0.0
        for start in range(0, self.n_components, self.group):
            own = slice(start, start + self.group)
            part = self.one.make_parameters(parameters.origin, parameters.means[own], parameters.factor[start])
            total += self.one.log_prior(prior, part)
        return total

    def divergence(self, prior: GaussianPrior, totals: GaussianStatistics) -> float:
        return sum(self.one.divergence(prior, part) for part in self._groups(totals))

    def _groups(self, totals: GaussianStatistics) -> Iterator[GaussianStatistics]:
        """Yield the statistics of each group, with one matrix of second moments."""
        for start in range(0, self.n_components, self.group):
            own = slice(start, start + self.group)
            second = totals.second[own].sum(axis=0)
            yield GaussianStatistics(totals.from_base, totals.count[own], totals.first[own], second)
