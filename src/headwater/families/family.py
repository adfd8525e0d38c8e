"""Family: K components of one kind. Eight functions make one (`family_core.py`); all here are capabilities with defaults.

A family overrides one where it can do better: by a kernel, by a closed form, or because its arrays have another shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from headwater.core.algorithms import StreamReadout
from headwater.core.batch import Batch
from headwater.core.gapped_rows import GappedRows
from headwater.core.records import arrays_of
from headwater.core.statistics import Array, Statistics
from headwater.core.values import Index, Matrix
from headwater.families.components import (
    find_supported,
    recombine_components,
    replace_components,
    select_components,
)
from headwater.families.divergence import sampled_divergences
from headwater.families.family_core import FamilyCore, Params, Prior, Stats
from headwater.families.geometry import Geometry, RowGeometry
from headwater.families.posterior import posterior
from headwater.families.row_profile import RowProfile
from headwater.families.soundness import IMPOSSIBLE, find_count_problem
from headwater.families.wide_law import WideLaw, find_middle, is_far, log_cauchy, sample_cauchy
from headwater.kernels.parallel import run_slabs

EMPTY: Array = np.empty(0)
EMPTY_TABLE: Array = np.empty((0, 0))
GAPS_REFUSED = "the components of this model are learned from complete rows, got rows with missing values"
LEAST_SHARE = 1e-290  # of a sum of densities; smaller shares have lost their precision


class Family(RowProfile, FamilyCore[Prior, Stats, Params]):
    """A family with a default for every capability. A subclass is a frozen dataclass of settings."""

    # Readouts and prior

    @property
    def readouts(self) -> frozenset[str]:
        """Names of the readouts. With "predictive", quasi-Bayes is available."""
        return frozenset({"mode", "mean", "expect_log"})

    @property
    def stream_readout(self) -> StreamReadout:
        """The readout by which algorithm "auto" streams."""
        return "expect_log"

    @property
    def has_prior(self) -> bool:
        """Whether EM finds the mode under the prior. If not, it uses the prior of `flatten_prior`."""
        return True

    @property
    def has_hidden_values(self) -> bool:
        """Whether rows have hidden values beside their component, which are expected at parameters before statistics are made.

        Then a readout is one step of EM towards a mode, and not the mode.
        """
        return False

    @property
    def is_cloud(self) -> bool:
        """Whether rows of a component are one cloud, so that an empty valley between them shows two."""
        return False

    @property
    def is_regularized(self) -> bool:
        """Whether parameters are regularized."""
        return True

    def flatten_prior(self, prior: Prior) -> Prior:
        """Return the prior whose mode is maximum likelihood, where there is one."""
        return prior

    def flatten_parts(self, prior: Prior) -> Prior:
        """Return a prior in which blocks of columns without a prior are flattened. By default there are none."""
        return prior

    def refine_prior(self, prior: Prior, parameters: Params, weights: Array, geometry: RowGeometry) -> Prior:
        """Return the prior of components like these (empirical Bayes); by default unchanged."""
        return prior

    def blank_prior(self, width: int) -> Prior:
        """Return a prior of the right shape, for model files. By default it is the one of made-up rows, which are all ones."""
        rows = Batch(np.ones((2 * self.n_components, width)))
        halves = np.tile(np.eye(self.n_components), (2, 1))
        return self.prior(self.geometry(rows), rows, halves)

    def settle(self, batch: Batch) -> Self:
        """Return the family with what is to be found on the rows of a warm-up once and for all; by default as it is."""
        return self

    def common_prior(self, priors: Sequence[Prior]) -> Prior:
        """Return the prior of models that are merged, each of which has found its own; by default that of the first."""
        return priors[0]

    # Sizes

    def n_parameters(self, width: int) -> int:
        """Return the number of free parameters of all components: by default one for each statistic beside the counts."""
        arrays = self.zeros(width).to_arrays()
        return sum(array.size for name, array in arrays.items() if name not in ("count", "from_base"))

    def rows_to_learn(self, width: int) -> int:
        """Return the rows that it takes to estimate every parameter: one for each, weights included."""
        return self.n_parameters(width) + self.n_components - 1

    def rows_to_seed(self, width: int) -> int:
        """Return the rows that are enough to seed components on: ten for every number that a centre and a weight have."""
        return 10 * self.n_components * (width + 1)

    @property
    def rows_to_tell_apart(self) -> int:
        """The rows below which a start misses some of many components, however wide rows are."""
        return 2 * self.n_components

    def is_beyond(self, prior: Prior, X: Matrix) -> bool:
        """Whether no number holds the squares of some of these rows, where they are measured in units of the prior."""
        return False

    def row_bytes(self, width: int) -> int:
        """Return the memory of a row that waits."""
        return 8 * width

    def work(self, batch: Batch) -> float:
        """Return the operations of an E-step, about."""
        return float(len(batch)) * self.n_parameters(batch.X.shape[1])

    # Seeds

    def seed_view(self, X: Matrix) -> Array:
        """Return rows (n, q) in which clusters are round, for k-means; by default unchanged. They are standardised after it."""
        return np.asarray(X)

    def geometry(self, batch: Batch) -> RowGeometry:
        """Return the geometry of the rows for a start: `views` to seed in, by default the standardised seed view."""
        return Geometry.of(replace(batch, X=self.seed_view(batch.X)), matrix=False)

    def collect_seeds(self, geometry: RowGeometry, batch: Batch, responsibilities: Array) -> Stats:
        """Return statistics of rows whose responsibilities are known, before there are any parameters but the prior's."""
        prior = self.prior(geometry, batch, responsibilities)
        parameters = self.readout("mean", prior, self.zeros(batch.X.shape[1]))
        return collect_by_estep(self, parameters, batch, responsibilities)

    # Rows

    def prepare(self, X: Matrix) -> Matrix:
        """Return rows in the form that densities and statistics of one E-step share; by default as they are."""
        return X

    def estep(
        self,
        parameters: Params,
        log_weights: Array,
        batch: Batch,
        totals: Stats | None = None,
        scores: Array = EMPTY,
        responsibilities: Array = EMPTY_TABLE,
        given: bool = False,
        n_threads: int | None = None,
    ) -> tuple[float, Stats | None]:
        """Fill `scores` and `responsibilities`; return the weighted score and `totals` with the rows added.

        If responsibilities are `given`, they are read and not written, and nothing is scored. `totals` may be changed in place.
        """
        weights, learning = batch.row_weights, totals is not None
        gapped = isinstance(batch.X, GappedRows)
        log_densities = self.log_densities_with_gaps if gapped else self.log_densities
        collect = self.collect_with_gaps if gapped else self.collect

        def work(slab: int, start: int, stop: int) -> tuple[float, Stats | None]:
            rows, score = slice(start, stop), 0.0
            X = self.prepare(batch.X[rows])
            if given:
                shares = responsibilities[rows]
            else:
                shares = np.require(log_densities(parameters, X), np.float64, ["C", "W", "O"])
                found = posterior(shares, batch.labels[rows], log_weights)
                score = float(weights[rows] @ found)
                if scores.size:
                    scores[rows] = found
                if responsibilities.size:
                    responsibilities[rows] = shares
            weighted = shares * weights[rows, None] if learning and batch.weights.size else shares
            return score, collect(parameters, X, weighted) if learning else None

        done = run_slabs(work, len(batch), n_threads)
        for _, part in done:
            totals = totals + part if totals is not None and part is not None else None
        return float(sum(score for score, _ in done)), totals

    def climb(
        self, name: str, prior: Prior, concentration: Array, batch: Batch, passes: int, tol: float, before: float, totals: Stats
    ) -> tuple[Array, Params, Array, bool] | None:
        """Make passes over few rows in a kernel; None, by default, if there is none and the loop makes them."""
        return None

    @property
    def sweeps_rows(self) -> bool:
        """Whether there is a kernel that learns rows one by one (see `SweepsRows`)."""
        return hasattr(self, "sweep")

    def can_sweep(self, prior: Prior) -> bool:
        """Whether this kernel knows such a prior; else there is a readout for each row."""
        return self.sweeps_rows

    # Rows with gaps

    @property
    def takes_gaps(self) -> bool:
        """Whether rows may have gaps: then there are the two functions below, and geometries and priors know gaps, too."""
        return False

    @property
    def sweeps_gaps(self) -> bool:
        """Whether rows with gaps are learned one by one in a kernel, too, by a family that sweeps rows."""
        return False

    def log_densities_with_gaps(self, parameters: Params, X: GappedRows) -> Array:
        """Return the log-density (n, K) of the observed values of every row; 0 for a row without any."""
        raise ValueError(GAPS_REFUSED)

    def collect_with_gaps(self, parameters: Params, X: GappedRows, responsibilities: Array) -> Stats:
        """Return total expected statistics of rows given the observed values; rows without any add nothing."""
        raise ValueError(GAPS_REFUSED)

    # A background: rows that belong to no component

    def wide_law(self, batch: Batch) -> WideLaw:
        """Return where the columns of the warm-up rows lie; broken rows among them hardly matter."""
        return find_middle(batch, batch.X)

    def log_wide(self, law: WideLaw, X: Matrix) -> Array:
        """Return the log-density (n,) of rows that belong to no component, or of what is observed of them."""
        return log_cauchy(law, X)

    def sample_wide(self, law: WideLaw, rows: int, rng: np.random.Generator) -> Array:
        """Draw rows that belong to no component."""
        return sample_cauchy(law, rows, rng)

    def is_far(self, law: WideLaw, X: Matrix) -> NDArray[np.bool_]:
        """Return which rows (n,) lie so far out that no start is made of them."""
        return is_far(law, X)

    def log_component_share(self, parameters: Params) -> float:
        """Return the logarithm of the part of all rows that belong to components: 0, unless there is a background."""
        return 0.0

    def without_background(self, n_components: int) -> Family[Prior, Stats, Params]:
        """Return the family of so many components of a model, to which nothing else is added."""
        return self.resize(n_components)

    # Components

    @property
    def has_own_moments(self) -> bool:
        """Whether every component has its own moments. If all share some, drift cannot forget one component alone."""
        return True

    @property
    def adds_up(self) -> bool:
        """Whether statistics of components add up to those of one: not where each has axes of its own."""
        return True

    def resize(self, n_components: int) -> Self:
        """Return the family with another number of components."""
        return replace(self, n_components=n_components)  # type: ignore[type-var]

    def select_statistics(self, statistics: Stats, order: Index) -> Stats:
        """Return the statistics of some of the components, in this order."""
        return select_components(statistics, order)

    def select_prior(self, prior: Prior, order: Index) -> Prior:
        """Return the prior of some of the components."""
        return select_components(prior, order)

    def select_parameters(self, parameters: Params, order: Index) -> Params:
        """Return the parameters of some of the components."""
        return select_components(parameters, order)

    def recombine(
        self, statistics: Stats, matrix: Array, others: Stats | None = None, other_matrix: Array | None = None
    ) -> Stats:
        """Return matrix @ statistics + other_matrix @ others, over the components: they are merged, split or replaced."""
        return recombine_components(statistics, matrix, others, other_matrix)

    def move_to_prior(self, prior: Prior, own: Prior, statistics: Stats) -> Stats:
        """Return statistics gathered under the prior `own`, moved to the origin of another prior."""
        return statistics

    def align(self, known: Stats, statistics: Stats) -> Stats:
        """Return statistics rotated to the axes of others, where axes are arbitrary; by default unchanged."""
        return statistics

    def separation(self, prior: Prior, totals: Stats, others: Stats) -> Array:
        """Return the symmetric divergence (K, K) of the beliefs about these components and about those, in nats.

        By default the divergence of their densities, a row, times the rows behind both beliefs, which agrees to second order.
        """
        rows = 0.5 * (totals.count[:, None] + others.count)
        return np.asarray(np.maximum(rows, 0.0) * self._belief_divergences(prior, totals, others))

    def contrast(self, prior: Prior, totals: Stats, others: Stats) -> Array:
        """Return the symmetric divergence (K,) of the densities of each component here and there, in nats a row.

        A component without rows has no density, and its divergence is 0.
        """
        apart = np.diagonal(self._belief_divergences(prior, totals, others))
        return np.where(np.minimum(totals.count, others.count) < 1.0, 0.0, apart)

    def density_divergences(self, ones: Params, others: Params) -> Array:
        """Return the symmetric divergence (K, K) of these densities and those, in nats a row; by default by sampling."""
        return sampled_divergences(self, ones, others)

    def _belief_divergences(self, prior: Prior, totals: Stats, others: Stats) -> Array:
        one, other = (self.readout("mean", prior, part) for part in (totals, others))
        return self.density_divergences(one, other)

    # What no rows could have made

    @property
    def no_predictive_with_gaps(self) -> str:
        """Return why there is no predictive density of rows with missing values; nothing if there is."""
        return ""

    def observed_rows(self, statistics: Stats, whole: Array) -> Array:
        """Return the rows (K, d) that have each column, as means per row like `whole`, all rows: these if nothing is known."""
        return whole

    def find_impossible(self, totals: Stats) -> NDArray[np.bool_]:
        """Return which components (K,) have statistics that no rows could have made; by default negative counts."""
        return np.asarray(totals.count < 0.0)

    def mend(self, prior: Prior, totals: Stats, sound: Stats, share: float) -> Stats:
        """Return totals in which invalid or implausible components are replaced by those of reservoir rows.

        `sound` are the totals of reservoir rows, which are a `share` of all rows, scaled up to all.
        """
        good = find_supported(totals.count, sound.count, share * sound.count) & ~self.find_impossible(totals)
        good &= self._find_readable(prior, totals)
        return totals if good.all() else replace_components(totals, sound, ~good)

    def _find_readable(self, prior: Prior, totals: Stats) -> NDArray[np.bool_]:
        """Which components (K,) have readouts that are finite, or logarithms of zero."""
        good = np.ones(self.n_components, dtype=np.bool_)
        with np.errstate(all="ignore"):
            for name in self.readouts:
                for array in arrays_of(self.readout(name, prior, totals)):
                    if array.ndim:
                        good &= (array < np.inf).reshape(len(good), -1).all(axis=1)
        return good

    def find_problem(self, record: object, width: int) -> str:
        """Return what is wrong with a record read from a file, as the end of a sentence; "" if nothing is.

        Files check shapes and finite numbers by themselves, and that what is read out of statistics is finite.
        """
        if not isinstance(record, Statistics):
            return ""
        totals = cast(Stats, record)
        return find_count_problem(totals.count) or (IMPOSSIBLE if self.find_impossible(totals).any() else "")

    def find_mismatch(self, parameters: Params, prior: Prior, totals: Stats) -> str:
        """Return how sound parameters from a file do not fit the prior and the statistics in it, as the end of a sentence."""
        return ""


