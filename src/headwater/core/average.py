"""The running average of the statistics (Polyak and Ruppert), as a policy whose record is the average."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from headwater.core.contracts import Model, Start
from headwater.core.policy import Policy
from headwater.core.state import Progress, Stream, Summary
from headwater.core.statistics import Array, Stats

if TYPE_CHECKING:
    from headwater.core.plan import Plan

AVERAGE = "average"


class Average(Policy):
    """Keeps a running average of the statistics. A stream that has an average keeps it when the algorithm changes."""

    name = AVERAGE

    def at_base(self, plan: Plan, stream: Stream, start: Start) -> Stream:
        return stream.with_record(AVERAGE, stream.statistics) if plan.algorithm.average else stream

    def after_fold(self, plan: Plan, before: Stream, stream: Stream, summary: Summary) -> Stream:
        gains = average_gains(plan, before.progress, np.array([summary.size]))
        return stream.with_record(AVERAGE, before.records[AVERAGE].averaged(stream.statistics, float(gains[0])))

    def in_shard(self) -> Policy:
        return self

    def gather(self, plan: Plan, before: Stream, whole: Stream, shards: Sequence[Stream]) -> Stream:
        average = whole.records[AVERAGE]
        share = average.from_base * before.records[AVERAGE].from_base
        return whole.with_record(AVERAGE, average.with_share_of_base(share))

    def widen(self, plan: Plan, stream: Stream) -> Stream:
        base = stream.base.with_record(AVERAGE, stream.model.widen(stream.base.records[AVERAGE], plan.width))
        return replace(stream, base=base).with_record(AVERAGE, stream.model.widen(stream.records[AVERAGE], plan.width))


def average_gains(plan: Plan, progress: Progress, sizes: Array) -> Array:
    """Gains of the running average in which row n weighs as n^a: (1 + a)/n. No length of the stream need be known."""
    seen = progress.weight_seen - plan.learner.averages_after + np.cumsum(sizes)
    gains = np.minimum(1.0, (1.0 + plan.algorithm.average_exponent) * sizes / seen)
    return gains if plan.half_life is None else np.maximum(gains, 1.0 - np.exp2(-sizes / plan.half_life))


def share_of_average(plan: Plan, before: Progress, after: Progress) -> float:
    """What an average weighs in one that went on from it, as `average_gains` leaves it."""
    return float((before.weight_seen / after.weight_seen) ** (1.0 + plan.algorithm.average_exponent))


def average_count(plan: Plan, model: Model, progress: Progress) -> float:
    """Rows that averaged statistics are worth: all of them, unless some were forgotten; more at a start that was given."""
    if plan.half_life is not None:
        return progress.n_eff
    seen = progress.weight_seen
    if plan.learner.settings.locates:
        seen = max(seen, min(progress.n_eff, float(model.rows_to_learn(plan.width))))
    return min(seen, plan.learner.rows_at_hand)


def fold_share(before: Stats, after: Stats, average: Stats | None, moving: Stats | None, steps: Array, gains: Array) -> None:
    """Write the share of the base into statistics, and into their average, that rows were folded into one by one."""
    share = np.asarray(float(before.from_base[0]) * np.cumprod(1.0 - steps))
    after.from_base[...] = share[-1]
    if average is not None and moving is not None:
        moving.from_base[...] = averaged_share(float(average.from_base[0]), share, gains)


def averaged_share(average: float, shares: Array, gains: Array) -> float:
    """End of average += gain * (share - average) over a run of rows."""
    left = np.cumprod((1.0 - gains)[::-1])[::-1]
    after = np.append(left[1:], 1.0)
    return float(average * left[0] + np.sum(after * gains * shares))
