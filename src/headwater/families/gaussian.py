"""K Gaussians with full, tied, diagonal or spherical covariance, and their Normal-Wishart or Normal-Gamma prior."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwater.core.state import Batch
from headwater.core.statistics import Array
from headwater.families import gaussian_soundness as soundness
from headwater.families.components import near, recombine_components, replace_components, select_components, supported
from headwater.families.family import EMPTY, EMPTY_TABLE, Family, collect_by_estep
from headwater.families.gaussian_belief import (
    belief,
    columns_readout,
    contrast,
    divergence,
    inverses,
    log_prior,
    separation,
    valid,
)
from headwater.families.gaussian_covariance import COVARIANCES, Covariance
from headwater.families.gaussian_records import (
    GaussianBelief,
    GaussianParameters,
    GaussianPrior,
    GaussianStatistics,
    MomentStatistics,
    masses,
)
from headwater.families.geometry import Geometry, within_spread
from headwater.kernels.mixture import READOUTS
from headwater.kernels.parallel import run_slabs, slabs
from headwater.kernels.projection import PROJECTIONS

ROUNDED = 1e-13  # of a sum, beside what cancels in it


@dataclass(frozen=True)
class Gaussian(Family[GaussianPrior, GaussianStatistics, GaussianParameters]):
    """The family. Hyperparameters that are None are settled from the warm-up rows."""

    n_components: int
    covariance_type: str = "full"
    reg_covar: float = 1e-6
    mean_prior: Array | None = None
    mean_precision_prior: float | None = None
    degrees_of_freedom_prior: float | None = None
    covariance_prior: Any = None

    @property
    def readouts(self) -> frozenset[str]:
        return frozenset(READOUTS) - (frozenset() if self.kind.match else {"match_moments"})

    @property
    def kind(self) -> Covariance:
        return COVARIANCES[self.covariance_type]

    @property
    def spherical(self) -> bool:
        return self.covariance_type == "spherical"

    @property
    def has_prior(self) -> bool:
        """Whether the user gave any part of the prior."""
        given = (self.mean_prior, self.mean_precision_prior, self.degrees_of_freedom_prior, self.covariance_prior)
        return any(part is not None for part in given)

    def n_parameters(self, width: int) -> int:
        """Number of free parameters of all components."""
        return self.n_components * width + self.kind.n_parameters(self.n_components, width)

    def zeros(self, width: int) -> GaussianStatistics:
        """Return statistics that hold nothing."""
        k = self.n_components
        return GaussianStatistics(np.zeros(1), np.zeros(k), np.zeros((k, width)), np.zeros(self.kind.second_shape(k, width)))

    def kept(self, statistics: GaussianStatistics) -> MomentStatistics:
        """Return statistics in the form that moment matching keeps, where a component's masses may differ."""
        if isinstance(statistics, MomentStatistics):
            return statistics
        columns = statistics.first.shape[1] if self.covariance_type == "diag" else 1
        mean_count, dof_count = (np.repeat(mass, columns, axis=1) for mass in masses(statistics))
        return MomentStatistics(
            statistics.from_base, statistics.count, statistics.first, statistics.second, mean_count, dof_count
        )

    def brought(self, prior: GaussianPrior, own: GaussianPrior, statistics: GaussianStatistics) -> GaussianStatistics:
        """Return statistics that were gathered under the prior `own` about the origin of another."""
        return self.rebased(statistics, own.origin - prior.origin)

    def rebased(self, statistics: GaussianStatistics, shift: Array) -> GaussianStatistics:
        """Return statistics about an origin that lies at -shift of theirs, so that a row x is x + shift now."""
        first, mass = statistics.first, masses(statistics)[0]
        if self.kind.matrix:
            cross = first[:, :, None] * shift + shift[:, None] * first[:, None, :] + mass[:, :, None] * np.outer(shift, shift)
            cross = np.tril(cross.sum(axis=0) if self.covariance_type == "tied" else cross)
        else:
            cross = 2.0 * first * shift + mass * shift**2
        second = self._above_rounding(statistics.second + cross, statistics.second)
        return replace(statistics, first=first + mass * shift, second=second)

    def _above_rounding(self, second: Array, before: Array) -> Array:
        """Second moments about another origin, of which none is less than what rounding takes of those that there were.

        A component far from its origin says nothing of its variance about one that is near: it would have any sign.
        """
        if not self.kind.matrix:
            return np.where(before > 0.0, np.maximum(second, ROUNDED * before), second)  # a difference may be negative
        now, then = (np.diagonal(one, axis1=-2, axis2=-1) for one in (second, before))
        raised = np.where(then > 0.0, np.maximum(ROUNDED * then - now, 0.0), 0.0)
        return second + raised[..., None] * np.eye(second.shape[-1]) if raised.any() else second

    def permuted(self, statistics: GaussianStatistics, order: Any) -> GaussianStatistics:
        """Return statistics with the components in another order."""
        return select_components(statistics, order, self._shared)

    def chosen(self, prior: GaussianPrior, order: Any) -> GaussianPrior:
        """Return the prior of some of the components: all share one."""
        return prior

    def replaced(
        self, statistics: GaussianStatistics, other: GaussianStatistics, which: NDArray[np.bool_]
    ) -> GaussianStatistics:
        """Return statistics that have these components from another."""
        return replace_components(statistics, other, which)

    # Moves

    def recombined(
        self, statistics: Any, matrix: Array, others: Any = None, other_matrix: Array | None = None
    ) -> GaussianStatistics:
        """Return matrix @ statistics + other_matrix @ others, over the components."""
        return recombine_components(statistics, matrix, others, other_matrix, self._shared)

    @property
    def apart(self) -> bool:
        """Whether every component has moments of its own: a covariance that all share is a sum over all rows."""
        return self.covariance_type != "tied"

    @property
    def _shared(self) -> tuple[str, ...]:
        """Names of the arrays that all components share, in statistics and in parameters."""
        return ("origin", "units", *(() if self.apart else ("second", "factor")))

    def mended(self, prior: GaussianPrior, totals: GaussianStatistics, sound: GaussianStatistics, share: float) -> Any:
        """Return totals in which components that kept rows cannot have made, or hardly, are as these say.

        Kept rows are a share of all, and `sound` is what they say, scaled up to all.
        """
        rows = share * sound.count
        good = supported(totals.count, sound.count, rows)
        found, known = self.belief(prior, totals).scale, self.belief(prior, sound).scale
        if self.covariance_type == "tied":  # they share what may be wrong
            good &= near(found[None], known[None], rows.sum(keepdims=True))
            return totals if good.all() else sound
        if self.covariance_type == "spherical":
            found, known, rows = found.reshape(len(found), -1), known.reshape(len(known), -1), rows * prior.origin.size
        good &= near(found, known, rows)
        return totals if good.all() else self.replaced(totals, sound, ~good)

    # Priors

    def flattened(self, prior: GaussianPrior) -> GaussianPrior:
        """The prior whose mode is maximum likelihood, about the same origin."""
        return self.flat_prior(prior.origin)

    def flat_prior(self, origin: Array) -> GaussianPrior:
        """The prior whose mode is maximum likelihood; only the floor `reg_covar` is left of it."""
        width = len(origin)
        scale = np.zeros((width, width) if self.kind.matrix else width)
        shift = float(self.kind.mode_shift(self.n_components, width))
        return GaussianPrior(origin, np.zeros(width), 0.0, shift, scale, float(self.reg_covar))

    def blank_prior(self, width: int) -> GaussianPrior:
        """A prior of the right shape."""
        return self.flat_prior(np.zeros(width))

    def problem(self, record: Any, width: int) -> str:
        """What is wrong with a record that comes from outside, if something is."""
        if isinstance(record, GaussianPrior):
            return soundness.find_prior_problem(record)
        if isinstance(record, GaussianStatistics):
            return soundness.find_statistics_problem(record, self.covariance_type == "tied")
        return soundness.find_parameters_problem(record, self.kind.matrix)

    def check_prior(self, width: int) -> None:
        """Refuse hyperparameters that make no prior for rows of this width."""
        lowest = width - 1 if self.kind.matrix else 0
        if self._dof(width) <= lowest:
            raise ValueError(
                f"degrees_of_freedom_prior must be greater than {lowest} for {width} columns, got {self._dof(width):g}"
            )
        if self.covariance_prior is not None:
            self._given_scale(width)

    def geometry(self, batch: Batch) -> Geometry:
        """Return what a start needs to know of the rows."""
        return Geometry.of(batch, self.kind.matrix)

    def prior(self, geometry: Geometry, batch: Batch, responsibilities: Array) -> GaussianPrior:
        """The user's prior, completed by d + 2 rows' worth of the covariance within the seeded groups."""
        origin, spread = geometry.origin, geometry.spread
        within = within_spread(self.kind.matrix, batch, responsibilities, spread)
        width = len(origin)
        self.check_prior(width)
        dof = self._dof(width)
        scale = self._scale(within, spread) if self.covariance_prior is None else self._given_scale(width)
        mean = np.zeros(width) if self.mean_prior is None else self.mean_prior - origin
        precision = 0.01 if self.mean_precision_prior is None else float(self.mean_precision_prior)
        return GaussianPrior(origin, mean, precision, dof, scale, 0.0)

    def refined(
        self, prior: GaussianPrior, parameters: GaussianParameters, weights: Array, geometry: Geometry
    ) -> GaussianPrior:
        """Empirical Bayes: a prior whose mean precision is that of the components, unless the user said what it is.

        Thin components then are not blurred by the wide ones, as they would be by the pooled covariance.
        """
        if self.covariance_prior is not None:
            return prior
        factor = parameters.factor
        if self.covariance_type == "tied":
            covariance = inverses(factor.T @ factor)
        elif self.kind.matrix:
            covariance = inverses(np.einsum("k,kij,kil->jl", weights, factor, factor))
        else:
            covariance = 1.0 / (weights @ factor**2)
        return replace(prior, scale=self._scale(covariance, geometry.spread))

    def _scale(self, covariance: Any, spread: Array) -> Array:
        """Prior scale that makes this the covariance; a part of the spread, or `reg_covar`, keeps it positive."""
        floor = np.where(spread > 0.0, 1e-6 * spread, self.reg_covar) + 1e-200
        scale = (covariance + (np.diag(floor) if self.kind.matrix else floor)) * self._dof(len(spread))
        return np.full(len(spread), scale.mean()) if self.spherical else scale

    def _dof(self, width: int) -> float:
        if self.degrees_of_freedom_prior is not None:
            return float(self.degrees_of_freedom_prior)
        return float(width + 2 if self.kind.matrix else 3)

    def _given_scale(self, width: int) -> Array:
        try:
            given = np.asarray(self.covariance_prior, dtype=float)
        except (TypeError, ValueError) as error:
            raise ValueError(f"covariance_prior must hold numbers: {error}") from error
        wanted = {"diag": (width,), "spherical": ()}.get(self.covariance_type, (width, width))
        if given.shape != wanted:
            raise ValueError(
                f"covariance_prior must have shape {wanted} for covariance_type {self.covariance_type!r}, got {given.shape}"
            )
        if wanted == (width, width):
            if not np.allclose(given, given.T) or np.linalg.eigvalsh(given).min() <= 0.0:
                raise ValueError(f"covariance_prior must be symmetric and positive definite, got {given.tolist()}")
        elif np.any(given <= 0.0):
            raise ValueError(f"covariance_prior must be positive, got {given.min():g}")
        return np.full(width, float(given)) if wanted == () else given.copy()

    # Readouts

    def readout(self, name: str, prior: GaussianPrior, totals: GaussianStatistics) -> GaussianParameters:
        """Return parameters of the named kind for totals (not means per row)."""
        mean_count, dof_count = masses(totals)
        if mean_count.shape[1] > 1:
            return columns_readout(name, prior, totals)
        parameters = self.blank(prior.origin)
        lifted = self.kind.refresh(
            READOUTS[name], self._prior_tuple(prior), mean_count.ravel(), dof_count.ravel(), totals.first, totals.second,
            parameters.means, parameters.factor, parameters.shift, parameters.offset, parameters.power, parameters.stretch,
        )  # fmt: skip
        _refuse_singular(lifted, prior)
        return parameters

    def blank(self, origin: Array) -> GaussianParameters:
        """Return parameters that a kernel has yet to fill."""
        k, width = self.n_components, len(origin)
        factor = np.zeros(self.kind.factor_shape(k, width))
        means, shift = np.zeros((2, k, width))
        offset, power, stretch = np.zeros((3, k))
        return GaussianParameters(origin, means, factor, shift, offset, power, stretch)

    def _prior_tuple(self, prior: GaussianPrior) -> tuple[Any, ...]:
        shift = float(self.kind.mode_shift(self.n_components, len(prior.mean)))
        return (prior.mean, prior.mean_precision, prior.dof, prior.scale, prior.floor, shift, self.spherical)

    def picked(self, parameters: GaussianParameters, order: Any) -> GaussianParameters:
        """Return the parameters of some of the components."""
        return select_components(parameters, order, self._shared)

    def from_precisions(self, origin: Array, means: Array, factor: Array) -> GaussianParameters:
        """Return parameters with these means (user's coordinates) and inverse Cholesky factors."""
        return self.ready(origin, means - origin, factor[:, None] if factor.ndim == 1 else factor)

    def exchanged(self, found: GaussianParameters, means: Array | None, factor: Array | None) -> GaussianParameters:
        """Return parameters with other means, or other inverse Cholesky factors, in the user's coordinates."""
        if factor is None:
            factor = found.factor[:, 0] if self.spherical else found.factor
        return self.from_precisions(found.origin, self.means(found) if means is None else means, factor)

    def ready(self, origin: Array, centred: Array, factor: Array) -> GaussianParameters:
        """Return parameters with these means about the origin, and factors that may be the same for all columns."""
        k, width = centred.shape
        # A copy: what is broadcast to its own shape is read-only, and for that a kernel would be compiled again.
        factor = np.array(factor if self.kind.matrix else np.broadcast_to(factor, (k, width)), order="C")
        if self.kind.matrix:
            shift = np.einsum("...ij,kj->ki" if factor.ndim == 2 else "kij,kj->ki", factor, centred)
            log_diagonal = np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
        else:
            shift = factor * centred
            log_diagonal = np.log(factor).sum(axis=1)
        offset = np.broadcast_to(log_diagonal - 0.5 * width * np.log(2.0 * np.pi), (k,)).copy()
        return GaussianParameters(origin, centred, factor, shift, offset, np.zeros(k), np.ones(k))

    def belief(self, prior: GaussianPrior, totals: GaussianStatistics) -> GaussianBelief:
        """Return prior plus totals: the belief that the readouts summarise."""
        return belief(self.covariance_type, prior, totals)

    def log_prior(self, prior: GaussianPrior, parameters: GaussianParameters) -> float:
        """Return what MAP-EM adds to the likelihood."""
        return log_prior(self.covariance_type, prior, parameters)

    def divergence(self, prior: GaussianPrior, totals: GaussianStatistics) -> float:
        """Return KL(belief || prior): the price of complexity in the free energy."""
        return divergence(self.covariance_type, prior, totals)

    def separation(self, prior: GaussianPrior, totals: GaussianStatistics, others: GaussianStatistics) -> Array:
        """Return the symmetric divergence (K, K) of the beliefs about these components and about those."""
        return separation(self.covariance_type, *self._beliefs(prior, totals, others))

    def contrast(self, prior: GaussianPrior, totals: GaussianStatistics, others: GaussianStatistics) -> Array:
        """Return the symmetric divergence (K,) of the densities of each component here and there, in nats a row.

        A component without a row has no density of its own and differs from none. The prior mean is left out: far from it,
        its pull would make components of few and of many rows differ.
        """
        known, other = self._beliefs(replace(prior, mean_precision=1e-12), totals, others)
        empty = np.minimum(totals.count, others.count) < 1.0
        return np.where(empty, 0.0, contrast(self.covariance_type, known, other))

    def _beliefs(
        self, prior: GaussianPrior, totals: GaussianStatistics, others: GaussianStatistics
    ) -> tuple[GaussianBelief, GaussianBelief]:
        """Two beliefs to compare. A flat prior makes none, so one row's worth of a millionth of the spread stands in for it."""
        if not np.any(prior.scale):
            count = totals.count.sum() + others.count.sum()
            second = (totals.second + others.second).reshape(-1, *prior.scale.shape).sum(axis=0)
            spread = (np.diag(second) if self.kind.matrix else second) / count
            prior = replace(prior, mean_precision=prior.mean_precision or 1.0, dof=self._dof(len(spread)))
            prior = replace(prior, scale=self._scale(prior.scale, np.maximum(spread, 0.0)))
        return self.belief(prior, totals), self.belief(prior, others)

    def valid(self, prior: GaussianPrior, totals: GaussianStatistics) -> NDArray[np.bool_]:
        """Return which components (K,) have a belief. Sums of rows always have; beliefs that were subtracted may not."""
        if not isinstance(totals, MomentStatistics):
            return np.ones(self.n_components, dtype=bool)
        return valid(self.covariance_type, self.belief(prior, totals))

    # Rows

    def estep(
        self,
        parameters: GaussianParameters,
        log_weights: Array,
        batch: Batch,
        totals: Any = None,
        scores: Array = EMPTY,
        responsibilities: Array = EMPTY_TABLE,
        given: bool = False,
        n_threads: int | None = None,
    ) -> tuple[float, Any]:
        """Add to `totals`, fill `scores` and `responsibilities`; return the weighted score and `totals`."""
        offset = parameters.offset + log_weights
        power, stretch = parameters.power, parameters.stretch
        if not self.kind.matrix:
            power, stretch = power.reshape(len(offset), -1), stretch.reshape(len(offset), -1)
        columns_tail = self.covariance_type == "diag" and bool(power[0, 0] > 0.0)
        fixed = (
            parameters.origin, parameters.factor, parameters.shift, offset, power, stretch, columns_tail, scores,
            responsibilities, given,
        )  # fmt: skip
        number = len(slabs(len(batch)))
        if totals is None:
            targets = [(EMPTY, EMPTY_TABLE, np.empty((0,) * len(self.kind.second_shape(1, 1))))] * number
        elif number == 1:
            targets = [(totals.count, totals.first, totals.second)]
        else:
            parts = [self.zeros(totals.first.shape[1]) for _ in range(number)]
            targets = [(part.count, part.first, part.second) for part in parts]

        def work(slab: int, start: int, stop: int) -> float:
            return self.kind.estep(batch.X, start, stop, batch.weights, batch.labels, *fixed, *targets[slab])

        values = run_slabs(work, len(batch), n_threads)
        if totals is not None and number > 1:
            for count, first, second in targets:
                totals.count[...] += count
                totals.first[...] += first
                totals.second[...] += second
        return float(sum(values)), totals

    def collect(self, parameters: GaussianParameters, X: Array, responsibilities: Array) -> GaussianStatistics:
        """Statistics of rows whose responsibilities are known."""
        return collect_by_estep(self, parameters, Batch(X), responsibilities)

    def collect_seeds(self, geometry: Geometry, batch: Batch, responsibilities: Array) -> GaussianStatistics:
        """Statistics of rows whose responsibilities are known, about the origin of the geometry."""
        return collect_by_estep(self, self.blank(geometry.origin), batch, responsibilities)

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
        """Make passes over one slab of rows inside a kernel, changing `totals` in place, if there is such a kernel.

        Returns log-weights, parameters, the mean score of each pass, and whether they converged.
        """
        if self.kind.climb is None:
            return None
        parameters, log_weights, trace = self.blank(prior.origin), np.empty(self.n_components), np.empty(passes)
        made, converged, singular = self.kind.climb(
            batch.X, batch.weights, batch.labels, batch.size, prior.origin, READOUTS[name], concentration,
            self._prior_tuple(prior), tol, before, totals.count, totals.first, totals.second, parameters.means,
            parameters.factor, parameters.shift, parameters.offset, parameters.power, parameters.stretch, log_weights, trace,
            0, False,
        )  # fmt: skip
        _refuse_singular(singular, prior)
        return log_weights, parameters, trace[:made], converged

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
        totals = statistics.scaled(n_eff)
        moving = totals.zeros_like() if average is None else average.copy()
        n_eff = self.kind.sweep(
            batch.X, batch.weights, batch.labels, prior.origin, READOUTS[name], concentration, self._prior_tuple(prior),
            steps, gains, n_eff, totals.count, totals.first, totals.second,
            (moving.count, moving.first, moving.second), scores,
        )  # fmt: skip
        return totals.scaled(1.0 / n_eff), None if average is None else moving, n_eff

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
        assert self.kind.match is not None
        totals = statistics.scaled(n_eff)
        weight_projection, dof_projection = (PROJECTIONS[name] for name in projection)
        n_eff = self.kind.match(
            batch.X, batch.weights, batch.labels, prior.origin, weight_projection, dof_projection, concentration,
            self._prior_tuple(prior), steps, n_eff, totals.count, totals.mean_count, totals.dof_count, totals.first,
            totals.second, scores,
        )  # fmt: skip
        return totals.scaled(1.0 / n_eff), n_eff

    # Chains

    def log_densities(self, parameters: GaussianParameters, X: Array) -> Array:
        """Return the log-density of each row under each component, however small."""
        batch = Batch(X)
        shares, scores, flat = np.empty((len(batch), self.n_components)), np.empty(len(batch)), np.zeros(self.n_components)
        self.estep(parameters, flat, batch, scores=scores, responsibilities=shares)
        rare = np.flatnonzero(shares.min(axis=1) < 1e-290)  # where a share of the sum says nothing any more
        with np.errstate(divide="ignore"):
            logs = np.log(shares) + scores[:, None]
        for k in range(self.n_components if len(rare) else 0):
            alone, column = np.where(np.arange(self.n_components) == k, 0.0, -np.inf), np.empty(len(rare))
            self.estep(parameters, alone, batch[rare], scores=column)
            logs[rare, k] = column
        return logs

    def flat(self, statistics: GaussianStatistics) -> Array:
        """Return statistics as one row of numbers, the counts first."""
        return np.concatenate([statistics.count, statistics.first.ravel(), statistics.second.ravel()])

    def unflat(self, row: Array, width: int) -> GaussianStatistics:
        """Return the statistics that such a row holds."""
        k = self.n_components
        first, second = row[k : k * (1 + width)].reshape(k, width), row[k * (1 + width) :]
        return GaussianStatistics(
            np.zeros(1), row[:k].copy(), first.copy(), second.reshape(self.kind.second_shape(k, width)).copy()
        )

    def sweep_chain(
        self, name: str, prior: GaussianPrior, chain: tuple[Array, ...], X: Array, steps: Array, gains: Array, n_eff: float,
        known: bool, now: Array, given: Array, mean: Array, average: Array, scores: Array,
    ) -> tuple[float, Array]:  # fmt: skip
        """Learn the rows of a sequence step by step (see kernels/chain_sweep.py)."""
        return self.kind.sweep_chain(
            X, prior.origin, READOUTS[name], chain, self._prior_tuple(prior), steps, gains, n_eff, known, now, given,
            mean, average, scores,
        )  # fmt: skip

    # What users see

    def means(self, parameters: GaussianParameters) -> Array:
        """Means of parameters, in the user's coordinates."""
        return parameters.means + parameters.origin

    def covariances(self, parameters: GaussianParameters) -> Array:
        """Covariances of parameters, in the shape scikit-learn gives them."""
        factor = parameters.factor
        if self.kind.matrix:
            root = np.linalg.inv(factor)
            return np.asarray(root @ np.swapaxes(root, -1, -2))
        return factor[:, 0] ** -2.0 if self.spherical else factor**-2.0

    def precisions_cholesky(self, parameters: GaussianParameters) -> Array:
        """Upper triangular factors of the precisions, in the shape scikit-learn gives them."""
        factor = parameters.factor
        if self.kind.matrix:
            return np.swapaxes(factor, -1, -2).copy()
        return factor[:, 0].copy() if self.spherical else factor.copy()

    def sample(self, parameters: GaussianParameters, components: NDArray[np.int64], rng: np.random.Generator, *_: Any) -> Array:
        """Draw one row from each of the listed components."""
        noise = rng.standard_normal((len(components), parameters.means.shape[1]))
        if self.kind.matrix:
            root = np.linalg.inv(parameters.factor)
            root = np.broadcast_to(root, (self.n_components, *root.shape[-2:]))
            for k in range(self.n_components):
                rows = components == k
                noise[rows] = noise[rows] @ root[k].T
        else:
            noise /= parameters.factor[components]
        return noise + parameters.means[components] + parameters.origin


def _refuse_singular(pivots: int, prior: GaussianPrior) -> None:
    if pivots and prior.mean_precision == 0.0 and prior.floor == 0.0:
        raise ValueError(
            "Fitting the mixture model failed because some components have ill-defined empirical covariance (for "
            "instance caused by singleton or collapsed samples). Try to decrease the number of components, increase "
            "reg_covar, or scale the input data."
        )
