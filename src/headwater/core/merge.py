"""Merging of streams that share a base: what each learned since adds up, and the base counts once (paper 003, eq. 10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add

from headwater.core.delta import Delta, grow_base, since_base
from headwater.core.loop import MOST_CHECKED, finalize
from headwater.core.plan import Plan
from headwater.core.state import State, Stream
from headwater.core.steps import refresh


def merge(plan: Plan, states: Sequence[State]) -> Stream:
    """Add what each state learned since their common base, and count the base once."""
    return combine(plan, states)[0]


def combine(plan: Plan, states: Sequence[State]) -> tuple[Stream, tuple[int, ...]]:
    """Merge states of one base.

    Also returns the components whose sum is not a valid belief, so that the mean of the states took its place.
    """
    streams = [finalize(plan, state) for state in states]
    for policy in plan.policies:
        streams = policy.align(plan, streams)
    merged, repaired = grow(plan, streams[0], reduce(add, map(since_base, streams)))
    if merged is not streams[0] and merged.model.find_problem(merged.statistics, plan.width):
        merged = _average_streams(plan, merged, streams)
    if not merged.statistics.is_finite(MOST_CHECKED):
        raise ValueError(
            "models must have learned values and weights that are not too far apart: the sum of what they learned is not finite"
        )
    for policy in plan.policies:
        merged = policy.merge(plan, merged, streams, shared=True)
    return merged, repaired


def delta_of(plan: Plan, state: State) -> Delta:
    """Return what a state learned since its base, as a delta."""
    return since_base(finalize(plan, state))


def grow(plan: Plan, stream: Stream, delta: Delta) -> tuple[Stream, tuple[int, ...]]:
    """Return the base of a finalized stream plus what streams on it learned; the stream itself, if that is nothing.

    Also returns the components whose sum is not a valid belief, so that the mean of the streams took its place.
    """
    merged, repaired = grow_base(stream, delta)
    if merged is stream or plan.holds(stream):
        return merged, repaired
    return refresh(plan, merged), repaired


def _average_streams(plan: Plan, merged: Stream, streams: Sequence[Stream]) -> Stream:
    """Return a merged stream with the mean of the statistics of all, which is valid where their sum is not.

    Bases of streams that are refined are estimates, so a difference to the base may be negative.
    """
    weights = [stream.progress.n_eff for stream in streams]
    parts = [stream.statistics.scaled(weight / sum(weights)) for stream, weight in zip(streams, weights, strict=True)]
    statistics = reduce(add, parts).with_share_of_base(merged.statistics.from_base)
    merged = replace(merged, statistics=statistics)
    return merged if plan.holds(merged) else refresh(plan, merged)
