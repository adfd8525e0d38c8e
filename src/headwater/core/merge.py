"""Merging of settled states that share a base: at one reference, they add up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, replace
from functools import reduce
from operator import add
from typing import Any, cast

import numpy as np

from headwater.core.delta import Delta, grown_by, since_base
from headwater.core.learner import Learner, refreshed, suited
from headwater.core.state import State, fingerprint
from headwater.models.mixture import Mixture
from headwater.policies.control_variate import corrected
from headwater.policies.drift_monitor import alike, together, watching
from headwater.policies.growth_states import Moving
from headwater.policies.refinement_states import plain, scheduled, transported
from headwater.policies.reservoir import Reservoir
from headwater.policies.reservoir import merged as union


def combined(learner: Learner, settled: list[State]) -> tuple[State, tuple[int, ...]]:
    """Merge settled states of one base.

    Returns the components, too, whose sum is no belief, so that the mean of the states took its place.
    """
    settled = at_one_reference(learner, alike(settled))
    learner = suited(learner, settled[0])
    merged, repaired = grown(learner, settled[0], reduce(add, map(since_base, settled)))
    if merged is not settled[0] and learner.model.problem(merged.statistics, learner.width):
        merged = averaged_states(learner, merged, settled)
    return gathered_healing(learner, merged, settled), repaired


def averaged_states(learner: Learner, merged: State, settled: Sequence[State]) -> State:
    """Return a merged state with the mean of the statistics of all, which is sound where their sum is not.

    Bases of streams that heal are estimates, so that what was learned since may be less than nothing.
    """
    known: list[Any] = [state.statistics for state in settled]
    weights = [state.progress.n_eff for state in settled]
    parts = [one.scaled(weight / sum(weights)) for one, weight in zip(known, weights, strict=True)]
    statistics: Any = reduce(add, parts).writable()
    statistics.from_base[...] = cast(Any, merged.statistics).from_base
    merged = replace(merged, statistics=statistics)
    return merged if learner.holds(merged) else refreshed(learner, merged)


def gathered_healing(learner: Learner, merged: State, settled: Sequence[State], shared: bool = True) -> State:
    """Return a merged state that goes on to heal, by the rows that all of them kept; if one kept none, it does not.

    Of healing it knows what the first does.
    """
    first, reservoirs = settled[0], [state.reservoir for state in settled if state.reservoir is not None]
    if len(reservoirs) < len(settled):
        return plain(learner, merged)
    assert merged.base is not None and first.base is not None
    base = first.base.progress.rows_seen if shared else 0
    after = replace(merged, reservoir=union(reservoirs, base), healing=first.healing, drift=together(merged, settled, shared))
    after = scheduled(learner, after)
    after = after if learner.holds(after) else refreshed(learner, after)
    return watching(learner.model, after, learner.adapts, learner.n_threads)


def at_one_reference(learner: Learner, settled: list[State]) -> list[State]:
    """Return states whose statistics are sums at the same parameters, as far as kept rows can tell.

    These are the ones of the state that was healed last, which comes first: the same ones in any tree of merges. If one of them
    cannot be brought there, none heals any more.
    """
    numbers = [suited(learner, state).model.n_components for state in settled]
    holds = learner.holds(settled[0])
    names = [fingerprint(state.parameters, size=16) if holds else str(k) for state, k in zip(settled, numbers, strict=True)]
    tell = all(state.reservoir is not None and len(state.reservoir) for state in settled)
    if any(state.healing is None for state in settled) or (len(set(names)) > 1 and not tell):
        refuse_numbers(numbers)
        return [plain(learner, state) for state in settled]

    def rank(at: int) -> Any:
        return settled[at].healing.rows, names[at], astuple(replace(settled[at].healing, next=0))

    order = sorted(range(len(settled)), key=rank, reverse=True)
    reference, first = settled[order[0]].parameters, settled[order[0]]

    def brought(state: State) -> State:
        if suited(learner, state).model != suited(learner, first).model:
            return _renumbered(learner, state, first)
        statistics = told_at(learner, state, reference)
        return replace(state, base=transported(learner, state, reference), statistics=statistics, parameters=reference)

    return [settled[at] if names[at] == names[order[0]] else brought(settled[at]) for at in order]


def refuse_numbers(numbers: Sequence[int]) -> None:
    """Refuse to merge states that have grown apart, where no kept rows tell what one says of the components of another."""
    if len(set(numbers)) > 1:
        chosen = " and ".join(map(str, sorted(set(numbers))))
        raise ValueError(
            f"models must have one n_components, got {chosen}, which 'auto' chose: learn again with one of these numbers"
        )


def _renumbered(learner: Learner, state: State, first: State) -> State:
    """Return a state with the components of another one on the same base, as far as the rows that it keeps can tell."""
    assert state.reservoir is not None and state.statistics is not None and state.base is not None and first.base is not None
    own, other = (cast(Mixture, suited(learner, one).model) for one in (state, first))
    moving = Moving(own, other, state.parameters, first.parameters, first.base.prior, learner.n_threads)
    kept, count = state.reservoir, learner.count(state.progress)
    statistics = moving.told(state.statistics, kept.batch, count).writable()
    statistics.from_base[...] = state.statistics.from_base
    rows = np.flatnonzero(kept.places < state.base.progress.rows_seen)
    base = replace(moving.base(state.base, kept.batch, rows), prior=first.base.prior, growth=first.base.growth)
    return replace(state, base=base, statistics=statistics, parameters=first.parameters, reported=None)


def told_at(
    learner: Learner,
    state: State,
    reference: Any,
    prior: Any = None,
    moved: Callable[[Any], Any] = lambda rest: rest,
    renamed: Reservoir | None = None,
) -> Any:
    """Return the statistics that a state would have at other parameters, by the rows it keeps.

    What all rows say beside those that are kept is `moved` to the components, and the prior, of the reference; `renamed` are
    these with labels that name its components.
    """
    model, base = cast(Mixture, learner.model), state.base
    assert state.reservoir is not None and state.statistics is not None and base is not None
    kept = state.reservoir.batch
    old = model.summarize(state.parameters, kept, n_threads=learner.n_threads).mean
    new = model.summarize(reference, kept if renamed is None else renamed.batch, n_threads=learner.n_threads).mean
    beside = moved(state.statistics - old)
    count = learner.count(state.progress)
    prior = base.prior if prior is None else prior
    statistics: Any = corrected(model, prior, count, new, beside, kept.size).writable()
    statistics.from_base[...] = state.statistics.from_base
    return statistics


def grown(learner: Learner, state: State, delta: Delta) -> tuple[State, tuple[int, ...]]:
    """Return the base of a settled state grown by what states on it learned; the state itself, if that is nothing.

    Returns the components, too, whose sum is no belief, so that the mean of the states took its place.
    """
    merged, repaired = grown_by(learner.model, state, delta)
    if merged is state:
        return state, repaired
    if learner.holds(state):
        return replace(merged, parameters=state.parameters, healing=state.healing), repaired
    return refreshed(learner, merged), repaired
