"""The loop: summarize a batch, fold it into the statistics, read parameters out. Every algorithm is learned here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np

from headwater.core.contracts import NO_SCORES, Start
from headwater.core.delta import Delta, since_base
from headwater.core.learner import Learner, belief, refreshed, suited
from headwater.core.lineage import rebased, rooted
from headwater.core.merge import combined
from headwater.core.schedules import ForgettingFactor
from headwater.core.state import Batch, Buffer, Info, State, Summary, joined
from headwater.core.statistics import Array
from headwater.core.steps import fold, fold_batches, fold_chained, known_now, sweep_rows
from headwater.kernels.parallel import one_blas_thread, run_tasks
from headwater.models.mixture import Mixture
from headwater.policies.drift_monitor import calmed, heals_by, watching
from headwater.policies.growth_states import grown_start
from headwater.policies.refinement_states import clock, healed_state, keeping, opened, plain, regrown_state, scheduled
from headwater.policies.reservoir import Reservoir, taken

UNKNOWN_ROWS = 8  # what the first rows of a stream score tells nothing: the scale of the data is not known yet
LONGER = 4
PART_ROWS = 16  # rows that one part gets before it is the next one's turn
PART_KEYS = 0x1F3D5B79A2C4E687
AGAIN = 1.0  # times that rows may be looked at again where something was forgotten


def advance(
    learner: Learner, state: State, batch: Batch, scores: Array = NO_SCORES, scores_start: bool = True
) -> tuple[State, Info]:
    """Learn a chunk. The state that is given stays as it is.

    Rows are scored before they are learned if there is room for `scores`; those of the warm-up only if `scores_start` says so.
    """
    at, total = 0, 0.0
    if state.base is None:
        state, at = _wait(learner, state, batch, scores if scores_start else NO_SCORES)
    learner = suited(learner, state)
    if at < len(batch):
        if len(state.parts) != (learner.parts if learner.parts > 1 else 0):
            state = _dealt(learner, state)
        chained = learner.model.chained
        full = state.pending is not None and state.pending.rows >= learner.fold_rows(state)
        if full or (learner.sweeps and state.waiting):  # the algorithm was another before
            state = replace(settle(learner, state), carry=known_now(learner, state) if chained else None)
        if state.healing is not None and not learner.kept_rows:
            state = plain(learner, state)
        if learner.adapts != (state.drift is not None):  # or the half-life was, or `fit` came before, which keeps no rows
            state = watching(learner.model, keeping(learner, state), learner.adapts, learner.n_threads)
        take = _deal if learner.parts > 1 else sweep_rows if learner.sweeps else fold_chained if chained else fold_batches
        if state.reservoir is not None:
            take = partial(_heal_on_the_way, take)
        state, total = take(learner, state, batch[at:], scores[at:])
    step = learner.batch_rows / state.progress.mass if state.progress.mass else 0.0
    return state, Info(len(batch), total / batch[at:].size if at < len(batch) else 0.0, step)


def milestone_parameters(learner: Learner, state: State) -> Any:
    """Return the reported parameters of a start on the rows up to the last power of two: what quick reads see in warm-up."""
    assert state.buffer is not None
    rows = 1 << (state.buffer.rows.bit_length() - 1)
    if state.buffer.milestone is None or state.buffer.milestone[0] != rows:
        state.buffer.milestone = rows, report(learner, settle(learner, state, rows))
    return state.buffer.milestone[1]


def settle(learner: Learner, state: State, rows: int | None = None) -> State:
    """Return the state as if the stream ended here: warm-up over, partial batch folded, sequences closed.

    The one given is not changed. The buffered rows (or the first `rows` of them) become the base of the stream, folded once.
    """
    if state.base is None:
        assert state.buffer is not None
        batch = state.buffer.batch(rows)
        return rooted(learner, state.key, stream_start(learner, batch, state.key))
    learner = suited(learner, state)
    if state.parts:
        return _gathered(learner, state)
    if state.pending is not None:
        return fold(learner, state, state.pending)
    if state.waiting:
        waiting = joined(state.waiting)
        summary, _ = learner.chain.summarize_open(state.parameters, waiting, state.carry, len(waiting), learner.n_threads)
        return fold(learner, state, summary)
    return replace(state, carry=None) if state.carry is not None else state


def started(learner: Learner, batch: Batch, key: int, polish: bool = True) -> Start:
    """Find a start on these rows; and a number of components, if there is none yet."""
    settings = replace(learner.settings, inference=learner.inference, polish=polish and learner.settings.polish)
    if learner.grows:
        return grown_start(cast(Mixture, learner.model), batch, key, settings, learner.n_threads)
    return learner.model.start(batch, key, settings, learner.n_threads)


def stream_start(learner: Learner, batch: Batch, key: int) -> Start:
    """Find a start of a stream on the rows of its warm-up. A given one is held in the statistics, if the rows are few.

    It counts as the rows that it takes to move every parameter, less those there are.
    """
    held = _rows_to_hold(learner, batch)
    if held > 0.0:
        learner = replace(learner, settings=replace(learner.settings, polish=False, held=held))
    return started(learner, batch, key)


def _rows_to_hold(learner: Learner, batch: Batch) -> float:
    """Rows' worth of a given start that those of a warm-up lack; none where something else holds it, or nothing is to."""
    given = learner.settings.given
    if given is None or not given.locates or given.in_prior:
        return 0.0
    if isinstance(learner.schedule, ForgettingFactor):  # of which the first fold replaces what was there
        return 0.0
    if len(set(batch.labels[batch.labels >= 0].tolist())) == learner.model.n_components:  # labelled rows of each do
        return 0.0
    return float(learner.model.rows_to_learn(learner.width) - len(batch))


