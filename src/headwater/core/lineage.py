"""Bases: states that stand on one summary, on all that was learned so far, or on some of its components."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np

from headwater.core.contracts import SelectsComponents, Start
from headwater.core.learner import Learner, kept_form, refreshed, suited
from headwater.core.state import Base, Batch, Progress, State, fingerprint
from headwater.core.statistics import Statistics
from headwater.policies.growth import Growth


def rooted(learner: Learner, key: int, start: Start) -> State:
    """Return the state that stands on one summary and nothing else."""
    statistics, size = kept_form(learner, start.summary.mean).copy(), start.summary.size  # in the very form that the base holds
    statistics.from_base[...] = 1.0
    seen = size - start.held  # what the user gave has weight, but takes no time
    progress = Progress(start.summary.rows, seen, seen / learner.batch_rows, size, size)
    average = statistics if learner.algorithm.average else None
    begun = based(State(key, progress=progress), start.prior, statistics, average, growth=start.growth)
    return refreshed(learner, begun)


def rebased(settled: State, ancestors: tuple[str, ...] = ()) -> State:
    """Return a settled state that calls all it has learned its base, beside which it stands on those of others."""
    assert settled.base is not None and settled.statistics is not None
    statistics = settled.statistics.copy()
    average = settled.average.copy() if settled.average is not None else None
    for part in (statistics, average):
        if part is not None:
            part.from_base[...] = 1.0
    own = (*settled.base.ancestors, settled.base.lineage, *ancestors)
    return based(settled, settled.base.prior, statistics, average, own, settled.base.growth)


def based(
    state: State,
    prior: Any,
    statistics: Statistics,
    average: Statistics | None,
    ancestors: tuple[str, ...] = (),
    growth: Growth | None = None,
) -> State:
    """Return the state with a base, which is named after what it holds."""
    lineage = fingerprint(state.key, prior, statistics, state.progress, size=8)
    before = tuple(dict.fromkeys(name for name in ancestors if name != lineage))
    held = statistics.copy()  # copies: what is learned next is written beside the base
    kept = None if average is None else held if average is statistics else average.copy()
    base = Base(prior, held, kept, state.progress, lineage, before, growth)
    return replace(state, base=base, statistics=statistics, average=average)


def chosen(learner: Learner, after: Learner, settled: State, components: Any) -> State:
    """Return what a settled state has learned of some components, as a base of its own; `after` is to go on with it."""
    assert settled.base is not None
    model = suited(learner, settled).model
    own = cast(SelectsComponents, model)
    statistics = model.permuted(settled.statistics, components)
    average = None if settled.average is None else model.permuted(settled.average, components)
    reported = None if settled.reported is None else own.picked(settled.reported, components)
    base = replace(settled.base, prior=own.chosen(settled.base.prior, components), growth=None)
    kept = State(settled.key, base=base, statistics=statistics, average=average, progress=settled.progress)
    return replace(refreshed(after, rebased(kept)), reported=reported)


def closed(state: State, number: int) -> State:
    """Return the state after the end of an open sequence: what comes next is another one."""

    def ended(batch: Batch) -> Batch:
        return replace(batch, sequences=np.where(batch.sequences == number, -1 - number, batch.sequences))

    if state.base is None:
        return replace(state, buffer=None if state.buffer is None else state.buffer.changed(ended))
    waits = any((batch.sequences == number).any() for batch in state.waiting)
    carry = None if state.carry is None else state.carry.closed(number, waits)
    return replace(state, carry=carry, waiting=tuple(ended(batch) for batch in state.waiting), now=None)
