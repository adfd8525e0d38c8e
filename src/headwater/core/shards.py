"""Shards: rows are dealt to several streams that learn side by side; reading merges them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from headwater.core.average import AVERAGE
from headwater.core.batch import Batch
from headwater.core.fit_result import FIT_RESULT
from headwater.core.lineage import rebase
from headwater.core.loop import adopt, advance, finalize
from headwater.core.merge import merge
from headwater.core.plan import Plan, Step
from headwater.core.state import State, Stream
from headwater.core.statistics import Array, Statistics
from headwater.core.steps import EMPTY, refresh
from headwater.kernels.parallel import one_blas_thread, run_tasks

TURN_ROWS = 16  # rows that one shard gets before it is the next one's turn
SHARD_KEYS = 0x1F3D5B79A2C4E687  # difference of the keys of two shards, so that each has its own random numbers


@dataclass(frozen=True)
class Shards:
    """Streams on one base, each of which learns its part of the rows since."""

    streams: tuple[Stream, ...]

    @property
    def before(self) -> int:
        """Rows of the base that all of them have in common."""
        return self.streams[0].base.progress.rows_seen

    @property
    def rows(self) -> int:
        """Rows that they have taken."""
        return sum(stream.rows - self.before for stream in self.streams)

    @property
    def sums(self) -> tuple[Statistics, ...]:
        """Statistics of all shards, and of rows that wait in them."""
        return tuple(sums for stream in self.streams for sums in (stream.statistics, *stream.unfolded.sums))

    def finish(self, plan: Plan, stream: Stream) -> Stream:
        """Merge the shards; the base of the stream is restored, with its share in what the shards began with."""
        merged = merge(plan.of_shard, self.streams)
        share = merged.statistics.from_base * stream.statistics.from_base
        statistics = merged.statistics.with_share_of_base(share)
        records = {**stream.records, **({AVERAGE: merged.records[AVERAGE]} if AVERAGE in merged.records else {})}
        whole = replace(merged, base=stream.base, statistics=statistics, unfolded=EMPTY, records=records)
        for policy in plan.hooks(stream).policies:
            whole = policy.gather(plan, stream, whole, self.streams)
        return whole

    def widen(self, plan: Plan) -> Shards:
        """Return the shards for more columns."""
        from headwater.core.loop import widen

        return Shards(tuple(widen(plan.of_shard, stream) for stream in self.streams))  # type: ignore[misc]


@dataclass(frozen=True)
class ShardStep:
    """Deal rows by their place in the stream; each shard takes its own by another step."""

    inner: Step
    shards: int

    nothing = EMPTY

    def begin(self, plan: Plan, stream: Stream, batch: Batch) -> Stream:
        return stream

    def adopt(self, plan: Plan, stream: Stream) -> Stream:
        """Deal a stream that has another number of shards, or none."""
        if isinstance(stream.unfolded, Shards) and len(stream.unfolded.streams) == self.shards:
            shards = tuple(adopt(plan.of_shard, shard) for shard in stream.unfolded.streams)
            return replace(stream, unfolded=Shards(shards))
        return self._deal(plan, finalize(plan, stream))

    def room(self, plan: Plan, stream: Stream) -> int:
        return 2**62

    def take(self, plan: Plan, stream: Stream, batch: Batch, scores: Array) -> tuple[Stream, float]:
        """Deal rows in turns, and let each shard learn its own."""
        stream = self.adopt(plan, stream)
        known = stream.unfolded
        assert isinstance(known, Shards)
        streams: list[State] = list(known.streams)
        owners = (known.rows + np.arange(len(batch))) // TURN_ROWS % self.shards

        def work(shard: int) -> float:
            rows = np.flatnonzero(owners == shard)
            if not len(rows):
                return 0.0
            part = batch[rows]
            own = np.empty(len(rows) if scores.size else 0)
            streams[shard], info = advance(plan.of_shard, streams[shard], part, own)
            if scores.size:
                scores[rows] = own
            return info.score * part.size

        with one_blas_thread():
            total = sum(run_tasks(work, range(self.shards), plan.n_threads))
        return replace(stream, unfolded=Shards(tuple(cast(list[Stream], streams)))), float(total)

    def _deal(self, plan: Plan, stream: Stream) -> Stream:
        """Return a finalized stream in shards, whose base is what was learned so far."""
        shared = rebase(stream.without(FIT_RESULT))
        owned = {policy.name for policy in plan.of_shard.policies}

        def shard(number: int) -> Stream:
            records = {name: one for name, one in shared.records.items() if name in owned}
            if AVERAGE in records:
                records[AVERAGE] = records[AVERAGE].copy()
            key = (stream.key + number * SHARD_KEYS) % 2**63
            own = replace(shared, key=key, statistics=shared.statistics.copy(), unfolded=self.inner.nothing, records=records)
            own = refresh(plan, own)
            for policy in plan.of_shard.hooks(own).policies:
                own = policy.begin_shard(stream, own)
            return own

        return replace(stream.without(FIT_RESULT), unfolded=Shards(tuple(map(shard, range(self.shards)))))
