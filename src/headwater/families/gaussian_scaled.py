"""Gaussians whose columns are measured in their own units: the spread of the rows that a start was made from.

Rows are centred and scaled as they come in, so that a floor under the covariances is a part of the spread, and a sphere is one
in these units. Statistics, prior and parameters are in units; densities and what users see are not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import Batch
from headwater.core.gapped_rows import GappedRows
from headwater.core.noisy_rows import NoisyRows
from headwater.core.statistics import Array
from headwater.core.values import Matrix, Values
from headwater.families.column_steps import settle_steps
from headwater.families.family import EMPTY, EMPTY_TABLE, log_densities_by_estep
from headwater.families.gaussian import Gaussian
from headwater.families.gaussian_records import (
    GaussianBelief,
    GaussianParameters,
    GaussianPrior,
    GaussianStatistics,
    MomentStatistics,
)
from headwater.families.geometry import Geometry

FARTHEST_UNITS = 1e150  # of a row; sums of a few squares of such are numbers


@dataclass(frozen=True)
class ScaledGaussian(Gaussian):
    """The family of Gaussians, in units of the columns. `origin` and `units` are never changed."""

    # Priors

    def blank_prior(self, width: int) -> GaussianPrior:
        """A prior of the right shape."""
        return replace(super().blank_prior(width), units=np.ones(width))

    def flatten_prior(self, prior: GaussianPrior) -> GaussianPrior:
        """The prior whose mode is maximum likelihood, in the same units."""
        return replace(super().flatten_prior(prior), units=prior.units)

    def prior(self, geometry: Geometry, batch: Batch, responsibilities: Array) -> GaussianPrior:
        """The user's prior, completed, in units of the columns."""
        steps = settle_steps(self.resolution, batch.X)
        units = _units(geometry, steps)
        own = self
        if self.mean_prior is not None:
            own = replace(own, mean_prior=(self.mean_prior - geometry.origin) / units)
        if self.covariance_prior is not None and not self.spherical:
            own = replace(own, covariance_prior=self._squared(np.asarray(self.covariance_prior, dtype=float), 1.0 / units))
        if steps is not None:
            own = replace(own, resolution=steps / units)
        found = super(ScaledGaussian, own).prior(
            _in_units(geometry, units), _to_units(batch, geometry.origin, units), responsibilities
        )
        return replace(found, origin=geometry.origin, units=units)

    def refine_prior(
        self, prior: GaussianPrior, parameters: GaussianParameters, weights: Array, geometry: Geometry
    ) -> GaussianPrior:
        """Empirical Bayes, in units of the columns."""
        return super().refine_prior(prior, parameters, weights, _in_units(geometry, prior.units))

    def is_beyond(self, prior: GaussianPrior, X: Matrix) -> bool:
        """Whether some rows lie so many units away that their squares are no numbers."""
        values = X.values if isinstance(X, GappedRows | NoisyRows) else X
        with np.errstate(over="ignore"):
            return bool(np.any(np.abs(values - prior.origin) > FARTHEST_UNITS * prior.units))

    # Readouts

    def readout(self, name: str, prior: GaussianPrior, totals: GaussianStatistics) -> GaussianParameters:
        """Return parameters of the named kind for totals (not means per row)."""
        return _outward(super().readout(name, _inner(prior), totals), prior)

    def from_precisions(self, origin: Array, means: Array, factor: Array) -> GaussianParameters:
        """Return parameters with these means and inverse Cholesky factors, without units."""
        return replace(super().from_precisions(origin, means, factor), units=np.ones(len(origin)))

    def with_means_and_factor(self, found: GaussianParameters, means: Array | None, factor: Array | None) -> GaussianParameters:
        """Return parameters with other means, or other inverse Cholesky factors, in the user's coordinates."""
        units = found.units
        centred = found.means if means is None else (means - found.origin) / units
        factor = found.factor if factor is None else (factor[:, None] if factor.ndim == 1 else factor) * units
        inner = self.make_parameters(np.zeros(len(units)), centred, factor)
        return replace(inner, origin=found.origin, units=units, offset=inner.offset - np.log(units).sum())

    def belief(self, prior: GaussianPrior, totals: GaussianStatistics) -> GaussianBelief:
        """Return the belief that the readouts summarise, in the user's coordinates; of spheres the scale is (K, d)."""
        found = super().belief(_inner(prior), totals)
        if not prior.units.size:
            return found
        scale = self._squared(found.scale[:, None] if self.spherical else found.scale, prior.units)
        return replace(found, means=found.means * prior.units + prior.origin, scale=scale)

    def divergence(self, prior: GaussianPrior, totals: GaussianStatistics) -> float:
        """Return KL(belief || prior), which does not depend on units."""
        return super().divergence(_inner(prior), totals)

    def separation(self, prior: GaussianPrior, totals: GaussianStatistics, others: GaussianStatistics) -> Array:
        """Return the symmetric divergence (K, K) of the beliefs about these components and about those."""
        return super().separation(_inner(prior), totals, others)

    def contrast(self, prior: GaussianPrior, totals: GaussianStatistics, others: GaussianStatistics) -> Array:
        """Return the symmetric divergence (K,) of the densities of each component here and there, in nats a row."""
        return super().contrast(_inner(prior), totals, others)

    def find_proper(self, prior: GaussianPrior, totals: GaussianStatistics) -> NDArray[np.bool_]:
        """Return which components (K,) have a belief."""
        return super().find_proper(_inner(prior), totals)

    def move_to_prior(self, prior: GaussianPrior, own: GaussianPrior, statistics: GaussianStatistics) -> GaussianStatistics:
        """Return statistics that were gathered under the prior `own` about the origin, and in the units, of another."""
        ratio = own.units / prior.units
        scaled = replace(statistics, first=statistics.first * ratio, second=self._squared(statistics.second, ratio))
        return self.shift_origin(scaled, (own.origin - prior.origin) / prior.units)

    # Rows

    def estep(
        self,
        parameters: GaussianParameters,
        log_weights: Array,
        batch: Batch,
        totals: GaussianStatistics | None = None,
        scores: Array = EMPTY,
        responsibilities: Array = EMPTY_TABLE,
        given: bool = False,
        n_threads: int | None = None,
    ) -> tuple[float, GaussianStatistics | None]:
        """Add to `totals`, fill `scores` and `responsibilities`; return the weighted score and `totals`."""
        if not parameters.units.size:
            return super().estep(parameters, log_weights, batch, totals, scores, responsibilities, given, n_threads)
        volumes = np.log(parameters.units)
        batch = _to_units(batch, parameters.origin, parameters.units)
        parameters = replace(parameters, origin=np.zeros_like(parameters.origin), units=EMPTY)
        if not isinstance(batch.X, GappedRows):
            return super().estep(parameters, log_weights, batch, totals, scores, responsibilities, given, n_threads)
        parameters = replace(parameters, offset=parameters.offset + volumes.sum())
        score, totals = super().estep(parameters, log_weights, batch, totals, scores, responsibilities, given, n_threads)
        if not given:  # the density of a row with gaps depends on the units of the observed columns
            volume = ~batch.X.missing @ volumes
            scores -= volume if scores.size else 0.0
            score -= float(batch.row_weights @ volume)
        return score, totals

    def log_densities(self, parameters: GaussianParameters, X: Matrix) -> Array:
        """Return the log-density of each row under each component."""
        return log_densities_by_estep(self, parameters, X)

    log_densities_with_gaps = log_densities

    def collect_seeds(self, geometry: Geometry, batch: Batch, responsibilities: Array) -> GaussianStatistics:
        """Statistics of rows whose responsibilities are known."""
        entered = _to_units(batch, geometry.origin, _units(geometry, settle_steps(self.resolution, batch.X)))
        return super().collect_seeds(replace(geometry, origin=np.zeros_like(geometry.origin)), entered, responsibilities)

    def climb(
        self,
        name: str,
        prior: GaussianPrior,
        concentration: Array,
        batch: Batch,
        passes: int,
        tol: float,
        before: float,
        totals: GaussianStatistics,
    ) -> tuple[Array, GaussianParameters, Array, bool] | None:
        """Make passes over one slab of rows inside a kernel, if there is such a kernel."""
        volume, entered = float(np.log(prior.units).sum()), _to_units(batch, prior.origin, prior.units)
        end = super().climb(name, _inner(prior), concentration, entered, passes, tol, before + volume, totals)
        return None if end is None else (end[0], _outward(end[1], prior), end[2] - volume, end[3])

    def sweep(
        self,
        name: str,
        prior: GaussianPrior,
        concentration: Array,
        batch: Batch,
        steps: Array,
        gains: Array,
        n_eff: float,
        statistics: GaussianStatistics,
        average: GaussianStatistics | None,
        scores: Array,
    ) -> tuple[GaussianStatistics, GaussianStatistics | None, float]:
        """Learn row by row; return statistics and average, as means per row, and n_eff."""
        entered = _to_units(batch, prior.origin, prior.units)
        found = super().sweep(
            name, _inner(prior), concentration, entered, steps, gains, n_eff, statistics, average, scores
        )  # fmt: skip
        scores -= _volume(batch, prior.units)
        return found

    def match(
        self,
        prior: GaussianPrior,
        concentration: Array,
        batch: Batch,
        steps: Array,
        n_eff: float,
        statistics: MomentStatistics,
        scores: Array,
        projection: tuple[str, str],
    ) -> tuple[MomentStatistics, float]:
        """Learn row by row by moment matching; return statistics, as means per row, and n_eff."""
        entered = _to_units(batch, prior.origin, prior.units)
        found = super().match(_inner(prior), concentration, entered, steps, n_eff, statistics, scores, projection)
        scores -= np.log(prior.units).sum()
        return found

    def sweep_chain(
        self, name: str, prior: GaussianPrior, chain: tuple[Array, ...], X: Array, steps: Array, gains: Array, n_eff: float,
        known: bool, now: Array, given: Array, mean: Array, average: Array, scores: Array,
    ) -> tuple[float, Array]:  # fmt: skip
        """Learn the rows of a sequence one by one; missing ones score 0, in any units."""
        entered = (X - prior.origin) / prior.units
        found = super().sweep_chain(
            name, _inner(prior), chain, entered, steps, gains, n_eff, known, now, given, mean, average, scores
        )  # fmt: skip
        scores -= ~np.isnan(X) @ np.log(prior.units)
        return found

    def expect_gaps(self, parameters: GaussianParameters, log_weights: Array, X: GappedRows) -> Array:
        """Return rows whose gaps are filled by their conditional means; observed values keep their bits."""
        inner = _to_units(Batch(X), parameters.origin, parameters.units).X
        plain = replace(parameters, origin=np.zeros_like(parameters.origin), units=EMPTY)
        found = super().expect_gaps(plain, log_weights, inner)
        return np.where(X.missing, found * parameters.units + parameters.origin, X.values)

    # What users see

    def means(self, parameters: GaussianParameters) -> Array:
        """Means of parameters, in the user's coordinates."""
        return parameters.means * parameters.units + parameters.origin

    def covariances(self, parameters: GaussianParameters) -> Array:
        """Covariances of parameters; of spheres they are (K, d), since units differ."""
        found = super().covariances(parameters)
        return self._squared(found[:, None] if self.spherical else found, parameters.units)

    def precisions_cholesky(self, parameters: GaussianParameters) -> Array:
        """Upper triangular factors of the precisions; of spheres they are (K, d)."""
        units = parameters.units
        found = super().precisions_cholesky(parameters)
        return found / (units[:, None] if self.kind.matrix else units) if not self.spherical else found[:, None] / units

    def sample(
        self, parameters: GaussianParameters, components: NDArray[np.int64], rng: np.random.Generator, *_: Values
    ) -> Array:
        """Draw one row from each of the listed components."""
        inner = replace(parameters, origin=np.zeros_like(parameters.origin))
        return super().sample(inner, components, rng) * parameters.units + parameters.origin

    def _squared(self, second: Array, units: Array) -> Array:
        """Second moments of columns that are multiplied by these."""
        return second * (units[:, None] * units if self.kind.matrix else units**2)


