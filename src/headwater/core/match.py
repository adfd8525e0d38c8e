"""Merging models that were trained apart: matched to a reference, brought to its origin, added (paper 003, eq. 10).

Models of one lineage share a base and need none of this: `learner.combine` adds what they learned since. Of different lineages
each has components in an order of its own, a prior in the scale of its own warm-up, and an origin. The largest is the
reference; the components of every other are assigned to its components so that the sum of divergences is least.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from headwater.core.learner import Learner, refreshed, suited
from headwater.core.lineage import rebased
from headwater.core.loop import advance, combine, settle
from headwater.core.merge import gathered_healing, refuse_numbers, told_at
from headwater.core.state import Progress, State, fingerprint
from headwater.core.statistics import Array
from headwater.models.mixture import Mixture
from headwater.policies.growth_states import Moving
from headwater.policies.refinement_states import plain
from headwater.policies.reservoir import relabelled

IMPOSSIBLE = 1e300
DISTANT = 4.0  # nats a row: means two standard deviations apart, or the like


@dataclass(frozen=True, eq=False)
class Match:
    """How the components of models that share a base were assigned to those of the reference.

    Attributes
    ----------
    models : tuple of int
        The models, by their place in the list that was merged.
    components : ndarray of shape (n_components,)
        Their component that went to each component of the merged model.
    divergence : ndarray of shape (n_components,)
        Symmetric divergence of the beliefs about the two, in nats, both as if they had seen as many rows as the smaller.
        This and the next two are NaN if the models have grown to another number: then kept rows tell what was added.
    margin : ndarray of shape (n_components,)
        What any other assignment of that component would have cost more in all, in nats.
    contrast : ndarray of shape (n_components,)
        Symmetric divergence of the two densities, in nats a row. About 0 if the two are one, 4 if their means are two standard
        deviations apart.
    """

    models: tuple[int, ...]
    components: NDArray[np.int64]
    divergence: Array
    margin: Array
    contrast: Array

    @property
    def ambiguous(self) -> tuple[int, ...]:
        """Components of the merged model for which another partner would have been less than twice as far."""
        return tuple(int(k) for k in np.flatnonzero(self.margin < self.divergence))

    @property
    def distant(self) -> tuple[int, ...]:
        """Components of the merged model whose partner is another thing: there was none to match."""
        if len(self.components) == 1:
            return ()
        return tuple(int(k) for k in np.flatnonzero(self.contrast > DISTANT))


@dataclass(frozen=True, eq=False)
class MergeReport:
    """What `headwater.merge` did; `print` it for sentences.

    Attributes
    ----------
    models : int
        How many models were merged.
    rows : int
        Rows of the merged model.
    reference : int
        The model that gave prior, origin and order of components, by its place in the list.
    matches : tuple of Match
        One for every group of models that share a base, but that of the reference.
    repaired : tuple of int
        Components whose partial posteriors multiply to no distribution (moment matching only), so that their mean was taken.
    replayed : tuple of int
        Models whose warm-up was not over: their rows were learned after the merge.
    """

    models: int
    rows: int
    reference: int
    matches: tuple[Match, ...] = ()
    repaired: tuple[int, ...] = ()
    replayed: tuple[int, ...] = ()
    held: frozenset[str] = field(default=frozenset(), repr=False)

    @property
    def ambiguous(self) -> tuple[int, ...]:
        """Components of the merged model that some model may have matched wrongly."""
        return tuple(sorted({k for match in self.matches for k in match.ambiguous}))

    @property
    def distant(self) -> tuple[int, ...]:
        """Components of the merged model for which some model had no counterpart."""
        return tuple(sorted({k for match in self.matches for k in match.distant}))

    def __str__(self) -> str:
        lines = [f"{self.models} model{'s' * (self.models != 1)} merged, {self.rows:,} rows in all."]
        if self.matches:
            groups = len(self.matches) + 1
            lines.append(f"{groups} groups that share no base were matched; model {self.reference} is the reference.")
        elif self.models > len(self.replayed) + 1:
            lines.append("They share one base: nothing had to be matched.")
        for match in self.matches:
            if np.isnan(match.divergence).all():
                lines.append(
                    f"What {_models(match.models)} learned with another number of components was told by kept rows; the merged "
                    f"model finds its number on those of all."
                )
            doubtful = sorted(set(match.ambiguous) - set(match.distant))
            if match.distant:
                lines.append(
                    f"Component {_list(match.distant)} has no counterpart in {_models(match.models)}: what was merged lies far "
                    f"apart."
                )
            if doubtful:
                lines.append(
                    f"Component {_list(doubtful)} is matched in doubt with {_models(match.models)}: another would have been "
                    f"less than twice as far."
                )
        if self.repaired:
            lines.append(
                f"Component {_list(self.repaired)} has partial posteriors whose product is no distribution: their mean was "
                f"taken."
            )
        if self.replayed:
            lines.append(f"The rows of {_models(self.replayed)}, whose warm-up was not over, were learned after the merge.")
        return "\n".join(lines)


def merge_any(
    learners: Sequence[Learner], states: Sequence[State], reports: Sequence[MergeReport | None]
) -> tuple[State, MergeReport]:
    """Merge states of any lineage. The list may have any order: the largest state leads, and ties are broken by content.

    `learners` are those of the states, the one of the reference goes on; `reports` those of earlier merges they come from.
    """
    digests = [_digest(state) for state in states]
    held = frozenset(name for report in reports if report is not None for name in report.held)
    _refuse_doubles(states, digests, held)
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
            if not all(one.reservoir is not None and len(one.reservoir) for _, one, _ in merged):
                refuse_numbers([suited(learners[reference], one).model.n_components for _, one, _ in merged])
            state, matches, broken = _added(
                suited(learners[reference], state), [(indices, state) for indices, state, _ in merged]
            )
            repaired |= set(broken)
            for match, (_, _, components) in zip(matches, merged[1:], strict=True):
                repaired |= {int(k) for k in np.flatnonzero(np.isin(match.components, components))}
    for index in waiting:
        buffer = states[index].buffer
        if buffer is not None and buffer.rows:
            state, _ = advance(learners[reference], state, buffer.batch())
    report = MergeReport(
        len(states), state.rows, reference, matches, tuple(sorted(repaired)), tuple(sorted(waiting)), held.union(digests)
    )
    return state, report


def _refuse_doubles(states: Sequence[State], digests: Sequence[str], held: frozenset[str]) -> None:
    """Refuse what would count rows twice, as far as it can be seen.

    That is a model which is there twice and has learned something since its base, one that is in another by an earlier
    merge, and models on different bases that stand on a common one.
    """
    seen = set(held)
    for state, digest in zip(states, digests, strict=True):
        if digest in seen and (state.base is None or state.rows > state.base.progress.rows_seen):
            raise ValueError("models must be different models, got the same one twice: its rows would count twice")
        seen.add(digest)
    owner: dict[str, str] = {}
    for base in (state.base for state in states if state.base is not None):
        for name in (*base.ancestors, base.lineage):
            if owner.setdefault(name, base.lineage) != base.lineage:
                raise ValueError(
                    "models must not share rows that would count twice: one of them was branched or merged from another, or "
                    "both from a third; merge branches of one model at once"
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
    heals = all(state.reservoir is not None and len(state.reservoir) for state in settled)
    reservoirs: list[Any] = [state.reservoir for state in settled]
    common = min(state.progress.n_eff for state in settled)  # as if all had seen the same number of rows
    for (indices, _), state in zip(merged[1:], settled[1:], strict=True):
        if suited(learner, state).model.n_components != model.n_components:
            told, components = _renumbered(learner, state, first)
            statistics.append(told)
            matches.append(Match(indices, components, *np.full((3, len(components)), np.nan)))
            continue
        brought = model.brought(prior, state.base.prior, state.statistics)
        cost = model.separation(prior, statistics[0].scaled(common), brought.scaled(common))
        components, divergence, margin = _assigned(np.nan_to_num(cost, nan=IMPOSSIBLE, posinf=IMPOSSIBLE))
        statistics.append(model.permuted(brought, components))
        contrast = model.contrast(prior, statistics[0].scaled(common), statistics[-1].scaled(common))
        matches.append(Match(indices, components, divergence, margin, contrast))
        if heals and learner.holds(state):

            def moved(rest: Any, own: Any = state.base.prior, order: Any = components) -> Any:
                return model.permuted(model.brought(prior, own, rest), order)

            renamed = relabelled(state.reservoir, np.argsort(components))
            told = told_at(learner, state, first.parameters, prior, moved, renamed)
            statistics[-1] = statistics[-1] if model.problem(told, learner.width) else told
            reservoirs[len(matches)] = renamed
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
    state = replace(first, statistics=total.scaled(1.0 / n_eff), average=average, progress=progress, reported=None)
    others = tuple(name for one in settled[1:] for name in (*one.base.ancestors, one.base.lineage))
    whole = rebased(state, others)
    if heals:
        told = [replace(state, reservoir=kept) for state, kept in zip(settled, reservoirs, strict=True)]
        return gathered_healing(learner, whole, told, shared=False), tuple(matches), repaired
    return refreshed(learner, plain(learner, whole)), tuple(matches), repaired


def _renumbered(learner: Learner, state: State, first: State) -> tuple[Any, NDArray[np.int64]]:
    """Return what a state that has grown to another number says of the components of the first, by the rows that it keeps.

    Returns the component, too, that shares most of these rows with each component of the first. What becomes of their
    number is found on all kept rows, when the merged model grows.
    """
    assert state.reservoir is not None and state.base is not None and first.base is not None
    own, other = (cast(Mixture, suited(learner, one).model) for one in (state, first))
    moving = Moving(own, other, state.parameters, first.parameters, first.base.prior, learner.n_threads, own=state.base.prior)
    kept = state.reservoir.batch
    old, new = moving.shares(kept)
    statistics = moving.told(state.statistics, kept, learner.count(state.progress))
    return statistics, (new.T @ old).argmax(axis=1).astype(np.int64)


def _assigned(cost: Array) -> tuple[NDArray[np.int64], Array, Array]:
    """Return the cheapest assignment, the cost of each pair, and what it would cost in all to forbid that pair."""
    from scipy.optimize import linear_sum_assignment  # a tenth of a second that only a merge need wait for

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
    return fingerprint(state, size=16)


def _list(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _models(numbers: Sequence[int]) -> str:
    return f"model{'s' * (len(numbers) != 1)} {_list(numbers)}"
