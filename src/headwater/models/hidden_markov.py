"""Hidden Markov chain: K states, each with a component of a family, first-state and transition probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from headwater.core.average import fold_share
from headwater.core.batch import Batch
from headwater.core.contracts import EXACT, NO_SCORES, Inference, Start, StartSettings
from headwater.core.gapped_rows import find_absent
from headwater.core.state import Summary
from headwater.core.statistics import Array, widest_form
from headwater.core.values import Index, Matrix
from headwater.families.capabilities import SweepsChains
from headwater.families.geometry import RowGeometry
from headwater.kernels.chains import draw_path
from headwater.kernels.parallel import one_blas_thread
from headwater.models import chain_soundness as soundness
from headwater.models.chain_records import (
    TINY,
    Carry,
    ChainParameters,
    ChainPrior,
    ChainStatistics,
    dirichlet,
    divergence,
    log_density,
    shares_of,
)
from headwater.models.chain_smoothing import EMPTY, IMPOSSIBLE, NO_POSTERIORS, Smoother, by_group
from headwater.models.chain_start import start_chain

STRETCH = 2**16  # rows that are scored at once
MANY_STATES = 64  # beyond which a stretch is shorter

# Restores the parameters that are not learned: (new ones, fixed ones, rows of each state).
Hold: TypeAlias = Callable[[ChainParameters, ChainParameters, Array], ChainParameters]


@dataclass(frozen=True)
class HiddenMarkov(Smoother):
    """The model: pure functions of parameters, statistics and rows.

    A prior that is None is a tenth of a count. `hold` restores parameters that are not learned.
    """

    start_prior: Array | float | None = None
    steps_prior: Array | float | None = None
    lag: int = 50
    hold: Hold | None = None

    chained = True
    spares_states = True  # whether some can be left out, and the others are a chain

    @property
    def ways(self) -> frozenset[tuple[str, str]]:
        return frozenset(("exact", name) for name in ("mode", "mean", "expect_log") if name in self.family.readouts)

    @property
    def has_prior(self) -> bool:
        """Whether the user gave any part of the prior."""
        return self.start_prior is not None or self.steps_prior is not None or self.family.has_prior

    def n_parameters(self, width: int) -> int:
        """Number of free parameters."""
        return self.family.n_parameters(width) + self.n_components**2 - 1

    def row_bytes(self, width: int) -> int:
        """Memory of a row that waits."""
        return self.family.row_bytes(width) + 8

    def is_beyond(self, prior: ChainPrior, X: Matrix) -> bool:
        """Whether no number holds the squares of some of these rows."""
        return self.family.is_beyond(prior.emissions, X)

    # Priors and readouts

    def blank_prior(self, width: int) -> ChainPrior:
        """A prior of the right shape."""
        k = self.n_components
        prior: ChainPrior = ChainPrior(
            np.ones(k), np.ones((k, k)), np.zeros(k), np.zeros((k, k)), self.family.blank_prior(width)
        )
        return prior if self.hold is None else replace(prior, fixed=self.readout("mean", prior, self.zeros(width), 1.0))

    def blank_carry(self, statistics: ChainStatistics) -> Carry:
        """What is carried of one sequence, in the shape that it has beside such statistics."""
        k = self.n_components
        if not isinstance(self.family, SweepsChains):
            return Carry({0: np.zeros(k)})
        size = len(self.flat(statistics))
        return Carry({0: np.zeros(k)}, {0: (np.zeros((k, size)), np.zeros(size), 0.0)})

    def find_problem(self, record: object, width: int) -> str:
        """What is wrong with a record read from a file; "" if nothing is."""
        if isinstance(record, Carry):
            return soundness.find_carry_problem(record) or self._find_apart_problem(record, width)
        if isinstance(record, ChainPrior):
            problem = soundness.find_prior_problem(record)
            fixed = "" if problem or record.fixed is None else self.find_problem(record.fixed, width)
            return problem or fixed or self.family.find_problem(record.emissions, width)
        if isinstance(record, ChainParameters):
            return soundness.find_parameters_problem(record) or self.family.find_problem(record.emissions, width)
        assert isinstance(record, ChainStatistics)
        return soundness.find_statistics_problem(record) or self.family.find_problem(record.emissions, width)

    def _find_apart_problem(self, record: Carry, width: int) -> str:
        """What is wrong with the statistics that are kept apart of open sequences."""
        rows = (row for given, mean, _ in record.apart.values() for row in (*given, mean))
        return next(filter(None, (self.find_problem(self._unflat(row, width), width) for row in rows)), "")

    def prior(self, geometry: RowGeometry, batch: Batch, responsibilities: Array) -> ChainPrior:
        """The user's prior, completed in the scale of rows that were seeded with these responsibilities."""
        k = self.n_components
        start, start_shift = dirichlet(self.start_prior, (k,))
        steps, steps_shift = dirichlet(self.steps_prior, (k, k))
        return ChainPrior(start, steps, start_shift, steps_shift, self.family.prior(geometry, batch, responsibilities))

    def flatten_prior(self, prior: ChainPrior) -> ChainPrior:
        """The prior with only the parts that the user gave: without any, its mode is maximum likelihood."""
        if self.start_prior is None:
            prior = replace(prior, start_shift=prior.start)
        if self.steps_prior is None:
            prior = replace(prior, steps_shift=prior.steps)
        flatten = self.family.flatten_parts if self.family.has_prior else self.family.flatten_prior
        return replace(prior, emissions=flatten(prior.emissions))

    def readout(self, name: str, prior: ChainPrior, statistics: ChainStatistics, count: float) -> ChainParameters:
        """Parameters of the belief prior + count * statistics: "mode", "mean" or "expect_log"."""
        totals = statistics if count == 1.0 else statistics.scaled(count)
        parameters = ChainParameters(
            shares_of(name, prior.start, prior.start_shift, totals.start),
            shares_of(name, prior.steps, prior.steps_shift, totals.steps),
            self.family.readout(name, prior.emissions, totals.emissions),
        )
        if prior.fixed is None:
            return parameters
        assert self.hold is not None
        return self.hold(parameters, prior.fixed, totals.emissions.count)

    def objective(
        self, name: str, prior: ChainPrior, parameters: ChainParameters, statistics: ChainStatistics, count: float
    ) -> float:
        """The term that makes the summed score an objective that passes of the named readout never lower."""
        if name == "expect_log":
            totals = statistics.scaled(count)
            chain = divergence(prior.start, totals.start[None]) + divergence(prior.steps, totals.steps)
            return -float(chain + self.family.divergence(prior.emissions, totals.emissions))
        if name == "mode":
            chain = log_density(prior.start - prior.start_shift, parameters.start)
            chain += log_density(prior.steps - prior.steps_shift, parameters.transitions)
            return chain + self.family.log_prior(prior.emissions, parameters.emissions)
        return 0.0

    # Merging

    def common_prior(self, priors: Sequence[ChainPrior]) -> ChainPrior:
        """Return the prior of models that are merged: that of the first, but for what their families hold in common."""
        emissions = self.family.common_prior([prior.emissions for prior in priors])
        return priors[0] if emissions is priors[0].emissions else replace(priors[0], emissions=emissions)

    def move_to_prior(self, prior: ChainPrior, own: ChainPrior, statistics: ChainStatistics) -> ChainStatistics:
        """Return statistics that were gathered under the prior `own` about the origin of another."""
        return replace(statistics, emissions=self.family.move_to_prior(prior.emissions, own.emissions, statistics.emissions))

    def select_statistics(self, statistics: ChainStatistics, order: Index) -> ChainStatistics:
        """Return statistics with the states in another order."""
        emissions = self.family.select_statistics(statistics.emissions, order)
        steps = np.ascontiguousarray(statistics.steps[np.ix_(np.asarray(order), np.asarray(order))])
        return ChainStatistics(statistics.from_base.copy(), statistics.start[order], steps, emissions)

    def select_prior(self, prior: ChainPrior, order: Index) -> ChainPrior:
        """Return the prior of some of the states."""
        pairs = np.ix_(np.asarray(order), np.asarray(order))
        return ChainPrior(
            prior.start[order], prior.steps[pairs], prior.start_shift[order], prior.steps_shift[pairs],
            self.family.select_prior(prior.emissions, order),
            None if prior.fixed is None else self.select_parameters(prior.fixed, order),
        )  # fmt: skip

    def select_parameters(self, parameters: ChainParameters, order: Index) -> ChainParameters:
        """Return the parameters of some of the states, whose probabilities sum to one again."""
        start, transitions = parameters.start[order], parameters.transitions[np.ix_(np.asarray(order), np.asarray(order))]
        transitions = transitions / transitions.sum(axis=1, keepdims=True)
        return ChainParameters(start / start.sum(), transitions, self.family.select_parameters(parameters.emissions, order))

    def separation(self, prior: ChainPrior, totals: ChainStatistics, others: ChainStatistics) -> Array:
        """Symmetric divergence (K, K) of the beliefs about the components of these states and of those."""
        return np.asarray(self.family.separation(prior.emissions, totals.emissions, others.emissions))

    def contrast(self, prior: ChainPrior, totals: ChainStatistics, others: ChainStatistics) -> Array:
        """Symmetric divergence (K,) of the densities of each state here and there, in nats a row."""
        return self.family.contrast(prior.emissions, totals.emissions, others.emissions)

    # Rows

    def start(self, batch: Batch, key: int, settings: StartSettings, n_threads: int | None = None) -> Start:
        """Find a prior and parameters to start from on the rows of a warm-up."""
        with one_blas_thread():
            return start_chain(self, batch, key, settings, n_threads)

    def summarize(
        self,
        parameters: ChainParameters,
        batch: Batch,
        pending: Summary | None = None,
        scores: Array = NO_SCORES,
        n_threads: int | None = None,
        inference: Inference = EXACT,
    ) -> Summary:
        """E-step over complete sequences in memory: Baum-Welch."""
        totals, score = self._passed(parameters, batch, True, scores, NO_POSTERIORS, n_threads)
        return Summary(totals, len(batch), batch.size, score)

    def summarize_open(
        self, parameters: ChainParameters, batch: Batch, carry: Carry | None, rows: int, n_threads: int | None = None
    ) -> tuple[Summary, Carry]:
        """E-step of the first `rows` rows, given those after them, and what was carried. Returns what is to be carried on."""
        carry = carry or Carry()
        order, edges, ids = by_group(batch.sequences, len(batch))
        if order is not None:
            batch = batch[order]
        known, filters = self._carried(carry, ids)
        places = np.arange(len(batch)) if order is None else order
        counted = np.add.reduceat((places < rows).astype(np.int64), edges[:-1])
        found = self.filtered(parameters, batch.X, edges, known, filters, n_threads)
        shares, scores = found.shares, found.scores
        totals = self.zeros(batch.X.shape[1])
        self.passages.smooth(found, parameters, edges, known, filters, counted, totals.start, totals.steps)
        totals.steps[...] *= parameters.transitions
        counts = places < rows
        own = slice(0, rows) if order is None else counts
        totals = self.collected(parameters, batch.X[own], shares[own], totals, n_threads)
        after = dict(carry.filters)
        for at, number in enumerate(ids.tolist()):
            if counted[at] and (number >= 0 or counted[at] < edges[at + 1] - edges[at]):
                after[number] = filters[at]
            elif counted[at]:
                after.pop(number, None)
        return Summary(totals, rows, float(rows), float(scores[counts].sum())), Carry(after)

    def follow(
        self,
        parameters: ChainParameters,
        batch: Batch,
        carry: Carry | None,
        scores: Array = NO_SCORES,
        filtered: Array = NO_POSTERIORS,
        n_threads: int | None = None,
    ) -> Carry:
        """Filter rows that follow what was carried: fill the log-score of each, and its states given the rows so far."""
        carry = carry or Carry()
        order, edges, ids = by_group(batch.sequences, len(batch))
        X = batch.X if order is None else batch.X[order]
        known, filters = self._carried(carry, ids)
        shares, _, found, _ = self.filtered(parameters, X, edges, known, filters, n_threads)
        found[find_absent(X)] = 0.0  # whatever a variational bound makes of time that passes
        for target, values in ((scores, found), (filtered, shares)):
            if target.size:
                target[slice(None) if order is None else order] = values
        after = dict(carry.filters)
        for at, number in enumerate(ids.tolist()):
            after[number] = shares[edges[at + 1] - 1].copy()
        last = int(batch.sequences[-1]) if batch.sequences.size else 0
        after = {number: states for number, states in after.items() if number >= 0 or number == last}
        return replace(carry, filters=after)

    @property
    def _stretch(self) -> int:
        """Rows that are scored at once: fewer of many states."""
        return STRETCH // max(1, self.n_components // MANY_STATES)

    def log_likelihood(self, parameters: ChainParameters, batch: Batch, n_threads: int | None = None) -> Array:
        """Log-score of every row, given those before it in its sequence; in stretches, so that memory does not grow."""
        scores, carry = np.empty(len(batch)), None
        for at in range(0, len(batch), self._stretch):
            rows = slice(at, at + self._stretch)
            carry = self.follow(parameters, batch[rows], carry, scores[rows], n_threads=n_threads)
        return scores

    def last_states(self, parameters: ChainParameters, batch: Batch, n_threads: int | None = None) -> Array:
        """States (K,) at the last row, given all rows of its sequence; in stretches, so that memory does not grow."""
        carry: Carry | None = None
        for at in range(0, len(batch), self._stretch):
            carry = self.follow(parameters, batch[at : at + self._stretch], carry, n_threads=n_threads)
        assert carry is not None
        return carry.filters[int(batch.sequences[-1])]

    def posterior(self, parameters: ChainParameters, batch: Batch, n_threads: int | None = None) -> Array:
        """States (n, K) of every row, given all rows of its sequence."""
        return self.smoothed(parameters, batch, NO_SCORES, n_threads)

    def smoothed(self, parameters: ChainParameters, batch: Batch, scores: Array, n_threads: int | None = None) -> Array:
        """The same, with the log-scores of the rows."""
        posteriors = np.empty((len(batch), self.n_components))
        self._passed(parameters, batch, False, scores, posteriors, n_threads)
        return posteriors

    def best(self, parameters: ChainParameters, batch: Batch, n_threads: int | None = None) -> tuple[float, NDArray[np.int64]]:
        """The most probable path of states (Viterbi), and its log-probability with the rows."""
        order, edges, _ = by_group(batch.sequences, len(batch))
        X = batch.X if order is None else batch.X[order]
        total, path = self.passages.best(parameters, self.log_densities_of(parameters, X), edges)
        if order is not None:
            path[order] = path.copy()
        return float(total) if total > IMPOSSIBLE else -np.inf, path

    def sweeps(self, inference: Inference) -> bool:
        """Whether rows can be learned one by one in a kernel."""
        return isinstance(self.family, SweepsChains)

    @property
    def _sweeping(self) -> SweepsChains:
        return cast(SweepsChains, self.family)

    def sweep_open(
        self,
        name: str,
        prior: ChainPrior,
        statistics: ChainStatistics,
        average: ChainStatistics | None,
        n_eff: float,
        batch: Batch,
        steps: Array,
        gains: Array,
        scores: Array,
        carry: Carry | None,
    ) -> tuple[ChainStatistics, ChainStatistics | None, float, Carry]:
        """Learn row by row (paper 002): the statistics of a row are known only when the next state is known.

        Returns statistics, average, n_eff and what is carried on: how statistics differ with the state of each sequence.
        """
        carry = carry or Carry()
        filters, apart, left = dict(carry.filters), dict(carry.apart), carry.left
        width, k = batch.X.shape[1], self.n_components
        if self.family.takes_gaps and np.isnan(batch.X[~find_absent(batch.X)]).any():
            statistics, average = _widest(statistics), None if average is None else _widest(average)
            apart = {number: self._widen(parts, width) for number, parts in apart.items()}
        mean, moving = self.flat(statistics), EMPTY if average is None else self.flat(average)
        chain = (prior.start, prior.steps, prior.start_shift, prior.steps_shift)
        sequences = batch.sequences if batch.sequences.size else np.zeros(len(batch), dtype=np.int64)
        edges = np.concatenate([[0], np.flatnonzero(np.diff(sequences)) + 1, [len(batch)]])
        keeps = np.cumsum(np.concatenate([[left], np.log(np.maximum(1.0 - steps, TINY))]))
        for begin, end in pairwise(edges.tolist()):
            run, number = slice(begin, end), int(sequences[begin])
            known = number in filters
            now = filters[number].copy() if known else np.full(k, 1.0 / k)
            given = np.tile(mean, (k, 1))
            if number in apart:
                known_then, mean_then, before = apart[number]
                if np.array_equal(mean_then, mean):  # nothing else was learned since
                    given = known_then.copy()
                else:
                    given += (known_then - mean_then) * np.exp(keeps[begin] - before)
            n_eff, given = self._sweeping.sweep_chain(
                name, prior.emissions, chain, np.ascontiguousarray(batch.X[run]), steps[run], gains[run], n_eff, known, now,
                given, mean, moving, scores[run],
            )  # fmt: skip
            filters[number], apart[number] = now, (given, mean.copy(), float(keeps[end]))
        for number in [number for number in filters if number < 0 and number != sequences[-1]]:
            del filters[number]
            apart.pop(number, None)
        learned, averaged = self._unflat(mean, width), None if average is None else self._unflat(moving, width)
        fold_share(statistics, learned, average, averaged, steps, gains)
        return learned, averaged, n_eff, Carry(filters, apart, float(keeps[-1]))

    def flat(self, statistics: ChainStatistics) -> Array:
        """Return all numbers of statistics in one array, as kernels that learn row by row hold them."""
        return np.concatenate([statistics.start, statistics.steps.ravel(), self._sweeping.flat(statistics.emissions)])

    def _widen(self, parts: tuple[Array, Array, float], width: int) -> tuple[Array, Array, float]:
        """Return what is kept apart of a sequence in the form to which rows with gaps can be added."""
        given, mean = (
            np.array([self.flat(_widest(self._unflat(row, width))) for row in rows]) for rows in (parts[0], parts[1][None])
        )
        return given, mean[0], parts[2]

    def _unflat(self, row: Array, width: int) -> ChainStatistics:
        k = self.n_components
        emissions = self._sweeping.unflat(row[k * (k + 1) :], width)
        return ChainStatistics(np.zeros(1), row[:k].copy(), row[k : k * (k + 1)].reshape(k, k).copy(), emissions)

    def sample(
        self, parameters: ChainParameters, rows: int, rng: np.random.Generator, first: int | None = None
    ) -> tuple[Array, NDArray[np.int64]]:
        """Draw a sequence of rows and its states."""
        states = np.full(rows, -1 if first is None else first)
        transitions = parameters.transitions / parameters.transitions.sum(axis=1, keepdims=True)
        draw_path(rng.uniform(size=rows), parameters.start / parameters.start.sum(), transitions, states)
        return self.family.sample(parameters.emissions, states, rng), states


def _widest(statistics: ChainStatistics) -> ChainStatistics:
    return replace(statistics, emissions=widest_form(statistics.emissions))
