"""Merging models that were trained apart: matched to a reference, brought to its origin, added (paper 003, eq. 10).

Models of one lineage share a base and need none of this: `learner.combine` adds what they learned since. Of different lineages
each has components in an order of its own, a prior in the scale of its own warm-up, and an origin. The largest is the
reference; the components of every other are assigned to its components so that the sum of divergences is least.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from headwater.learner import Learner, advance, combine, rebased, refreshed, settle
from headwater.state import Progress, State, arrays_of
from headwater.statistics import Array

IMPOSSIBLE = 1e300


@dataclass(frozen=True)
class Match:
    """How the components of one model were assigned to those of the reference.

    `components[k]` of the models named went to component k, at the symmetric divergence `divergence[k]`; any other assignment
    of it would have cost `margin[k]` more in all.
    """

    models: tuple[int, ...]
    components: NDArray[np.int64]
    divergence: Array
    margin: Array

    @property
    def ambiguous(self) -> tuple[int, ...]:
        """Components of the merged model for which another partner would have been less than twice as far."""
        return tuple(int(k) for k in np.flatnonzero(self.margin < self.divergence))


@dataclass(frozen=True)
class MergeReport:
    """What a merge did. Models are named by their place in the list that was merged."""

    models: int
    rows: int
    reference: int
    matches: tuple[Match, ...] = ()
    repaired: tuple[int, ...] = ()
    replayed: tuple[int, ...] = ()

    @property
    def ambiguous(self) -> tuple[int, ...]:
        """Components of the merged model that some model may have matched wrongly."""
        return tuple(sorted({k for match in self.matches for k in match.ambiguous}))

    def __str__(self) -> str:
        lines = [f"{self.models} models merged, {self.rows:,} rows in all."]
        if self.matches:
            lines.append(f"{len(self.matches) + 1} lineages were matched; model {self.reference} is the reference.")
        elif self.models > len(self.replayed) + 1:
            lines.append("They share one base: nothing had to be matched.")
        for match in self.matches:
            if match.ambiguous:
                lines.append(
                    f"Model {_list(match.models)}: the match of component {_list(match.ambiguous)} is ambiguous; another would "
                    f"have been less than twice as far."
                )
        if self.repaired:
            lines.append(
                f"Component {_list(self.repaired)}: the product of the partial posteriors is none, so their mean was taken."
            )
        if self.replayed:
            lines.append(f"Model {_list(self.replayed)} had not ended its warm-up; its rows were learned after the merge.")
        return "\n".join(lines)


def merge_any(learners: Sequence[Learner], states: Sequence[State]) -> tuple[State, MergeReport]:
    """Merge states of any lineage. The list may have any order: the largest state leads, and ties are broken by content.

    `learners` are those of the states; the one of the reference goes on.
    """
    digests = [_digest(state) for state in states]
    _refuse_doubles(states, digests)
    order = sorted(range(len(states)), key=lambda index: (-states[index].rows, digests[index]))
    groups: dict[str, list[int]] = defaultdict(list)
    for index in order:
        base = states[index].base
        if base is not None:
            groups[base.lineage].append(index)
    waiting = tuple(index for index in order if states[index].base is None)
    finished = [index for indices in groups.values() for index in indices]
    matches: tuple[Match, ...] = ()
    repaired: set[int] = set()
    if not finished:
        reference, state = order[0], State(states[order[0]].key)
    elif len(finished) == 1:
        reference, state = finished[0], states[finished[0]]
    else:
        merged = []
        for indices in groups.values():
            parts = [settle(learners[index], states[index]) for index in indices]
            merged.append((tuple(indices), *combine(learners[indices[0]], parts)))
        merged.sort(key=lambda group: (-group[1].progress.rows_seen, _digest(group[1])))
        reference, state, repaired = merged[0][0][0], merged[0][1], set(merged[0][2])
        if len(merged) > 1:
            state, matches, broken = _added(learners[reference], [(indices, state) for indices, state, _ in merged])
            repaired |= set(broken)
            for match, (_, _, components) in zip(matches, merged[1:], strict=True):
                repaired |= {int(k) for k in np.flatnonzero(np.isin(match.components, components))}
    for index in waiting:
        buffer = states[index].buffer
        if buffer is not None and buffer.rows:
            state, _ = advance(learners[reference], state, buffer.batch())
    report = MergeReport(len(states), state.rows, reference, matches, tuple(sorted(repaired)), waiting)
    return state, report


def _refuse_doubles(states: Sequence[State], digests: Sequence[str]) -> None:
    """Refuse what would count rows twice: equal models that have learned something, and a model beside its own branch."""
    seen = set()
    for state, digest in zip(states, digests, strict=True):
        base = state.base
        if digest in seen and (base is None or state.rows > base.progress.rows_seen):
            raise ValueError("models must be different models, got the same one twice: its rows would count twice")
        seen.add(digest)
    lineages = {state.base.lineage for state in states if state.base is not None}
    for state in states:
        if state.base is not None and lineages & set(state.base.ancestors):
            raise ValueError(
                "models must not hold one another, got a model and a branch of it: what they share would count twice; merge "
                "branches of one model, without the model"
            )


def _added(
    learner: Learner, merged: Sequence[tuple[tuple[int, ...], State]]
) -> tuple[State, tuple[Match, ...], tuple[int, ...]]:
    """Match every settled state to the first and add them up; what comes out is a base of its own."""
    model, (_, first) = learner.model, merged[0]
    settled: list[Any] = [state for _, state in merged]
    prior = settled[0].base.prior
    statistics, averages = [settled[0].statistics], [settled[0].average]
    matches = []
    common = min(state.progress.n_eff for state in settled)  # as if all had seen the same number of rows
    for (indices, _), state in zip(merged[1:], settled[1:], strict=True):
        brought = model.brought(prior, state.base.prior, state.statistics)
        cost = model.separation(prior, statistics[0].scaled(common), brought.scaled(common))
        components, divergence, margin = _assigned(np.nan_to_num(cost, nan=IMPOSSIBLE, posinf=IMPOSSIBLE))
        matches.append(Match(indices, components, divergence, margin))
        statistics.append(model.permuted(brought, components))
        if state.average is not None:
            averages.append(model.permuted(model.brought(prior, state.base.prior, state.average), components))
    n_eff = sum(state.progress.n_eff for state in settled)
    parts = [one.scaled(state.progress.n_eff) for one, state in zip(statistics, settled, strict=True)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    total, repaired = model.repaired(prior, total, parts)
    average = None
    if averages[0] is not None:
        seen = [state.progress.weight_seen for state in settled]
        average = averages[0].scaled(seen[0] / sum(seen))
        for one, weight in zip(averages[1:], seen[1:], strict=True):
            average = average + one.scaled(weight / sum(seen))
    progress = Progress(
        rows_seen=sum(state.progress.rows_seen for state in settled),
        weight_seen=sum(state.progress.weight_seen for state in settled),
        folds=sum(state.progress.folds for state in settled),
        mass=n_eff * min(state.progress.mass / state.progress.n_eff for state in settled),
        n_eff=n_eff,
    )
    state = replace(
        first, statistics=total.scaled(1.0 / n_eff), average=average, progress=progress, reported=None, pending=None
    )
    return refreshed(learner, rebased(state)), tuple(matches), repaired


def _assigned(cost: Array) -> tuple[NDArray[np.int64], Array, Array]:
    """Return the cheapest assignment, the cost of each pair, and what it would cost in all to forbid that pair."""
    rows, columns = linear_sum_assignment(cost)
    paid = cost[rows, columns]
    margin = np.full(len(cost), np.inf)
    if len(cost) > 1:
        for row in rows:
            forbidden = cost.copy()
            forbidden[row, columns[row]] = IMPOSSIBLE
            again = linear_sum_assignment(forbidden)
            margin[row] = np.sum(cost[again] - paid)
    return columns.astype(np.int64), paid, margin


def _digest(state: State) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays_of(state):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _list(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
