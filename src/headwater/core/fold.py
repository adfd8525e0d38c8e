"""The fold of every algorithm: statistics move towards a summary, and parameters are read out of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headwater.core.average import AVERAGE, average_count
from headwater.core.batch import Batch
from headwater.core.contracts import Model
from headwater.core.fit_result import FIT_RESULT
from headwater.core.plan import Plan
from headwater.core.policy import Folds
from headwater.core.state import Stream, Summary
from headwater.core.statistics import Array, Params, Prior, Stats


def summarize(plan: Plan, stream: Stream, part: Batch, scores: Array) -> tuple[Summary, Stream]:
    """E-step of a part of a batch: by the policy of the stream that takes its own, or the plain one."""
    own = _folding_policy(plan, stream)
    return summarize_batch(plan, stream, part, scores) if own is None else own.summarize(plan, stream, part, scores)


def fold(plan: Plan, stream: Stream, summary: Summary) -> Stream:
    """Return the stream moved towards a summary: by the policy of the stream that folds in its own way, or the plain one."""
    own = _folding_policy(plan, stream)
    return fold_batch(plan, stream, summary) if own is None else own.fold(plan, stream, summary)


def _folding_policy(plan: Plan, stream: Stream) -> Folds | None:
    return next((policy for policy in plan.active(stream) if isinstance(policy, Folds)), None)


def summarize_batch(plan: Plan, stream: Stream, part: Batch, scores: Array) -> tuple[Summary, Stream]:
    """E-step: return the summary of a part of a batch, beside the one that waits, and the stream as it is."""
    before = pending_summary(stream)
    draws = plan.draw(stream, before.rows if before else 0)
    return stream.model.summarize(stream.parameters, part, before, scores, plan.n_threads, draws), stream


def pending_summary(stream: Stream) -> Summary | None:
    """Return the summary that waits for its batch to fill, in arrays that may be written to; None between two batches."""
    pending: Summary | None = getattr(stream.unfolded, "summary", None)
    return None if pending is None else replace(pending, statistics=pending.statistics.writable())


def fold_batch(plan: Plan, stream: Stream, summary: Summary) -> Stream:
    """Return the stream moved towards a summary by the schedule's step, with fresh parameters. It leaves `unfolded` alone."""
    sizes, rows = np.array([summary.size]), plan.batch_rows(stream.model)
    step = float(plan.schedule(stream.model)(stream.progress, sizes, rows)[0])
    statistics = stream.statistics.toward(to_kept_form(plan, stream.model, summary.statistics), step, 1.0 / summary.size)
    progress = stream.progress.after(summary.rows, summary.size, step, summary.size / rows)
    return finish_fold(plan, stream, stream.replace(statistics=statistics, progress=progress), summary)


def finish_fold(plan: Plan, before: Stream, stream: Stream, summary: Summary) -> Stream:
    """Return a stream whose statistics were moved, with the records of its policies and its parameters brought up to date."""
    for policy in plan.active(before):
        stream = policy.after_fold(plan, before, stream, summary)
    return stream if plan.holds(stream) else refresh(plan, stream)


def refresh(plan: Plan, stream: Stream) -> Stream:
    """Return the stream with the parameters of its next E-step read out of its statistics."""
    count = plan.count(stream.progress)
    return stream.replace(parameters=stream.model.readout(plan.algorithm.readout, stream.base.prior, stream.statistics, count))


def to_kept_form(plan: Plan, model: Model[Prior, Stats, Params], statistics: Stats) -> Stats:
    """Return statistics in the form that the algorithm keeps: moment matching has one of its own."""
    return model.statistics_for(plan.algorithm.readout, statistics)


def belief(plan: Plan, stream: Stream[Prior, Stats, Params]) -> tuple[Prior, Stats, float]:
    """Return prior, statistics and count of a finalized stream: what is believed is prior + count * statistics."""
    average = stream.records.get(AVERAGE)
    if average is None:
        return stream.base.prior, stream.statistics, plan.count(stream.progress)
    return stream.base.prior, average, average_count(plan, stream.model, stream.progress)


def report_parameters(plan: Plan, stream: Stream[Prior, Stats, Params]) -> Params:
    """Return the parameters that the user sees of a finalized stream."""
    if FIT_RESULT in stream.records:
        reported: Params = stream.records[FIT_RESULT]
        return reported
    return stream.model.readout(plan.algorithm.report, *belief(plan, stream))