AnyFamily: TypeAlias = Family[Any, Any, Any]  # of which only itself knows what its records are


def collect_by_estep(family: Family[Prior, Stats, Params], parameters: Params, batch: Batch, responsibilities: Array) -> Stats:
    """Return statistics of rows whose responsibilities are known, by the E-step of a family that has one in a kernel."""
    totals, weights = family.zeros(batch.X.shape[1]), np.zeros(family.n_components)
    _, found = family.estep(parameters, weights, batch, totals, responsibilities=responsibilities, given=True)
    assert found is not None
    return found


def log_densities_by_estep(family: Family[Prior, Stats, Params], parameters: Params, X: Matrix) -> Array:
    """Return log-densities (n, K), however small, by the E-step of a family that has one in a kernel."""
    k, batch = family.n_components, Batch(X)
    shares, scores = np.empty((len(batch), k)), np.empty(len(batch))
    family.estep(parameters, np.zeros(k), batch, scores=scores, responsibilities=shares)
    rare = np.flatnonzero(shares.min(axis=1) < LEAST_SHARE)
    with np.errstate(divide="ignore"):
        logs = np.log(shares) + scores[:, None]
    for one in range(k if len(rare) else 0):
        alone, column = np.where(np.arange(k) == one, 0.0, -np.inf), np.empty(len(rare))
        family.estep(parameters, alone, batch[rare], scores=column)
        logs[rare, one] = column
    return np.asarray(logs)