def _units(geometry: Geometry, steps: Array | None) -> Array:
    """Standard deviations of the columns, or the steps that they are rounded to if those are larger; 1 for a constant one."""
    units = np.sqrt(np.where(geometry.spread > 0.0, geometry.spread, 1.0))
    return units if steps is None else np.maximum(units, steps)


def _in_units(geometry: Geometry, units: Array) -> Geometry:
    return replace(geometry, origin=np.zeros_like(geometry.origin), spread=geometry.spread / units**2)


def _to_units(batch: Batch, origin: Array, units: Array) -> Batch:
    """Rows about the origin, in units. The origin is subtracted first, which loses no precision."""
    if isinstance(batch.X, NoisyRows):
        return replace(batch, X=batch.X.in_units(origin, units))
    if isinstance(batch.X, GappedRows):
        return replace(batch, X=replace(batch.X, values=(batch.X.values - origin) / units))
    return replace(batch, X=(batch.X - origin) / units)


def _volume(batch: Batch, units: Array) -> Array | float:
    """Logarithm of the units of what was observed, by row if there are gaps."""
    volumes = np.log(units)
    return np.asarray((~batch.X.missing).astype(float) @ volumes) if isinstance(batch.X, GappedRows) else float(volumes.sum())


def _inner(prior: GaussianPrior) -> GaussianPrior:
    """The prior of rows that are about the origin and in units already."""
    return replace(prior, origin=np.zeros_like(prior.origin), units=EMPTY) if prior.units.size else prior


def _outward(parameters: GaussianParameters, prior: GaussianPrior) -> GaussianParameters:
    """Parameters for rows that are not in units."""
    if not prior.units.size:
        return parameters
    offset = parameters.offset - np.log(prior.units).sum()
    return replace(parameters, origin=prior.origin, units=prior.units, offset=offset)
