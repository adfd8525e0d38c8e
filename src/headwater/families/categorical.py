"""Rows that are one symbol each: multinomials of a single count, which are looked up instead of multiplied out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import Batch
from headwater.core.statistics import Array
from headwater.core.values import Index, Matrix, Values
from headwater.families.category_entries import CategoryEntries
from headwater.families.components import ComponentStatistics
from headwater.families.conditional_law import ConditionalLaw, IndependentColumns, Mask, Places
from headwater.families.entry_law import EntryLaw
from headwater.families.family import EMPTY, EMPTY_TABLE
from headwater.families.geometry import RowGeometry
from headwater.families.multinomial import ONE_GROUP, Multinomial
from headwater.families.multinomial_records import MultinomialPrior, norms
from headwater.families.row_profile import profile_of_categories
from headwater.families.soundness import NO_PARAMETERS, OTHER_LENGTHS, SLACK, are_no_logs, find_count_problem
from headwater.kernels.chain_sweep import sweep_symbols
from headwater.kernels.chains import add_symbols
from headwater.kernels.mixture import LOWEST, READOUTS
from headwater.kernels.multinomial import word_table

CONTEXTS = 128  # most frequent symbols that contexts are described by
DIRECTIONS = 16  # principal directions of contexts, at most


@dataclass(frozen=True)
class CategoricalStatistics(ComponentStatistics):
    """Rows (K,), the same as counts of the one group of columns (1, K), and of each symbol (V, K), per component.

    A plain array: there are few symbols, so the table of the multinomial family is not needed.
    """

    length: Array
    table: Array


@dataclass(frozen=True)
class CategoricalParameters:
    """Log-probabilities (V, K), or what a readout puts in their place."""

    logs: Array


@dataclass(frozen=True)
class Contexts:
    """Symbols for a start: each described by what comes before and after it, in principal directions."""

    symbols: NDArray[np.int64]
    places: Array  # of each symbol that occurs
    scale: float = 1.0

    def views(self, rows: NDArray[np.int64]) -> tuple[Array, ...]:
        """Some rows, each at the place of its symbol."""
        return (self.places[self.symbols[rows]],)


@dataclass(frozen=True)
class Categorical(Multinomial):
    """The family of rows (n, 1) that hold a symbol each. Prior and beliefs are the multinomial's."""

    n_symbols: int = 1

    row_columns = 1

    def n_parameters(self, width: int) -> int:
        """Number of free parameters of all components."""
        return super().n_parameters(self.n_symbols)

    def row_bytes(self, width: int) -> int:
        """Memory of a row that waits."""
        return 8

    def blank_prior(self, width: int) -> MultinomialPrior:
        """A prior of the right shape."""
        return self.make_prior(self.n_symbols)

    def find_problem(self, record: object, width: int) -> str:
        """What is wrong with a record read from a file; "" if nothing is."""
        if isinstance(record, CategoricalStatistics):
            sums = record.table.sum(axis=0)  # of one symbol a row
            apart = max(np.abs(sums - record.length[0]).max(), np.abs(sums - record.count).max()) > SLACK
            return OTHER_LENGTHS if apart else find_count_problem(record.count, record.table)
        if isinstance(record, CategoricalParameters):
            return NO_PARAMETERS if are_no_logs(record.logs.T) else ""
        return super().find_problem(record, self.n_symbols)

    def zeros(self, width: int) -> CategoricalStatistics:
        """Return statistics that hold nothing."""
        k = self.n_components
        return CategoricalStatistics.of(np.zeros(k), np.zeros((1, k)), np.zeros((self.n_symbols, k)))

    def select_statistics(self, statistics: CategoricalStatistics, order: Index) -> CategoricalStatistics:
        """Return statistics with the components in another order."""
        parts = (statistics.count, statistics.length, statistics.table)
        return CategoricalStatistics(statistics.from_base.copy(), *(np.ascontiguousarray(part[..., order]) for part in parts))

    def prior(self, geometry: RowGeometry, batch: Batch, responsibilities: Array) -> MultinomialPrior:
        """The user's prior, or a part of a count for every symbol."""
        return self.make_prior(self.n_symbols)

    def geometry(self, batch: Batch) -> Contexts:
        """Return the symbols that occur with their contexts, among the most frequent symbols, under the Hellinger distance."""
        found, symbols, times = np.unique(batch.X[:, 0], return_inverse=True, return_counts=True)
        number, frequent = len(found), min(len(found), CONTEXTS)
        rank = np.empty(number, dtype=np.int64)
        rank[np.argsort(-times, kind="stable")] = np.arange(number)
        near = np.minimum(rank, frequent - 1)[symbols]
        contexts = [
            np.bincount(one * frequent + other, minlength=number * frequent).reshape(number, frequent)
            for one, other in ((symbols[:-1], near[1:]), (symbols[1:], near[:-1]))
        ]
        places = np.hstack(contexts) + 1e-3
        places = np.sqrt(places / places.sum(axis=1, keepdims=True))
        mass = times / len(symbols)
        centred = places - mass @ places
        _, vectors = np.linalg.eigh((mass[:, None] * centred).T @ centred)
        return Contexts(symbols, centred @ vectors[:, ::-1][:, :DIRECTIONS])

    # Readouts

    def readout(self, name: str, prior: MultinomialPrior, totals: CategoricalStatistics) -> CategoricalParameters:
        """Return parameters of the named kind for totals (not means per row)."""
        logs, code = np.empty((self.n_symbols, self.n_components)), READOUTS[name]
        words = np.arange(self.n_symbols, dtype=np.int32)
        norm = norms(code, prior, totals.length)
        word_table(code, words + np.int32(1), totals.table, 1.0, words, prior.beta, prior.shift, norm, ONE_GROUP, logs)
        return CategoricalParameters(logs)

    def select_parameters(self, parameters: CategoricalParameters, order: Index) -> CategoricalParameters:
        """Return the parameters of some of the components."""
        return CategoricalParameters(np.ascontiguousarray(parameters.logs[:, order]))

    def from_probabilities(self, probabilities: Array) -> CategoricalParameters:
        """Return parameters with these probabilities (K, V)."""
        with np.errstate(divide="ignore"):
            return CategoricalParameters(np.maximum(np.log(np.array(probabilities.T, order="C")), LOWEST))

    def probabilities(self, parameters: CategoricalParameters) -> Array:
        """Probabilities (K, V) of parameters."""
        return np.exp(parameters.logs.T)

    def log_prior(self, prior: MultinomialPrior, parameters: CategoricalParameters) -> float:
        """Return what MAP-EM adds to the likelihood."""
        excess = prior.beta - prior.shift
        return float((excess * parameters.logs).sum()) if excess.any() else 0.0

    # Rows

    def estep(
        self,
        parameters: CategoricalParameters | None,
        log_weights: Array,
        batch: Batch,
        totals: CategoricalStatistics | None = None,
        scores: Array = EMPTY,
        responsibilities: Array = EMPTY_TABLE,
        given: bool = False,
        n_threads: int | None = None,
    ) -> tuple[float, CategoricalStatistics | None]:
        """Add to `totals`, fill `scores` and `responsibilities`; return the score and `totals`."""
        symbols = batch.X[:, 0].astype(np.int64)
        score, shares = 0.0, responsibilities
        if not given:
            assert parameters is not None
            joint = np.maximum(parameters.logs + log_weights, LOWEST)
            peak = joint.max(axis=1)
            table = np.exp(joint - peak[:, None])
            sums = table.sum(axis=1)
            levels = peak + np.log(sums)
            table /= sums[:, None]
            found = np.take(levels, symbols, out=scores if scores.size else None)
            score = float(found.sum())
            if responsibilities.size or totals is not None:
                shares = np.take(table, symbols, axis=0, out=responsibilities if responsibilities.size else None)
        if totals is not None:
            counts = np.zeros((self.n_symbols, self.n_components))
            add_symbols(symbols, shares, counts)
            totals.table[...] += counts
            totals.count[...] += counts.sum(axis=0)
            totals.length[...] += counts.sum(axis=0)
        return score, totals

    def collect(self, parameters: CategoricalParameters | None, X: Matrix, responsibilities: Array) -> CategoricalStatistics:
        """Statistics of rows whose responsibilities are known."""
        totals = self.zeros(1)
        self.estep(parameters, EMPTY, Batch(X), totals, responsibilities=responsibilities, given=True)  # it adds in place
        return totals

    def collect_seeds(self, geometry: RowGeometry, batch: Batch, responsibilities: Array) -> CategoricalStatistics:
        """Statistics of rows whose responsibilities are known."""
        return self.collect(None, batch.X, responsibilities)

    def sample(
        self, parameters: CategoricalParameters, components: NDArray[np.int64], rng: np.random.Generator, *_: Values
    ) -> Array:
        """Draw a symbol from each of the listed components."""
        running = np.cumsum(self.probabilities(parameters), axis=1)
        running /= running[:, -1:]
        symbols = np.empty(len(components))
        for k in range(self.n_components):
            own = components == k
            symbols[own] = np.searchsorted(running[k], rng.uniform(size=int(own.sum())), side="right")
        return np.minimum(symbols, self.n_symbols - 1)[:, None]

    def profile(self, X: Matrix) -> Array:
        return profile_of_categories(np.asarray(X))

    # Chains

    def log_densities(self, parameters: CategoricalParameters, X: Matrix) -> Array:
        """Return the log-density of each row under each component, however small."""
        return np.take(parameters.logs, X[:, 0].astype(np.int64), axis=0)

    def conditional(self, parameters: CategoricalParameters, X: Matrix, missing: Mask) -> ConditionalLaw:
        """Return the law of missing symbols under each component."""
        logs = np.ascontiguousarray(parameters.logs.T[:, None])

        def law_of(rows: Places, columns: Places) -> EntryLaw:
            return CategoryEntries(logs, (self.n_symbols,), columns)

        return IndependentColumns(np.where(missing, 0.0, X), missing, self.n_components, law_of)

    def flat(self, statistics: CategoricalStatistics) -> Array:
        """Return statistics as one row of numbers, the counts first."""
        return np.concatenate([statistics.count, statistics.table.ravel()])

    def unflat(self, row: Array, width: int) -> CategoricalStatistics:
        """Return the statistics that such a row holds."""
        count, table = row[: self.n_components].copy(), row[self.n_components :].reshape(self.n_symbols, -1)
        return CategoricalStatistics.of(count, count[None].copy(), table.copy())

    def sweep_chain(
        self, name: str, prior: MultinomialPrior, chain: tuple[Array, ...], X: Array, steps: Array, gains: Array, n_eff: float,
        known: bool, now: Array, given: Array, mean: Array, average: Array, scores: Array,
    ) -> tuple[float, Array]:  # fmt: skip
        """Learn the rows of a sequence one by one (see kernels/chain_sweep.py)."""
        shape = (self.n_symbols, self.n_components)
        # A copy: a broadcast array is read-only, and a kernel would be compiled again for it.
        beta, shift = (np.array(np.broadcast_to(part, shape), order="C") for part in (prior.beta, prior.shift))
        sums = (prior.totals - prior.shift_totals if name == "mode" else prior.totals)[0]
        symbols = np.where(np.isnan(X[:, 0]), -1.0, X[:, 0]).astype(np.int64)
        return sweep_symbols(
            symbols, READOUTS[name], chain, beta, shift, sums, steps, gains, n_eff, known, now, given, mean, average, scores
        )
