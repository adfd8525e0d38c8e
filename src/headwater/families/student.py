"""K multivariate Student's t: Gaussians whose every row has a precision of its own, so that odd rows count less.

A row of component k is N(mu, Sigma / u) with u ~ Gamma(nu / 2, nu / 2), a hidden factor. Given the row, u is Gamma again:
E[u | x] = (nu + d) / (nu + q) with q the squared distance, and E[log u | x] = digamma((nu + d) / 2) - log((nu + q) / 2). So
statistics are those of Gaussians, weighted by E[u], and the sum of E[log u - u], of which the degrees of freedom are read out
(Liu and Rubin 1995; Peel and McLachlan 2000). All columns of a row share u, diagonal covariance or not.

Under variational Bayes q is expected, which adds d / kappa, and nu is the best number, not a belief.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from headwater.core.batch import Batch
from headwater.core.gapped_rows import GappedRows
from headwater.core.statistics import Array
from headwater.core.values import Index, Matrix, Values
from headwater.families import gaussian_soundness as soundness
from headwater.families.components import (
    find_near,
    find_supported,
    recombine_components,
    replace_components,
    select_components,
    sum_rows,
)
from headwater.families.conditional_law import ConditionalLaw
from headwater.families.family import EMPTY, EMPTY_TABLE, Family, collect_by_estep, log_densities_by_estep
from headwater.families.gaussian import Gaussian
from headwater.families.gaussian_conditional import conditional_law
from headwater.families.gaussian_records import (
    GappedStatistics,
    GaussianParameters,
    GaussianPrior,
    GaussianStatistics,
    sample_rows,
)
from headwater.families.geometry import Geometry
from headwater.families.posterior import posterior
from headwater.families.soundness import IMPOSSIBLE, NO_PARAMETERS, NO_PRIOR, TOLERANCE, find_count_problem
from headwater.families.student_gaps import collect_gapped, log_gapped
from headwater.families.student_records import (
    LEAST_DOF,
    MOST_DOF,
    TAIL_GUESS,
    TAIL_ROWS,
    StudentParameters,
    StudentPrior,
    StudentStatistics,
    expected_tail,
    log_tail,
    solve_dof,
)
from headwater.kernels.parallel import run_slabs

LEAST_FACTOR = 1e-150  # of precisions that are drawn: rows stay numbers


@dataclass(frozen=True)
class Student(Family[StudentPrior, StudentStatistics, StudentParameters]):
    """The family. `degrees_of_freedom` are learned for each component, shared by all of them, or a number."""

    n_components: int
    covariance_type: str = "full"
    reg_covar: float = 1e-6
    degrees_of_freedom: str | float = "each"

    @cached_property
    def gaussian(self) -> Gaussian:
        """The Gaussians that these are with all u = 1: their prior and their readouts."""
        return Gaussian(self.n_components, self.covariance_type, self.reg_covar)

    @cached_property
    def engine(self) -> Gaussian:
        """Gaussians whose kernels give a row one tail: those of diagonal covariance would give one to every column."""
        return replace(self.gaussian, covariance_type="spherical") if self.covariance_type == "diag" else self.gaussian

    @property
    def _shared(self) -> tuple[str, ...]:
        return ("origin", "units", *(() if self.has_own_moments else ("second", "factor")))

    @property
    def has_own_moments(self) -> bool:
        return self.gaussian.has_own_moments

    @property
    def has_prior(self) -> bool:
        return False

    @property
    def is_cloud(self) -> bool:
        return True

    @property
    def is_regularized(self) -> bool:
        return self.reg_covar > 0.0

    @property
    def has_hidden_values(self) -> bool:
        return True

    @property
    def takes_gaps(self) -> bool:
        return True

    def n_parameters(self, width: int) -> int:
        learned = {"each": self.n_components, "shared": 1}.get(str(self.degrees_of_freedom), 0)
        return self.gaussian.n_parameters(width) + learned

    def zeros(self, width: int) -> StudentStatistics:
        blank = self.gaussian.zeros(width)
        return StudentStatistics.of(
            blank.count, np.zeros_like(blank.count), blank.first, blank.second, np.zeros_like(blank.count)
        )

    # Prior

    def geometry(self, batch: Batch) -> Geometry:
        return self.gaussian.geometry(batch)

    def prior(self, geometry: Geometry, batch: Batch, responsibilities: Array) -> StudentPrior:
        return self._with_tail(self.gaussian.prior(geometry, batch, responsibilities), TAIL_ROWS)

    def flatten_prior(self, prior: StudentPrior) -> StudentPrior:
        return self._with_tail(self.gaussian.flatten_prior(prior), 0.0)

    def blank_prior(self, width: int) -> StudentPrior:
        return self._with_tail(self.gaussian.blank_prior(width), TAIL_ROWS)

    def refine_prior(
        self, prior: StudentPrior, parameters: StudentParameters, weights: Array, geometry: Geometry
    ) -> StudentPrior:
        found = self.gaussian.refine_prior(prior, parameters, weights, geometry)
        assert isinstance(found, StudentPrior)
        return found

    def _with_tail(self, prior: GaussianPrior, rows: float) -> StudentPrior:
        return StudentPrior.of(prior, rows, TAIL_GUESS)

    def log_prior(self, prior: StudentPrior, parameters: StudentParameters) -> float:
        return self.gaussian.log_prior(prior, parameters) + self._log_dof_prior(prior, parameters.dof)

    def divergence(self, prior: StudentPrior, totals: StudentStatistics) -> float:
        """Return KL(belief || prior) of means and precisions, less the log-density of the prior at the degrees of freedom."""
        dof = self._read_dof(prior, totals)
        return self.gaussian.divergence(prior, totals.as_moments()) - self._log_dof_prior(prior, dof)

    def _log_dof_prior(self, prior: StudentPrior, dof: Array) -> float:
        if not isinstance(self.degrees_of_freedom, str):
            return 0.0
        return float(log_tail(dof, prior.tail_rows * expected_tail(prior.tail_guess), prior.tail_rows).sum())

    # Readouts

    def readout(self, name: str, prior: StudentPrior, totals: StudentStatistics) -> StudentParameters:
        """Return a Gaussian readout, with the tail that its degrees of freedom make of it."""
        moments = totals.as_moments()
        found = self.gaussian.readout(name, prior, moments)
        dof = self._read_dof(prior, totals)
        width, more, offset = found.means.shape[1], np.zeros(self.n_components), found.offset
        if name == "expect_log":
            more = width / np.maximum(prior.mean_precision + totals.mass, 1e-300)  # expected distance of a mean from itself
            offset = offset + 0.5 * more
        return self._with_dof(found, offset, dof, more)

    def _with_dof(self, found: GaussianParameters, offset: Array, dof: Array, more: Array) -> StudentParameters:
        """Parameters with tails; `offset` is that of Gaussian log-densities, `more` is added to squared distances."""
        power = 0.5 * (dof + found.means.shape[1])
        tail = 0.5 * dof * np.log(0.5 * dof) - gammaln(0.5 * dof) + gammaln(power) - power * np.log(0.5 * (dof + more))
        known = {one.name: getattr(found, one.name) for one in fields(GaussianParameters)}
        return StudentParameters(**{**known, "offset": offset + tail, "power": power, "stretch": 1.0 / (dof + more)}, dof=dof)

    def _read_dof(self, prior: StudentPrior, totals: StudentStatistics) -> Array:
        if not isinstance(self.degrees_of_freedom, str):
            return np.full(self.n_components, float(self.degrees_of_freedom))
        guess = float(expected_tail(prior.tail_guess))
        tails, rows = totals.tails + prior.tail_rows * guess, totals.count + prior.tail_rows
        if self.degrees_of_freedom == "shared":
            tails, rows = np.full_like(tails, tails.sum()), np.full_like(rows, rows.sum())
        seen = rows > 1e-100
        return solve_dof(np.where(seen, tails / np.where(seen, rows, 1.0), guess))

    # Rows

    def log_densities(self, parameters: StudentParameters, X: Matrix) -> Array:
        if isinstance(X, GappedRows):
            return log_gapped(parameters, X, self.gaussian.kind.matrix)[0]
        return log_densities_by_estep(self.engine, parameters, X)

    log_densities_with_gaps = log_densities

    def collect(self, parameters: StudentParameters, X: Matrix, responsibilities: Array) -> StudentStatistics:
        if isinstance(X, GappedRows):
            found = log_gapped(parameters, X, self.gaussian.kind.matrix)[1]
            return collect_gapped(self, parameters, X, responsibilities, found)
        return self._collect(parameters, X, responsibilities, self.log_densities(parameters, X))

    collect_with_gaps = collect

    def _collect(self, parameters: StudentParameters, X: Array, responsibilities: Array, logs: Array) -> StudentStatistics:
        """Statistics of rows with these log-densities (n, K), from which their squared distances follow."""
        far = (parameters.offset - logs) / parameters.power  # log(1 + stretch q)
        factors, log_factors = expected_factors(parameters.power, parameters.stretch, far)
        return self.with_factors(parameters, X, responsibilities, factors, log_factors)

    def with_factors(
        self, parameters: StudentParameters, X: Array, responsibilities: Array, factors: Array, log_factors: Array
    ) -> StudentStatistics:
        """Return statistics of complete rows whose expected precisions (n, K), and their expected logarithms, are known."""
        found = collect_by_estep(self.engine, parameters, Batch(X), np.ascontiguousarray(responsibilities * factors))
        tails = np.einsum("nk,nk->k", responsibilities, log_factors - factors)
        return StudentStatistics.of(sum_rows(responsibilities), found.count, found.first, found.second, tails)

    def estep(
        self,
        parameters: StudentParameters,
        log_weights: Array,
        batch: Batch,
        totals: StudentStatistics | None = None,
        scores: Array = EMPTY,
        responsibilities: Array = EMPTY_TABLE,
        given: bool = False,
        n_threads: int | None = None,
    ) -> tuple[float, StudentStatistics | None]:
        """Run the E-step of every family, but compute densities once for responsibilities and for precisions."""
        batch = batch.in_doubles
        if isinstance(batch.X, GappedRows):
            return super().estep(parameters, log_weights, batch, totals, scores, responsibilities, given, n_threads)
        weights, learning = batch.row_weights, totals is not None

        def work(slab: int, start: int, stop: int) -> tuple[float, StudentStatistics | None]:
            rows, score = slice(start, stop), 0.0
            logs = self.log_densities(parameters, batch.X[rows])
            if given:
                shares = responsibilities[rows]
            else:
                shares = logs.copy()
                found = posterior(shares, batch.labels[rows], log_weights)
                score = float(weights[rows] @ found)
                if scores.size:
                    scores[rows] = found
                if responsibilities.size:
                    responsibilities[rows] = shares
            if not learning:
                return score, None
            return score, self._collect(parameters, batch.X[rows], shares * weights[rows, None], logs)

        done = run_slabs(work, len(batch), n_threads)
        for _, part in done:
            totals = totals + part if totals is not None and part is not None else None
        return float(sum(score for score, _ in done)), totals

    def collect_seeds(self, geometry: Geometry, batch: Batch, responsibilities: Array) -> StudentStatistics:
        """Return statistics of rows whose responsibilities are known: all count alike, and tails are guessed."""
        found = self.gaussian.collect_seeds(geometry, batch, responsibilities)
        first, second = _completed(found, self.gaussian.kind.matrix)
        return StudentStatistics.of(
            found.count, found.count.copy(), first, second, found.count * float(expected_tail(TAIL_GUESS))
        )

    def sample(
        self, parameters: StudentParameters, components: NDArray[np.int64], rng: np.random.Generator, *options: Values
    ) -> Array:
        centres = (parameters.means + parameters.origin)[components]
        rows = sample_rows(self.gaussian.kind.matrix, parameters, components, rng)
        dof = parameters.dof[components]
        factors = np.maximum(rng.gamma(0.5 * dof, 2.0 / dof), LEAST_FACTOR)
        return np.asarray(centres + (rows - centres) / np.sqrt(factors)[:, None])

    def conditional(self, parameters: StudentParameters, X: Matrix, missing: NDArray[np.bool_]) -> ConditionalLaw:
        """Return the law of missing columns under each component, given the observed ones: Student's t, too."""
        return conditional_law(self.engine.covariance_type, parameters, X, missing)

    # Components

    def select_statistics(self, statistics: StudentStatistics, order: Index) -> StudentStatistics:
        return select_components(statistics, order, self._shared)

    def select_prior(self, prior: StudentPrior, order: Index) -> StudentPrior:
        return prior

    def select_parameters(self, parameters: StudentParameters, order: Index) -> StudentParameters:
        return select_components(parameters, order, self._shared)

    def recombine(
        self,
        statistics: StudentStatistics,
        matrix: Array,
        others: StudentStatistics | None = None,
        other_matrix: Array | None = None,
    ) -> StudentStatistics:
        return recombine_components(statistics, matrix, others, other_matrix, self._shared)

    def move_to_prior(self, prior: StudentPrior, own: StudentPrior, statistics: StudentStatistics) -> StudentStatistics:
        moved = self.gaussian.move_to_prior(prior, own, statistics.as_moments())
        return replace(statistics, first=moved.first, second=moved.second)

    def separation(self, prior: StudentPrior, totals: StudentStatistics, others: StudentStatistics) -> Array:
        """Return the symmetric divergence (K, K) of the beliefs about means and precisions."""
        return self.gaussian.separation(prior, totals.as_moments(), others.as_moments())

    def contrast(self, prior: StudentPrior, totals: StudentStatistics, others: StudentStatistics) -> Array:
        """Return the symmetric divergence (K,) of the Gaussians that components are but for their tails."""
        return self.gaussian.contrast(prior, totals.as_moments(), others.as_moments())

    # What no rows could have made

    def mend(self, prior: StudentPrior, totals: StudentStatistics, sound: StudentStatistics, share: float) -> StudentStatistics:
        rows = share * sound.count
        good = find_supported(totals.count, sound.count, rows) & ~self.find_impossible(totals)
        found, known = (self.gaussian.belief(prior, one.as_moments()).scale for one in (totals, sound))
        if self.covariance_type == "tied":  # they share what may be wrong
            good &= find_near(found[None], known[None], rows.sum(keepdims=True))
            return totals if good.all() else sound
        if self.covariance_type == "spherical":
            found, known, rows = found.reshape(len(found), -1), known.reshape(len(known), -1), rows * prior.origin.size
        good &= find_near(found, known, rows)
        return totals if good.all() else replace_components(totals, sound, ~good)

    def find_impossible(self, totals: StudentStatistics) -> NDArray[np.bool_]:
        """Return which components have negative rows or factors, or factors that vary less than not at all."""
        rounding = TOLERANCE * (np.abs(totals.count) + np.abs(totals.tails))
        return np.asarray((totals.count < 0.0) | (totals.mass < 0.0) | (totals.tails > -totals.count + rounding))

    def find_problem(self, record: object, width: int) -> str:
        if isinstance(record, StudentPrior):
            sound = record.tail_rows >= 0.0 and LEAST_DOF <= record.tail_guess <= MOST_DOF
            return soundness.find_prior_problem(record) if sound else NO_PRIOR
        if isinstance(record, StudentParameters):
            dof, width = record.dof, record.means.shape[1]
            sound = bool(np.all((dof > 0.0) & (np.abs(record.power - 0.5 * (dof + width)) <= TOLERANCE * record.power)))
            return soundness.find_parameters_problem(record, self.gaussian.kind.matrix) if sound else NO_PARAMETERS
        if isinstance(record, StudentStatistics):
            if self.find_impossible(record).any():
                return IMPOSSIBLE
            weighted = GaussianStatistics(record.from_base, record.mass, record.first, record.second)
            largest = 1.0 + width / LEAST_DOF  # that is expected of a factor, so that those of all rows are no more than rows
            problem = find_count_problem(record.count)
            return problem or soundness.find_statistics_problem(weighted.scaled(1.0 / largest), self.covariance_type)
        return super().find_problem(record, width)

    # What users see

    def means(self, parameters: StudentParameters) -> Array:
        """Centres of the components, in the user's coordinates."""
        return self.gaussian.means(parameters)

    def scales(self, parameters: StudentParameters) -> Array:
        """Scale matrices, or variances, of the components: covariances but for the tails."""
        return self.gaussian.covariances(parameters)


def expected_factors(power: Array, stretch: Array, far: Array) -> tuple[Array, Array]:
    """Return E[u] and E[log u] (n, K) of rows whose log(1 + stretch q) is `far`."""
    log_rate = far - np.log(2.0 * stretch)  # of the Gamma law of u
    return power * np.exp(-log_rate), digamma(power) - log_rate


def _completed(found: GaussianStatistics, matrix: bool) -> tuple[Array, Array]:
    """Moments of seeded groups; where columns are independent, a gap has the mean and the variance of its column."""
    if matrix or not isinstance(found, GappedStatistics):
        return found.first, found.second
    seen = np.maximum(found.observed, 1e-300)
    grown = np.where(found.observed > 0.0, found.count[:, None] / seen, 0.0)
    return found.first * grown, found.second * grown
