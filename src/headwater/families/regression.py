"""K linear regressions with Normal-inverse-Gamma prior; their weights may depend on the inputs, by Gaussians over those."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import Batch
from headwater.core.gapped_rows import GappedRows
from headwater.core.statistics import Array
from headwater.core.values import Index, Matrix
from headwater.families import gaussian_soundness
from headwater.families import regression_soundness as soundness
from headwater.families.components import find_near, find_supported, replace_components, select_components
from headwater.families.family import EMPTY, EMPTY_TABLE, Family, collect_by_estep
from headwater.families.gaussian import Gaussian
from headwater.families.gaussian_gaps import collect_gapped_seeds
from headwater.families.gaussian_records import GappedStatistics, GaussianStatistics
from headwater.families.gaussian_slabs import EMPTY_CUBE, Moments, sum_slabs
from headwater.families.geometry import Geometry
from headwater.families.regression_belief import belief, contrast, divergence, log_prior, moments
from headwater.families.regression_gaps import NO_CLOSED_FORM, estep_regression_gaps, joint_parameters, predict_gaps
from headwater.families.regression_prior import flatten_prior, refine_prior, settle_prior
from headwater.families.regression_records import RegressionBelief, RegressionParameters, RegressionPrior
from headwater.kernels.mixture import READOUTS
from headwater.kernels.regression import estep_regression
from headwater.kernels.regression_readout import refresh_regression
from headwater.kernels.regression_sweep import sweep_regression

NO_GATE = (EMPTY_CUBE, EMPTY_TABLE, EMPTY, EMPTY, EMPTY)
NO_GATE_PRIOR = (EMPTY, 0.0, 0.0, EMPTY_TABLE, 0.0, 0.0, False)


@dataclass(frozen=True)
class Regression(Family[RegressionPrior, GaussianStatistics, RegressionParameters]):
    """The family. A row is inputs and target; hyperparameters that are None are set from the warm-up rows.

    `gate` is the family of the inputs: then a component is a density of inputs and target, and its regression holds where
    its inputs lie.
    """

    n_components: int
    intercept: bool = True
    noise_floor: float = 1e-6
    coef_prior: Array | None = None
    coef_precision_prior: float | None = None
    degrees_of_freedom_prior: float | None = None
    noise_variance_prior: float | None = None
    gate: Gaussian | None = None

    @property
    def readouts(self) -> frozenset[str]:
        return frozenset(READOUTS) - {"match_moments"}

    @property
    def no_predictive_with_gaps(self) -> str:
        return NO_CLOSED_FORM

    @property
    def has_prior(self) -> bool:
        """Whether the user gave any part of the prior."""
        given = (self.coef_prior, self.coef_precision_prior, self.degrees_of_freedom_prior, self.noise_variance_prior)
        return any(part is not None for part in given)

    @property
    def moments(self) -> Gaussian:
        """The family whose statistics these are: Gaussians over inputs and target."""
        return Gaussian(self.n_components)

    def size(self, width: int) -> int:
        """Number of coefficients of a component, for rows of this width."""
        return width - 1 + self.intercept

    def n_parameters(self, width: int) -> int:
        """Number of free parameters of all components."""
        gate = self.gate.n_parameters(width - 1) if self.gate else 0
        return self.n_components * (self.size(width) + 1) + gate

    def work(self, batch: Batch) -> float:
        """Operations of an E-step."""
        return float(len(batch)) * self.moments.n_parameters(batch.X.shape[1])

    def zeros(self, width: int) -> GaussianStatistics:
        """Return statistics that hold nothing."""
        return self.moments.zeros(width)

    def move_to_prior(self, prior: RegressionPrior, own: RegressionPrior, statistics: GaussianStatistics) -> GaussianStatistics:
        """Return statistics that were gathered under the prior `own` about the origin of another."""
        return self.moments.shift_origin(statistics, own.origin - prior.origin)

    def select_prior(self, prior: RegressionPrior, order: Index) -> RegressionPrior:
        """Return the prior of some of the components: all share one."""
        return prior

    # Moves

    def resize(self, n_components: int) -> Regression:
        """Return the family with another number of components."""
        return replace(self, n_components=n_components, gate=self.gate.resize(n_components) if self.gate else None)

    def mend(
        self, prior: RegressionPrior, totals: GaussianStatistics, sound: GaussianStatistics, share: float
    ) -> GaussianStatistics:
        """Return totals in which invalid or implausible components are replaced by those of reservoir rows."""
        rows = share * sound.count
        good = find_supported(totals.count, sound.count, rows)
        found, known = (prior.information + moments(one, self.intercept) for one in (totals, sound))
        good &= find_near(found, known, rows)
        return totals if good.all() else replace_components(totals, sound, ~good)

    # Priors

    def flatten_prior(self, prior: RegressionPrior) -> RegressionPrior:
        """The prior whose mode is least squares; only the floor under the noise is left of it."""
        return flatten_prior(self, prior)

    def blank_prior(self, width: int) -> RegressionPrior:
        """A prior of the right shape."""
        size = self.size(width)
        gate = self.gate.blank_prior(width - 1) if self.gate else None
        return RegressionPrior(np.zeros(width), np.zeros(size), np.zeros(size), 0.0, 0.0, 0.0, gate)

    def find_problem(self, record: object, width: int) -> str:
        """What is wrong with a record read from a file; "" if nothing is."""
        if isinstance(record, GaussianStatistics):
            return gaussian_soundness.find_statistics_problem(record, "full")
        assert isinstance(record, RegressionPrior | RegressionParameters)
        if isinstance(record, RegressionPrior):
            problem = soundness.find_prior_problem(record)
        else:
            problem = soundness.find_parameters_problem(record)
        return problem or ("" if self.gate is None else self.gate.find_problem(record.gate, width - 1))

    def find_mismatch(self, parameters: RegressionParameters, prior: RegressionPrior, totals: GaussianStatistics) -> str:
        return soundness.find_mismatch(parameters, prior.information + moments(totals, self.intercept))

    def geometry(self, batch: Batch) -> Geometry:
        """Return the geometry of the rows for a start; its views are design and target."""
        whole = Geometry.of(batch, matrix=False)
        if self.intercept:
            scaled = np.where(whole.spread > 0.0, whole.coordinates[0], 0.0)  # constant columns hold only rounding errors
            design = np.hstack([np.ones((len(batch), 1)), scaled])
            return Geometry(whole.origin, whole.spread, (design,))
        weights = batch.row_weights
        X = whole.coordinates[0] * np.sqrt(whole.spread) + whole.origin if isinstance(batch.X, GappedRows) else batch.X
        spread = weights @ X**2 / weights.sum()
        scaled = X / np.sqrt(np.where(spread > 0.0, spread, 1.0))
        return Geometry(np.zeros_like(whole.origin), spread, (scaled,))

    def prior(self, geometry: Geometry, batch: Batch, responsibilities: Array) -> RegressionPrior:
        """The user's prior, completed in the scale of the rows: noise is the residual variance of the seeded groups."""
        return settle_prior(self, geometry, batch, responsibilities)

    def refine_prior(
        self, prior: RegressionPrior, parameters: RegressionParameters, weights: Array, geometry: Geometry
    ) -> RegressionPrior:
        """Empirical Bayes: a prior whose mean precision is that of the components, unless the user gave it."""
        return refine_prior(self, prior, parameters, weights, geometry)

    # Readouts

    def readout(self, name: str, prior: RegressionPrior, totals: GaussianStatistics) -> RegressionParameters:
        """Return parameters of the named kind for totals (not means per row)."""
        parameters = self.blank_parameters(prior.origin)
        refresh_regression(
            READOUTS[name], self._prior_tuple(prior), totals.count, totals.first, totals.second, parameters.coef,
            parameters.factor, parameters.offset, parameters.power, parameters.leverage,
        )  # fmt: skip
        if self.gate and prior.gate:
            return replace(parameters, gate=self.gate.readout(name, prior.gate, input_totals(totals)))
        return parameters

    def blank_parameters(self, origin: Array) -> RegressionParameters:
        """Return parameters that a kernel has yet to fill."""
        k, size = self.n_components, self.size(len(origin))
        offset, power, leverage = np.zeros((3, k))
        gate = self.gate.blank_parameters(origin[:-1]) if self.gate else None
        factor = np.zeros((k, size + 1, size + 1))
        return RegressionParameters(origin, np.zeros((k, size)), factor, offset, power, leverage, gate)

    def _prior_tuple(self, prior: RegressionPrior) -> tuple[Array | float, ...]:
        return prior.information, prior.dof, prior.floor, 2.0 - len(prior.mean)

    def select_parameters(self, parameters: RegressionParameters, order: Index) -> RegressionParameters:
        """Return the parameters of some of the components."""
        gate = self.gate.select_parameters(parameters.gate, order) if self.gate and parameters.gate else None
        return replace(select_components(parameters, order, ("origin", "gate")), gate=gate)

    def with_coef(
        self, parameters: RegressionParameters, coef: Array, intercept: Array | None, noise: Array | None = None
    ) -> RegressionParameters:
        """Return parameters with these coefficients (user's coordinates), and with these variances of the noise, or as it was.

        Planes without their own intercept go through the origin, the mean of the rows.
        """
        centred = coef
        if self.intercept:
            level = np.zeros(len(coef))
            if intercept is not None:
                level = intercept + coef @ parameters.origin[:-1] - parameters.origin[-1]
            centred = np.column_stack([level, coef])
        factor, offset = parameters.factor.copy(), parameters.offset
        if noise is not None:
            factor[:, -1, -1] = noise**-0.5
            offset = -0.5 * np.log(2.0 * np.pi * noise)
        factor[:, -1, :-1] = -centred * factor[:, -1, -1:]
        return replace(parameters, coef=centred, factor=factor, offset=offset)

    def belief(self, prior: RegressionPrior, totals: GaussianStatistics) -> RegressionBelief:
        """Return prior plus totals: the belief that the readouts summarise, about the origin."""
        return belief(prior, totals, self.intercept)

    def log_prior(self, prior: RegressionPrior, parameters: RegressionParameters) -> float:
        """Return what MAP-EM adds to the likelihood."""
        gate = self.gate.log_prior(prior.gate, parameters.gate) if self.gate and prior.gate and parameters.gate else 0.0
        return gate + log_prior(prior, parameters)

    def divergence(self, prior: RegressionPrior, totals: GaussianStatistics) -> float:
        """Return KL(belief || prior), the penalty in the free energy."""
        gate = self.gate.divergence(prior.gate, input_totals(totals)) if self.gate and prior.gate else 0.0
        start = self.belief(prior, self.zeros(len(prior.origin)))
        return gate + float(np.trace(divergence(self.belief(prior, totals), start)))

    def separation(self, prior: RegressionPrior, totals: GaussianStatistics, others: GaussianStatistics) -> Array:
        """Return the symmetric divergence (K, K) of the beliefs about these components and about those."""
        one, other = self._beliefs(prior, totals, others)
        apart = divergence(one, other) + divergence(other, one).T
        if self.gate and prior.gate:
            apart = apart + self.gate.separation(prior.gate, input_totals(totals), input_totals(others))
        return apart

    def contrast(self, prior: RegressionPrior, totals: GaussianStatistics, others: GaussianStatistics) -> Array:
        """Return the symmetric divergence (K,) of the targets of each component here and there, at inputs that both have seen.

        A component without rows has no regression, and its divergence is 0.
        """
        one, other = self._beliefs(replace(prior, precision=1e-9 * prior.precision), totals, others)
        count = np.maximum(totals.count + others.count, 1e-300)
        designs = moments(totals + others, self.intercept)[:, :-1, :-1] / count[:, None, None]
        empty = np.minimum(totals.count, others.count) < 1.0
        return np.where(empty, 0.0, contrast(one, other, designs))

    def _beliefs(
        self, prior: RegressionPrior, totals: GaussianStatistics, others: GaussianStatistics
    ) -> tuple[RegressionBelief, RegressionBelief]:
        """Two beliefs to compare. In place of a flat prior, a millionth of the spread counts as one row."""
        if prior.scale == 0.0:
            both = moments(totals + others, self.intercept).sum(axis=0) / (totals.count + others.count).sum()
            spread = np.maximum(np.diag(both), 1e-200)
            prior = replace(prior, precision=1e-6 * spread[:-1], dof=3.0, scale=3e-6 * float(spread[-1]))
        return self.belief(prior, totals), self.belief(prior, others)

    # Rows

    def estep(
        self,
        parameters: RegressionParameters,
        log_weights: Array,
        batch: Batch,
        totals: GaussianStatistics | None = None,
        scores: Array = EMPTY,
        responsibilities: Array = EMPTY_TABLE,
        given: bool = False,
        n_threads: int | None = None,
    ) -> tuple[float, GaussianStatistics | None]:
        """Add to `totals`, fill `scores` and `responsibilities`; return the weighted score and `totals`.

        With a gate the score that is returned is that of inputs and target, and `scores` are those of targets given inputs.
        """
        if isinstance(batch.X, GappedRows) or isinstance(totals, GappedStatistics):
            return estep_regression_gaps(
                self.moments, self.gate, parameters, self.intercept, log_weights, batch, totals, scores, responsibilities,
                given, n_threads,
            )  # fmt: skip
        offset, gate = parameters.offset + log_weights, NO_GATE
        if parameters.gate:
            one = parameters.gate
            offset = offset + one.offset
            gate = (one.factor, one.shift, one.offset + log_weights, one.power, one.stretch)
        fixed = (
            parameters.origin, parameters.factor, offset, parameters.power, parameters.leverage, gate, scores,
            responsibilities, given,
        )  # fmt: skip

        def work(start: int, stop: int, target: Moments) -> float:
            return float(estep_regression(batch.X, start, stop, batch.weights, batch.labels, *fixed, *target))

        moments = (EMPTY, EMPTY_TABLE, EMPTY_CUBE) if totals is None else (totals.count, totals.first, totals.second)
        return sum_slabs(work, len(batch), moments, n_threads), totals

    def log_densities(self, parameters: RegressionParameters, X: Array) -> Array:
        """Return the log-density of each row under each component: of its inputs, too, if there is a gate."""
        logs = np.empty((len(X), self.n_components))
        for k in range(self.n_components):  # alone: with a gate, scores of all are those of targets given inputs
            alone, scores = np.where(np.arange(self.n_components) == k, 0.0, -np.inf), np.empty(len(X))
            self.estep(parameters, alone, Batch(X), scores=scores)
            logs[:, k] = scores
        if self.gate is None or parameters.gate is None:
            return logs
        return logs + self.gate.log_densities(parameters.gate, np.ascontiguousarray(X[:, :-1]))

    @property
    def takes_gaps(self) -> bool:
        return self.gate is not None

    def log_densities_with_gaps(self, parameters: RegressionParameters, X: GappedRows) -> Array:
        """Return the log-density of what was observed of inputs and target."""
        return self.moments.log_densities_with_gaps(joint_parameters(parameters, self.intercept), X)

    def collect(self, parameters: RegressionParameters, X: Matrix, responsibilities: Array) -> GaussianStatistics:
        """Statistics of rows whose responsibilities are known."""
        return collect_by_estep(self, parameters, Batch(X), responsibilities)

    collect_with_gaps = collect

    def collect_seeds(self, geometry: Geometry, batch: Batch, responsibilities: Array) -> GaussianStatistics:
        """Statistics of rows whose responsibilities are known, about the origin of the geometry."""
        if isinstance(batch.X, GappedRows):
            return collect_gapped_seeds(self.moments, geometry.origin, batch, responsibilities)
        return collect_by_estep(self, self.blank_parameters(geometry.origin), batch, responsibilities)

    def sweep(
        self,
        name: str,
        prior: RegressionPrior,
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
        gate = self.gate._prior_tuple(prior.gate) if self.gate and prior.gate else NO_GATE_PRIOR
        n_eff = sweep_regression(
            batch.X, batch.weights, batch.labels, prior.origin, READOUTS[name], concentration, self._prior_tuple(prior), gate,
            steps, gains, n_eff, totals.count, totals.first, totals.second,
            (moving.count, moving.first, moving.second), scores,
        )  # fmt: skip
        return totals.scaled(1.0 / n_eff), None if average is None else moving, n_eff

    # What users see

    def coefficients(self, parameters: RegressionParameters) -> tuple[Array, Array]:
        """Slopes (K, d) and intercepts (K,), in the user's coordinates."""
        slopes = parameters.coef[:, self.intercept :]
        if not self.intercept:
            return slopes, np.zeros(len(slopes))
        return slopes, parameters.coef[:, 0] + parameters.origin[-1] - slopes @ parameters.origin[:-1]

    def noise_variances(self, parameters: RegressionParameters) -> Array:
        """Variances about the regressions (K,)."""
        return np.asarray(parameters.factor[:, -1, -1] ** -2.0)

    def predictions(self, parameters: RegressionParameters, X: Array) -> Array:
        """Target that each component predicts (n, K)."""
        slopes = parameters.coef[:, self.intercept :]
        level = parameters.coef[:, 0] if self.intercept else 0.0
        return np.asarray((X - parameters.origin[:-1]) @ slopes.T + level + parameters.origin[-1])

    def target_moments(self, parameters: RegressionParameters, X: Array | GappedRows) -> tuple[Array, Array]:
        """Mean and variance (n, K) of the target under each component; inputs may have gaps, if they gate."""
        if isinstance(X, GappedRows):
            return predict_gaps(parameters, self.intercept, X)
        means = self.predictions(parameters, X)
        return means, np.broadcast_to(self.noise_variances(parameters), means.shape)

    def shares(
        self, parameters: RegressionParameters, log_weights: Array, X: Array | GappedRows, n_threads: int | None = None
    ) -> Array:
        """Probability of each component given the inputs alone (n, K)."""
        if self.gate is None or parameters.gate is None:
            weights = np.exp(log_weights - np.logaddexp.reduce(log_weights))
            return np.tile(weights, (len(X), 1))
        shares = np.empty((len(X), self.n_components))
        self.gate.estep(parameters.gate, log_weights, Batch(X), responsibilities=shares, n_threads=n_threads)
        return shares

    def sample(
        self, parameters: RegressionParameters, components: NDArray[np.int64], rng: np.random.Generator, *options: Matrix
    ) -> Array:
        """Draw one target from each of the listed components, for inputs that are given."""
        means = self.predictions(parameters, options[0])[np.arange(len(components)), components]
        return means + rng.standard_normal(len(components)) * np.sqrt(self.noise_variances(parameters)[components])


def input_totals(totals: GaussianStatistics) -> GaussianStatistics:
    """Statistics of the inputs alone."""
    first, second = totals.first[:, :-1], totals.second[:, :-1, :-1]
    return GaussianStatistics(totals.from_base, totals.count, np.ascontiguousarray(first), np.ascontiguousarray(second))
