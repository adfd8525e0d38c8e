"""The E-step of a hidden Markov chain over rows in memory: densities, filter, smoother, piece by piece."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import Batch
from headwater.core.contracts import NO_SCORES, Model
from headwater.core.gapped_rows import GappedRows, as_gapped, find_absent
from headwater.core.statistics import Array
from headwater.core.values import Matrix
from headwater.families.family import Family
from headwater.kernels.parallel import run_slabs
from headwater.models.chain_records import Carry, ChainParameters, ChainPrior, ChainStatistics
from headwater.models.chain_underflow import Filtered, may_lose
from headwater.models.passages import ANY, Passages

EMPTY: Array = np.empty(0)
NO_LOGS: Array = np.empty((0, 0))
NO_POSTERIORS: Array = np.empty((0, 0))

# Rows that are smoothed at once, and rows to look ahead; more where a chain forgets slowly.
PIECES = ((8192, 128), (65536, 1024))
# Two smoothers that began at different rows agree if they differ by less; two filters if they do so relatively, since later
# rows may make a state likely that is very improbable now.
AGREE = 1e-12
IMPOSSIBLE = -1e299  # log-densities that stand for a probability of zero


@dataclass(frozen=True)
class SmoothingTask:
    """Rows of complete sequences, which begin at `edges`, and arrays for their scores and states, if wanted."""

    parameters: ChainParameters
    X: Array
    edges: NDArray[np.int64]
    learning: bool
    scores: Array
    states: Array


class Smoothed(NamedTuple):
    """Totals and score of a stretch of rows, with filter and states at both ends, which its neighbours must agree with."""

    totals: ChainStatistics | None
    score: float
    first_filter: Array = EMPTY
    first_states: Array = EMPTY
    last_filter: Array = EMPTY
    last_states: Array = EMPTY


@dataclass(frozen=True)
class Smoother(Model[ChainPrior, ChainStatistics, ChainParameters]):
    """A chain of K states, each with a component of a family. Rows of NaN are missing: they pass time, and say nothing.

    NaN in some columns of a row is a gap, for families that take gaps.
    """

    n_components: int
    family: Family

    @property
    def passages(self) -> Passages:
        """The kernels for passages from row to row."""
        return ANY

    def zeros(self, width: int) -> ChainStatistics:
        k = self.n_components
        return ChainStatistics(np.zeros(1), np.zeros(k), np.zeros((k, k)), self.family.zeros(width))

    def _passed(
        self, parameters: ChainParameters, batch: Batch, learning: bool, scores: Array, posteriors: Array, n_threads: int | None
    ) -> tuple[ChainStatistics | None, float]:
        """Smooth complete sequences piece by piece, side by side.

        A piece looks a little ahead, and a slab of pieces a little back. If two neighbours do not agree, since the chain
        forgets slowly, all is done again in longer pieces, and finally in one.
        """
        order, edges, _ = by_group(batch.sequences, len(batch))
        X = batch.X if order is None else batch.X[order]
        rows, own_scores = len(X), np.empty(len(X)) if scores.size else NO_SCORES
        states = np.empty((rows, self.n_components)) if posteriors.size else NO_POSTERIORS
        task = SmoothingTask(parameters, X, edges, learning, own_scores, states)
        done: list[Smoothed] = []
        for piece, beyond in PIECES:
            if rows <= piece:
                break

            def work(slab: int, begin: int, stop: int, piece: int = piece, beyond: int = beyond) -> Smoothed | None:
                return self._slab(task, begin, stop, piece, beyond)

            slabs = run_slabs(work, rows, n_threads)
            found = [one for one in slabs if one is not None]
            if len(found) == len(slabs) and _meet(found):
                done = found
                break
        done = done or [self._piece(task)]
        if scores.size:
            scores[slice(None) if order is None else order] = own_scores
        if posteriors.size:
            posteriors[slice(None) if order is None else order] = states
        totals = done[0].totals
        for one in done[1:]:
            totals = totals + one.totals if totals is not None and one.totals is not None else None
        return totals, float(sum(one.score for one in done))

    def _piece(self, task: SmoothingTask) -> Smoothed:
        """Smooth all rows as one piece."""
        parameters, X, edges = task.parameters, task.X, task.edges
        k, number = self.n_components, len(edges) - 1
        known, filters = np.zeros(number, dtype=bool), np.zeros((number, k))
        filtered = self.filtered(parameters, X, edges, known, filters, 1)
        shares, found = filtered.shares, filtered.scores
        totals = self.zeros(X.shape[1]) if task.learning else None
        start, steps = (totals.start, totals.steps) if totals is not None else (np.zeros(k), np.zeros((k, k)))
        self.passages.smooth(filtered, parameters, edges, known, filters, np.diff(edges), start, steps)
        if totals is not None:
            totals.steps[...] *= parameters.transitions
            totals = self.collected(parameters, X, shares, totals, 1)
        if task.scores.size:
            task.scores[...] = found
        if task.states.size:
            task.states[...] = shares
        return Smoothed(totals, float(found.sum()))

    def _slab(self, task: SmoothingTask, begin: int, stop: int, piece: int, beyond: int) -> Smoothed | None:
        """Smooth rows begin to stop; None if two of its pieces do not agree where they meet."""
        parameters, X, edges, scores, states = task.parameters, task.X, task.edges, task.scores, task.states
        k = self.n_components
        totals, score = self.zeros(X.shape[1]) if task.learning else None, 0.0
        at = int(np.searchsorted(edges, begin, side="right")) - 1
        filters, inside = np.full((1, k), 1.0 / k), begin > edges[at]
        if inside:
            low = max(int(edges[at]), begin - beyond)
            known = np.array([low > edges[at]])
            shares = self.filtered(parameters, X[low:begin], np.array([0, begin - low]), known, filters, 1).shares
            filters = shares[-1:].copy()
        first_filter = filters[0].copy()
        last_states: Array | None = None
        head: Array | None = None
        for low in range(begin, stop, piece):
            high = min(low + piece, stop)
            last = int(np.searchsorted(edges, high, side="left"))  # the edge at or after the end of the piece
            end = min(int(edges[last]), high + beyond)
            first = int(np.searchsorted(edges, low, side="right")) - 1
            own = np.concatenate([[low], edges[first + 1 : last], [end]]) - low
            known, carried = np.zeros(len(own) - 1, dtype=bool), np.empty((len(own) - 1, k))
            known[0] = inside
            carried[0] = filters[0]
            counted = np.minimum(np.diff(own), high - low - own[:-1])
            filtered = self.filtered(parameters, X[low:end], own, known, carried, 1)
            shares, found = filtered.shares, filtered.scores
            start, steps = (totals.start, totals.steps) if totals is not None else (np.zeros(k), np.zeros((k, k)))
            self.passages.smooth(filtered, parameters, own, known, carried, counted, start, steps)
            if last_states is not None and inside and np.abs(last_states - shares[0]).max() > AGREE:
                return None
            head = shares[0].copy() if head is None else head
            if totals is not None:
                totals = self.collected(parameters, X[low:high], shares[: high - low], totals, 1)
            if scores.size:
                scores[low:high] = found[: high - low]
            if states.size:
                states[low:high] = shares[: high - low]
            score += float(found[: high - low].sum())
            filters, inside = carried[-1:], bool(edges[last] > high)
            last_states = shares[high - low].copy() if inside else None
        if totals is not None:
            totals.steps[...] *= parameters.transitions
        last_filter = filters[0] if inside else EMPTY
        ends = (EMPTY if head is None else head, last_filter, EMPTY if last_states is None else last_states)
        return Smoothed(totals, score, first_filter, *ends)

    def _carried(self, carry: Carry, ids: NDArray[np.int64]) -> tuple[NDArray[np.bool_], Array]:
        known = np.array([number in carry.filters for number in ids.tolist()])
        filters = np.zeros((len(ids), self.n_components))
        for at in np.flatnonzero(known):
            filters[at] = carry.filters[int(ids[at])]
        return known, filters

    def filtered(
        self,
        parameters: ChainParameters,
        X: Array,
        edges: NDArray[np.int64],
        known: NDArray[np.bool_],
        filters: Array,
        n_threads: int | None,
    ) -> Filtered:
        """States of each row given the rows so far, and given those before it, and its log-score."""
        shares, scores = self._densities(parameters, X, n_threads)
        ahead = np.empty_like(shares)
        run, rows = self.passages.filter, (edges, known, filters, ahead, scores)
        if run(parameters, shares, NO_LOGS, *rows) >= 0:
            shares, scores[...] = self._densities(parameters, X, n_threads)
            run(parameters, shares, self.log_densities_of(parameters, X) - scores[:, None], *rows)
        found = Filtered(shares, ahead, scores, None)
        if not may_lose(parameters, shares, ahead):
            return found
        return self.passages.filter_in_logs(parameters, self.log_densities_of(parameters, X), edges, known, filters, found)

    def _densities(self, parameters: ChainParameters, X: Array, n_threads: int | None) -> tuple[Array, Array]:
        """Densities of each row under each state, relative to their sum, and its logarithm."""
        shares, scores = np.empty((len(X), self.n_components)), np.empty(len(X))
        rows, missing = self._read_rows(X)
        flat = np.zeros(self.n_components)
        self.family.estep(parameters.emissions, flat, Batch(rows), scores=scores, responsibilities=shares, n_threads=n_threads)
        if missing is not None:
            shares[missing], scores[missing] = 1.0, 0.0
        impossible = scores <= IMPOSSIBLE
        if impossible.any():
            shares[impossible], scores[impossible] = 0.0, 0.0
        return shares, scores

    def log_densities_of(self, parameters: ChainParameters, X: Array) -> Array:
        """Log-densities of each row under each state, however small."""
        rows, missing = self._read_rows(X)
        gapped = isinstance(rows, GappedRows)
        logs = (self.family.log_densities_with_gaps if gapped else self.family.log_densities)(parameters.emissions, rows)
        if missing is not None:
            logs[missing] = 0.0
        return logs

    def _read_rows(self, X: Array) -> tuple[Matrix, NDArray[np.bool_] | None]:
        """Rows as the family takes them, those that are missing filled in, and which these are; None if there are none."""
        absent = find_absent(X)
        missing = absent if absent.any() else None
        rows: Matrix = X if missing is None else np.where(absent[:, None], 0.0, X)
        return as_gapped(rows) if self.family.takes_gaps else rows, missing

    def collected(
        self, parameters: ChainParameters, X: Array, states: Array, totals: ChainStatistics, n_threads: int | None = None
    ) -> ChainStatistics:
        """Add the statistics of rows whose states are known."""
        rows, missing = self._read_rows(X)
        if missing is not None:
            rows, states = rows[~missing], states[~missing]
        if not len(rows):
            return totals
        _, emissions = self.family.estep(
            parameters.emissions, np.zeros(self.n_components), Batch(rows), totals.emissions,
            responsibilities=np.ascontiguousarray(states), given=True, n_threads=n_threads,
        )  # fmt: skip
        return replace(totals, emissions=emissions)


def by_group(sequences: NDArray[np.int64], rows: int) -> tuple[NDArray[np.int64] | None, NDArray[np.int64], NDArray[np.int64]]:
    """Return an order that puts rows of a sequence together (None: they are), where each begins, and their numbers."""
    if not sequences.size:
        return None, np.array([0, rows]), np.zeros(1, dtype=np.int64)
    if sequences[0] == sequences[-1] and (sequences == sequences[0]).all():
        return None, np.array([0, rows]), sequences[:1]
    order = None
    edges = np.flatnonzero(sequences[1:] != sequences[:-1]) + 1
    ids = sequences[np.concatenate([[0], edges])]
    if len(np.unique(ids)) < len(ids):
        order = np.argsort(sequences, kind="stable")
        arranged = sequences[order]
        edges = np.flatnonzero(arranged[1:] != arranged[:-1]) + 1
        ids = arranged[np.concatenate([[0], edges])]
    return order, np.concatenate([[0], edges, [rows]]), ids


def _meet(done: Sequence[Smoothed]) -> bool:
    """Whether slabs agree where they meet."""
    for one, other in pairwise(done):
        if not one.last_filter.size:
            continue
        ahead, behind = one.last_filter, other.first_filter
        apart = np.abs(ahead - behind) > 10.0 * AGREE * np.minimum(ahead, behind) + 1e-300
        if apart.any() or np.abs(one.last_states - other.first_states).max() > AGREE:
            return False
    return True
