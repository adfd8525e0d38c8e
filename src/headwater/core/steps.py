"""Folding: rows into batches, batches into the statistics of a state, parameters out of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np

from headwater.core.contracts import NO_SCORES
from headwater.core.learner import Learner, kept_form, refreshed
from headwater.core.state import Batch, Progress, State, Summary, appended, joined
from headwater.core.statistics import Array, Statistics
from headwater.policies.drift_monitor import adapted, watched

SWEEP_ROWS = 16384


def fold(learner: Learner, state: State, summary: Summary) -> State:
    """Return the state moved towards a summary by the schedule's step, with fresh parameters."""
    assert state.statistics is not None
    if state.drift is not None:
        state, forgot = adapted(
            learner.model, state, summary, learner.width, learner.warm_up_rows, summary.size / learner.batch_rows
        )
        if forgot:
            return state if learner.holds(state) else refreshed(learner, state)
    sizes = np.array([summary.size])
    step = float(learner.schedule(state.progress, sizes, learner.batch_rows)[0])
    statistics = cast(Statistics, state.statistics).toward(kept_form(learner, summary.statistics), step, 1.0 / summary.size)
    average = state.average
    if average is not None:
        average = average.averaged(statistics, float(learner.average_gains(state.progress.weight_seen, sizes)[0]))
    progress = state.progress.after(summary.rows, summary.size, step, summary.size / learner.batch_rows)
    after = State(
        state.key, base=state.base, parameters=state.parameters, statistics=statistics, average=average, progress=progress,
        reservoir=state.reservoir, healing=state.healing and state.healing.after(summary.score, summary.size),
        drift=state.drift,
    )  # fmt: skip
    return after if learner.holds(state) else refreshed(learner, after)


def fold_batches(learner: Learner, state: State, batch: Batch, scores: Array) -> tuple[State, float]:
    """Fold rows batch by batch; what does not fill one waits as a partial summary. Returns the state and their score."""
    at, total = 0, 0.0
    if state.pending is not None:
        state = replace(state, pending=replace(state.pending, statistics=state.pending.statistics.writable()))
    while at < len(batch):
        pending = state.pending
        rows = learner.fold_rows(state)
        room = rows - (pending.rows if pending else 0)
        part = batch[at : at + room]
        if state.drift is None:
            summary = learner.model.summarize(
                state.parameters, part, pending, scores[at : at + room], learner.n_threads,
                learner.drawing(state, pending.rows if pending else 0),
            )  # fmt: skip
        else:
            summary, state = watched(learner.model, state, part, scores[at : at + room], learner.n_threads)
        total += summary.score - (pending.score if pending else 0.0)
        full = summary.rows == rows
        state = fold(learner, state, summary) if full else replace(state, pending=summary)
        at += len(part)
    return state, total


def fold_chained(learner: Learner, state: State, batch: Batch, scores: Array) -> tuple[State, float]:
    """Fold batches of rows that hang together: each waits for the rows after it that its model looks ahead to."""
    model, rows = learner.chain, len(batch)
    known, total, folded = sum(len(one) for one in state.waiting), 0.0, 0
    now = known_now(learner, state) if scores.size else None
    if known + rows < learner.block_rows(state.progress) + model.lag:
        if scores.size:
            now = model.follow(state.parameters, batch, now, scores)
        return replace(state, waiting=appended(state.waiting, batch), now=now, reported=None), 0.0
    batch = joined([*state.waiting, batch]) if known else batch
    at, seen = 0, known
    while True:
        size = learner.block_rows(state.progress)
        stop = min(at + size + model.lag, len(batch))
        if scores.size and stop > seen:
            now = model.follow(state.parameters, batch[seen:stop], now, scores[seen - known : stop - known])
        seen = max(seen, stop)
        if stop - at < size + model.lag:
            break
        summary, carry = model.summarize_open(state.parameters, batch[at:stop], state.carry, size, learner.n_threads)
        state, at = replace(fold(learner, state, summary), carry=carry), at + size
        if scores.size:
            now = model.follow(state.parameters, batch[at:seen], carry)
        total, folded = total + summary.score, folded + size
    waiting = appended((), batch[at:]) if at < len(batch) else ()
    return replace(state, waiting=waiting, now=now, reported=None), total * rows / folded


def known_now(learner: Learner, state: State) -> Any:
    """What is known of open sequences after the rows that wait, by the parameters of the next E-step."""
    if state.now is not None or not state.waiting:
        return state.now or state.carry
    return learner.chain.follow(state.parameters, joined(state.waiting), state.carry)


def sweep_rows(learner: Learner, state: State, batch: Batch, scores: Array) -> tuple[State, float]:
    """Fold row by row inside the kernel, in stretches that keep the arrays of steps small."""
    assert state.base is not None
    scores = scores if scores.size else np.empty(len(batch))
    for at in range(0, len(batch), SWEEP_ROWS):
        part = batch[at : at + SWEEP_ROWS]
        sizes, progress = part.row_weights, state.progress
        steps = learner.schedule(progress, sizes, 1.0)
        gains = NO_SCORES if state.average is None else learner.average_gains(progress.weight_seen, sizes)
        options = (
            learner.algorithm.readout, state.base.prior, state.statistics, state.average, progress.n_eff, part, steps,
            gains, scores[at : at + SWEEP_ROWS],
        )  # fmt: skip
        carry = None
        if learner.model.chained:
            statistics, average, n_eff, carry = learner.chain.sweep_open(*options, state.carry)
        else:
            statistics, average, n_eff = learner.model.sweep(*options, learner.algorithm.projection)
        weight = float(sizes.sum())
        progress = Progress(
            rows_seen=progress.rows_seen + len(part),
            weight_seen=progress.weight_seen + weight,
            folds=progress.folds + weight,
            mass=float(sizes[-1] / steps[-1]),
            n_eff=n_eff,
        )
        state = State(state.key, base=state.base, statistics=statistics, average=average, progress=progress, carry=carry)
    return refreshed(learner, state), float(scores @ batch.row_weights)