def planted(learner: Learner, key: int, batch: Batch, weight: float) -> State:
    """Return a state whose warm-up is over, on these rows, which count `weight` times; less than 1: they will come again."""
    start = stream_start(learner, batch, key)
    if weight < 1.0:
        summary = start.summary
        start = replace(
            start, summary=Summary(summary.statistics.scaled(weight), 0, summary.size * weight), held=start.held * weight
        )
    return opened(learner, rooted(learner, key, start), start.parameters, batch, weight == 1.0)


def branch(learner: Learner, state: State) -> State:
    """Return a state that has learned the same but calls all of it its base: branches of one state can be merged."""
    return rebased(settle(learner, state))


def widened(learner: Learner, state: State) -> State:
    """Return the state for rows of the learner's width, which is more than it had; what was learned stays."""
    model, width = learner.model, learner.width

    def wide(value: Any) -> Any:
        return None if value is None else model.widened(value, width)

    if state.base is None:
        return replace(state, buffer=None if state.buffer is None else state.buffer.widened(width))
    base = replace(
        state.base,
        prior=wide(state.base.prior),
        statistics=wide(state.base.statistics),
        average=wide(state.base.average),
    )
    pending = None if state.pending is None else replace(state.pending, statistics=wide(state.pending.statistics))
    state = replace(
        state, base=base, statistics=wide(state.statistics), average=wide(state.average), pending=pending, reported=None,
        parts=tuple(widened(learner, part) for part in state.parts),
    )  # fmt: skip
    return refreshed(learner, state)


def report(learner: Learner, state: State) -> Any:
    """Return the parameters that the user sees."""
    settled = settle(learner, state)
    if settled.reported is not None:
        return settled.reported
    return suited(learner, settled).model.readout(learner.algorithm.report, *belief(learner, settled))


def merge(learner: Learner, states: Sequence[State]) -> State:
    """Add what each state learned since their common base, and count the base once (paper 003, eq. 10)."""
    return combine(learner, states)[0]


def combine(learner: Learner, states: Sequence[State]) -> tuple[State, tuple[int, ...]]:
    """Merge states of one base.

    Returns the components, too, whose sum is no belief, so that the mean of the states took its place.
    """
    return combined(learner, [settle(learner, state) for state in states])


