"""Warm-up: rows wait until there are enough of them to start on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headwater.core.batch import Batch, Buffer
from headwater.core.contracts import Start, StartSettings, chain_of
from headwater.core.gapped_rows import find_absent
from headwater.core.lineage import root_stream
from headwater.core.plan import Plan
from headwater.core.schedules import ForgettingFactor
from headwater.core.state import State, Stream, Summary, WarmUp
from headwater.core.statistics import Array
from headwater.core.steps import report_parameters

UNKNOWN_ROWS = 8  # first rows that have no score: the scale of the data is not known yet
LONGEST_WAIT = 4  # times the warm-up to wait for components that no label has named yet


def wait(plan: Plan, state: WarmUp, batch: Batch, scores: Array) -> tuple[State, int]:
    """Store rows; the last of the warm-up starts the stream. Return how many rows were taken.

    Rows are scored by a start on those up to the last power of two, if there is room for `scores`.
    """
    if plan.starts_at_once and not state.rows:
        return begin_at_once(plan, state.key, batch), 0
    buffer = state.buffer.fork()
    state = replace(state, buffer=buffer)
    at = 0
    end, over = rows_to_wait(plan, buffer, batch)
    while at < end:
        stop = end
        if scores.size:
            stop = min(end, at + (1 << buffer.rows.bit_length()) - buffer.rows)
            if buffer.rows >= UNKNOWN_ROWS and 2 * _known_rows(plan, buffer) >= UNKNOWN_ROWS:
                _score_waiting(plan, state, batch[at:stop], scores[at:stop])
        buffer.append(batch[at:stop])
        at = stop
    if not over:
        return state, end
    rows = buffer.batch()
    start = find_stream_start(plan, rows, state.key)
    stream = plan.step.begin(plan, root_stream(plan, state.key, start), rows)
    return start_policies(plan, stream, start, rows), end


def begin_at_once(plan: Plan, key: int, batch: Batch) -> Stream:
    """Return a stream at the start that is given, which has learned none of these rows yet."""
    start = plan.find_start(plan, batch[:1], key, _at_given(plan, held=rows_to_hold(plan, 0), at_once=True))
    stream, nothing = root_stream(plan, key, start), batch[:0]
    return start_policies(plan, plan.step.begin(plan, stream, nothing), start, nothing)


def start_policies(plan: Plan, stream: Stream, start: Start, batch: Batch, counts: bool = True) -> Stream:
    """Return a stream that has just begun, with the records of its policies; its rows are learned already, if they count."""
    for policy in plan.policies:
        stream = policy.start(plan, stream, start, batch, counts)
    return stream


def rows_to_wait(plan: Plan, buffer: Buffer, batch: Batch) -> tuple[int, bool]:
    """Return how many rows of a batch the warm-up still takes, and whether it is over then.

    If labels have named only some of the components, it waits for the others, for up to four times its rows: a component that
    is named later would already be taken by another cluster.
    """
    least = plan.warm_up_rows
    most = least if plan.learner.warm_up is not None else LONGEST_WAIT * least
    named = np.full(len(batch), len(buffer.named))
    if batch.labels.size:
        labels, places = np.unique(batch.labels, return_index=True)
        new = [place for label, place in zip(labels, places, strict=True) if label >= 0 and int(label) not in buffer.named]
        named += np.bincount(new, minlength=len(batch)).cumsum() if new else 0
    rows = buffer.rows + np.arange(1, len(batch) + 1)
    if plan.model.chained:  # missing rows do not count
        before = np.count_nonzero(~find_absent(buffer.batch().X)) if buffer.rows else 0
        rows = before + np.cumsum(~find_absent(batch.X))
    over = (rows >= most) | ((rows >= least) & ((named == 0) | (named == plan.model.n_components)))
    return (int(np.argmax(over)) + 1, True) if over.any() else (len(batch), False)


def milestone_parameters(plan: Plan, state: WarmUp) -> object:
    """Return the reported parameters of a start on the rows up to the last power of two, for quick reads in the warm-up."""
    buffer = state.buffer
    rows = 1 << (buffer.rows.bit_length() - 1)
    if buffer.milestone is None or buffer.milestone[0] != rows:
        start = find_stream_start(plan, buffer.batch(rows), state.key)
        buffer.milestone = rows, report_parameters(plan, root_stream(plan, state.key, start))
    return buffer.milestone[1]


def find_start(plan: Plan, batch: Batch, key: int, polish: bool = True) -> Start:
    """Find a start on these rows."""
    settings = plan.start_settings
    return plan.find_start(plan, batch, key, replace(settings, polish=polish and settings.polish))


def find_stream_start(plan: Plan, batch: Batch, key: int) -> Start:
    """Find a start of a stream on the rows of its warm-up. A given start counts as rows in the statistics, if the rows are few.

    It counts as the rows that the user says, or else that it takes to estimate every parameter, less those of the warm-up.
    """
    settings, held = plan.start_settings, 0.0 if _is_held(plan, batch) else rows_to_hold(plan, len(batch))
    if held > 0.0:
        settings = _at_given(plan, held)
    return plan.find_start(plan, batch, key, settings)


def _at_given(plan: Plan, held: float, at_once: bool = False) -> StartSettings:
    """Settings of a start that is given, and counts as `held` rows."""
    return replace(plan.start_settings, polish=False, held=held, at_once=at_once)


def plant(plan: Plan, key: int, batch: Batch, weight: float) -> Stream:
    """Return a stream after a warm-up on these rows, which count `weight` times; less than 1 if they will be read again."""
    start = find_stream_start(plan, batch, key)
    if weight < 1.0:
        summary = start.summary
        summary = Summary(summary.statistics.scaled(weight), 0, summary.size * weight)
        start = replace(start, summary=summary, held=start.held * weight)
    return start_policies(plan, root_stream(plan, key, start), start, batch, weight == 1.0)


def rows_to_hold(plan: Plan, rows: int) -> float:
    """Rows that a given start counts as beside those of a warm-up of so many."""
    weight = plan.learner.settings.weight
    return float(plan.model.rows_to_learn(plan.width) - rows) if weight is None else weight


def _is_held(plan: Plan, batch: Batch) -> bool:
    """Whether there is no given start, or it is held already, or nothing should hold it."""
    settings = plan.learner.settings
    if not settings.locates:
        return True
    if settings.weight is not None:
        return False
    if settings.given is not None and settings.given.in_prior:
        return True
    if isinstance(plan.schedule(plan.model), ForgettingFactor):  # its first fold replaces the start
        return True
    return len(set(batch.labels[batch.labels >= 0].tolist())) == plan.model.n_components  # labelled rows hold each


def _score_waiting(plan: Plan, state: WarmUp, batch: Batch, scores: Array) -> None:
    """Score rows of the warm-up by the start at the last milestone."""
    parameters, model, buffer = milestone_parameters(plan, state), plan.model, state.buffer
    if not model.chained:
        scores[...] = model.log_likelihood(parameters, batch)
        return
    chain = chain_of(model)
    known = buffer.followed if buffer.followed is not None and buffer.followed[0] is parameters else (parameters, 0, None)
    carry = known[2]
    if known[1] < buffer.rows:
        carry = chain.follow(parameters, buffer.batch()[known[1] :], carry)
    carry = chain.follow(parameters, batch, carry, scores)
    buffer.followed = parameters, buffer.rows + len(batch), carry


def _known_rows(plan: Plan, buffer: Buffer) -> int:
    """Rows of the warm-up at the last power of two; missing rows of sequences are not counted."""
    if not plan.model.chained or not buffer.rows:
        return buffer.rows
    return int(np.count_nonzero(~find_absent(buffer.batch().X[: 1 << (buffer.rows.bit_length() - 1)])))
