"""Steps: how rows reach the statistics, in batches or row by row, and the fold of every algorithm.

Sequences and shards are in files of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from headwater.core.average import AVERAGE, average_count, average_gains
from headwater.core.batch import Batch
from headwater.core.contracts import NO_SCORES, Model
from headwater.core.fit_result import FIT_RESULT
from headwater.core.plan import Plan
from headwater.core.policy import Folds
from headwater.core.state import Progress, Stream, Summary, Unfolded
from headwater.core.statistics import Array, Params, Prior, Statistics, Stats

TOO_FAR = (
    "learning these rows would make statistics that are not finite, since values or weights are too far from those of the rows "
    "before; the model is as it was: rescale them"
)
SWEEP_ROWS = 16384  # of one call of a sweep: bounds the arrays of step sizes


class PlainFold(Folds):
    """E-steps of the model and steps of the schedule: the fold of all streams without a policy that has its own."""

    def summarize(self, plan: Plan, stream: Stream, part: Batch, scores: Array) -> tuple[Summary, Stream]:
        """E-step: return the summary of a part of a batch, added to the waiting one, and the stream unchanged."""
        before = pending_summary(stream)
        draws = plan.draw(stream, before.rows if before else 0)
        return stream.model.summarize(stream.parameters, part, before, scores, plan.n_threads, draws), stream

    def move(self, plan: Plan, stream: Stream, summary: Summary) -> Stream:
        """Return the stream with its statistics moved towards a summary by the schedule's step."""
        sizes, rows = np.array([summary.size]), plan.batch_rows(stream.model)
        step = float(plan.schedule(stream.model)(stream.progress, sizes, rows)[0])
        statistics = stream.statistics.toward(to_kept_form(plan, stream.model, summary.statistics), step, 1.0 / summary.size)
        progress = stream.progress.after(summary.rows, summary.size, step, summary.size / rows)
        return stream.replace(statistics=statistics, progress=progress)


PLAIN_FOLD = PlainFold()


def fold(plan: Plan, stream: Stream, summary: Summary) -> Stream:
    """Return the stream moved towards a summary, with records and parameters brought up to date. It leaves `unfolded` alone."""
    hooks = plan.hooks(stream)
    after = hooks.fold.move(plan, stream, summary)
    for policy in hooks.after_fold:
        after = policy.after_fold(plan, stream, after, summary)
    if plan.holds(after):
        return after
    count = plan.count(after.progress)
    return after.replace(parameters=after.model.readout(plan.algorithm.readout, after.base.prior, after.statistics, count))


def refresh(plan: Plan, stream: Stream) -> Stream:
    """Return the stream with the parameters of its next E-step read out of its statistics."""
    count = plan.count(stream.progress)
    return stream.replace(parameters=stream.model.readout(plan.algorithm.readout, stream.base.prior, stream.statistics, count))


def pending_summary(stream: Stream) -> Summary | None:
    """Return the summary that waits for its batch to fill, in arrays that may be written to; None between two batches."""
    pending: Summary | None = getattr(stream.unfolded, "summary", None)
    return None if pending is None else replace(pending, statistics=pending.statistics.writable())


def to_kept_form(plan: Plan, model: Model[Prior, Stats, Params], statistics: Stats) -> Stats:
    """Return statistics in the form that the algorithm keeps: moment matching has its own."""
    return model.statistics_for(plan.algorithm.readout, statistics)


def belief(plan: Plan, stream: Stream[Prior, Stats, Params]) -> tuple[Prior, Stats, float]:
    """Return prior, statistics and count of a finalized stream: the belief is prior + count * statistics."""
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


@dataclass(frozen=True)
class Partial:
    """The summary of a batch that is not full; None between two batches."""

    summary: Summary | None = None

    @property
    def rows(self) -> int:
        """Rows of the summary."""
        return 0 if self.summary is None else self.summary.rows

    @property
    def sums(self) -> tuple[Statistics, ...]:
        """Statistics of the summary."""
        return () if self.summary is None else (self.summary.statistics,)

    def finish(self, plan: Plan, stream: Stream) -> Stream:
        """Return the stream with the partial batch folded."""
        return stream if self.summary is None else fold(plan, stream, self.summary).replace(unfolded=EMPTY)

    def widen(self, plan: Plan) -> Partial:
        """Return the summary for more columns."""
        if self.summary is None:
            return self
        return Partial(replace(self.summary, statistics=plan.model.widen(self.summary.statistics, plan.width)))


