"""Steps for rows of sequences: in blocks that wait for the rows after them, or row by row."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, Self, TypeVar

import numpy as np

from headwater.core.batch import Batch, append_batch, join_batches
from headwater.core.contracts import chain_of
from headwater.core.fit_result import FIT_RESULT
from headwater.core.plan import Plan
from headwater.core.state import State, Stream, WarmUp
from headwater.core.statistics import Array, Statistics
from headwater.core.steps import SWEEP_ROWS, TOO_FAR, Sweep, fold


class _Carry(Protocol):
    """What the core asks of the record that a chain carries: that a sequence can end."""

    def closed(self, number: int, waits: bool) -> Self: ...


Carry = TypeVar("Carry", bound=_Carry)


@dataclass(frozen=True)
class OpenRows(Generic[Carry]):
    """What is known of open sequences after the folded rows (`carry`), and the rows that came since.

    `now` is a cache: what is known after the waiting rows.
    """

    carry: Carry | None = None
    waiting: tuple[Batch, ...] = ()
    now: Carry | None = field(default=None, compare=False)

    @property
    def rows(self) -> int:
        """Rows that wait."""
        return sum(map(len, self.waiting))

    def finish(self, plan: Plan, stream: Stream) -> Stream:
        """Return the stream with all rows folded and all sequences closed."""
        if self.waiting:
            rows = join_batches(self.waiting)
            summary, _ = chain_of(stream.model).summarize_open(stream.parameters, rows, self.carry, len(rows), plan.n_threads)
            return replace(fold(plan, stream, summary), unfolded=NO_ROWS)
        return replace(stream, unfolded=NO_ROWS) if self.carry is not None else stream

    def widen(self, plan: Plan) -> OpenRows[Carry]:
        """Models of sequences have the width they began with."""
        return self

    @property
    def sums(self) -> tuple[Statistics, ...]:
        """None: rows that wait are kept as they are."""
        return ()

    def carry_now(self, stream: Stream) -> Carry | None:
        """What is known of open sequences after the rows that wait, by the parameters of the next E-step."""
        if self.now is not None or not self.waiting:
            return self.now or self.carry
        return chain_of(stream.model).follow(stream.parameters, join_batches(self.waiting), self.carry)

    def close(self, number: int) -> OpenRows[Carry]:
        """Return the same after the end of an open sequence: the next row begins another one."""
        waits = any((batch.sequences == number).any() for batch in self.waiting)
        carry = None if self.carry is None else self.carry.closed(number, waits)
        return OpenRows(carry, tuple(end_sequence(batch, number) for batch in self.waiting))


NO_ROWS: OpenRows = OpenRows()


def _open_rows(stream: Stream) -> OpenRows:
    assert isinstance(stream.unfolded, OpenRows)
    return stream.unfolded


def end_sequence(batch: Batch, number: int) -> Batch:
    """Return the rows with an open sequence marked as complete."""
    return replace(batch, sequences=np.where(batch.sequences == number, -1 - number, batch.sequences))


@dataclass(frozen=True)
class SequenceStep:
    """Fold blocks of rows: each waits for the `lag` rows after it that its model looks ahead to."""

    nothing = NO_ROWS

    def begin(self, plan: Plan, stream: Stream, batch: Batch) -> Stream:
        if not len(batch):
            return stream
        return replace(stream, unfolded=OpenRows(chain_of(stream.model).follow(stream.parameters, batch, None)))

    def adopt(self, plan: Plan, stream: Stream) -> Stream:
        return stream

    def room(self, plan: Plan, stream: Stream) -> int:
        return max(plan.block_rows(stream) + chain_of(stream.model).lag - stream.unfolded.rows, 0)

    def take(self, plan: Plan, stream: Stream, batch: Batch, scores: Array) -> tuple[Stream, float]:
        """Store rows, and fold a block when it is complete. The score is that of the folded block, not of the new rows."""
        known = _open_rows(stream)
        if chain_of(stream.model).is_beyond(stream.base.prior, batch.X):
            raise ValueError(TOO_FAR)
        full, now = len(batch) == self.room(plan, stream), None
        if scores.size:
            now = chain_of(stream.model).follow(stream.parameters, batch, known.carry_now(stream), scores)
        stream = stream.without(FIT_RESULT)
        if not full:
            return replace(stream, unfolded=OpenRows(known.carry, append_batch(known.waiting, batch), now)), 0.0
        rows, size = join_batches([*known.waiting, batch]) if known.waiting else batch, plan.block_rows(stream)
        summary, carry = chain_of(stream.model).summarize_open(stream.parameters, rows, known.carry, size, plan.n_threads)
        stream, rest = fold(plan, stream, summary), rows[size:]
        if scores.size:
            now = chain_of(stream.model).follow(stream.parameters, rest, carry)
        return replace(stream, unfolded=OpenRows(carry, append_batch((), rest) if len(rest) else (), now)), summary.score


@dataclass(frozen=True)
class SequenceSweepStep:
    """Fold row by row inside a kernel, with the recursion of the chain in it."""

    nothing = NO_ROWS

    def begin(self, plan: Plan, stream: Stream, batch: Batch) -> Stream:
        return SequenceStep().begin(plan, stream, batch)

    def adopt(self, plan: Plan, stream: Stream) -> Stream:
        """Fold the rows that another step let wait; what is known after them goes on."""
        known = _open_rows(stream)
        if not known.waiting:
            return stream
        return replace(known.finish(plan, stream), unfolded=OpenRows(known.carry_now(stream)))

    def room(self, plan: Plan, stream: Stream) -> int:
        return SWEEP_ROWS

    def take(self, plan: Plan, stream: Stream, batch: Batch, scores: Array) -> tuple[Stream, float]:
        """Learn rows one by one."""
        sweep, known = Sweep.of(plan, stream, batch, scores), _open_rows(stream)
        statistics, average, n_eff, carry = chain_of(stream.model).sweep_open(*sweep.arguments, known.carry)
        after = sweep.end(plan, stream, statistics, average, n_eff)
        return replace(after, unfolded=OpenRows(carry)), sweep.total


def open_rows(state: State) -> OpenRows:
    """Return what a stream of sequences has begun: nothing in a warm-up."""
    if isinstance(state, WarmUp):
        return OpenRows()
    assert isinstance(state.unfolded, OpenRows)
    return state.unfolded


def close_sequence(state: State, sequence: int) -> State:
    """Return the state after the end of an open sequence: what comes next is another one."""
    if isinstance(state, WarmUp):
        return replace(state, buffer=state.buffer.map(lambda batch: end_sequence(batch, sequence)))
    return replace(state, unfolded=open_rows(state).close(sequence))