def learned(learner: Learner, state: State) -> Delta:
    """Return what a state learned since its base; what states of one base learned adds up."""
    return since_base(settle(learner, state))


def _heal_on_the_way(
    take: Callable[..., tuple[State, float]], learner: Learner, state: State, batch: Batch, scores: Array
) -> tuple[State, float]:
    """Learn rows as they come, keep some of them, and heal whenever it is time."""
    at, total = 0, 0.0
    while at < len(batch):
        assert state.reservoir is not None
        place, before = state.rows, state.drift
        room = max(state.healing.next - place, 1)
        if before is not None:  # what is forgotten is decided at the end of a batch
            room = min(room, learner.batch_rows - (state.pending.rows if state.pending else 0))
        part = batch[at : at + room]
        if learner.parts > 1 and not state.parts:
            state = _dealt(learner, state)
        reservoir = taken(cast(Reservoir, state.reservoir), part, place, clock(learner, state, place, len(part)))
        state, gained = take(learner, state, part, scores[at : at + room])
        state = replace(state, reservoir=reservoir)
        if before is not None and state.pending is None:
            state = calmed(learner.model, state, learner.warm_up_rows, learner.n_threads)
            if state.drift.last > before.last:  # it heals soon
                soon = scheduled(learner, state).healing.next
                state = replace(state, healing=replace(state.healing, next=min(soon, max(state.healing.next, state.rows + 1))))
        at, total = at + len(part), total + gained
        if state.rows >= state.healing.next:
            allowed = state.healing.allowance(state.rows, learner.warm_up_rows)
            if before is not None and before.alarms:
                allowed += AGAIN * state.rows
            if learner.grows:
                state = regrown_state(learner, settle(learner, state), on_the_way=True)
                learner = suited(learner, state)
            if allowed > 0.0 and heals_by(state, learner.warm_up_rows, allowed):
                state = healed_state(learner, settle(learner, state), allowed)
            state = scheduled(learner, state)
    return state, total


def _wait(learner: Learner, state: State, batch: Batch, scores: Array) -> tuple[State, int]:
    """Buffer rows until the warm-up is over; return how many were taken. Scores come from the last milestone."""
    buffer = Buffer() if state.buffer is None else state.buffer.forked()
    state = replace(state, buffer=buffer)
    at = 0
    end, over = rows_to_wait(learner, buffer, batch)
    while at < end:
        stop = end
        if scores.size:
            stop = min(end, at + (1 << buffer.rows.bit_length()) - buffer.rows)
            if buffer.rows >= UNKNOWN_ROWS and 2 * _tells(learner, buffer) >= UNKNOWN_ROWS:
                _score_waiting(learner, state, batch[at:stop], scores[at:stop])
        buffer.append(batch[at:stop])
        at = stop
    if not over:
        return state, end
    start = stream_start(learner, buffer.batch(), state.key)
    begun = rooted(learner, state.key, start)
    if learner.model.chained:
        begun = replace(begun, carry=learner.chain.follow(begun.parameters, buffer.batch(), None))
    return opened(learner, begun, start.parameters, buffer.batch()), end


def _score_waiting(learner: Learner, state: State, batch: Batch, scores: Array) -> None:
    """Score rows of the warm-up by what was known at the last milestone."""
    parameters = milestone_parameters(learner, state)
    if not learner.model.chained:
        scores[...] = learner.model.log_likelihood(parameters, batch)
        return
    buffer = state.buffer
    assert buffer is not None
    known = buffer.followed if buffer.followed is not None and buffer.followed[0] is parameters else (parameters, 0, None)
    carry = known[2]
    if known[1] < buffer.rows:
        carry = learner.chain.follow(parameters, buffer.batch()[known[1] :], carry)
    carry = learner.chain.follow(parameters, batch, carry, scores)
    buffer.followed = parameters, buffer.rows + len(batch), carry


def _tells(learner: Learner, buffer: Buffer) -> int:
    """Rows of the warm-up at the last power of two that are not missing, as rows that hang together may be."""
    if not learner.model.chained or not buffer.rows:
        return buffer.rows
    return int(np.count_nonzero(~np.isnan(buffer.batch().X[: 1 << (buffer.rows.bit_length() - 1), 0])))


