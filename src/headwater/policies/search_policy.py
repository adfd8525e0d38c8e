"""Search: a stream leaves a bad start. Its reference is refined, and its components grow, at times that depend on rows alone.

Between two searches the parameters of the E-step are held, so that the statistics are sums at one reference. When a search is
due, or when the model is read, reservoir rows propose and judge split/merge moves (`refinement.py`) and numbers of components
(`growth_states.py`), and the statistics are restated at the new reference (`restate.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import Batch
from headwater.core.contracts import NO_SCORES, Start
from headwater.core.loop import finalize
from headwater.core.match import refuse_numbers
from headwater.core.plan import Plan
from headwater.core.policy import Policy, Restates
from headwater.core.records import fingerprint
from headwater.core.state import Stream, Summary
from headwater.core.steps import refresh
from headwater.families.components import ComponentStatistics
from headwater.kernels.parallel import one_blas_thread
from headwater.models.mixture import mixture_of
from headwater.policies.drift_monitor import recent_rows, worth_searching
from headwater.policies.growth_states import regrow
from headwater.policies.names import DRIFT, GROWTH, REFINEMENT, RESERVOIR
from headwater.policies.refinement import refine
from headwater.policies.refinement_record import START_LOOKS, Refinement, schedule_search
from headwater.policies.reservoir import relabel
from headwater.policies.reservoir_policy import has_rows, kept_rows
from headwater.policies.restate import Transfer, restate_at, restate_base
from headwater.policies.search_context import SearchContext

READ_LOOKS = 50.0  # extra E-steps for each row, if only a reader waits
DRIFT_LOOKS = 1.0  # extra E-steps for each row, after something was forgotten
READ_GROWTH = 1.1  # times the rows of the last search, after which a model that is read is searched again
SEARCHES_AT_HAND = 3  # at most, of rows that are all in memory
SURPRISED_READ_GROWTH = 1.02  # and if rows came as a surprise


@dataclass(frozen=True)
class SearchPolicy(Policy, Restates):
    """Refines the reference of a mixture, and finds its number of components if the plan asks for it."""

    name = REFINEMENT

    def start(self, plan: Plan, stream: Stream, start: Start, batch: Batch, counts: bool) -> Stream:
        """Hold the parameters of the start: the statistics are sums at them."""
        if RESERVOIR not in stream.records:
            return stream
        scores = stream.model.log_likelihood(start.parameters, batch, plan.n_threads) if len(batch) else NO_SCORES
        record = Refinement().begin_at(len(batch), scores, batch.row_weights, stream.model.rows_to_learn(plan.width))
        record = replace(record, rows=stream.progress.rows_seen)
        return schedule_search(plan, replace(stream, parameters=start.parameters).with_record(REFINEMENT, record))

    def adopt(self, plan: Plan, stream: Stream) -> Stream:
        """End the searches of a stream whose plan keeps no rows."""
        searched = REFINEMENT in stream.records
        return stop_search(plan, stream) if searched and not kept_rows(plan, stream.model) else stream

    def holds_reference(self, plan: Plan, stream: Stream) -> bool:
        follows = DRIFT in stream.records and stream.records[DRIFT].following
        return plan.half_life is None and not follows

    def rows_until_due(self, plan: Plan, stream: Stream) -> int:
        return max(stream.records[REFINEMENT].next - stream.rows, 1)

    def after_fold(self, plan: Plan, before: Stream, stream: Stream, summary: Summary) -> Stream:
        return stream.with_record(REFINEMENT, stream.records[REFINEMENT].after(summary.score, summary.size))

    def after_batch(self, plan: Plan, before: Stream, stream: Stream, part: Batch) -> Stream:
        """Search if it is due, at the cost of at most a part of the stream."""
        record = stream.records[REFINEMENT]
        if stream.rows < record.next:
            return stream
        allowed = record.allowance(stream.rows, max(plan.warm_up_rows, plan.usual_warm_up_rows))
        if DRIFT in before.records and before.records[DRIFT].alarms:
            allowed += DRIFT_LOOKS * stream.rows
        short = False
        if grows(plan):
            stream, short = grow_stream(plan, finalize(plan, stream), on_the_way=True)
        if allowed > 0.0 and worth_searching(plan, stream, allowed):
            stream = refine_stream(plan, finalize(plan, stream), allowed)
        if short:  # a reader goes on with it
            stream = stream.with_record(REFINEMENT, replace(stream.records[REFINEMENT], rows=record.rows))
        return schedule_search(plan, stream)

    def on_read(self, plan: Plan, stream: Stream) -> Stream:
        """Search if the stream is a tenth longer than at the last search; after a surprise, earlier."""
        record = stream.records[REFINEMENT]
        if RESERVOIR not in stream.records or (plan.starts_at_once and stream.rows < plan.warm_up_rows):
            return stream
        if stream.rows < (SURPRISED_READ_GROWTH if record.surprise else READ_GROWTH) * record.rows:
            return stream
        if not worth_searching(plan, stream):
            return stream
        if grows(plan):
            stream, _ = grow_stream(plan, stream)
        return refine_stream(plan, stream, READ_LOOKS * stream.rows + START_LOOKS * plan.warm_up_rows, thorough=True)

    def search_at_hand(self, plan: Plan, stream: Stream) -> Stream:
        """Search as for a reader, and again from a new start while the climb did not converge."""
        for _ in range(SEARCHES_AT_HAND):
            if RESERVOIR not in stream.records:
                break
            allowed = READ_LOOKS * stream.rows + START_LOOKS * plan.warm_up_rows
            stream = refine_stream(plan, stream, allowed, thorough=True, at_hand=True)
            if not stream.records[REFINEMENT].doubt:
                break
        return stream

    def align(self, plan: Plan, streams: list[Stream]) -> list[Stream]:
        return align_references(plan, streams)

    def merge(self, plan: Plan, merged: Stream, streams: Sequence[Stream], shared: bool) -> Stream:
        """Continue to search on the rows of all reservoirs; if one stream has none, stop searching."""
        if RESERVOIR not in merged.records:
            return stop_search(plan, merged)
        record = streams[0].records[REFINEMENT]
        merged = schedule_search(plan, merged.with_record(REFINEMENT, record))
        return merged if plan.holds(merged) else refresh(plan, merged)

    def in_shard(self) -> Policy:
        return ShardReference()

    def gather(self, plan: Plan, before: Stream, whole: Stream, shards: Sequence[Stream]) -> Stream:
        """Add the scores of the shards; the reference is held."""
        scores = [(one.records[REFINEMENT].score, one.records[REFINEMENT].weight) for one in shards]
        record = before.records[REFINEMENT].after(*map(sum, zip(*scores, strict=True)))
        return replace(whole, parameters=before.parameters).with_record(REFINEMENT, record)

    def can_restate(self, streams: Sequence[Stream]) -> bool:
        return all(has_rows(stream) for stream in streams)

    def match_other_size(self, plan: Plan, stream: Stream, first: Stream) -> tuple[ComponentStatistics, NDArray[np.int64]]:
        """The merged stream finds its number of components on the reservoirs of all."""
        transfer = Transfer(
            mixture_of(stream),
            mixture_of(first),
            stream.parameters,
            first.parameters,
            first.base.prior,
            plan.n_threads,
            stream.base.prior,
        )
        kept = stream.records[RESERVOIR].batch
        old, new = transfer.responsibilities(kept)
        statistics = transfer.restate(stream.statistics, kept, plan.count(stream.progress))
        return statistics, (new.T @ old).argmax(axis=1).astype(np.int64)

    def restate(
        self, plan: Plan, stream: Stream, first: Stream, components: NDArray[np.int64]
    ) -> tuple[ComponentStatistics, Stream]:
        model, prior = first.model, first.base.prior

        def move(rest: ComponentStatistics) -> ComponentStatistics:
            return model.select_statistics(model.move_to_prior(prior, stream.base.prior, rest), components)

        renamed = relabel(stream.records[RESERVOIR], np.argsort(components))
        statistics = restate_at(plan, stream, first.parameters, prior, move, renamed)
        return statistics, stream.with_record(RESERVOIR, renamed)


@dataclass(frozen=True)
class ShardReference(Policy):
    """The part of a shard in searches: its reference is held, and scores add up. Searches run on the whole stream."""

    name = REFINEMENT

    def adopt(self, plan: Plan, stream: Stream) -> Stream:
        return SearchPolicy().adopt(plan, stream)

    def begin_shard(self, whole: Stream, shard: Stream) -> Stream:
        record = replace(shard.records[REFINEMENT], score=0.0, weight=0.0)
        return replace(shard, parameters=whole.parameters).with_record(REFINEMENT, record)

    def holds_reference(self, plan: Plan, stream: Stream) -> bool:
        return plan.half_life is None

    def after_fold(self, plan: Plan, before: Stream, stream: Stream, summary: Summary) -> Stream:
        return SearchPolicy().after_fold(plan, before, stream, summary)

    def align(self, plan: Plan, streams: list[Stream]) -> list[Stream]:
        return align_references(plan, streams)


def grows(plan: Plan) -> bool:
    """Whether the number of components is to be found."""
    return any(policy.name == GROWTH for policy in plan.policies)


def stop_search(plan: Plan, stream: Stream) -> Stream:
    """Return a stream that is searched no more and keeps no rows: its parameters follow its statistics."""
    if REFINEMENT not in stream.records:
        return stream.without(RESERVOIR, DRIFT)
    return refresh(plan, stream.without(RESERVOIR, REFINEMENT, DRIFT))


def refine_stream(plan: Plan, stream: Stream, allowed: float, thorough: bool = False, at_hand: bool = False) -> Stream:
    """Return a finalized stream at a reference that reservoir rows prefer; its base is restated there, too.

    `allowed` bounds the cost, in rows of E-steps. A `thorough` search is for a reader, who waits for it; if all rows are
    `at_hand`, it tries more moves, and passes over the rows follow.
    """
    reservoir = stream.records[RESERVOIR]
    if len(reservoir) == 0:
        return stream
    settings, drift = plan.start_settings, stream.records.get(DRIFT)

    def restart(batch: Batch, salt: int) -> Start:
        start: Start = stream.model.start(batch, (stream.key + salt) % 2**63, settings, plan.n_threads)
        return start

    context = SearchContext(
        mixture_of(stream),
        plan.algorithm.readout,
        stream.base.prior,
        stream.statistics,
        stream.parameters,
        plan.count(stream.progress),
        recent_rows(plan, stream),
        stream.records[REFINEMENT],
        stream.rows,
        stream.key,
        settings.method,
        settings.readout,
        restart if settings.polish and settings.given is None else None,
        not plan.holds(stream),
        thorough,
        drift is not None and (drift.clock > 0.0 or len(reservoir) < stream.rows),
        at_hand,
        plan.n_threads,
    )
    if not len(context.judging_places):  # the first rows of a reservoir may all propose
        return stream
    with one_blas_thread():
        parameters, statistics, record = refine(context, allowed)
        base = restate_base(plan, stream, parameters, statistics)
    if stream.model.find_problem(statistics, plan.width):  # an invalid estimate
        return stream.with_record(REFINEMENT, replace(stream.records[REFINEMENT], spent=record.spent))
    after = replace(stream, base=base, parameters=parameters, statistics=statistics).with_record(REFINEMENT, record)
    after = after if plan.holds(after) else refresh(plan, after)
    for policy in plan.hooks(after).policies:
        after = policy.after_move(plan, stream, after)
    return after


def grow_stream(plan: Plan, stream: Stream, on_the_way: bool = False) -> tuple[Stream, bool]:
    """Return a finalized stream with the number of components that its reservoir rows prefer, and whether it ended too soon."""
    if len(stream.records[RESERVOIR]) == 0:
        return stream, False
    with one_blas_thread():
        after, short = regrow(plan, stream, on_the_way)
    if after.parameters is stream.parameters:
        return after, short
    moved = after if plan.holds(after) else refresh(plan, after)
    for policy in plan.hooks(moved).policies:
        moved = policy.after_move(plan, stream, moved)
    return moved, short


def align_references(plan: Plan, streams: list[Stream]) -> list[Stream]:
    """Return streams restated at the same parameters.

    These are the parameters of the stream that was refined last, which comes first: the same ones in any tree of merges. If one
    of the streams cannot be restated, none is searched any more.
    """
    held = plan.holds(streams[0])
    names = [fingerprint(stream.parameters, size=16) if held else str(stream.model.n_components) for stream in streams]
    tell = all(has_rows(stream) for stream in streams)
    if any(REFINEMENT not in stream.records for stream in streams) or (len(set(names)) > 1 and not tell):
        refuse_numbers([stream.model.n_components for stream in streams])
        return [stop_search(plan, stream) for stream in streams]

    def rank(at: int) -> tuple[object, ...]:
        record = streams[at].records[REFINEMENT]
        return record.rows, names[at], astuple(replace(record, next=0))

    order = sorted(range(len(streams)), key=rank, reverse=True)
    first = streams[order[0]]
    return [streams[at] if names[at] == names[order[0]] else _bring(plan, streams[at], first) for at in order]


def _bring(plan: Plan, stream: Stream, first: Stream) -> Stream:
    """Return a stream restated at the parameters of another one on the same base."""
    if stream.model.n_components != first.model.n_components:
        return _bring_to_size(plan, stream, first)
    statistics = restate_at(plan, stream, first.parameters)
    return replace(
        stream, base=restate_base(plan, stream, first.parameters), statistics=statistics, parameters=first.parameters
    )


def _bring_to_size(plan: Plan, stream: Stream, first: Stream) -> Stream:
    """Return a stream with the components of another one on the same base."""
    own, other = mixture_of(stream), mixture_of(first)
    transfer = Transfer(own, other, stream.parameters, first.parameters, first.base.prior, plan.n_threads)
    kept = stream.records[RESERVOIR]
    statistics = transfer.restate(stream.statistics, kept.batch, plan.count(stream.progress))
    statistics = statistics.with_share_of_base(stream.statistics.from_base)
    rows = np.flatnonzero(kept.places < stream.base.progress.rows_seen)
    base = replace(transfer.restate_base(stream.base, kept.batch, rows), prior=first.base.prior)
    base = base.with_record(GROWTH, first.base.records.get(GROWTH))
    return replace(stream, model=first.model, base=base, statistics=statistics, parameters=first.parameters)
