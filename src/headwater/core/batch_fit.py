"""Learning all rows at hand: an online algorithm in its one pass, the others in passes until the objective settles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwater.core.contracts import Start
from headwater.core.learner import Learner, belief
from headwater.core.lineage import rooted
from headwater.core.loop import advance, report, settle, started
from headwater.core.state import Batch, State, Summary
from headwater.models.seeding import labelled_first
from headwater.models.start import Climb, climb
from headwater.policies.refinement_states import contested, opened

CHAINED = 4  # warm-ups that a start on sequences at hand is made from, at most, of so many times the rows at least
STRETCHES = 16
MIXED = 2**24  # rows up to which all are put in another order; of more, some are drawn


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
    reached: list[tuple[Start, Climb]] = []
    for run in range(1 if resume else n_init):
        start = resumed(learner, resume[0]) if resume else _first(learner, batch, key + run)
        prior = climbed_prior(learner, start.prior)
        end = climb(
            learner.model, climbed_readout(learner), prior, start.parameters, start.summary, batch, max_iter, tol,
            learner.n_threads, resume[1] if resume else -np.inf, learner.model.has_prior or prior is start.prior, watch,
        )  # fmt: skip
        reached.append((start, end))
    start, end = max(reached, key=lambda pair: pair[1].trace[-1] if pair[1].trace else -np.inf)
    return ended(learner, key, start, end), end


def climbed_readout(learner: Learner) -> str:
    """Return the readout by which passes go up."""
    return "mode" if learner.algorithm.likelihood else learner.algorithm.readout


def climbed_prior(learner: Learner, prior: Any) -> Any:
    """Return the prior under which passes go up: a flat one, where likelihood is all that counts."""
    return learner.model.flattened(prior) if learner.algorithm.likelihood else prior


def ended(learner: Learner, key: int, start: Start, end: Climb) -> State:
    """Return the state that passes from a start have ended in."""
    algorithm = learner.algorithm
    prior = start.prior if algorithm.finish else climbed_prior(learner, start.prior)
    differs = algorithm.report != algorithm.readout and not algorithm.finish and bool(end.trace)
    state = rooted(learner, key, Start(prior, end.parameters, end.summary))
    return replace(state, reported=None if differs else end.parameters)


def sample_places(learner: Learner, n: int, labels: Any, begins: Any, key: int) -> tuple[NDArray[np.int64], Any]:
    """Return the rows that passes over all of n begin with, the number of a warm-up: some of all, labelled ones first.

    Where rows hang together, these are stretches of sequences, each of which has a number, and `begins` are the first rows
    of sequences.
    """
    rows = min(n, learner.warm_up_rows)
    if learner.model.chained:
        rows = int(np.clip(n // CHAINED, rows, CHAINED * rows))
        longest = n if learner.settings.whole else max(rows // STRETCHES, 1)
        return (np.arange(n), None) if rows == n else _stretches(n, begins, rows, longest, key)
    if rows == n:
        return np.arange(n), None
    rng = np.random.default_rng(np.random.SeedSequence((key, n)))
    order = rng.permutation(n) if n <= MIXED else rng.choice(n, min(n, 4 * rows), replace=False)
    return np.sort(labelled_first(labels, order, rows)[:rows]), None


def polishes(learner: Learner) -> bool:
    """Whether the seeds of passes compete on the sample: if not, they are what the user asked for."""
    return learner.settings.polish and (learner.algorithm.finish or learner.model.chained)


def _sampled(learner: Learner, batch: Batch, key: int, polish: bool = True) -> Start:
    """Start on a sample of the rows."""
    n = len(batch)
    begins = np.concatenate([[0], np.flatnonzero(np.diff(batch.sequences)) + 1]) if learner.model.chained else None
    places, numbers = sample_places(learner, n, batch.labels, begins, key)
    sample = batch if len(places) == n else batch[places]
    return started(learner, sample if numbers is None else replace(sample, sequences=numbers), key, polish)


def _first(learner: Learner, batch: Batch, key: int) -> Start:
    """Start on a sample, then stream all rows in an order that mixes sorted ones."""
    n = len(batch)
    learner = replace(learner, adapts=False)  # rows at hand are in no order, and none is forgotten
    finish, chained, polish = learner.algorithm.finish, learner.model.chained, polishes(learner)
    start = _sampled(learner, batch, key, polish)
    if n <= learner.warm_up_rows:
        return start
    if not (finish and polish) or learner.settings.hold is not None:  # passes begin at what is given, not where a stream leads
        return Start(
            start.prior, start.parameters, learner.model.summarize(start.parameters, batch, n_threads=learner.n_threads)
        )
    some = batch if chained else batch[:: max(1, n // learner.warm_up_rows)]
    state = opened(learner, rooted(learner, key, start), start.parameters, some, counts=False)
    stride = 1 if chained else max(1, n // learner.batch_rows)
    for offset in range(stride):
        state, _ = advance(learner, state, batch[offset::stride])
    return resumed(learner, contested(learner, settle(learner, state)))


def _stretches(n: int, begins: Any, rows: int, longest: int, key: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Some sequences, of long ones some stretches, to make up so many rows: what comes first may be unlike the rest."""
    at = np.arange(n)
    within = at - np.repeat(begins, np.diff(np.append(begins, n)))
    cuts = np.flatnonzero(within % longest == 0)
    lengths = np.diff(np.append(cuts, n))
    order = np.random.default_rng(np.random.SeedSequence((key, n))).permutation(len(cuts))
    chosen = np.sort(order[: int(np.searchsorted(np.cumsum(lengths[order]), rows)) + 1])
    places = np.concatenate([np.arange(cuts[one], cuts[one] + lengths[one]) for one in chosen])
    return places, np.repeat(-1 - cuts[chosen], lengths[chosen])


def resumed(learner: Learner, state: State) -> Start:
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
