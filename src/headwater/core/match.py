"""Merging models that were trained separately: matched to a reference, moved to its origin, added (paper 003, eq. 10).

Models of one lineage share a base and need none of this: `merge.combine` adds what they learned since. Models of different
lineages have their own order of components, a prior in the scale of their own warm-up, and their own origin. The largest is
the reference; the components of every other are assigned to its components so that the sum of divergences is least.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import escape

import numpy as np
from numpy.typing import NDArray

from headwater.core.average import AVERAGE
from headwater.core.contents import contents
from headwater.core.fit_result import FIT_RESULT
from headwater.core.learner import Learner
from headwater.core.lineage import rebase
from headwater.core.loop import advance
from headwater.core.merge import combine
from headwater.core.plan import Plan
from headwater.core.records import fingerprint
from headwater.core.state import Progress, State, Stream, WarmUp
from headwater.core.statistics import Array, Statistics
from headwater.core.steps import refresh

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
        Symmetric divergence of the beliefs about the two, in nats, as if both had seen as many rows as the smaller.
        This and the next two are NaN if the models have grown to different numbers: then reservoir rows decide what is added.
    margin : ndarray of shape (n_components,)
        How much larger the total cost would be if that component were assigned to any other, in nats.
    contrast : ndarray of shape (n_components,)
        Symmetric divergence of the two densities, in nats a row. About 0 if they are the same, 4 if their means are two
        standard deviations apart.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(2, 500, 1)) + 9.0 * rng.integers(2, size=(2, 500, 1))
    >>> models = [hw.GaussianMixture(2, warm_up=300, random_state=at).partial_fit(rows[at]) for at in (0, 1)]
    >>> match = hw.merge(models).merge_report_.matches[0]
    >>> len(match.components), len(match.models)
    (2, 1)
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
        """Components of the merged model whose partner is far away: there was no counterpart."""
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
        One for every group of models that share a base, except that of the reference.
    repaired : tuple of int
        Components whose partial posteriors have no proper product (moment matching only), so that their mean was taken.
    replayed : tuple of int
        Models whose warm-up was not over: their rows were learned after the merge.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rows = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = hw.GaussianMixture(2, warm_up=100, random_state=0).partial_fit(rows)
    >>> parts = [model.branch().partial_fit(rows[:100]), model.branch().partial_fit(rows[100:])]
    >>> print(hw.merge(parts).merge_report_)
    2 models merged, 600 rows in all.
    They share one base: nothing had to be matched.
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

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

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
                    f"{_models(match.models).capitalize()} had another number of components; the merged model found "
                    f"its own on the reservoir rows of all models."
                )
            doubtful = sorted(set(match.ambiguous) - set(match.distant))
            if match.distant:
                lines.append(
                    f"Component {_list(match.distant)} has no counterpart in {_models(match.models)}: it was merged with one "
                    f"far from it. Check both before you trust it."
                )
            if doubtful:
                lines.append(
                    f"Component {_list(doubtful)} may be matched wrongly with {_models(match.models)}: another component was "
                    f"less than twice as far. Models that begin as branches of one need no matching."
                )
        if self.repaired:
            lines.append(
                f"Component {_list(self.repaired)} has posteriors whose product is not a distribution, so their mean was taken."
            )
        if self.replayed:
            lines.append(f"The rows of {_models(self.replayed)}, whose warm-up was not over, were learned after the merge.")
        return "\n".join(lines)


def merge_any(
    learners: Sequence[Learner], states: Sequence[State], reports: Sequence[MergeReport | None]
) -> tuple[State, MergeReport]:
    """Merge states of any lineage. Their order does not matter: the largest state is the reference; ties are broken by content.

    `learners` are those of the states; that of the reference is kept. `reports` are those of earlier merges.
    """
    digests = [_digest(state) for state in states]
    held = frozenset(name for report in reports if report is not None for name in report.held)
    _refuse_doubles(states, digests, held)
    order = sorted(range(len(states)), key=lambda index: (-states[index].rows, digests[index]))
    groups: dict[str, list[int]] = defaultdict(list)
    for index in order:
        one = states[index]
        if isinstance(one, Stream):
            groups[one.base.lineage].append(index)
    waiting = tuple(index for index in order if isinstance(states[index], WarmUp))
    begun = [index for indices in groups.values() for index in indices]
    matches: tuple[Match, ...] = ()
    repaired: set[int] = set()
    state: State
    if not begun:
        reference, state = order[0], WarmUp(states[order[0]].key)
    elif len(begun) == 1:
        reference, state = begun[0], states[begun[0]]
    else:
        merged = [
            _Group(tuple(indices), *combine(learners[indices[0]].plan, [states[index] for index in indices]))
            for indices in groups.values()
        ]
        merged.sort(key=lambda group: (-group.stream.progress.rows_seen, _digest(group.stream)))
        reference, state, repaired = merged[0].models[0], merged[0].stream, set(merged[0].repaired)
        if len(merged) > 1:
            state, matches, broken = _add(learners[reference].plan, merged)
            repaired |= set(broken)
            for match, group in zip(matches, merged[1:], strict=True):
                repaired |= {int(k) for k in np.flatnonzero(np.isin(match.components, group.repaired))}
    for index in waiting:
        one = states[index]
        if isinstance(one, WarmUp) and one.rows:
            state, _ = advance(learners[reference].plan, state, one.buffer.batch())
    report = MergeReport(
        len(states), state.rows, reference, matches, tuple(sorted(repaired)), tuple(sorted(waiting)), held.union(digests)
    )
    return state, report


@dataclass(frozen=True)
class _Group:
    """Models of one base, merged: their places in the list, the stream, and the components whose sum was not a valid belief."""

    models: tuple[int, ...]
    stream: Stream
    repaired: tuple[int, ...]


def _refuse_doubles(states: Sequence[State], digests: Sequence[str], held: frozenset[str]) -> None:
    """Refuse models that share rows, as far as that can be detected.

    That is the same model twice if it has learned something since its base, a model that was merged into another before,
    and models with different bases that have a common ancestor.
    """
    seen = set(held)
    for state, digest in zip(states, digests, strict=True):
        if digest in seen and (isinstance(state, WarmUp) or state.rows > state.base.progress.rows_seen):
            raise ValueError("models must be different models, got the same one twice: its rows would count twice")
        seen.add(digest)
    owner: dict[str, str] = {}
    for base in (state.base for state in states if isinstance(state, Stream)):
        for name in (*base.ancestors, base.lineage):
            if owner.setdefault(name, base.lineage) != base.lineage:
                raise ValueError(
                    "models must not share rows that would count twice: one of them was branched or merged from another, or "
                    "both from a third; merge branches of one model at once"
                )


def _add(plan: Plan, merged: Sequence[_Group]) -> tuple[Stream, tuple[Match, ...], tuple[int, ...]]:
    """Match every finalized stream to the first and add them up; the result is a new base."""
    first = merged[0].stream
    model = first.model
    prior = model.common_prior([one.stream.base.prior for one in merged])
    first = first if prior is first.base.prior else replace(first, base=replace(first.base, prior=prior))
    streams: list[Stream] = [first]
    statistics: list[Statistics] = [first.statistics]
    averages: list[Statistics] = [first.records[AVERAGE]] if AVERAGE in first.records else []
    matches: list[Match] = []
    restates = plan.restates
    if restates is None or not restates.can_restate([one.stream for one in merged]):
        restates = None
        refuse_numbers([one.stream.model.n_components for one in merged])
    common = min(one.stream.progress.n_eff for one in merged)  # as if all had seen the same number of rows
    for group in merged[1:]:
        stream = group.stream
        if stream.model.n_components != model.n_components:
            assert restates is not None
            told, components = restates.match_other_size(plan, stream, first)
            statistics.append(told)
            streams.append(stream)
            matches.append(Match(group.models, components, *np.full((3, len(components)), np.nan)))
            continue
        brought = model.move_to_prior(prior, stream.base.prior, stream.statistics)
        cost = model.separation(prior, statistics[0].scaled(common), brought.scaled(common))
        components, divergence, margin = _assign(np.nan_to_num(cost, nan=IMPOSSIBLE, posinf=IMPOSSIBLE))
        permuted = model.align(statistics[0], model.select_statistics(brought, components))
        contrast = model.contrast(prior, statistics[0].scaled(common), permuted.scaled(common))
        matches.append(Match(group.models, components, divergence, margin, contrast))
        average = stream.records.get(AVERAGE)
        if average is not None:
            moved = model.select_statistics(model.move_to_prior(prior, stream.base.prior, average), components)
            averages.append(model.align(averages[0] if averages else moved, moved))
        if restates is not None and plan.holds(stream):
            told, stream = restates.restate(plan, stream, first, components)
            permuted = permuted if model.find_problem(told, plan.width) else told
        statistics.append(permuted)
        streams.append(stream)
    n_eff = sum(stream.progress.n_eff for stream in streams)
    parts = [one.scaled(stream.progress.n_eff) for one, stream in zip(statistics, streams, strict=True)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    total, repaired = model.repair(prior, total, parts)
    whole = replace(first, statistics=total.scaled(1.0 / n_eff), progress=_add_progress(streams)).without(FIT_RESULT)
    if AVERAGE in first.records:
        seen = [stream.progress.weight_seen for stream in streams]
        average = averages[0].scaled(seen[0] / sum(seen))
        for one, weight in zip(averages[1:], seen[1:], strict=True):
            average = average + one.scaled(weight / sum(seen))
        whole = whole.with_record(AVERAGE, average)
    others = tuple(name for one in streams[1:] for name in (*one.base.ancestors, one.base.lineage))
    whole = rebase(whole, others)
    whole = whole if plan.holds(whole) else refresh(plan, whole)
    for policy in plan.policies:
        whole = policy.merge(plan, whole, streams, shared=False)
    return whole, tuple(matches), repaired


def _add_progress(streams: Sequence[Stream]) -> Progress:
    """Return the joint progress of streams of different bases."""
    n_eff = sum(stream.progress.n_eff for stream in streams)
    return Progress(
        rows_seen=sum(stream.progress.rows_seen for stream in streams),
        weight_seen=sum(stream.progress.weight_seen for stream in streams),
        folds=sum(stream.progress.folds for stream in streams),
        mass=n_eff * min(stream.progress.mass / stream.progress.n_eff for stream in streams),
        n_eff=n_eff,
    )


def _assign(cost: Array) -> tuple[NDArray[np.int64], Array, Array]:
    """Return the cheapest assignment, the cost of each pair, and what it would cost in all to forbid that pair."""
    from scipy.optimize import linear_sum_assignment  # takes a tenth of a second, and only a merge needs it

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


def refuse_numbers(numbers: Sequence[int]) -> None:
    """Refuse models that have grown to different numbers of components and have no reservoir rows to restate them by."""
    if len(set(numbers)) > 1:
        chosen = " and ".join(map(str, sorted(set(numbers))))
        raise ValueError(
            f"models must have one n_components, got {chosen}, which 'auto' chose: learn again with one of these numbers"
        )


def _digest(state: State) -> str:
    return fingerprint(*contents(state).values(), size=16)


def _list(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _models(numbers: Sequence[int]) -> str:
    return f"model{'s' * (len(numbers) != 1)} {_list(numbers)}"
