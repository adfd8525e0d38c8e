"""A background beside K components: one wide law, which is not learned but for its share of the rows.

With the share b of the background, p(x) = (1 - b) sum_k w_k p(x | k) + b p0(x). Responsibilities of components sum to less than
one where the background has a part in a row, so that a broken row counts for none of them. Statistics are those of the
components, and the rows of the background. The prior of b is Beta; a guess g that is worth w rows makes it
Beta(w g, w (1 - g)), whose mean is g; where a mode is read out, one is added to both parameters, so that the mode is g, too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, digamma

from headwater.core.algorithms import StreamReadout
from headwater.core.batch import Batch
from headwater.core.gapped_rows import GappedRows
from headwater.core.statistics import Array
from headwater.core.values import Index, Matrix, Values
from headwater.families.background_records import (
    BackgroundGeometry,
    BackgroundParameters,
    BackgroundPrior,
    BackgroundStatistics,
)
from headwater.families.capabilities import AnswersGaps
from headwater.families.components import ComponentStatistics
from headwater.families.conditional_law import ConditionalLaw, Mask
from headwater.families.family import EMPTY, EMPTY_TABLE, AnyFamily, Family
from headwater.families.geometry import RowGeometry
from headwater.families.posterior import posterior
from headwater.families.soundness import IMPOSSIBLE, NO_PARAMETERS, NO_PRIOR, TOLERANCE, find_count_problem
from headwater.families.wide_law import WideLaw
from headwater.kernels.parallel import run_slabs

GUESS, GUESS_ROWS = 0.01, 1.0  # share of the background before rows say more, and what the guess is worth
LEAST_SHARE, MOST_SHARE = 1e-9, 0.5  # so that a background may come back, and is never the greater part


@dataclass(frozen=True)
class Background(Family[BackgroundPrior, BackgroundStatistics, BackgroundParameters]):
    """The family of components before a background, whose share is learned unless it is given.

    One that is `absent` has the same records, and no background: a part of the components of a model, among all others.
    """

    components: AnyFamily
    share: float | None = None
    absent: bool = False

    @property
    def n_components(self) -> int:  # type: ignore[override]
        return self.components.n_components

    def profile(self, X: Matrix) -> Array:
        return self.components.profile(X)

    # Settings and sizes

    @property
    def readouts(self) -> frozenset[str]:
        return self.components.readouts - {"match_moments"}

    @property
    def stream_readout(self) -> StreamReadout:
        return self.components.stream_readout

    @property
    def has_prior(self) -> bool:
        return self.components.has_prior

    @property
    def has_hidden_values(self) -> bool:
        return self.components.has_hidden_values

    @property
    def is_cloud(self) -> bool:
        return self.components.is_cloud

    @property
    def is_regularized(self) -> bool:
        return self.components.is_regularized

    @property
    def has_own_moments(self) -> bool:
        return self.components.has_own_moments

    @property
    def adds_up(self) -> bool:
        return self.components.adds_up

    @property
    def takes_gaps(self) -> bool:
        return self.components.takes_gaps

    def n_parameters(self, width: int) -> int:
        return self.components.n_parameters(width) + (self.share is None)

    def rows_to_learn(self, width: int) -> int:
        return self.components.rows_to_learn(width)

    def rows_to_seed(self, width: int) -> int:
        return self.components.rows_to_seed(width)

    def row_bytes(self, width: int) -> int:
        return self.components.row_bytes(width)

    def work(self, batch: Batch) -> float:
        return self.components.work(batch)

    def resize(self, n_components: int) -> Self:
        return replace(self, components=self.components.resize(n_components))

    def without_background(self, n_components: int) -> Background:
        return replace(self.resize(n_components), absent=True)

    def zeros(self, width: int) -> BackgroundStatistics:
        components = self.components.zeros(width)
        return BackgroundStatistics.of(components.count.copy(), components, np.zeros(1))

    # Priors and starts

    def geometry(self, batch: Batch) -> BackgroundGeometry:
        """Return what is known of the rows; those far out lie in the middle of it, so that no group is made of them."""
        law = self.components.wide_law(batch)
        return BackgroundGeometry(self.components.geometry(self._without_far(law, batch)), law)

    def _without_far(self, law: WideLaw, batch: Batch) -> Batch:
        far = self.components.is_far(law, batch.X)
        if not far.any():
            return batch
        if isinstance(batch.X, GappedRows):
            values = np.where(far[:, None] & ~batch.X.missing, law.centre, batch.X.values)
            return replace(batch, X=GappedRows(values, batch.X.missing))
        return replace(batch, X=np.where(far[:, None] & ~np.isnan(batch.X), law.centre, batch.X))

    def _inside(self, law: WideLaw, batch: Batch, responsibilities: Array) -> Array:
        return np.where(self.components.is_far(law, batch.X)[:, None], 0.0, responsibilities)

    def prior(self, geometry: RowGeometry, batch: Batch, responsibilities: Array) -> BackgroundPrior:
        shares, law = self._inside(geometry.law, batch, responsibilities), geometry.law
        components = self.components.prior(geometry.components, self._without_far(law, batch), shares)
        return BackgroundPrior(components, law, (1.0 - GUESS) * GUESS_ROWS, GUESS * GUESS_ROWS)

    def flatten_prior(self, prior: BackgroundPrior) -> BackgroundPrior:
        return replace(prior, components=self.components.flatten_prior(prior.components), inside=0.0, outside=0.0)

    def flatten_parts(self, prior: BackgroundPrior) -> BackgroundPrior:
        return replace(prior, components=self.components.flatten_parts(prior.components))

    def refine_prior(
        self, prior: BackgroundPrior, parameters: BackgroundParameters, weights: Array, geometry: RowGeometry
    ) -> BackgroundPrior:
        known = geometry.components if isinstance(geometry, BackgroundGeometry) else geometry
        found = self.components.refine_prior(prior.components, parameters.components, weights, known)
        return prior if found is prior.components else replace(prior, components=found)

    def blank_prior(self, width: int) -> BackgroundPrior:
        return BackgroundPrior(self.components.blank_prior(width), WideLaw(np.zeros(width), np.ones(width)), 1.0, 1.0)

    def collect_seeds(self, geometry: RowGeometry, batch: Batch, responsibilities: Array) -> BackgroundStatistics:
        """Return statistics of rows whose responsibilities are known; those far out are the background's."""
        shares, inside = self._inside(geometry.law, batch, responsibilities), self._without_far(geometry.law, batch)
        components = self.components.collect_seeds(geometry.components, inside, shares)
        outside = batch.row_weights @ (responsibilities.sum(axis=1) - shares.sum(axis=1))
        return BackgroundStatistics.of(components.count.copy(), components, np.array([outside]))

    def log_prior(self, prior: BackgroundPrior, parameters: BackgroundParameters) -> float:
        found = self.components.log_prior(prior.components, parameters.components)
        if self.share is not None:
            return found
        return found + prior.outside * parameters.log_background + prior.inside * parameters.log_rest

    def divergence(self, prior: BackgroundPrior, totals: BackgroundStatistics) -> float:
        found = self.components.divergence(prior.components, totals.components)
        if self.share is not None:
            return found
        outside, inside = self._belief(prior, totals)
        expected = (outside - prior.outside) * digamma(outside) + (inside - prior.inside) * digamma(inside)
        expected -= (outside + inside - prior.outside - prior.inside) * digamma(outside + inside)
        return float(found + expected + betaln(prior.outside, prior.inside) - betaln(outside, inside))

    # Readouts

    def _belief(self, prior: BackgroundPrior, totals: BackgroundStatistics) -> tuple[float, float]:
        """Beta parameters of the belief about the share: rows of the background, and all others."""
        outside, inside = max(float(totals.background[0]), 0.0), max(float(totals.count.sum()), 0.0)
        return prior.outside + outside, prior.inside + inside

    def readout(self, name: str, prior: BackgroundPrior, totals: BackgroundStatistics) -> BackgroundParameters:
        components = self.components.readout(name, prior.components, totals.components)
        return BackgroundParameters(components, prior.law, *self._log_shares(name, prior, totals))

    def _log_shares(self, name: str, prior: BackgroundPrior, totals: BackgroundStatistics) -> tuple[float, float]:
        outside, inside = self._belief(prior, totals)
        share = self.share
        if share is None and name == "expect_log" and min(outside, inside) > 0.0:
            both = digamma(outside + inside)
            return float(digamma(outside) - both), float(digamma(inside) - both)
        if share is None:
            share = min(max(outside / max(outside + inside, 1e-300), LEAST_SHARE), MOST_SHARE)
        return float(np.log(share)), float(np.log1p(-share))

    def log_component_share(self, parameters: BackgroundParameters) -> float:
        return parameters.log_rest

    # Rows

    def log_densities(self, parameters: BackgroundParameters, X: Matrix) -> Array:
        """Return the log-density (n, K) of every row under every component."""
        return self.components.log_densities(parameters.components, X)

    def log_densities_with_gaps(self, parameters: BackgroundParameters, X: GappedRows) -> Array:
        return self.components.log_densities_with_gaps(parameters.components, X)

    def collect(self, parameters: BackgroundParameters, X: Matrix, responsibilities: Array) -> BackgroundStatistics:
        """Return statistics of rows that belong to components."""
        return self._beside(self.components.collect(parameters.components, X, responsibilities), 0.0)

    def collect_with_gaps(
        self, parameters: BackgroundParameters, X: GappedRows, responsibilities: Array
    ) -> BackgroundStatistics:
        return self._beside(self.components.collect_with_gaps(parameters.components, X, responsibilities), 0.0)

    def _beside(self, components: ComponentStatistics, rows: float) -> BackgroundStatistics:
        return BackgroundStatistics.of(components.count.copy(), components, np.array([rows]))

    def estep(
        self,
        parameters: BackgroundParameters,
        log_weights: Array,
        batch: Batch,
        totals: BackgroundStatistics | None = None,
        scores: Array = EMPTY,
        responsibilities: Array = EMPTY_TABLE,
        given: bool = False,
        n_threads: int | None = None,
    ) -> tuple[float, BackgroundStatistics | None]:
        """Run the E-step of every family with one column more, whose responsibility is the background's."""
        batch = batch.in_doubles
        weights, learning, k = batch.row_weights, totals is not None, self.n_components
        gapped = isinstance(batch.X, GappedRows)
        family = self.components
        log_densities = family.log_densities_with_gaps if gapped else family.log_densities
        collect = self.collect_with_gaps if gapped else self.collect

        def work(slab: int, start: int, stop: int) -> tuple[float, BackgroundStatistics | None]:
            rows, score = slice(start, stop), 0.0
            X = batch.X[rows]
            if given:
                shares = responsibilities[rows]
            else:
                joint = np.full((stop - start, k + 1), -np.inf)
                joint[:, :k] = log_densities(parameters.components, X) + log_weights
                if not self.absent:
                    joint[:, k] = family.log_wide(parameters.law, X) + parameters.log_background
                found = posterior(joint, batch.labels[rows])
                shares, score = joint[:, :k], float(weights[rows] @ found)
                if scores.size:
                    scores[rows] = found
                if responsibilities.size:
                    responsibilities[rows] = shares
            if not learning:
                return score, None
            part = collect(parameters, X, np.ascontiguousarray(shares * weights[rows, None]))
            if not self.absent:
                part.background[0] = weights[rows] @ self._rest(X, shares)
            return score, part

        done = run_slabs(work, len(batch), n_threads)
        for _, part in done:
            totals = totals + part if totals is not None and part is not None else None
        return float(sum(score for score, _ in done)), totals

    def _rest(self, X: Matrix, shares: Array) -> Array:
        """What components leave of each row (n,); a row without a value says nothing of the background either."""
        rest = np.maximum(1.0 - shares.sum(axis=1), 0.0)
        empty = X.is_empty if isinstance(X, GappedRows) else np.isnan(X).all(axis=1)
        return np.where(empty, 0.0, rest)

    def sample(
        self, parameters: BackgroundParameters, components: NDArray[np.int64], rng: np.random.Generator, *options: Values
    ) -> Array:
        return self.components.sample(parameters.components, components, rng, *options)

    def sample_background(self, parameters: BackgroundParameters, rows: int, rng: np.random.Generator) -> Array:
        """Draw rows that belong to no component."""
        return self.components.sample_wide(parameters.law, rows, rng)

    def conditional(self, parameters: BackgroundParameters, X: Matrix, missing: Mask) -> ConditionalLaw:
        """Return the law of missing columns under each component: rows of the background are not completed."""
        return cast(AnswersGaps, self.components).conditional(parameters.components, X, missing)

    # Components

    def select_statistics(self, statistics: BackgroundStatistics, order: Index) -> BackgroundStatistics:
        components = self.components.select_statistics(statistics.components, order)
        return BackgroundStatistics(statistics.from_base, components.count.copy(), components, statistics.background)

    def select_prior(self, prior: BackgroundPrior, order: Index) -> BackgroundPrior:
        return replace(prior, components=self.components.select_prior(prior.components, order))

    def select_parameters(self, parameters: BackgroundParameters, order: Index) -> BackgroundParameters:
        return replace(parameters, components=self.components.select_parameters(parameters.components, order))

    def recombine(
        self,
        statistics: BackgroundStatistics,
        matrix: Array,
        others: BackgroundStatistics | None = None,
        other_matrix: Array | None = None,
    ) -> BackgroundStatistics:
        """Return components that are merged, split or replaced; rows that they lose, or gain, are the background's."""
        inner = None if others is None else others.components
        components = self.components.recombine(statistics.components, matrix, inner, other_matrix)
        background = statistics.background + statistics.count.sum() - components.count.sum()
        rounding = TOLERANCE * np.abs(components.count).sum()  # of a difference of sums that may be equal
        background = np.where((background < 0.0) & (background >= -rounding), 0.0, background)
        return BackgroundStatistics(statistics.from_base, components.count.copy(), components, background)

    def move_to_prior(
        self, prior: BackgroundPrior, own: BackgroundPrior, statistics: BackgroundStatistics
    ) -> BackgroundStatistics:
        return replace(
            statistics,
            components=self.components.move_to_prior(prior.components, own.components, statistics.components),
        )

    def align(self, known: BackgroundStatistics, statistics: BackgroundStatistics) -> BackgroundStatistics:
        return replace(statistics, components=self.components.align(known.components, statistics.components))

    def separation(self, prior: BackgroundPrior, totals: BackgroundStatistics, others: BackgroundStatistics) -> Array:
        return self.components.separation(prior.components, totals.components, others.components)

    def contrast(self, prior: BackgroundPrior, totals: BackgroundStatistics, others: BackgroundStatistics) -> Array:
        return self.components.contrast(prior.components, totals.components, others.components)

    def density_divergences(self, ones: BackgroundParameters, others: BackgroundParameters) -> Array:
        return self.components.density_divergences(ones.components, others.components)

    # What no rows could have made

    def find_impossible(self, totals: BackgroundStatistics) -> NDArray[np.bool_]:
        return np.asarray((totals.count < 0.0) | self.components.find_impossible(totals.components))

    def mend(
        self, prior: BackgroundPrior, totals: BackgroundStatistics, sound: BackgroundStatistics, share: float
    ) -> BackgroundStatistics:
        components = self.components.mend(prior.components, totals.components, sound.components, share)
        if components is totals.components and totals.background[0] >= 0.0:
            return totals
        every = totals.background + totals.count.sum()
        background = np.maximum(every - components.count.sum(), 0.0)
        return BackgroundStatistics(totals.from_base, components.count.copy(), components, background)

    def find_problem(self, record: object, width: int) -> str:
        if isinstance(record, BackgroundStatistics):
            unsound = bool(np.any(record.count != record.components.count))
            problem = IMPOSSIBLE if unsound else find_count_problem(np.append(record.count, record.background))
            return problem or self.components.find_problem(record.components, width)
        if isinstance(record, BackgroundPrior):
            unsound = min(record.inside, record.outside) < 0.0 or _is_unsound(record.law)
            return NO_PRIOR if unsound else self.components.find_problem(record.components, width)
        if isinstance(record, BackgroundParameters):
            unsound = max(record.log_background, record.log_rest) > 0.0 or _is_unsound(record.law)
            return NO_PARAMETERS if unsound else self.components.find_problem(record.components, width)
        return super().find_problem(record, width)


def _is_unsound(law: WideLaw) -> bool:
    return bool(np.any(law.spread <= 0.0) or max(np.abs(law.centre).max(), law.spread.max()) > 1e101)
