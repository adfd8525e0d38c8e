"""Streams that watch for drift: how a state comes to expect, takes note, forgets, is calm again; `drift.py` has the rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from headwater.core.state import Batch, State, Summary
from headwater.core.statistics import Array
from headwater.policies.drift import TINY, Drift, expecting, folded, judged, noted
from headwater.policies.reservoir import Reservoir

MOST, FEWER = 32768, 2048  # kept rows that are looked at, where the reference stands still and where it follows
SAME = 0.1  # nats a row by which a component may change and still be the same
FEW, ROUND = 2000, 40.0  # rows that propose, and how often a round of moves looks at them
PACE = 0.3  # of rows that count for memory after an alarm: those before were told by worse parameters
CALM = 4  # warm-ups without an alarm, after which rows count as in any stream
STILL = 16  # and after which the reference stands still again


def watching(model: Any, state: State, adapts: bool = True, n_threads: int | None = None) -> State:
    """Return a state that watches for drift, if it is to and keeps rows: what it expects comes from these."""
    if not adapts or state.healing is None:
        return replace(state, drift=None)
    statistics: Any = state.statistics
    drift = state.drift
    if drift is None:
        n = state.progress.n_eff
        drift = replace(Drift.begun(n * statistics.count), found=state.rows, present=n)
    if state.reservoir is not None and len(state.reservoir):
        rows = recent(replace(state, drift=drift)).rows[: FEWER if drift.following else MOST]
        shares, scores = model.looked_at(state.parameters, rows.batch, n_threads)
        drift = expecting(
            drift, shares, scores, rows.batch.row_weights, rows.places, _each(model, rows.batch.X.shape[1]), state.rows
        )
    return replace(state, drift=drift)


def watched(model: Any, state: State, batch: Batch, scores: Array, n_threads: int | None = None) -> tuple[Summary, State]:
    """Summarize some rows of a batch, beside those that wait, and take note of how they score."""
    scores = scores if scores.size else np.empty(len(batch))
    shares = np.empty((len(batch), model.n_components))
    summary = model.summarize(state.parameters, batch, state.pending, scores, n_threads, responsibilities=shares)
    return summary, replace(state, drift=noted(state.drift, shares, scores, batch.weights))


def adapted(model: Any, state: State, summary: Summary, width: int, warm_up: int, folds: float) -> tuple[State, bool]:
    """Judge a batch. Return the state with it folded, if something was ever forgotten, and whether that is so.

    As long as nothing was, it is folded as in any stream.
    """
    statistics: Any = state.statistics
    drift, mass = judged(state.drift, state.progress, statistics.count, summary, _each(model, width), model.apart)
    pace = PACE if state.progress.rows_seen - drift.last < CALM * warm_up else 1.0
    if not drift.clock:
        totals: Any = summary.statistics
        return replace(state, drift=replace(drift, memory=drift.memory + totals.count)), False
    statistics, progress, drift = folded(
        model, drift, statistics, state.progress, summary, mass, folds, _each(model, width), pace
    )
    return State(
        state.key, base=state.base, parameters=state.parameters, statistics=statistics, progress=progress,
        reservoir=state.reservoir, healing=state.healing.after(summary.score, summary.size), drift=drift,
    ), True  # fmt: skip


def calmed(model: Any, state: State, warm_up: int, n_threads: int | None = None) -> State:
    """Return the state after a batch: where parameters follow it may expect something else, or all is calm again."""
    drift = state.drift
    if not drift.following:
        blind = not drift.deviation.any() and state.rows - drift.found >= warm_up
        return watching(model, state, n_threads=n_threads) if blind else state
    if state.rows - drift.last >= STILL * warm_up:
        return watching(model, replace(state, drift=replace(drift, following=False)), n_threads=n_threads)
    return watching(model, state, n_threads=n_threads) if state.rows >= drift.due else state


def moved(model: Any, before: State, state: State, n_threads: int | None = None) -> State:
    """Return a state that has healed. Components that have become others know as much as all of them do."""
    drift = state.drift
    if state.healing.moves > before.healing.moves or not drift.clock:
        n, after, old = state.progress.n_eff, cast(Any, state.statistics), cast(Any, before.statistics)
        others = ~(model.contrast(cast(Any, state.base).prior, old.scaled(n), after.scaled(n)) < SAME)
        if not drift.clock:
            others[:] = True  # all know as much
        memory = np.where(others, n * after.count, drift.memory)
        began = np.where(others, drift.began.max(), drift.began)
        known = Drift.begun(memory)
        drift = replace(drift, memory=memory, began=began, sums=known.sums, since=known.since, shares=known.shares)
    return watching(model, replace(state, drift=drift), n_threads=n_threads)


def recent(state: State, half_life: float | None = None) -> Reservoir:
    """Return the kept rows that stand for what is not forgotten: of smallest rank, as many as all rows weigh now."""
    assert state.reservoir is not None
    if half_life is not None:
        present = half_life / np.log(2.0) * -np.expm1(-np.log(2.0) * state.rows / half_life)
    elif state.drift is not None and state.drift.clock:
        present = state.drift.present
    else:
        return state.reservoir
    settled = state.reservoir.settled
    return replace(settled, sample=settled.rows[: max(int(present), 1)])


def heals_by(state: State, warm_up: int, allowed: float = np.inf) -> bool:
    """Whether a healing is worth it after something was forgotten: with as many rows as a start takes, and a round of moves."""
    if state.drift is None or not state.drift.clock:
        return True
    present = float(state.drift.present)
    return present >= warm_up and allowed >= ROUND * min(0.5 * present, FEW)


def alike(settled: Sequence[State]) -> list[State]:
    """Return states of which all follow, if one does."""
    follows = any(state.drift is not None and state.drift.following for state in settled)
    return [one if one.drift is None else replace(one, drift=replace(one.drift, following=follows)) for one in settled]


def together(merged: State, settled: Sequence[State], shared: bool = True) -> Drift | None:
    """Return what is known when streams are merged, in any order and tree: what one of them forgot is forgotten.

    Without a base that they share, components are not the same, and all are as the least that any remembers.
    """
    drifts = [state.drift for state in settled]
    if any(one is None for one in drifts):
        return None
    worth = [state.progress.n_eff * state.statistics.count for state in settled]  # type: ignore[union-attr]
    left = np.min([np.minimum(one.memory / np.maximum(n, TINY), 1.0) for one, n in zip(drifts, worth, strict=True)], axis=0)
    latest = {name: max(getattr(one, name) for one in drifts) for name in ("following", "clock", "alarms", "last", "found")}
    latest["present"] = sum(one.present * np.exp(one.clock - latest["clock"]) for one in drifts)
    began = np.max([one.began for one in drifts], axis=0)
    if not shared:
        left, began = np.full_like(left, left.min()), np.full_like(began, began.max())
    memory = left * merged.progress.n_eff * merged.statistics.count  # type: ignore[union-attr]
    return replace(Drift.begun(memory), began=began, **latest)


def forgetting(state: State, warm_up: int) -> tuple[Array, bool]:
    """Return the half-life of each component that forgets now, in rows of the stream, and whether weights do.

    A memory of n rows to which others are added forgets as a half-life of n log 2 rows does. Others have an infinite one.
    """
    drift, statistics = state.drift, cast(Any, state.statistics)
    endless = np.full(len(drift.memory), np.inf)
    if not drift.following or state.rows - drift.last >= CALM * warm_up:
        return endless, False
    now = (drift.began > 0) & (state.rows - drift.began < CALM * warm_up)
    half_lives = np.log(2.0) * drift.memory / np.maximum(statistics.count, TINY)
    return np.where(now, half_lives, endless), not bool(now.any())


def _each(model: Any, width: int) -> float:
    """Rows that it takes to learn a component."""
    return float(model.rows_to_learn(width)) / float(model.n_components)
