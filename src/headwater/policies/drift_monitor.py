"""Streams that watch for drift: what a stream expects, how rows score, what is forgotten; `drift.py` has the rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from headwater.core.batch import Batch
from headwater.core.contracts import Model, Start
from headwater.core.learner import Learner
from headwater.core.plan import Plan
from headwater.core.policy import Folds, Policy
from headwater.core.state import Stream, Summary
from headwater.core.statistics import Array
from headwater.core.steps import PLAIN_FOLD, pending_summary
from headwater.families.components import ComponentStatistics
from headwater.models.mixture import mixture_of
from headwater.policies.drift import TINY, Drift, fold_forgetting, judge_batch, note_scores, set_expectations
from headwater.policies.names import DRIFT, REFINEMENT, RESERVOIR
from headwater.policies.refinement_record import LEAST_ROWS, Refinement, schedule_search
from headwater.policies.reservoir import Reservoir
from headwater.policies.reservoir_policy import RESERVOIR_BYTES, kept_rows

HELD_ROWS, FOLLOWING_ROWS = 32768, 2048  # reservoir rows that are scored, where the reference stands still or follows
SAME_NATS = 0.1  # a row, by which a component may change and still be the same
LOOKS_PER_ROUND = 40.0  # E-steps over the proposing rows in a round of moves
PACE = 0.3  # of rows that count for memory after an alarm: those before were summed at worse parameters
CALM_WARM_UPS = 4  # warm-ups without an alarm, after which rows count as in any stream
STILL_WARM_UPS = 16  # warm-ups without an alarm, after which the reference is held again
NO_EXPECTATION = -1e240  # nats, if no rows are kept yet: below all scores, and finite, so that files can hold it


@dataclass(frozen=True)
class DriftPolicy(Policy, Folds):
    """Watches each component, and lets it forget when its rows score worse than expected; only if it `adapts`."""

    adapts: bool = False

    name = DRIFT
    watches_batches = True

    def start(self, plan: Plan, stream: Stream, start: Start, batch: Batch, counts: bool) -> Stream:
        if not self.adapts or RESERVOIR not in stream.records:
            return stream
        return stream.with_record(DRIFT, watch(plan, replace(stream, parameters=start.parameters)).records[DRIFT])

    def adopt(self, plan: Plan, stream: Stream) -> Stream:
        """Begin to watch, or stop, if the plan has changed."""
        if self.adapts == (DRIFT in stream.records):
            return stream
        return watch(plan, _keep_rows(plan, stream)) if self.adapts else stream.without(DRIFT)

    def at_hand(self) -> Policy:
        return replace(self, adapts=False)

    def summarize(self, plan: Plan, stream: Stream, part: Batch, scores: Array) -> tuple[Summary, Stream]:
        """Summarize some rows of a batch, beside those that wait, and note how they score."""
        scores = scores if scores.size else np.empty(len(part))
        shares = np.empty((len(part), stream.model.n_components))
        summary = mixture_of(stream).summarize(
            stream.parameters, part, pending_summary(stream), scores, plan.n_threads, responsibilities=shares
        )
        return summary, stream.with_record(DRIFT, note_scores(stream.records[DRIFT], shares, scores, part.weights))

    def move(self, plan: Plan, stream: Stream, summary: Summary) -> Stream:
        """Judge a batch, then move the statistics: as in any stream as long as nothing was ever forgotten."""
        model, statistics, each = mixture_of(stream), stream.statistics, _rows_each(plan, stream.model)
        drift, mass = judge_batch(
            stream.records[DRIFT], stream.progress, statistics.count, summary, each, model.has_own_moments
        )
        recently = stream.progress.rows_seen - drift.last < CALM_WARM_UPS * plan.warm_up_rows
        if not drift.clock:
            totals: ComponentStatistics = summary.statistics
            drift = replace(drift, memory=drift.memory + totals.count)
            return PLAIN_FOLD.move(plan, stream.with_record(DRIFT, drift), summary)
        statistics, progress, drift = fold_forgetting(
            model, drift, statistics, stream.progress, summary, mass, summary.size / plan.batch_rows(model), each,
            PACE if recently else 1.0,
        )  # fmt: skip
        return replace(stream, statistics=statistics, progress=progress).with_record(DRIFT, drift)

    def after_batch(self, plan: Plan, before: Stream, stream: Stream, part: Batch) -> Stream:
        """At the end of a batch, look for new expectations; after an alarm, bring the next search forward."""
        if stream.unfolded.rows:
            return stream
        stream = _calm(plan, stream)
        if stream.records[DRIFT].last > before.records[DRIFT].last:
            record = stream.records[REFINEMENT]
            soon = schedule_search(plan, stream).records[REFINEMENT].next
            record = replace(record, next=min(soon, max(record.next, stream.rows + 1)))
            stream = stream.with_record(REFINEMENT, record)
        return stream

    def after_move(self, plan: Plan, before: Stream, stream: Stream) -> Stream:
        """Components that have changed get the memory that all share."""
        drift = stream.records[DRIFT]
        if stream.records[REFINEMENT].moves > before.records[REFINEMENT].moves or not drift.clock:
            n, old = stream.progress.n_eff, before.statistics
            after = cast(ComponentStatistics, stream.statistics)
            others = ~(stream.model.contrast(stream.base.prior, old.scaled(n), after.scaled(n)) < SAME_NATS)
            if not drift.clock:
                others[:] = True
            memory = np.where(others, n * after.count, drift.memory)
            began = np.where(others, drift.began.max(), drift.began)
            known = Drift.begin(memory)
            drift = replace(drift, memory=memory, began=began, sums=known.sums, since=known.since, shares=known.shares)
        return watch(plan, stream.with_record(DRIFT, drift))

    def align(self, plan: Plan, streams: list[Stream]) -> list[Stream]:
        """If one stream follows its statistics, let all of them follow."""
        follows = any(DRIFT in stream.records and stream.records[DRIFT].following for stream in streams)
        return [
            stream.with_record(DRIFT, replace(stream.records[DRIFT], following=follows)) if DRIFT in stream.records else stream
            for stream in streams
        ]

    def merge(self, plan: Plan, merged: Stream, streams: Sequence[Stream], shared: bool) -> Stream:
        if RESERVOIR not in merged.records or not self.adapts:
            return merged.without(DRIFT)
        return watch(plan, merged.with_record(DRIFT, _join(merged, streams, shared)))


def adapts(learner: Learner) -> bool:
    """Whether streams of a learner watch for drift."""
    return any(isinstance(policy, DriftPolicy) and policy.adapts for policy in learner.policies)


def watch(plan: Plan, stream: Stream) -> Stream:
    """Return a stream that watches for drift: what it expects comes from its reservoir."""
    model, drift, statistics = mixture_of(stream), stream.records.get(DRIFT), stream.statistics
    if drift is None:
        n = stream.progress.n_eff
        drift = replace(Drift.begin(n * statistics.count), found=stream.rows, present=n)
    reservoir = stream.records.get(RESERVOIR)
    if reservoir is not None and len(reservoir):
        rows = _present_rows(stream.with_record(DRIFT, drift)).rows[: FOLLOWING_ROWS if drift.following else HELD_ROWS]
        shares, scores = model.posterior_and_scores(stream.parameters, rows.batch, plan.n_threads)
        drift = set_expectations(
            drift, shares, scores, rows.batch.row_weights, rows.places, _rows_each(plan, model), stream.rows
        )
    return stream.with_record(DRIFT, drift)


def _keep_rows(plan: Plan, stream: Stream) -> Stream:
    """Return a stream that keeps rows from now on, if it keeps none."""
    if REFINEMENT in stream.records:
        return stream
    stream = stream.with_record(RESERVOIR, Reservoir(stream.key, kept_rows(plan, stream.model), RESERVOIR_BYTES))
    return schedule_search(plan, stream.with_record(REFINEMENT, Refinement(rows=stream.rows, expected=NO_EXPECTATION)))


def _calm(plan: Plan, stream: Stream) -> Stream:
    """Return the stream after a batch: with new expectations, or at rest if there was no alarm for long."""
    drift, warm_up = stream.records[DRIFT], plan.warm_up_rows
    if not drift.following:
        blind = not drift.deviation.any() and stream.rows - drift.found >= warm_up
        return watch(plan, stream) if blind else stream
    if stream.rows - drift.last >= STILL_WARM_UPS * warm_up:
        return watch(plan, stream.with_record(DRIFT, replace(drift, following=False)))
    return watch(plan, stream) if stream.rows >= drift.due else stream


def recent_rows(plan: Plan, stream: Stream) -> Reservoir:
    """Return the reservoir rows that represent what is not forgotten: of smallest rank, as many as all rows weigh now."""
    if plan.half_life is None:
        return _present_rows(stream)
    fades = np.log(2.0) / plan.half_life
    return _first_rows(stream, -np.expm1(-fades * stream.rows) / fades)


def _present_rows(stream: Stream) -> Reservoir:
    drift = stream.records.get(DRIFT)
    if drift is not None and drift.clock:
        return _first_rows(stream, drift.present)
    reservoir: Reservoir = stream.records[RESERVOIR]
    return reservoir


def _first_rows(stream: Stream, present: float) -> Reservoir:
    settled = stream.records[RESERVOIR].settled
    return replace(settled, sample=settled.rows[: max(int(present), 1)])


def worth_searching(plan: Plan, stream: Stream, allowed: float = np.inf) -> bool:
    """Whether a search is worth it after something was forgotten: with as many rows as a start takes, and a round of moves."""
    drift = stream.records.get(DRIFT)
    if drift is None or not drift.clock:
        return True
    present = float(drift.present)
    return present >= plan.warm_up_rows and allowed >= LOOKS_PER_ROUND * min(0.5 * present, LEAST_ROWS)


def _join(merged: Stream, streams: Sequence[Stream], shared: bool) -> Drift | None:
    """Return the record of merged streams, in any order and tree: what one of them forgot is forgotten.

    Without a common base, components are not the same, and all get the least memory of any.
    """
    if any(DRIFT not in stream.records for stream in streams):
        return None
    drifts = [stream.records[DRIFT] for stream in streams]
    worth = [stream.progress.n_eff * cast(ComponentStatistics, stream.statistics).count for stream in streams]
    left = np.min([np.minimum(one.memory / np.maximum(n, TINY), 1.0) for one, n in zip(drifts, worth, strict=True)], axis=0)
    latest = {name: max(getattr(one, name) for one in drifts) for name in ("following", "clock", "alarms", "last", "found")}
    latest["present"] = sum(one.present * np.exp(one.clock - latest["clock"]) for one in drifts)
    began = np.max([one.began for one in drifts], axis=0)
    if not shared:
        left, began = np.full_like(left, left.min()), np.full_like(began, began.max())
    memory = left * merged.progress.n_eff * cast(ComponentStatistics, merged.statistics).count
    return replace(Drift.begin(memory), began=began, **latest)


def half_lives(stream: Stream, warm_up: int) -> tuple[Array, bool]:
    """Return the half-life of each component that forgets now, in rows of the stream, and whether weights do.

    A memory of n rows to which others are added forgets as a half-life of n log 2 rows does. Others have an infinite one.
    """
    drift, statistics = stream.records[DRIFT], cast(ComponentStatistics, stream.statistics)
    endless = np.full(len(drift.memory), np.inf)
    if not drift.following or stream.rows - drift.last >= CALM_WARM_UPS * warm_up:
        return endless, False
    now = (drift.began > 0) & (stream.rows - drift.began < CALM_WARM_UPS * warm_up)
    found = np.log(2.0) * drift.memory / np.maximum(statistics.count, TINY)
    return np.where(now, found, endless), not bool(now.any())


def _rows_each(plan: Plan, model: Model) -> float:
    """Rows that it takes to learn a component."""
    return float(model.rows_to_learn(plan.width)) / float(model.n_components)
