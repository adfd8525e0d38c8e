"""The loop: rows in, a stream out. It knows a step and policies, and no feature by name."""

from __future__ import annotations

from dataclasses import replace

from headwater.core.batch import Batch
from headwater.core.contracts import NO_SCORES
from headwater.core.lineage import rebase, root_stream
from headwater.core.plan import Plan
from headwater.core.state import Info, State, Stream, WarmUp
from headwater.core.statistics import Array, Params, Prior, Statistics, Stats
from headwater.core.steps import TOO_FAR, refresh, report_parameters
from headwater.core.warm_up import find_stream_start, wait

MOST_CHECKED = 2**16  # arrays of statistics with more numbers are not checked after each call


def advance(plan: Plan, state: State, batch: Batch, scores: Array = NO_SCORES, scores_start: bool = True) -> tuple[State, Info]:
    """Learn a chunk. The state that is given is not changed.

    Rows are scored before they are learned if there is room for `scores`; those of the warm-up only if `scores_start` says so.
    """
    at, total = 0, 0.0
    if isinstance(state, WarmUp):
        state, at = wait(plan, state, batch, scores if scores_start else NO_SCORES)
    learned = batch[at:] if at else batch
    if isinstance(state, Stream) and at < len(batch):
        state = adopt(plan, state)
        known = state.statistics
        while at < len(batch):
            before, hooks = state, plan.hooks(state)
            room = min([plan.step.room(plan, state), *(one.rows_until_due(plan, state) for one in hooks.rows_until_due)])
            part = batch[at : at + room]
            state, score = plan.step.take(plan, state, part, scores[at : at + room])
            for policy in hooks.after_batch:
                state = policy.after_batch(plan, before, state, part)
            at, total = at + len(part), total + score
        for sums in (state.statistics, *state.unfolded.sums):
            refuse_non_finite(known, sums)
    return state, _info(plan, state, batch, total / learned.size if len(learned) else 0.0)


def refuse_non_finite(before: Statistics, after: Statistics) -> None:
    """Refuse statistics that are not finite: rows or weights differ too much in size from those before."""
    if after is not before and not after.is_finite(MOST_CHECKED):
        raise ValueError(TOO_FAR)


def adopt(plan: Plan, stream: Stream) -> Stream:
    """Prepare the stream for this plan: another plan may have begun it, with other settings of the model."""
    model = plan.model_for(plan, stream.statistics)
    if model.n_components == stream.model.n_components:
        stream = replace(stream, model=model)
    stream = plan.step.adopt(plan, stream)
    for policy in plan.adopting:
        stream = policy.adopt(plan, stream)
    return stream


def finalize(plan: Plan, state: State) -> Stream:
    """Return the stream as if it ended here: warm-up over, all rows folded, sequences closed. The state is not changed."""
    if isinstance(state, Stream):
        finished: Stream = state.unfolded.finish(plan, state)
        return finished
    return root_stream(plan, state.key, find_stream_start(plan, state.buffer.batch(), state.key))


def read(plan: Plan, state: State) -> Stream:
    """Return the stream as a reader sees it. **May search** (refinement, growth), at a cost that each policy bounds.

    Changes nothing: the caller goes on learning from `state`, and caches the result.
    """
    stream = finalize(plan, state)
    for policy in plan.hooks(stream).policies:
        stream = policy.on_read(plan, stream)
    return stream


def report(plan: Plan, state: WarmUp | Stream[Prior, Stats, Params]) -> Params:
    """Return the parameters that the user sees, without a search."""
    return report_parameters(plan, finalize(plan, state))


def branch(plan: Plan, state: State) -> Stream:
    """Return a stream that has learned the same and whose base is all of it: branches of one stream can be merged."""
    stream = finalize(plan, state)
    if isinstance(state, WarmUp):  # all rows there are were in memory
        rows = state.buffer.batch()
        for policy in plan.policies:
            stream = policy.after_passes(plan, stream, rows)
    return rebase(stream)


def widen(plan: Plan, state: State) -> State:
    """Return the state for rows of the plan's width, which is more than it had; what was learned stays."""
    if isinstance(state, WarmUp):
        return replace(state, buffer=state.buffer.widened(plan.width) if state.rows else state.buffer)
    base, model = state.base, plan.model
    base = replace(base, prior=model.widen(base.prior, plan.width), statistics=model.widen(base.statistics, plan.width))
    state = replace(state, model=model, statistics=model.widen(state.statistics, plan.width))
    state = replace(state, base=base, unfolded=state.unfolded.widen(plan))
    for policy in plan.hooks(state).policies:
        state = policy.widen(plan, state)
    return refresh(plan, state)


def _info(plan: Plan, state: State, batch: Batch, score: float) -> Info:
    mass, model = (state.progress.mass, state.model) if isinstance(state, Stream) else (0.0, plan.model)
    return Info(len(batch), score, plan.batch_rows(model) / mass if mass else 0.0)