EMPTY = Partial()


def _pending_score(unfolded: Unfolded) -> float:
    """Score of the rows that wait for their batch to fill."""
    return unfolded.summary.score if isinstance(unfolded, Partial) and unfolded.summary is not None else 0.0


@dataclass(frozen=True)
class BatchStep:
    """Re-block chunks into batches, wherever the user has cut them; a partial batch waits as a summary."""

    nothing = EMPTY

    def begin(self, plan: Plan, stream: Stream, batch: Batch) -> Stream:
        return stream

    def adopt(self, plan: Plan, stream: Stream) -> Stream:
        """Finish what another step began, or a batch that is full by this plan."""
        fits = isinstance(stream.unfolded, Partial) and stream.unfolded.rows < plan.fold_rows(stream)
        return stream if fits else stream.unfolded.finish(plan, stream)

    def room(self, plan: Plan, stream: Stream) -> int:
        return plan.fold_rows(stream) - stream.unfolded.rows

    def take(self, plan: Plan, stream: Stream, batch: Batch, scores: Array) -> tuple[Stream, float]:
        """Add rows to the partial summary, and fold it when it is full."""
        before = _pending_score(stream.unfolded)
        summary, stream = plan.hooks(stream).fold.summarize(plan, stream, batch, scores)
        full = summary.rows == plan.fold_rows(stream)
        stream = fold(plan, stream, summary).replace(unfolded=EMPTY) if full else stream.replace(unfolded=Partial(summary))
        return stream, summary.score - before


@dataclass(frozen=True)
class SweepStep:
    """Fold row by row inside a kernel of the model. Nothing is ever unfolded."""

    nothing = EMPTY

    def begin(self, plan: Plan, stream: Stream, batch: Batch) -> Stream:
        return stream

    def adopt(self, plan: Plan, stream: Stream) -> Stream:
        """Finish what another step began."""
        fits = isinstance(stream.unfolded, Partial) and not stream.unfolded.rows
        return stream if fits else stream.unfolded.finish(plan, stream)

    def room(self, plan: Plan, stream: Stream) -> int:
        return SWEEP_ROWS

    def take(self, plan: Plan, stream: Stream, batch: Batch, scores: Array) -> tuple[Stream, float]:
        """Learn rows one by one."""
        sweep = Sweep.of(plan, stream, batch, scores)
        statistics, average, n_eff = stream.model.sweep(*sweep.arguments, plan.algorithm.projection)
        return sweep.end(plan, stream, statistics, average, n_eff), sweep.total


@dataclass(frozen=True)
class Sweep:
    """The input of a sweep over some rows, and its result.

    The running average is moved inside the kernel, so the step reads and writes the record of that policy.
    """

    batch: Batch
    steps: Array
    arguments: tuple[str, object, Statistics, Statistics | None, float, Batch, Array, Array, Array]
    scores: Array

    @classmethod
    def of(cls, plan: Plan, stream: Stream, batch: Batch, scores: Array) -> Sweep:
        """Return the sweep of a stream over these rows."""
        scores = scores if scores.size else np.empty(len(batch))
        sizes, progress, average = batch.row_weights, stream.progress, stream.records.get(AVERAGE)
        steps = plan.schedule(stream.model)(progress, sizes, 1.0)
        gains = NO_SCORES if average is None else average_gains(plan, progress, sizes)
        arguments = (
            plan.algorithm.readout, stream.base.prior, stream.statistics, average, progress.n_eff, batch, steps, gains, scores
        )  # fmt: skip
        return cls(batch, steps, arguments, scores)

    @property
    def total(self) -> float:
        """Score of the rows, before they were learned."""
        return float(self.scores @ self.batch.row_weights)

    def end(self, plan: Plan, stream: Stream, statistics: Stats, average: Stats | None, n_eff: float) -> Stream:
        """Return the stream after the sweep."""
        before, sizes = stream.progress, self.batch.row_weights
        weight = float(sizes.sum())
        progress = Progress(
            rows_seen=before.rows_seen + len(self.batch),
            weight_seen=before.weight_seen + weight,
            folds=before.folds + weight,
            mass=float(sizes[-1] / self.steps[-1]),
            n_eff=n_eff,
        )
        after = stream.replace(statistics=statistics, progress=progress).without(FIT_RESULT)
        return refresh(plan, after if average is None else after.with_record(AVERAGE, average))
