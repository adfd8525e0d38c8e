"""Learning all rows at hand: an online algorithm in its one pass, the others in passes until the objective settles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from headwater.learner import Learner, advance, belief, report, rooted, settle
from headwater.models.protocol import Start
from headwater.models.seeding import labelled_first
from headwater.models.start import Climb, climb
from headwater.state import Batch, State, Summary


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
    if algorithm.online and not algorithm.finish:
        state, info = advance(learner, resume[0] if resume else State(key), batch)
        parameters, score = report(learner, state), info.score
        if state.base is None:
            score = learner.model.summarize(parameters, batch, n_threads=learner.n_threads).score / batch.size
        return state, Climb(Summary(state.statistics), parameters, (score,), True)  # type: ignore[arg-type]
    name = "mode" if algorithm.likelihood else algorithm.readout
    reached: list[tuple[Start, Climb]] = []
    for run in range(1 if resume else n_init):
        start = _resumed(learner, resume[0]) if resume else _first(learner, batch, key + run)
        prior = start.prior
        if algorithm.likelihood and not learner.model.has_prior:
            prior = learner.model.flattened(prior)
        end = climb(
            learner.model, name, prior, start.parameters, start.summary, batch, max_iter, tol, learner.n_threads,
            resume[1] if resume else -np.inf, prior is start.prior, watch,
        )  # fmt: skip
        reached.append((Start(start.prior if algorithm.finish else prior, end.parameters, end.summary), end))
    best, end = max(reached, key=lambda pair: pair[1].trace[-1] if pair[1].trace else -np.inf)
    reported = best.parameters
    if algorithm.report != algorithm.readout and not algorithm.finish and max_iter:
        reported = None
    return replace(rooted(learner, key, best), reported=reported), end


def _first(learner: Learner, batch: Batch, key: int) -> Start:
    """Start on a sample the size of a warm-up, labels first, then stream all rows in an order that mixes sorted ones."""
    rows, n = min(len(batch), learner.warm_up_rows), len(batch)
    order = np.random.default_rng(np.random.SeedSequence((key, n))).permutation(n)
    polish = learner.algorithm.finish and learner.settings.polish
    start = learner.model.start(
        batch if rows == n else batch[np.sort(labelled_first(batch, order, rows)[:rows])],
        key,
        replace(learner.settings, polish=polish),
        learner.n_threads,
    )
    if rows == n:
        return start
    if not polish:
        return Start(
            start.prior, start.parameters, learner.model.summarize(start.parameters, batch, n_threads=learner.n_threads)
        )
    state = rooted(learner, key, start)
    stride = max(1, n // learner.batch_rows)
    for offset in range(stride):
        state, _ = advance(learner, state, batch[offset::stride])
    return _resumed(learner, state)


def _resumed(learner: Learner, state: State) -> Start:
    """Go on from where earlier passes, or a stream, ended."""
    settled = settle(learner, state)
    prior, statistics, count = belief(learner, settled)
    return Start(prior, report(learner, settled), Summary(statistics.scaled(count), settled.progress.rows_seen, count))
