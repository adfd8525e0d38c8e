"""K components of independent categorical columns: a table of probabilities for every column (latent classes).

Rows hold codes: 0, 1, ... in the order in which the categories of a column were seen, NaN for a gap. A table has `capacity`
cells for categories and one more for all further categories. All cells have prior mass from the beginning, so a new category
takes its cell and nothing else changes.

The prior of a column is Dirichlet: the shares of the warm-up, in which one more row is spread over all cells, worth
`prior_rows` rows. Where a mode is read out, one is added to every parameter, so that modes and means agree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from headwater.core.algorithms import StreamReadout
from headwater.core.batch import Batch
from headwater.core.statistics import Array
from headwater.core.values import Matrix, Values
from headwater.families.category_entries import CategoryEntries
from headwater.families.columns import PRIOR_ROWS
from headwater.families.components import ComponentStatistics, sum_rows
from headwater.families.conditional_law import ConditionalLaw, IndependentColumns, Mask, Places
from headwater.families.family import Family
from headwater.families.geometry import Geometry, RowGeometry
from headwater.families.row_profile import profile_of_categories
from headwater.families.soundness import NO_PARAMETERS, are_no_logs
from headwater.families.wide_law import WideLaw, count_seen
from headwater.kernels.category_tables import add_log_probabilities, count_categories

SEEDED_CATEGORIES = 16  # most frequent categories of a column in the warm-up, which seeds use
LEAST_PROBABILITY = 1e-300


@dataclass(frozen=True)
class CategoryStatistics(ComponentStatistics):
    """Rows (K,) of each component, and those (K, d, capacity + 1) of each category of each column."""

    table: Array


@dataclass(frozen=True)
class CategoryPrior:
    """Dirichlet parameters (K, d, capacity + 1) of every table."""

    concentration: Array


@dataclass(frozen=True)
class CategoryParameters:
    """Log-probabilities (K, d, capacity + 1), or their expectations."""

    logs: Array


@dataclass(frozen=True)
class CategoryTables(Family[CategoryPrior, CategoryStatistics, CategoryParameters]):
    """The family. `levels` are the categories that each column is known to have: they count as parameters."""

    n_components: int
    capacity: int
    levels: tuple[int, ...] = ()
    prior_rows: float = PRIOR_ROWS

    @property
    def readouts(self) -> frozenset[str]:
        return super().readouts | {"predictive"}

    @property
    def stream_readout(self) -> StreamReadout:
        """Means stream best: variational Bayes underrates what a component has rarely seen."""
        return "mean"

    def zeros(self, width: int) -> CategoryStatistics:
        shape = (self.n_components, width, self.capacity + 1)
        return CategoryStatistics.of(np.zeros(self.n_components), np.zeros(shape))

    def n_parameters(self, width: int) -> int:
        return self.n_components * sum(max(number - 1, 1) for number in self.levels or (2,) * width)

    def prior(self, geometry: RowGeometry, batch: Batch, responsibilities: Array) -> CategoryPrior:
        rows = self._count(batch.X, batch.row_weights[:, None])[0]
        spread = 1.0 / (self.capacity + 1)
        shares = (rows + spread) / (rows + spread).sum(axis=1, keepdims=True)
        return CategoryPrior(np.repeat(self.prior_rows * shares[None], self.n_components, axis=0))

    def geometry(self, batch: Batch) -> Geometry:
        """Indicators of the most frequent categories, times sqrt(1/2): rows that differ in a column are at distance 1 there."""
        views = []
        for column in batch.X.T:
            seen, counts = np.unique(column[~np.isnan(column)], return_counts=True)
            frequent = seen[np.argsort(-counts, kind="stable")[:SEEDED_CATEGORIES]]
            views.append(np.sqrt(0.5) * (column[:, None] == frequent))
        view = np.hstack(views)
        if not view.shape[1]:  # nothing was seen yet
            view = np.zeros((len(batch), 1))
        return Geometry(np.zeros(view.shape[1]), np.ones(view.shape[1]), (np.ascontiguousarray(view),))

    def profile(self, X: Matrix) -> Array:
        return profile_of_categories(np.asarray(X))

    def log_densities(self, parameters: CategoryParameters, X: Array) -> Array:
        codes, found = np.ascontiguousarray(X), np.zeros((len(X), self.n_components))
        cells = _cells(codes)
        table = np.ascontiguousarray(parameters.logs[:, :, :cells].transpose(1, 2, 0))
        add_log_probabilities(codes, table, found)
        return found

    def collect(self, parameters: CategoryParameters, X: Array, responsibilities: Array) -> CategoryStatistics:
        return CategoryStatistics.of(sum_rows(responsibilities), self._count(X, responsibilities))

    def readout(self, name: str, prior: CategoryPrior, totals: CategoryStatistics) -> CategoryParameters:
        """The predictive probability of one row is that at the mean."""
        cells = self.belief(prior, totals)
        rows = cells.sum(axis=2, keepdims=True)
        if name == "expect_log":
            return CategoryParameters(digamma(cells) - digamma(rows))
        return CategoryParameters(np.log(np.maximum(cells / rows, LEAST_PROBABILITY)))

    def log_prior(self, prior: CategoryPrior, parameters: CategoryParameters) -> float:
        return float(np.sum(prior.concentration * parameters.logs))

    def divergence(self, prior: CategoryPrior, totals: CategoryStatistics) -> float:
        before, after = prior.concentration, self.belief(prior, totals)
        all_before, all_after = before.sum(axis=2), after.sum(axis=2)
        cells = gammaln(before) - gammaln(after) + (after - before) * (digamma(after) - digamma(all_after)[:, :, None])
        return float(np.sum(gammaln(all_after) - gammaln(all_before)) + np.sum(cells))

    def sample(
        self, parameters: CategoryParameters, components: NDArray[np.int64], rng: np.random.Generator, *options: Values
    ) -> Array:
        """Draw codes of categories that the columns are known to have."""
        width = parameters.logs.shape[1]
        rows = np.empty((len(components), width))
        for column, level in enumerate(self.levels or (self.capacity,) * width):
            shares = np.exp(parameters.logs[:, column, :level])
            bounds = np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)
            drawn = (rng.random(len(components))[:, None] >= bounds[components]).sum(axis=1)
            rows[:, column] = np.minimum(drawn, level - 1)
        return rows

    def log_wide(self, law: WideLaw, X: Array) -> Array:
        """All categories that a column is known to have are as probable."""
        return -count_seen(X) @ np.log(np.maximum(self.levels or (self.capacity,) * X.shape[1], 2))

    def sample_wide(self, law: WideLaw, rows: int, rng: np.random.Generator) -> Array:
        width = len(law.centre)
        levels = np.maximum(self.levels or (self.capacity,) * width, 1)
        return rng.integers(levels, size=(rows, width)).astype(float)

    def is_far(self, law: WideLaw, X: Array) -> NDArray[np.bool_]:
        return np.zeros(len(X), dtype=np.bool_)

    def observed_rows(self, statistics: CategoryStatistics, whole: Array) -> Array:
        return np.asarray(statistics.table.sum(axis=2))

    def find_impossible(self, totals: CategoryStatistics) -> NDArray[np.bool_]:
        return np.asarray((totals.count < 0.0) | (totals.table < 0.0).any(axis=(1, 2)))

    def find_problem(self, record: object, width: int) -> str:
        if isinstance(record, CategoryParameters):
            return NO_PARAMETERS if are_no_logs(record.logs) else ""
        return super().find_problem(record, width)

    def conditional(self, parameters: CategoryParameters, X: Matrix, missing: Mask) -> ConditionalLaw:
        """Return the law of the codes of missing columns under each component."""
        levels = self.levels or (self.capacity,) * X.shape[1]

        def law_of(rows: Places, columns: Places) -> CategoryEntries:
            return CategoryEntries(parameters.logs, levels, columns)

        return IndependentColumns(np.where(missing, 0.0, X), missing, self.n_components, law_of)

    def belief(self, prior: CategoryPrior, totals: CategoryStatistics) -> Array:
        """Return Dirichlet parameters (K, d, capacity + 1) of the belief about every table."""
        return prior.concentration + np.maximum(totals.table, 0.0)

    def _count(self, X: Array, shares: Array) -> Array:
        """Sums (K, d, capacity + 1) of the shares (n, K) of rows by their category in each column."""
        codes = np.ascontiguousarray(X)
        cells = _cells(codes)
        used = np.zeros((X.shape[1], cells, shares.shape[1]))
        count_categories(codes, np.ascontiguousarray(shares), used)
        table = np.zeros((shares.shape[1], X.shape[1], self.capacity + 1))
        table[:, :, :cells] = used.transpose(2, 0, 1)
        return table


def _cells(codes: Array) -> int:
    """How many of the cells of tables these codes (n, d) use; NaN for gaps."""
    return int(np.fmax.reduce(codes, axis=None, initial=0.0)) + 1
