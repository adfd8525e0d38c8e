"""K Gaussians with full, tied, diagonal or spherical covariance, and their Normal-Wishart or Normal-Gamma prior."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import Batch
from headwater.core.gapped_rows import GappedRows
from headwater.core.noisy_rows import NoisyRows
from headwater.core.statistics import Array
from headwater.core.values import Matrix, Values
from headwater.families import gaussian_soundness as soundness
from headwater.families.column_steps import settle_steps
from headwater.families.conditional_law import ConditionalLaw
from headwater.families.family import EMPTY, EMPTY_TABLE, collect_by_estep, log_densities_by_estep
from headwater.families.gaussian_belief import (
    belief,
    columns_readout,
    contrast,
    divergence,
    log_prior,
    separation,
    valid,
)
from headwater.families.gaussian_columns import gapped_readout
from headwater.families.gaussian_conditional import conditional_law
from headwater.families.gaussian_covariance import COVARIANCES, Covariance
from headwater.families.gaussian_gaps import (
    Answers,
    add_complete,
    collect_gapped_seeds,
    estep_with_gaps,
    expect_gaps,
)
from headwater.families.gaussian_noise import estep_with_noise, take_noise_off
from headwater.families.gaussian_prior import (
    check_hyperparameters,
    coarsest_prior,
    flat_prior,
    proper_prior,
    refine_prior,
    settle_prior,
    with_steps,
)
from headwater.families.gaussian_records import (
    GappedStatistics,
    GaussianBelief,
    GaussianParameters,
    GaussianPrior,
    GaussianStatistics,
    MomentStatistics,
    RoundedPrior,
    blank_parameters,
    covariance_matrices,
    make_parameters,
    masses,
    refuse_singular,
    sample_rows,
)
from headwater.families.gaussian_rounding import lift_totals
from headwater.families.gaussian_slabs import EMPTY_CUBE, Moments, sum_slabs
from headwater.families.gaussian_sweeps import GaussianSweeps
from headwater.families.geometry import ROWS_EACH, Geometry
from headwater.kernels.gaussian import log_densities_full
from headwater.kernels.gaussian_dense import exact_enough
from headwater.kernels.mixture import READOUTS
from headwater.kernels.parallel import SLAB_ROWS, one_blas_thread


@dataclass(frozen=True)
class Gaussian(GaussianSweeps):
    """The family. Hyperparameters that are None are set from the warm-up rows."""

    n_components: int
    covariance_type: str = "full"
    reg_covar: float = 1e-6
    mean_prior: Array | None = None
    mean_precision_prior: float | None = None
    degrees_of_freedom_prior: float | None = None
    covariance_prior: Matrix | None = None
    resolution: str | Array | None = None  # the step of each column, "auto" if it is to be found, None if all are as they are

    @property
    def is_cloud(self) -> bool:
        return True

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

    @property
    def is_regularized(self) -> bool:
        """Whether covariances have a floor: without one, the estimate is maximum likelihood."""
        return self.reg_covar > 0.0

    @property
    def sweeps_rows(self) -> bool:
        """Whether there is a kernel that learns rows one by one: not for rounded columns."""
        return self.resolution is None

    @property
    def rows_to_tell_apart(self) -> int:
        """The rows below which a start misses some of many components."""
        return ROWS_EACH * self.n_components

    def n_parameters(self, width: int) -> int:
        """Number of free parameters of all components."""
        return self.n_components * width + self.kind.n_parameters(self.n_components, width)

    # Priors

    def flatten_prior(self, prior: GaussianPrior) -> GaussianPrior:
        """The prior whose mode is maximum likelihood, about the same origin and with the same steps."""
        flat = self.flat_prior(prior.origin)
        return with_steps(flat, prior.steps) if isinstance(prior, RoundedPrior) else flat

    def flat_prior(self, origin: Array) -> GaussianPrior:
        """The prior whose mode is maximum likelihood; only the floor `reg_covar` is left of it."""
        return flat_prior(self, origin)

    def blank_prior(self, width: int) -> GaussianPrior:
        """A prior of the right shape."""
        flat = self.flat_prior(np.zeros(width))
        return flat if self.resolution is None else with_steps(flat, np.zeros(width))

    def settle(self, batch: Batch) -> Gaussian:
        """Return the family with the steps of its columns, found on the rows of a warm-up if they are to be."""
        return replace(self, resolution=settle_steps(self.resolution, batch.X))

    def common_prior(self, priors: Sequence[GaussianPrior]) -> GaussianPrior:
        """Return the first prior with the coarser of the steps that each column has in them."""
        return coarsest_prior(priors)

    def _lifted(self, prior: GaussianPrior, totals: GaussianStatistics, name: str = "mean") -> GaussianStatistics:
        """Totals whose readout is no thinner than the columns are rounded."""
        shift = float(self.kind.mode_shift(self.n_components, len(prior.mean)))
        return lift_totals(self.covariance_type, prior, totals, name, shift)

    def find_problem(self, record: object, width: int) -> str:
        """What is wrong with a record read from a file; "" if nothing is."""
        if isinstance(record, GaussianPrior):
            return soundness.find_prior_problem(record)
        if isinstance(record, GaussianStatistics):
            return soundness.find_statistics_problem(record, self.covariance_type)
        assert isinstance(record, GaussianParameters)
        return soundness.find_parameters_problem(record, self.kind.matrix)

    def check_prior(self, width: int) -> None:
        """Refuse hyperparameters that are not a valid prior for rows of this width."""
        check_hyperparameters(self, width)

    def geometry(self, batch: Batch) -> Geometry:
        """Return the geometry of the rows for a start."""
        return Geometry.of(batch, self.kind.matrix)

    def prior(self, geometry: Geometry, batch: Batch, responsibilities: Array) -> GaussianPrior:
        """The user's prior, completed by the covariance within the seeded groups, counted as d + 2 rows."""
        return settle_prior(self, geometry, batch, responsibilities)

    def refine_prior(
        self, prior: GaussianPrior, parameters: GaussianParameters, weights: Array, geometry: Geometry
    ) -> GaussianPrior:
        """Empirical Bayes: a prior whose mean precision is that of the components, unless the user gave it."""
        return refine_prior(self, prior, parameters, weights, geometry)

    # Readouts

    def readout(self, name: str, prior: GaussianPrior, totals: GaussianStatistics) -> GaussianParameters:
        """Return parameters of the named kind for totals (not means per row)."""
        totals = self._lifted(prior, totals, name)
        if isinstance(totals, GappedStatistics) and not self.kind.matrix:
            shift = float(self.kind.mode_shift(self.n_components, len(prior.mean)))
            columns, lifted = gapped_readout(name, self.covariance_type, prior, totals, shift)
            refuse_singular(lifted, prior)
            return columns
        mean_count, dof_count = masses(totals, self.covariance_type)
        if mean_count.shape[1] > 1:
            return columns_readout(name, prior, totals)
        parameters = self.blank_parameters(prior.origin)
        lifted = self.kind.refresh(
            READOUTS[name], self._prior_tuple(prior), mean_count.ravel(), dof_count.ravel(), totals.first, totals.second,
            parameters.means, parameters.factor, parameters.shift, parameters.offset, parameters.power, parameters.stretch,
        )  # fmt: skip
        refuse_singular(lifted, prior)
        return parameters

    def blank_parameters(self, origin: Array) -> GaussianParameters:
        """Return parameters that a kernel has yet to fill."""
        k, width = self.n_components, len(origin)
        return blank_parameters(origin, k, self.kind.factor_shape(k, width))

    def _prior_tuple(self, prior: GaussianPrior) -> tuple[Array | float, ...]:
        shift = float(self.kind.mode_shift(self.n_components, len(prior.mean)))
        return (prior.mean, prior.mean_precision, prior.dof, prior.scale, prior.floor, shift, self.spherical)

    def from_precisions(self, origin: Array, means: Array, factor: Array) -> GaussianParameters:
        """Return parameters with these means (user's coordinates) and inverse Cholesky factors."""
        return self.make_parameters(origin, means - origin, factor[:, None] if factor.ndim == 1 else factor)

    def with_means_and_factor(self, found: GaussianParameters, means: Array | None, factor: Array | None) -> GaussianParameters:
        """Return parameters with other means, or other inverse Cholesky factors, in the user's coordinates."""
        if factor is None:
            factor = found.factor[:, 0] if self.spherical else found.factor
        return self.from_precisions(found.origin, self.means(found) if means is None else means, factor)

    def make_parameters(self, origin: Array, centred: Array, factor: Array) -> GaussianParameters:
        """Return parameters with these means about the origin, and factors that may be the same for all columns."""
        return make_parameters(self.kind.matrix, origin, centred, factor)

    def belief(self, prior: GaussianPrior, totals: GaussianStatistics) -> GaussianBelief:
        """Return prior plus totals: the belief that the readouts summarise."""
        return belief(self.covariance_type, prior, self._lifted(prior, totals))

    def log_prior(self, prior: GaussianPrior, parameters: GaussianParameters) -> float:
        """Return what MAP-EM adds to the likelihood."""
        return log_prior(self.covariance_type, prior, parameters)

    def divergence(self, prior: GaussianPrior, totals: GaussianStatistics) -> float:
        """Return KL(belief || prior), the penalty in the free energy."""
        return divergence(self.covariance_type, prior, self._lifted(prior, totals))

    def separation(self, prior: GaussianPrior, totals: GaussianStatistics, others: GaussianStatistics) -> Array:
        """Return the symmetric divergence (K, K) of the beliefs about these components and about those."""
        return separation(self.covariance_type, *self._beliefs(prior, totals, others))

    def contrast(self, prior: GaussianPrior, totals: GaussianStatistics, others: GaussianStatistics) -> Array:
        """Return the symmetric divergence (K,) of the densities of each component here and there, in nats a row.

        A component without rows has no density, and its divergence is 0. The prior mean is left out: far from it, its pull
        would make components of few and of many rows differ.
        """
        known, other = self._beliefs(replace(prior, mean_precision=1e-12), totals, others)
        empty = np.minimum(totals.count, others.count) < 1.0
        return np.where(empty, 0.0, contrast(self.covariance_type, known, other))

    def _beliefs(
        self, prior: GaussianPrior, totals: GaussianStatistics, others: GaussianStatistics
    ) -> tuple[GaussianBelief, GaussianBelief]:
        """Two beliefs to compare."""
        prior = proper_prior(self, prior, totals, others)
        return self.belief(prior, totals), self.belief(prior, others)

    def find_proper(self, prior: GaussianPrior, totals: GaussianStatistics) -> NDArray[np.bool_]:
        """Return which components (K,) have a valid belief. Sums of rows always have; differences of beliefs may not."""
        if not isinstance(totals, MomentStatistics):
            return np.ones(self.n_components, dtype=bool)
        return valid(self.covariance_type, self.belief(prior, totals))

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
        if isinstance(batch.X, GappedRows) or isinstance(totals, GappedStatistics):
            way = estep_with_gaps if isinstance(batch.X, GappedRows) else add_complete
            way = estep_with_noise if isinstance(batch.X, NoisyRows) else way
            return way(self, parameters, log_weights, batch, totals, Answers(scores, responsibilities, given), n_threads)
        offset = parameters.offset + log_weights
        power, stretch = parameters.power, parameters.stretch
        if not self.kind.matrix:
            power, stretch = power.reshape(len(offset), -1), stretch.reshape(len(offset), -1)
        columns_tail = self.covariance_type == "diag" and bool(power[0, 0] > 0.0)
        fixed = (
            parameters.origin, parameters.factor, parameters.shift, offset, power, stretch, columns_tail, scores,
            responsibilities, given,
        )  # fmt: skip

        dense = self._is_dense(batch.X.shape[1]) and not columns_tail and exact_enough(parameters.shift)
        estep = self.kind.dense if dense else self.kind.estep
        batch = batch if dense else batch.in_doubles
        no_second = EMPTY_CUBE if self.covariance_type == "full" else EMPTY_TABLE
        target = (EMPTY, EMPTY_TABLE, no_second) if totals is None else (totals.count, totals.first, totals.second)
        with one_blas_thread() if dense else nullcontext():
            if len(batch) < 2 * SLAB_ROWS:  # one slab
                return estep(batch.X, 0, len(batch), batch.weights, batch.labels, *fixed, *target), totals

            def work(start: int, stop: int, target: Moments) -> float:
                return estep(batch.X, start, stop, batch.weights, batch.labels, *fixed, *target)

            return sum_slabs(work, len(batch), target, n_threads), totals

    def _is_dense(self, width: int) -> bool:
        """Whether E-steps are taken by products of matrices."""
        return self.kind.dense_from(self.n_components, width)

    def collect(self, parameters: GaussianParameters, X: Matrix, responsibilities: Array) -> GaussianStatistics:
        """Statistics of rows whose responsibilities are known."""
        return collect_by_estep(self, parameters, Batch(X), responsibilities)

    def collect_seeds(self, geometry: Geometry, batch: Batch, responsibilities: Array) -> GaussianStatistics:
        """Statistics of rows whose responsibilities are known, about the origin of the geometry."""
        if isinstance(batch.X, GappedRows):
            seeds = collect_gapped_seeds(self, geometry.origin, batch, responsibilities)
            return take_noise_off(self, batch, responsibilities, seeds) if isinstance(batch.X, NoisyRows) else seeds
        return collect_by_estep(self, self.blank_parameters(geometry.origin), batch, responsibilities)

    @property
    def takes_gaps(self) -> bool:
        return True

    @property
    def sweeps_gaps(self) -> bool:
        return True

    def log_densities(self, parameters: GaussianParameters, X: Matrix) -> Array:
        """Return the log-density of each row under each component, however small."""
        if self.covariance_type != "full" or self._is_dense(X.shape[1]) or isinstance(X, GappedRows):
            return log_densities_by_estep(self, parameters, X)
        found = np.empty((len(X), self.n_components))
        tail = parameters.offset, parameters.power, parameters.stretch
        rows = Batch(X).in_doubles.X
        log_densities_full(rows, parameters.origin, parameters.factor, parameters.shift, *tail, found)
        return found

    log_densities_with_gaps = log_densities
    collect_with_gaps = collect

    # Rows with gaps

    def conditional(self, parameters: GaussianParameters, X: Matrix, missing: NDArray[np.bool_]) -> ConditionalLaw:
        """Return the law of missing columns under each component, given the observed ones."""
        return conditional_law(self.covariance_type, parameters, X, missing)

    def expect_gaps(self, parameters: GaussianParameters, log_weights: Array, X: GappedRows) -> Array:
        """Return rows whose gaps are filled by their conditional means."""
        return expect_gaps(self, parameters, log_weights, X)

    # What users see

    def means(self, parameters: GaussianParameters) -> Array:
        """Means of parameters, in the user's coordinates."""
        return parameters.means + parameters.origin

    def covariances(self, parameters: GaussianParameters) -> Array:
        """Covariances of parameters, in the shape scikit-learn gives them."""
        if self.kind.matrix:
            return covariance_matrices(parameters)
        return parameters.factor[:, 0] ** -2.0 if self.spherical else parameters.factor**-2.0

    def precisions_cholesky(self, parameters: GaussianParameters) -> Array:
        """Upper triangular factors of the precisions, in the shape scikit-learn gives them."""
        factor = parameters.factor
        if self.kind.matrix:
            return np.swapaxes(factor, -1, -2).copy()
        return factor[:, 0].copy() if self.spherical else factor.copy()

    def observed_rows(self, statistics: GaussianStatistics, whole: Array) -> Array:
        return statistics.observed if isinstance(statistics, GappedStatistics) else whole

    def sample(
        self, parameters: GaussianParameters, components: NDArray[np.int64], rng: np.random.Generator, *_: Values
    ) -> Array:
        """Draw one row from each of the listed components."""
        return sample_rows(self.kind.matrix, parameters, components, rng)
