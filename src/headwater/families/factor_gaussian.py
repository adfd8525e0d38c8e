"""K Gaussians whose covariance is low-rank and diagonal: mixtures of factor analysers (Ghahramani and Hinton 1996).

A row of a component is its mean, plus q factors times loadings, plus independent noise in every column. The statistics are
those of rows and expected factors at the reference: they add up over chunks, streams and models, and take d (q + 2) numbers a
component where second moments would take d^2. A readout is a regression.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headwater.core.algorithms import StreamReadout
from headwater.core.batch import Batch
from headwater.core.statistics import HEAVIEST, LARGEST, Array
from headwater.core.values import Index, Matrix, Values
from headwater.families.column_steps import settle_steps
from headwater.families.components import select_components
from headwater.families.conditional_law import ConditionalLaw
from headwater.families.factor_readout import read_mode, seed_parameters
from headwater.families.factor_records import (
    FactorParameters,
    FactorPrior,
    FactorStatistics,
    RoundedFactorPrior,
    is_whitening,
    with_steps,
)
from headwater.families.family import EMPTY, EMPTY_TABLE, Family
from headwater.families.gaussian_conditional import conditional_law
from headwater.families.gaussian_prior import LEAST_SPREAD, MEAN_ROWS
from headwater.families.gaussian_records import make_parameters as make_gaussian
from headwater.families.geometry import Geometry, within_spread
from headwater.families.soundness import NO_PARAMETERS, NO_PRIOR, TOLERANCE, exceeds
from headwater.families.triangles import invert_triangles
from headwater.kernels.parallel import one_blas_thread

NOISE_ROWS = 3.0  # degrees of freedom of the prior of the noise, as of diagonal covariances
FARTHEST = 1e300  # a squared distance, beyond which all rows are as far
LARGEST_FACTOR = 1e110  # an expected factor, in units of its deviation; beyond, sums of products with rows overflow
SMALL_PRODUCT = 8192  # multiplications below which no library uses threads


@dataclass(frozen=True)
class FactorGaussian(Family[FactorPrior, FactorStatistics, FactorParameters]):
    """The family. Hyperparameters that are None are set from the warm-up rows."""

    n_components: int
    n_factors: int
    reg_covar: float = 1e-6
    mean_prior: Array | None = None
    mean_precision_prior: float | None = None
    degrees_of_freedom_prior: float | None = None
    noise_prior: Array | None = None
    resolution: str | Array | None = None  # the step of each column, "auto" if it is to be found, None if all are as they are

    @property
    def is_cloud(self) -> bool:
        return True

    @property
    def readouts(self) -> frozenset[str]:
        """The mode only: there is no belief about loadings."""
        return frozenset({"mode"})

    @property
    def stream_readout(self) -> StreamReadout:
        """The readout by which algorithm "auto" streams."""
        return "mode"

    @property
    def has_prior(self) -> bool:
        """Whether the user gave any part of the prior."""
        given = (self.mean_prior, self.mean_precision_prior, self.degrees_of_freedom_prior, self.noise_prior)
        return any(part is not None for part in given)

    @property
    def adds_up(self) -> bool:
        """Not: each component has axes of its own."""
        return False

    def n_parameters(self, width: int) -> int:
        """Return the number of free parameters: rotations of the loadings do not count."""
        turns = self.n_factors * (self.n_factors - 1) // 2
        return self.n_components * (width * (self.n_factors + 2) - turns)

    def zeros(self, width: int) -> FactorStatistics:
        """Return the statistics of no rows."""
        k, q = self.n_components, self.n_factors
        shapes = ((k,), (k, width), (k, width), (k, width, q), (k, q), (k, q, q))
        return FactorStatistics.of(*(np.zeros(shape) for shape in shapes))

    # Prior

    def prior(self, geometry: Geometry, batch: Batch, responsibilities: Array) -> FactorPrior:
        """Return the user's prior, completed by three rows' worth of the variances within the seeded groups."""
        origin, spread = geometry.origin, geometry.spread
        dof = self._dof
        scale = self.noise_prior
        if scale is None:
            scale = self._scale(within_spread(False, batch, responsibilities, spread), spread)
        mean = np.zeros(len(origin)) if self.mean_prior is None else self.mean_prior - origin
        rows = MEAN_ROWS if self.mean_precision_prior is None else float(self.mean_precision_prior)
        return with_steps(FactorPrior(origin, mean, rows, dof, scale, 0.0), settle_steps(self.resolution, batch.X))

    def settle(self, batch: Batch) -> FactorGaussian:
        """Return the family with the steps of its columns, found on the rows of a warm-up if they are to be."""
        return replace(self, resolution=settle_steps(self.resolution, batch.X))

    def common_prior(self, priors: Sequence[FactorPrior]) -> FactorPrior:
        """Return the first prior with the coarser of the steps that each column has in them."""
        known = [prior.steps for prior in priors if isinstance(prior, RoundedFactorPrior)]
        coarse = np.max(known, axis=0) if known else None
        return priors[0] if coarse is None or np.array_equal(coarse, known[0]) else with_steps(priors[0], coarse)

    def flatten_prior(self, prior: FactorPrior) -> FactorPrior:
        """Return the prior whose mode is maximum likelihood, with no noise below `reg_covar`."""
        width = len(prior.origin)
        flat = FactorPrior(prior.origin, np.zeros(width), 0.0, 0.0, np.zeros(width), float(self.reg_covar))
        return with_steps(flat, prior.steps if isinstance(prior, RoundedFactorPrior) else None)

    def blank_prior(self, width: int) -> FactorPrior:
        """Return a prior of the right shape."""
        flat = FactorPrior(np.zeros(width), np.zeros(width), 0.0, 0.0, np.zeros(width), float(self.reg_covar))
        return with_steps(flat, None if self.resolution is None else np.zeros(width))

    def refine_prior(self, prior: FactorPrior, parameters: FactorParameters, weights: Array, geometry: Geometry) -> FactorPrior:
        """Empirical Bayes: a prior whose noise is that of the components, unless the user gave it."""
        if self.noise_prior is not None:
            return prior
        return replace(prior, scale=self._scale(1.0 / (weights @ (1.0 / parameters.noise)), geometry.spread))

    def _scale(self, variances: Array, spread: Array) -> Array:
        floor = np.where(spread > 0.0, LEAST_SPREAD * spread, max(self.reg_covar, 1e-200))
        return np.asarray((variances + floor) * self._dof)

    @property
    def _dof(self) -> float:
        return NOISE_ROWS if self.degrees_of_freedom_prior is None else float(self.degrees_of_freedom_prior)

    # Readouts

    def readout(self, name: str, prior: FactorPrior, totals: FactorStatistics) -> FactorParameters:
        """Return the mode, also in place of the mean."""
        if name not in ("mode", "mean"):
            raise ValueError("covariance_type='factor' keeps no belief about loadings, so it has no predictive density")
        return read_mode(prior, totals)

    def log_prior(self, prior: FactorPrior, parameters: FactorParameters) -> float:
        """Return the log-density of the prior at modes, up to a constant."""
        scale = prior.scale + prior.mean_precision * (parameters.means - prior.mean) ** 2
        return -0.5 * float(np.sum(prior.dof * np.log(parameters.noise) + scale / parameters.noise))

    def divergence(self, prior: FactorPrior, totals: FactorStatistics) -> float:
        """Return 0: variational Bayes is not offered."""
        return 0.0

    # Rows

    def log_densities(self, parameters: FactorParameters, X: Matrix) -> Array:
        """Return the log-density (n, K) of every row under every component."""
        found = np.empty((len(X), self.n_components))
        centred = X - parameters.origin
        for k in range(self.n_components):
            rows = centred - parameters.means[k]
            along = rows @ parameters.whiten[k].T
            np.square(rows, out=rows)
            away, explained = rows @ (1.0 / parameters.noise[k]), np.einsum("nq,nq->n", along, along)
            distance = np.where(away < FARTHEST, away - np.minimum(explained, FARTHEST), FARTHEST)
            found[:, k] = parameters.offset[k] - 0.5 * np.maximum(distance, 0.0)
        return found

    def collect(self, parameters: FactorParameters, X: Matrix, responsibilities: Array) -> FactorStatistics:
        """Return total statistics of rows, with expected factors."""
        found, centred = self.zeros(X.shape[1]), X - parameters.origin
        squares = centred**2
        found.count[...] = responsibilities.sum(axis=0)
        found.first[...] = responsibilities.T @ centred
        found.square[...] = responsibilities.T @ squares
        for k in range(self.n_components):
            shares, unwhiten = responsibilities[:, k], parameters.unwhiten[k]
            factors = (centred - parameters.means[k]) @ (parameters.whiten[k].T @ unwhiten.T)
            np.clip(factors, -LARGEST_FACTOR, LARGEST_FACTOR, out=factors)
            weighted = shares[:, None] * factors
            found.cross[k] = centred.T @ weighted
            found.factor_first[k] = weighted.sum(axis=0)
            found.factor_second[k] = weighted.T @ factors + found.count[k] * (unwhiten @ unwhiten.T)
        return found

    def estep(
        self,
        parameters: FactorParameters,
        log_weights: Array,
        batch: Batch,
        totals: FactorStatistics | None = None,
        scores: Array = EMPTY,
        responsibilities: Array = EMPTY_TABLE,
        given: bool = False,
        n_threads: int | None = None,
    ) -> tuple[float, FactorStatistics | None]:
        """Run the E-step of every family, each slab of rows on one thread, so that threads of products change no bit."""
        with nullcontext() if len(batch) * parameters.loadings.size < SMALL_PRODUCT else one_blas_thread():
            return super().estep(parameters, log_weights, batch, totals, scores, responsibilities, given, n_threads)

    def collect_seeds(self, geometry: Geometry, batch: Batch, responsibilities: Array) -> FactorStatistics:
        """Return statistics of seeded groups, with factors along their principal directions."""
        prior = self.prior(geometry, batch, responsibilities)
        weighted = responsibilities * batch.row_weights[:, None]
        with one_blas_thread():
            return self.collect(seed_parameters(prior, batch.X, weighted, self.n_factors), batch.X, weighted)

    def sample(
        self, parameters: FactorParameters, components: NDArray[np.int64], rng: np.random.Generator, *options: Values
    ) -> Array:
        """Draw one row from each of the listed components."""
        factors = rng.normal(size=(len(components), self.n_factors))
        rows = np.sqrt(parameters.noise[components]) * rng.normal(size=(len(components), parameters.means.shape[1]))
        for k in np.unique(components):
            at = np.flatnonzero(components == k)
            rows[at] += parameters.means[k] + factors[at] @ parameters.loadings[k].T
        return np.asarray(rows + parameters.origin)

    def conditional(self, parameters: FactorParameters, X: Matrix, missing: NDArray[np.bool_]) -> ConditionalLaw:
        """Return the law of missing columns under each component, given the observed ones: that of the full covariances."""
        lower = np.swapaxes(self.precisions_cholesky(parameters), 1, 2)
        full = make_gaussian(True, parameters.origin, parameters.means, np.ascontiguousarray(lower))
        return conditional_law("full", full, X, missing)

    # Components

    def select_prior(self, prior: FactorPrior, order: Index) -> FactorPrior:
        """Return the prior of some of the components: all share one."""
        return prior

    def select_parameters(self, parameters: FactorParameters, order: Index) -> FactorParameters:
        """Return the parameters of some of the components."""
        return select_components(parameters, order, ("origin",))

    def move_to_prior(self, prior: FactorPrior, own: FactorPrior, statistics: FactorStatistics) -> FactorStatistics:
        """Return statistics that were gathered under the prior `own` about the origin of another."""
        shift = own.origin - prior.origin
        first = statistics.first + statistics.count[:, None] * shift
        square = statistics.square + shift * (statistics.first + first)
        cross = statistics.cross + shift[:, None] * statistics.factor_first[:, None, :]
        return replace(statistics, first=first, square=square, cross=cross)

    def align(self, known: FactorStatistics, statistics: FactorStatistics) -> FactorStatistics:
        """Return statistics with the factors rotated to those of others (Procrustes), which changes no density."""
        left, _, right = np.linalg.svd(np.einsum("kdq,kdr->kqr", known.cross, statistics.cross))
        turns = left @ right
        return replace(
            statistics,
            cross=np.einsum("kdr,kqr->kdq", statistics.cross, turns),
            factor_first=np.einsum("kqr,kr->kq", turns, statistics.factor_first),
            factor_second=turns @ statistics.factor_second @ np.swapaxes(turns, 1, 2),
        )

    # What no rows could have made

    def find_impossible(self, totals: FactorStatistics) -> NDArray[np.bool_]:
        """Return which components have negative counts or sums of squares."""
        squares = totals.square * totals.count[:, None] - totals.first**2
        slack = TOLERANCE * np.maximum(np.abs(totals.square * totals.count[:, None]), 1e-300)
        factors = np.diagonal(totals.factor_second, axis1=1, axis2=2)
        odd = (squares < -slack).any(axis=1) | (factors < -TOLERANCE).any(axis=1) | (totals.square < 0.0).any(axis=1)
        return np.asarray(odd | (totals.count < 0.0))

    def _find_readable(self, prior: FactorPrior, totals: FactorStatistics) -> NDArray[np.bool_]:
        found = read_mode(prior, totals)
        return np.asarray(np.isfinite(found.offset) & np.isfinite(found.means).all(axis=1))

    def find_problem(self, record: object, width: int) -> str:
        """Return what is wrong with a record that comes from a file."""
        if isinstance(record, FactorPrior):
            sound = record.mean_precision >= 0.0 and record.dof >= 0.0 and record.floor >= 0.0 and record.scale.min() >= 0.0
            if isinstance(record, RoundedFactorPrior):
                sound = sound and record.steps.min() >= 0.0 and not exceeds(LARGEST, record.steps)
            beyond = exceeds(HEAVIEST, record.mean_precision, record.dof) or exceeds(LARGEST**2, record.floor)
            return NO_PRIOR if beyond or not sound or exceeds(LARGEST, record.origin) else ""
        if isinstance(record, FactorParameters):
            far = exceeds(LARGEST, record.origin) or exceeds(4.0 * LARGEST, record.means)
            return NO_PARAMETERS if far or record.noise.min() <= 0.0 or not is_whitening(record) else ""
        return super().find_problem(record, width)

    # What users see

    def means(self, parameters: FactorParameters) -> Array:
        """Means of parameters, in the user's coordinates."""
        return parameters.means + parameters.origin

    def covariances(self, parameters: FactorParameters) -> Array:
        """Covariances (K, d, d): loadings times themselves, and the noise."""
        found = parameters.loadings @ np.swapaxes(parameters.loadings, 1, 2)
        width = np.arange(found.shape[1])
        found[:, width, width] += parameters.noise
        return found

    def precisions_cholesky(self, parameters: FactorParameters) -> Array:
        """Upper triangular factors of the precisions (K, d, d)."""
        lower = np.linalg.cholesky(self.covariances(parameters))
        return np.swapaxes(invert_triangles(np.asarray(lower, dtype=np.float64)), 1, 2).copy()
