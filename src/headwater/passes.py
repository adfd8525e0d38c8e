"""Learning all rows at hand: an online algorithm in its one pass, the others in passes until the objective settles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from headwater.learner import Learner, advance, belief, report, rooted, settle, started
from headwater.models.protocol import Start
from headwater.models.seeding import labelled_first
from headwater.models.start import Climb, climb
from headwater.state import Batch, State, Summary

CHAINED = 4  # warm-ups that a start on sequences at hand is made from, at most, of so many times the rows at least
STRETCHES = 16


def learn(
    learner: Learner,
    batch: Batch,
    key: int,
    max_iter: int,
    tol: float,
    n_init: int = 1,
    resume: tuple[State, float] | None = None,
    watch: Callable[[int, float], None] | None = None,
) -> tuple[State, Climb]:
    """Learn all rows at hand: an online algorithm in its one pass, the others in passes until the objective settles.

    `resume` is a state to go on from, and the objective it had reached.
    """
    algorithm = learner.algorithm
    if algorithm.again:
        return _streamed(learner, batch, key, max_iter, tol, resume, watch)
    if algorithm.online and not algorithm.finish:
        state, info = advance(learner, resume[0] if resume else State(key), batch)
        parameters, score = report(learner, state), info.score
        if learner.model.chained:
            score = float(learner.model.log_likelihood(parameters, batch, learner.n_threads).mean())
        elif state.base is None:
            summary = learner.model.summarize(parameters, batch, None, n_threads=learner.n_threads, inference=learner.inference)
            score = summary.score / batch.size
        return state, Climb(Summary(state.statistics), parameters, (score,), True)  # type: ignore[arg-type]
    name = "mode" if algorithm.likelihood else algorithm.readout
    reached: list[tuple[Start, Climb]] = []
    for run in range(1 if resume else n_init):
        start = _resumed(learner, resume[0]) if resume else _first(learner, batch, key + run)
        prior = learner.model.flattened(start.prior) if algorithm.likelihood else start.prior
        end = climb(
            learner.model, name, prior, start.parameters, start.summary, batch, max_iter, tol, learner.n_threads,
            resume[1] if resume else -np.inf, learner.model.has_prior or prior is start.prior, watch,
        )  # fmt: skip
        reached.append((Start(start.prior if algorithm.finish else prior, end.parameters, end.summary), end))
    best, end = max(reached, key=lambda pair: pair[1].trace[-1] if pair[1].trace else -np.inf)
    reported = best.parameters
    if algorithm.report != algorithm.readout and not algorithm.finish and max_iter:
        reported = None
    return replace(rooted(learner, key, best), reported=reported), end


def _sampled(learner: Learner, batch: Batch, key: int, polish: bool = True) -> Start:
    """Start on a sample the size of a warm-up, labels first."""
    rows, n = min(len(batch), learner.warm_up_rows), len(batch)
    if learner.model.chained:
        rows = int(np.clip(n // CHAINED, rows, CHAINED * rows))
        return started(learner, batch if rows == n else _some_sequences(batch, rows, key), key, polish)
    order = np.random.default_rng(np.random.SeedSequence((key, n))).permutation(n)
    return started(learner, batch if rows == n else batch[np.sort(labelled_first(batch, order, rows)[:rows])], key, polish)


def _first(learner: Learner, batch: Batch, key: int) -> Start:
    """Start on a sample, then stream all rows in an order that mixes sorted ones."""
    n = len(batch)
    finish, chained = learner.algorithm.finish, learner.model.chained
    polish = learner.settings.polish and (finish or chained)
    start = _sampled(learner, batch, key, polish)
    if n <= learner.warm_up_rows:
        return start
    if not (finish and polish):
        return Start(
            start.prior, start.parameters, learner.model.summarize(start.parameters, batch, n_threads=learner.n_threads)
        )
    state = rooted(learner, key, start)
    stride = 1 if chained else max(1, n // learner.batch_rows)
    for offset in range(stride):
        state, _ = advance(learner, state, batch[offset::stride])
    return _resumed(learner, state)


def _some_sequences(batch: Batch, rows: int, key: int) -> Batch:
    """Some sequences, of long ones some stretches, to make up so many rows: what comes first may be unlike the rest."""
    at = np.arange(len(batch))
    begins = np.concatenate([[0], np.flatnonzero(np.diff(batch.sequences)) + 1])
    within = at - np.repeat(begins, np.diff(np.append(begins, len(batch))))
    cuts = np.flatnonzero(within % max(rows // STRETCHES, 1) == 0)
    lengths = np.diff(np.append(cuts, len(batch)))
    order = np.random.default_rng(np.random.SeedSequence((key, len(batch)))).permutation(len(cuts))
    chosen = np.sort(order[: int(np.searchsorted(np.cumsum(lengths[order]), rows)) + 1])
    places = np.concatenate([np.arange(cuts[one], cuts[one] + lengths[one]) for one in chosen])
    return replace(batch[places], sequences=np.repeat(-1 - cuts[chosen], lengths[chosen]))


def _resumed(learner: Learner, state: State) -> Start:
    """Go on from where earlier passes, or a stream, ended."""
    settled = settle(learner, state)
    prior, statistics, count = belief(learner, settled)
    return Start(prior, report(learner, settled), Summary(statistics.scaled(count), settled.progress.rows_seen, count))


def _streamed(
    learner: Learner,
    batch: Batch,
    key: int,
    max_iter: int,
    tol: float,
    resume: tuple[State, float] | None,
    watch: Callable[[int, float], None] | None,
) -> tuple[State, Climb]:
    """Stream all rows again and again, each time in another order, until two passes score them no better by tol."""
    n = len(batch)
    weighs = batch.size
    begun = settle(learner, resume[0]) if resume else None
    before = begun.progress if begun else None
    finite = replace(learner, rows_at_hand=weighs + (before.weight_seen if before else 0.0))
    state = begun or rooted(finite, key, _sampled(finite, batch, key))
    trace: list[float] = []
    converged = False
    for turn in range(max(1, max_iter)):
        order = np.random.default_rng(np.random.SeedSequence((key, n, turn))).permutation(n)
        state, info = advance(finite, state, batch[order])
        trace.append(info.score)
        if watch is not None:
            watch(turn + 1, info.score)
        if tol and turn > 2 and max(trace[-2:]) - max(trace[:-2]) < tol * abs(trace[-1]):  # scores of draws go up and down
            converged = True
            break
    state = settle(finite, state)
    rows = n + (before.rows_seen if before else 0)
    progress = replace(state.progress, rows_seen=rows, weight_seen=finite.rows_at_hand)
    state = replace(state, progress=progress)
    return state, Climb(Summary(state.statistics), report(learner, state), tuple(trace), converged)  # type: ignore[arg-type]
