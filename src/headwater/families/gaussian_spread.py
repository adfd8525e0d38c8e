"""Gaussians whose prior is that of scikit-learn's BayesianGaussianMixture: its scale is the covariance of all rows.

Only what the user did not give is found on rows. A tied covariance belongs to all components: its degrees of freedom and scale
are those of one component times their number, so that covariances are those of scikit-learn (see `BayesianGaussianMixture`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import digamma

from headwater.core.batch import Batch
from headwater.core.gapped_rows import GappedRows
from headwater.core.statistics import Array
from headwater.families.gaussian import Gaussian
from headwater.families.gaussian_prior import LEAST_SPREAD
from headwater.families.gaussian_records import GaussianParameters, GaussianPrior, GaussianStatistics
from headwater.families.geometry import Geometry


@dataclass(frozen=True)
class SpreadGaussian(Gaussian):
    """The family; hyperparameters that are None are found on all rows of a start."""

    row_scale: Array | None = None  # that of the prior, where the user gave none

    def settle(self, batch: Batch) -> SpreadGaussian:
        """Return the family with the scale that the rows have."""
        if self.covariance_prior is not None:
            return self
        spread = definite(row_covariance(batch, self.kind.matrix), self.reg_covar)
        scale = np.full(len(spread), spread.mean()) if self.spherical else spread
        return replace(self, row_scale=scale * (1 if self.has_own_moments else self.n_components))

    def prior(self, geometry: Geometry, batch: Batch, responsibilities: Array) -> GaussianPrior:
        """The user's prior, completed by the scale of the rows."""
        found = super().prior(geometry, batch, responsibilities)
        return found if self.row_scale is None else replace(found, scale=self.row_scale)

    def readout(self, name: str, prior: GaussianPrior, totals: GaussianStatistics) -> GaussianParameters:
        """Parameters of the named kind; of a tied precision with the expected log-determinant of one component."""
        found = super().readout(name, prior, totals)
        if self.has_own_moments or name != "expect_log":
            return found
        return replace(found, offset=found.offset + self._tied_constant(prior.dof + totals.count.sum(), len(prior.mean)))

    def _tied_constant(self, dof: float, width: int) -> float:
        """What the expected log-density is more if degrees of freedom are those of one component: the same for all."""
        few, places = dof / self.n_components, np.arange(width)
        terms = digamma(0.5 * (few - places)) - digamma(0.5 * (dof - places))
        return 0.5 * float(terms.sum() - width * np.log(few / dof))

    def climb(
        self, name: str, prior: GaussianPrior, concentration: Array, batch: Batch, passes: int, tol: float, before: float,
        totals: GaussianStatistics,
    ) -> tuple[Array, GaussianParameters, Array, bool] | None:  # fmt: skip
        """Passes in a kernel; tied covariances have none, since it does not know their constant."""
        if not self.has_own_moments:
            return None
        return super().climb(name, prior, concentration, batch, passes, tol, before, totals)

    @property
    def sweeps_rows(self) -> bool:
        """Whether there is a kernel: not for tied covariances, whose constant it does not know."""
        return self.has_own_moments and super().sweeps_rows

    def can_sweep(self, prior: GaussianPrior) -> bool:
        return self.has_own_moments and super().can_sweep(prior)

    def refine_prior(
        self, prior: GaussianPrior, parameters: GaussianParameters, weights: Array, geometry: Geometry
    ) -> GaussianPrior:
        """The same prior: it does not depend on the components."""
        return prior


def definite(spread: Array, floor: float) -> Array:
    """Return a covariance (d, d) or variances (d,) with a little more variance in each column, if they are singular."""
    matrix = spread.ndim == 2
    variances = np.diagonal(spread) if matrix else spread
    more = np.where(variances > 0.0, LEAST_SPREAD * variances, floor) + 1e-200
    if not matrix:
        return np.where(spread > 0.0, spread, more)
    units = np.sqrt(np.where(variances > 0.0, variances, 1.0))
    singular = np.linalg.eigvalsh(spread / units[:, None] / units)[0] < LEAST_SPREAD
    return spread + np.diag(more) if singular else spread


def row_covariance(batch: Batch, matrix: bool) -> Array:
    """Covariance of the rows (d, d), or variances of their columns (d,), with n - 1 in the denominator as in `numpy.cov`.

    Of rows with gaps the variances of what was observed stand on the diagonal.
    """
    weights = batch.row_weights
    if isinstance(batch.X, GappedRows):
        seen = weights @ ~batch.X.missing
        mean = weights @ batch.X.filled(0.0) / np.maximum(seen, 1e-300)
        variances = weights @ np.where(batch.X.missing, 0.0, batch.X.values - mean) ** 2 / np.maximum(seen - 1.0, 1.0)
        return np.diag(variances) if matrix else variances
    centred, freedom = batch.X - weights @ batch.X / weights.sum(), max(float(weights.sum()) - 1.0, 1.0)
    if matrix:
        return np.asarray((centred * weights[:, None]).T @ centred / freedom)
    return np.asarray(weights @ centred**2 / freedom)