def rows_to_wait(learner: Learner, buffer: Buffer, batch: Batch) -> tuple[int, bool]:
    """Return how many rows of a batch the warm-up still takes, and whether it is over then.

    If some components have been named by labels and others not, it waits for these, for up to four times its rows: a component
    that is named only later has become something else by then.
    """
    least = learner.warm_up_rows
    most = least if learner.warm_up is not None else LONGER * least
    named = np.full(len(batch), len(buffer.named))
    if batch.labels.size:
        labels, places = np.unique(batch.labels, return_index=True)
        new = [place for label, place in zip(labels, places, strict=True) if label >= 0 and int(label) not in buffer.named]
        named += np.bincount(new, minlength=len(batch)).cumsum() if new else 0
    rows = buffer.rows + np.arange(1, len(batch) + 1)
    if learner.model.chained:  # rows that are missing say nothing
        before = np.count_nonzero(~np.isnan(buffer.batch().X[:, 0])) if buffer.rows else 0
        rows = before + np.cumsum(~np.isnan(batch.X[:, 0]))
    over = (rows >= most) | ((rows >= least) & ((named == 0) | (named == learner.model.n_components)))
    return (int(np.argmax(over)) + 1, True) if over.any() else (len(batch), False)


def _dealt(learner: Learner, state: State) -> State:
    """Return the state in as many parts as the learner has, which all stand on what was learned so far."""
    settled = settle(learner, state)
    if learner.parts == 1:
        return settled
    shared: Any = replace(rebased(settled), reported=None)

    def part(number: int) -> State:
        average = shared.average.copy() if shared.average is not None else None
        key = (state.key + number * PART_KEYS) % 2**63  # draws of their own
        own = replace(shared, key=key, statistics=shared.statistics.copy(), average=average, reservoir=None)
        if own.healing is not None:
            return replace(own, healing=replace(own.healing, score=0.0, weight=0.0))
        return refreshed(learner, own)

    return replace(settled, reported=None, parts=tuple(map(part, range(learner.parts))))


def _gathered(learner: Learner, state: State) -> State:
    """Merge the parts; the base is that of the stream again, and what they stood on counts as far as it came from there."""
    merged: Any = merge(learner.alone, state.parts)
    statistics, average = merged.statistics.writable(), merged.average
    statistics.from_base[...] *= state.statistics.from_base  # type: ignore[union-attr]
    if average is not None:
        average = average.writable()
        average.from_base[...] *= state.average.from_base  # type: ignore[union-attr]
    whole = replace(merged, base=state.base, statistics=statistics, average=average)
    if state.healing is None:
        return whole
    scores = [(part.healing.score, part.healing.weight) for part in state.parts]
    healing = state.healing.after(*map(sum, zip(*scores, strict=True)))
    return replace(whole, parameters=state.parameters, reservoir=state.reservoir, healing=healing)


def _deal(learner: Learner, state: State, batch: Batch, scores: Array) -> tuple[State, float]:
    """Deal rows to the parts in turns, by their place in the stream, and let each part learn its own."""
    parts: list[Any] = list(state.parts)
    before = parts[0].base.progress.rows_seen
    dealt = sum(part.rows - before for part in parts)
    owners = (dealt + np.arange(len(batch))) // PART_ROWS % learner.parts

    def work(part: int) -> float:
        rows = np.flatnonzero(owners == part)
        if not len(rows):
            return 0.0
        share = batch[rows]
        own = np.empty(len(rows) if scores.size else 0)
        parts[part], info = advance(learner.alone, parts[part], share, own)
        if scores.size:
            scores[rows] = own
        return info.score * share.size

    with one_blas_thread():
        total = sum(run_tasks(work, range(learner.parts), learner.n_threads))
    progress = replace(state.progress, rows_seen=before + dealt + len(batch))
    return replace(state, parts=tuple(parts), progress=progress), float(total)
