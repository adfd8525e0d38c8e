"""K multinomials over the columns of count rows, dense or sparse, and their Dirichlet prior."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headwater.core.algorithms import StreamReadout
from headwater.core.batch import Batch, SparseRows, drop_zeros
from headwater.core.statistics import Array
from headwater.core.values import Index, Matrix
from headwater.families import multinomial_soundness as soundness
from headwater.families.family import EMPTY, EMPTY_TABLE, Family, collect_by_estep, log_densities_by_estep
from headwater.families.geometry import RowGeometry
from headwater.families.multinomial_belief import contrast, divergence, separation
from headwater.families.multinomial_dense import dense_estep
from headwater.families.multinomial_geometry import Geometry
from headwater.families.multinomial_records import MultinomialParameters, MultinomialPrior, MultinomialStatistics
from headwater.families.multinomial_rows import SMALL, slab_edges, split_average, stretches, worth_thinning
from headwater.families.row_profile import profile_of_shares
from headwater.families.table import Blend, Table, Words
from headwater.kernels.mixture import PREDICTIVE, READOUTS, weights_readout
from headwater.kernels.multinomial import estep_polya, estep_sparse, group_sums
from headwater.kernels.multinomial_sweep import sweep_sparse
from headwater.kernels.parallel import run_tasks
from headwater.kernels.tables import gather_words

ONE_GROUP: NDArray[np.int32] = np.empty(0, dtype=np.int32)

# Default Dirichlet parameter of every column: less than one, since most words do not occur in most components.
DEFAULT_PRIOR = 0.1


# Statistics and parameters: MultinomialStatistics and MultinomialParameters, or those of a subclass.
Counts: TypeAlias = Any
Logs: TypeAlias = Any


@dataclass(frozen=True)
class Multinomial(Family[MultinomialPrior, Counts, Logs]):
    """The family. `groups` (V,) names the columns that are normalised together; empty if all are.

    A given prior has Dirichlet parameters: a number, one for each column (V,), or also for each component (K, V). Without one,
    or where it is NaN, a column has `DEFAULT_PRIOR` counts in addition to those of the rows, whether mean or mode is read out.
    """

    n_components: int
    concentration_prior: Array | float | None = None
    groups: NDArray[np.int32] = field(default_factory=lambda: ONE_GROUP)

    @property
    def readouts(self) -> frozenset[str]:
        return frozenset(READOUTS) - {"match_moments"}

    @property
    def has_prior(self) -> bool:
        """Always: without a prior, a word that a component has not seen would be impossible. With ones, the mode is the MLE."""
        return True

    @property
    def stream_readout(self) -> StreamReadout:
        """The readout that streams best; variational Bayes underrates words that a component has rarely seen."""
        return "mean"

    @property
    def n_groups(self) -> int:
        return int(self.groups[-1]) + 1 if self.groups.size else 1

    def n_parameters(self, width: int) -> int:
        """Number of free parameters of all components."""
        return self.n_components * (width - self.n_groups)

    def rows_to_learn(self, width: int) -> int:
        """Rows that it takes to estimate the parameters that matter: a row has information about many columns."""
        return 10 * self.n_components

    def rows_to_seed(self, width: int) -> int:
        """Rows enough to seed components on."""
        return 20 * self.n_components

    def row_bytes(self, width: int) -> int:
        """Memory of a row that waits."""
        return 8 * min(width, 100)

    def work(self, batch: Batch) -> float:
        """Operations of an E-step."""
        return float(self.n_components) * (batch.X.nnz if isinstance(batch.X, SparseRows) else batch.X.size)

    def zeros(self, width: int) -> Counts:
        """Return statistics that hold nothing."""
        k = self.n_components
        return MultinomialStatistics.of(np.zeros(k), np.zeros((self.n_groups, k)), Table.zeros(width, k))

    # Merging

    def select_statistics(self, statistics: Counts, order: Index) -> Counts:
        """Return statistics with the components in another order."""
        table = statistics.table.plain().permuted(order)
        return MultinomialStatistics(
            statistics.from_base.copy(),
            statistics.count[order],
            np.ascontiguousarray(statistics.length[:, order]),
            table,
        )

    def select_prior(self, prior: MultinomialPrior, order: Index) -> MultinomialPrior:
        """Return the prior of some of the components."""
        own = prior.beta.shape[1] > 1
        return MultinomialPrior(
            np.ascontiguousarray(prior.beta[:, order]) if own else prior.beta,
            np.ascontiguousarray(prior.shift[:, order]) if own else prior.shift,
            np.ascontiguousarray(prior.totals[:, order]),
            np.ascontiguousarray(prior.shift_totals[:, order]),
            prior.sizes,
        )

    # Moves

    def recombine(
        self, statistics: Counts, matrix: Array, others: Counts | None = None, other_matrix: Array | None = None
    ) -> MultinomialStatistics:
        """Return matrix @ statistics + other_matrix @ others, over the components."""
        parts: list[tuple[Counts, Array]] = [(statistics, matrix)]
        if others is not None and other_matrix is not None:
            parts.append((others, other_matrix))
        words = np.unique(np.concatenate([part.table.words() for part, _ in parts]))
        return MultinomialStatistics(
            statistics.from_base.copy(),
            np.sum([weights @ part.count for part, weights in parts], axis=0),
            np.sum([part.length @ weights.T for part, weights in parts], axis=0),
            Table.of_words(
                statistics.table.shape[0], words, np.sum([part.table.at(words) @ weights.T for part, weights in parts], axis=0)
            ),
        )

    def mend(
        self, prior: MultinomialPrior, totals: MultinomialStatistics, sound: MultinomialStatistics, share: float
    ) -> Counts:
        """Return totals in which no count is negative. The sum of a word over all components is unchanged."""
        words, rows = totals.table.held()
        if rows.min(initial=0.0) >= 0.0 and totals.length.min(initial=0.0) >= 0.0 and totals.count.min() > 0.0:
            return totals
        kept, wanted = np.maximum(rows, 0.0), np.maximum(rows.sum(axis=1), 0.0)
        rows = np.ascontiguousarray(kept * (wanted / np.maximum(kept.sum(axis=1), 1e-300))[:, None])
        length = np.zeros_like(totals.length)
        np.add.at(length, self.groups[words] if self.groups.size else np.zeros(len(words), dtype=np.int64), rows)
        count = np.where(totals.count > 0.0, totals.count, sound.count)
        return replace(totals, count=count, length=length, table=Table.of_words(totals.table.shape[0], words, rows))

    def separation(self, prior: MultinomialPrior, totals: Counts, others: Counts) -> Array:
        """Return the symmetric divergence (K, K) of the beliefs about these components and about those."""
        return separation(prior, totals, others)

    def contrast(self, prior: MultinomialPrior, totals: Counts, others: Counts) -> Array:
        """Return the symmetric divergence (K,) of the densities of each component here and there, in nats a row."""
        return contrast(self.groups, prior, totals, others)

    # Priors

    def flatten_prior(self, prior: MultinomialPrior) -> MultinomialPrior:
        """The prior whose mode is maximum likelihood."""
        return self._prior(np.ones((1, 1)), np.ones((1, 1)), prior.width)

    def blank_prior(self, width: int) -> MultinomialPrior:
        """A prior of the right shape."""
        return self.make_prior(width)

    def find_problem(self, record: object, width: int) -> str:
        """What is wrong with a record read from a file; "" if nothing is."""
        if isinstance(record, MultinomialPrior):
            return soundness.find_prior_problem(record, width)
        if isinstance(record, MultinomialStatistics):
            return soundness.find_statistics_problem(record, self.groups) or soundness.find_length_problem(record)
        assert isinstance(record, MultinomialParameters)
        return soundness.find_parameters_problem(record)

    def geometry(self, batch: Batch) -> RowGeometry:
        """Return the geometry of the rows for a start."""
        return Geometry.of(batch, self.n_components)

    def prior(self, geometry: Geometry, batch: Batch, responsibilities: Array) -> MultinomialPrior:
        """The user's prior, or a part of a count for every column."""
        return self.make_prior(batch.X.shape[1])

    def make_prior(self, width: int) -> MultinomialPrior:
        """The prior for rows of this width."""
        given = np.array(np.nan if self.concentration_prior is None else self.concentration_prior, dtype=float)
        beta = np.array(given.reshape(1, 1) if given.ndim == 0 else given[:, None] if given.ndim == 1 else given.T, order="C")
        said = np.isfinite(beta)
        return self._prior(np.where(said, beta, DEFAULT_PRIOR), np.where(said, np.minimum(beta, 1.0), 0.0), width)

    def _prior(self, beta: Array, shift: Array, width: int) -> MultinomialPrior:
        sizes = np.bincount(self.groups).astype(float) if self.groups.size else np.array([float(width)])
        totals, shifts = (self._group_totals(part, sizes) for part in (beta, shift))
        return MultinomialPrior(beta, shift, totals, shifts, sizes[:, None])

    def _group_totals(self, beta: Array, sizes: Array) -> Array:
        if len(beta) == 1:
            totals = sizes[:, None] * beta
        else:
            totals = np.add.reduceat(beta, np.concatenate([[0], np.cumsum(sizes[:-1]).astype(int)]), axis=0)
        # A copy: a broadcast array is read-only, and a kernel would be compiled again for it.
        return np.array(np.broadcast_to(totals, (len(sizes), self.n_components)), order="C")

    def profile(self, X: Matrix) -> Array:
        return profile_of_shares(X)

    # Readouts

    def readout(self, name: str, prior: MultinomialPrior, totals: Counts) -> Logs:
        """Return parameters of the named kind for totals (not means per row)."""
        return MultinomialParameters.of(name, prior, totals, self.groups)

    def select_parameters(self, parameters: Logs, order: Index) -> Logs:
        """Return the parameters of some of the components."""
        prior, norm = self.select_prior(parameters.prior, order), np.ascontiguousarray(parameters.norm[:, order])
        return MultinomialParameters(parameters.code, prior, parameters.table.permuted(order), norm, parameters.groups)

    def from_probabilities(self, probabilities: Array) -> Logs:
        """Return parameters with these probabilities (K, V)."""
        nothing = np.zeros((1, 1))
        zeros = np.zeros((self.n_groups, self.n_components))
        prior = MultinomialPrior(nothing, nothing, zeros, zeros, np.array([[float(probabilities.shape[1])]]))
        table = Table.of_dense(np.array(probabilities.T, order="C"))
        return MultinomialParameters(READOUTS["mean"], prior, table, zeros, self.groups)

    def log_prior(self, prior: MultinomialPrior, parameters: Logs) -> float:
        """Return what MAP-EM adds to the likelihood."""
        excess = prior.beta - prior.shift
        if not excess.any():
            return 0.0
        return float((excess * parameters.all()).sum())

    def divergence(self, prior: MultinomialPrior, totals: MultinomialStatistics) -> float:
        """Return KL(belief || prior), the penalty in the free energy."""
        return divergence(prior, totals)

    def probabilities(self, parameters: Logs) -> Array:
        """Probabilities (K, V) of parameters that are logarithms."""
        return np.exp(parameters.all().T)

    # Rows

    def estep(
        self,
        parameters: Logs,
        log_weights: Array,
        batch: Batch,
        totals: Counts | None = None,
        scores: Array = EMPTY,
        responsibilities: Array = EMPTY_TABLE,
        given: bool = False,
        n_threads: int | None = None,
    ) -> tuple[float, Counts | None]:
        """Fill `scores` and `responsibilities`; return the weighted score and `totals` with the rows added."""
        X = batch.X
        if not isinstance(X, SparseRows):
            if (given or parameters.code != PREDICTIVE) and not worth_thinning(X):
                score, count, rows = dense_estep(
                    parameters, log_weights, batch, totals is not None, scores, responsibilities, given, n_threads
                )
                if totals is None:
                    return score, None
                words = np.arange(X.shape[1], dtype=np.int32)
                return score, self._added(totals, count, words, rows, words + np.int32(1))
            X = drop_zeros(X)
        k, held = self.n_components, slice(int(X.indptr[0]), int(X.indptr[-1]))
        data, indices, indptr = X.data[held], X.indices[held], X.indptr - X.indptr[0]
        if X.nnz >= 4 * X.width:
            words = np.arange(X.width, dtype=np.int32)
            slots, local = words + np.int32(1), indices
            table = EMPTY_TABLE if given else parameters.all(n_threads)
        else:
            words, local = np.empty(X.nnz, dtype=np.int32), np.empty(X.nnz, dtype=np.int32)
            slots = np.zeros(X.width, dtype=np.int32)
            words = words[: gather_words(indices, slots, words, local)].copy()
            table = EMPTY_TABLE if given else parameters.at(words, n_threads)
        edges = slab_edges(X, len(words), k)
        learning = totals is not None
        counts = [np.zeros(k if learning else 0) for _ in edges[1:]]
        targets = [np.zeros((len(words), k) if learning else (0, 0)) for _ in edges[1:]]

        def work(slab: int) -> float:
            rows = (int(edges[slab]), int(edges[slab + 1]))
            if not given and parameters.code == PREDICTIVE:
                return estep_polya(
                    indptr, indices, local, data, *rows, table, parameters.norm, self.groups, log_weights,
                    batch.weights, batch.labels, scores, responsibilities, counts[slab], targets[slab],
                )  # fmt: skip
            return estep_sparse(
                indptr, local, data, *rows, table, log_weights, batch.weights, batch.labels, scores, responsibilities,
                given, counts[slab], targets[slab],
            )  # fmt: skip

        score = float(sum(run_tasks(work, range(len(edges) - 1), n_threads)))
        if totals is None:
            return score, None
        for count, target in zip(counts[1:], targets[1:], strict=True):
            counts[0] += count
            targets[0] += target
        return score, self._added(totals, counts[0], words, targets[0], slots)

    def _added(
        self, totals: MultinomialStatistics, count: Array, words: Words, rows: Array, slots: NDArray[np.int32]
    ) -> MultinomialStatistics:
        length = np.zeros_like(totals.length)
        group_sums(words, rows, self.groups, length)
        table = totals.table + Table.of_words(len(slots), words, rows, slots)
        return replace(totals, count=totals.count + count, length=totals.length + length, table=table)

    def log_densities(self, parameters: Logs, X: Matrix) -> Array:
        """Return the log-probability of each row under each component."""
        return log_densities_by_estep(self, parameters, X)

    def collect(self, parameters: Logs, X: Matrix, responsibilities: Array) -> Counts:
        """Statistics of rows whose responsibilities are known."""
        return collect_by_estep(self, parameters, Batch(X), responsibilities)

    def collect_seeds(self, geometry: RowGeometry, batch: Batch, responsibilities: Array) -> Counts:
        """Statistics of rows whose responsibilities are known: counts, whatever the parameters."""
        blank = self.from_probabilities(np.empty((self.n_components, 0)))
        return collect_by_estep(self, blank, batch, responsibilities)

    def sweep(
        self,
        name: str,
        prior: MultinomialPrior,
        concentration: Array,
        batch: Batch,
        steps: Array,
        gains: Array,
        n_eff: float,
        statistics: MultinomialStatistics,
        average: MultinomialStatistics | None,
        scores: Array,
    ) -> tuple[MultinomialStatistics, MultinomialStatistics | None, float]:
        """Learn row by row; return statistics and average as means per row, and n_eff."""
        for begin, end in stretches(batch, steps, gains):
            rows = slice(begin, end)
            take = self._replaced if steps[begin] >= 1.0 else self._swept
            statistics, average, n_eff = take(
                name, prior, concentration, batch[rows], steps[rows], gains[rows], n_eff, statistics, average,
                scores[rows],
            )  # fmt: skip
        return statistics, average, n_eff

    def _replaced(
        self, name: str, prior: MultinomialPrior, concentration: Array, batch: Batch, steps: Array, gains: Array,
        n_eff: float, statistics: MultinomialStatistics, average: MultinomialStatistics | None, scores: Array,
    ) -> tuple[MultinomialStatistics, MultinomialStatistics | None, float]:  # fmt: skip
        """Learn a row with a step of 1: the statistics before give its responsibilities, and are replaced."""
        totals, log_weights = statistics.scaled(n_eff), np.empty(self.n_components)
        weights_readout(READOUTS[name], concentration, totals.count, log_weights)
        parameters = self.readout(name, prior, totals)
        _, found = self.estep(parameters, log_weights, batch, self.zeros(batch.X.shape[1]), scores, n_threads=1)
        assert found is not None
        learned = found.scaled(1.0 / batch.size)
        return learned, None if average is None else average.averaged(learned, float(gains[0])), batch.size

    def _swept(
        self, name: str, prior: MultinomialPrior, concentration: Array, batch: Batch, steps: Array, gains: Array,
        n_eff: float, statistics: MultinomialStatistics, average: MultinomialStatistics | None, scores: Array,
    ) -> tuple[MultinomialStatistics, MultinomialStatistics | None, float]:  # fmt: skip
        X = (batch.X if isinstance(batch.X, SparseRows) else drop_zeros(batch.X)).copy()
        (_, width), k, code = X.shape, self.n_components, READOUTS[name]
        slots, words, local = np.zeros(width, dtype=np.int32), np.empty(X.nnz, dtype=np.int32), np.empty(X.nnz, dtype=np.int32)
        words = words[: gather_words(X.indices, slots, words, local)].copy()
        table = statistics.table if SMALL < statistics.table.factor < 1.0 / SMALL else statistics.table.copy()
        count, length = statistics.count.copy(), statistics.length / table.factor
        share, rest, moving = 0.0, Table.zeros(width, k), (np.empty(0), EMPTY_TABLE)
        if average is not None:
            moving = (average.count.copy(), average.length.copy())
            if gains[0] < 1.0:
                share, rest = split_average(average.table, table)
        mode = code == READOUTS["mode"]
        with table.opened(words) as (table, slots, rows), rest.opened(words) as (rest, rest_slots, rest_rows):
            n_eff, factor, share, rest_factor = sweep_sparse(
                X.indptr, X.indices, X.data, batch.weights, batch.labels, code, concentration, prior.beta, prior.shift,
                prior.totals - prior.shift_totals if mode else prior.totals, prior.floors, self.groups, steps, gains, n_eff,
                count, length, slots, rows, table.factor, *moving, rest_slots, rest_rows, share, rest.factor, scores,
            )  # fmt: skip
        learned = MultinomialStatistics.of(count, length * factor, table.rescaled(factor))
        if average is None:
            return learned, None, n_eff
        blend = Blend(table.rescaled(share), rest.rescaled(rest_factor))
        return learned, MultinomialStatistics.of(*moving, blend), n_eff

    def sample(self, parameters: Logs, components: NDArray[np.int64], rng: np.random.Generator, *options: Matrix) -> Array:
        """Draw a row from each of the listed components, with as many counts as the option says."""
        rows = np.empty((len(components), parameters.table.shape[0]))
        sizes = np.broadcast_to(options[0], (len(components),))
        for k, probabilities in enumerate(self.probabilities(parameters)):
            own = components == k
            rows[own] = rng.multinomial(sizes[own], probabilities / probabilities.sum())
        return rows
