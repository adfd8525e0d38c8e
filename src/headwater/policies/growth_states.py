"""How many components: a mixture grows by splits that are accepted on rows which did not propose them.

Half of the rows propose. Every component is split in two by a local refit with the others fixed (`split_merge.py`). EM climbs
from the most promising splits. The other half of the rows judges them against the present mixture, which climbs as long.

**The criterion.** A step is accepted if it gains more than `ACCEPT_Z` standard errors on the rows that judge, and more than
`LEAST_STEP_GAIN` nats a row. Where rows are too few to judge (`LEAST_JUDGES` of them), all propose, and it is accepted if it
gains more than the Bayesian information criterion asks for: p/2 log(n) nats in all, for p parameters more. At the end
components are merged or removed that gain less than `KEEP_Z` standard errors, or a negligible amount.

**The steps.** A split; two splits at once, if none alone is accepted; an exchange (a split, and a merger of others). If nothing
is accepted, the same is tried on more rows, and components are split in more ways; and then, where components overlap, a new
start with one component more.

It grows on the rows of a warm-up, on rows in memory, and on the reservoir rows of a stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from headwater.core.batch import Batch
from headwater.core.climb import climb
from headwater.core.contracts import Model, Start, StartSettings
from headwater.core.plan import Plan
from headwater.core.policy import FindsStart, Policy
from headwater.core.row_keys import proposes, row_keys
from headwater.core.state import Stream
from headwater.core.statistics import Array, Statistics
from headwater.families.components import ComponentStatistics
from headwater.kernels.parallel import one_blas_thread
from headwater.models.extrapolation import climb_rows
from headwater.models.mixture import Mixture, mixture_of
from headwater.policies.control_variate import ControlVariate
from headwater.policies.growth import Growth, SearchRows, Stage, Step
from headwater.policies.names import GROWTH, REFINEMENT, RESERVOIR
from headwater.policies.refinement_record import ACCEPT_Z, LEAST_PASS_GAIN, PASSES_EACH, START_PASSES
from headwater.policies.restate import Transfer
from headwater.policies.search_context import Budget, Verdict, compare_scores
from headwater.policies.split_merge import Move, Removal, Split, apply_move, find_removals, find_split, seed_method

LEAST_STEP_GAIN = 5e-4  # nats a row; less is not worth another component
KEEP_Z = 1.0  # standard errors that a component must gain to stay
LEAST_JUDGES = 500  # rows that judge, at least
SPLITS_AT_ONCE = 2  # splits that are tried at once
ROWS_EACH = 10  # rows that propose, for each component
MORE_TIMES, MOST_TIMES = 4, 4  # times as many rows, if nothing is accepted
MOST_STEPS = 1000
OVERLAP_SHARE = 0.02  # mean responsibility outside the largest of a row, from which on components overlap

Tried = tuple[Stage | None, Step | None]  # the result of an accepted step, and the step
NOTHING: Tried = (None, None)


@dataclass(frozen=True)
class Round:
    """A stage on some rows: the splits of its components, the best first, and how it scores after a climb."""

    ground: SearchRows
    stage: Stage
    splits: list[Split]
    before: Array
    budget: Budget

    @classmethod
    def of(cls, ground: SearchRows, stage: Stage, rng: np.random.Generator, budget: Budget) -> Round | None:
        """Rate the splits that promise more than chance would with as many parameters; None if that costs too much."""
        cost = (4.0 + ground.clumps + PASSES_EACH) * len(ground.propose)
        if not budget.affords(cost):
            return None
        budget.pay(cost)
        view = stage.view(ground)
        price = 0.5 * stage.model.resize(stage.k + 1).rows_to_learn(ground.width) / (stage.k + 1) / len(ground.propose)
        found = [find_split(view, k, rng) for k in range(stage.k)]
        splits = sorted((one for one in found if one is not None and one.gain > price), key=lambda one: -one.gain)
        return cls(ground, stage, splits, stage.climb(ground).scores(ground), budget)

    def best(self, tried: Sequence[Stage], words: Sequence[str]) -> Tried:
        """Let stages climb; return the best, if it is accepted."""
        cost = PASSES_EACH * len(tried) * len(self.ground.propose)
        if not tried or not self.budget.affords(cost):
            return NOTHING
        self.budget.pay(cost)
        reached = [one.climb(self.ground) for one in tried]
        verdicts = [compare_scores(one.scores(self.ground), self.before, self.ground.judges.row_weights) for one in reached]
        at = max(range(len(tried)), key=lambda one: verdicts[one].gain)
        good = accepts(self.ground, verdicts[at], reached[at].extra_parameters(self.stage, self.ground.width))
        return (reached[at] if good else None), make_step(self.ground, self.stage, reached[at], verdicts[at], words[at])


def grow_components(
    whole: SearchRows, stage: Stage, rng: np.random.Generator, budget: Budget, rows: int = 0
) -> tuple[Stage, tuple[Step, ...]]:
    """Split, exchange and merge as long as judging rows agree; return the result, the steps, and the best refused one."""
    steps: list[Step] = []
    refused: Step | None = None
    times = 1
    while len(steps) < MOST_STEPS:
        ground = whole.part(stage.model.resize(stage.k + 1).rows_to_learn(whole.width), times)
        if len(ground.propose) < ROWS_EACH * (stage.k + 1):
            break
        stage = stage.climb(ground, 1)
        found, step = _try_splits(Round.of(ground, stage, rng, budget))
        refused = step or refused
        if found is None and times < MOST_TIMES and (len(ground.propose) < len(whole.propose) or whole.judge is None):
            times *= MORE_TIMES
            continue
        if found is None:
            found, step = _try_restart(whole, ground, stage, budget)
        if found is None or step is None:
            break
        budget.pay(PASSES_EACH * len(ground.propose))
        stage, refused = found.refit(ground), None
        steps.append(replace(step, rows=rows, accepted=True))
    while stage.k > 1:
        found, step = _try_removal(whole.part(stage.model.rows_to_learn(whole.width), times), stage, budget)
        if found is None or step is None:
            break
        stage = found
        steps.append(replace(step, rows=rows, accepted=True))
    return stage, (*steps, *(replace(one, rows=rows) for one in (refused,) if one is not None))


def accepts(ground: SearchRows, found: Verdict, parameters: int) -> bool:
    """The criterion, for a contender with this many more parameters."""
    if ground.judge is not None:
        return found.z > ACCEPT_Z and found.gain > LEAST_STEP_GAIN
    n = ground.propose.size
    return found.gain * n > 0.5 * max(parameters, 1) * np.log(max(n, 2.0))


def make_step(ground: SearchRows, before: Stage, after: Stage, found: Verdict, word: str) -> Step:
    """Return the record of a step."""
    return Step(0, before.k, after.k, found.gain, found.z, 0 if ground.judge is None else len(ground.judge), word)


def _try_splits(now: Round | None) -> Tried:
    """Try splits, two of them at once, and an exchange; the first that is accepted."""
    if now is None or not now.splits:
        return NOTHING
    stage, splits = now.stage, now.splits
    found, step = now.best(
        [stage.split([one]) for one in splits[:SPLITS_AT_ONCE]], [f"split {one.component}" for one in splits[:SPLITS_AT_ONCE]]
    )
    if found is None and len(splits) > 1:
        word = f"split {splits[0].component} and {splits[1].component}"
        found, other = now.best([stage.split(splits[:2])], [word])
        step = other if found is not None else step
    if found is None and stage.k > 2:
        given_up = find_removals(stage.view(now.ground), stage.reached.statistics, stage.kept(now.ground).count, frozenset())
        moves = [Move(one, fall, one.gain + fall.gain) for one in splits for fall in given_up]
        moves = [move for move in moves if move.gain > 0.0 and move.split.component not in move.fall.components]
        if moves:
            move = max(moves, key=lambda one: one.gain)
            begun = replace(stage.reached, statistics=apply_move(stage.model, stage.reached.statistics, move))
            found, other = now.best([replace(stage, reached=begun)], [move.word])
            step = other if found is not None else step
    return found, step


def _try_restart(whole: SearchRows, ground: SearchRows, stage: Stage, budget: Budget) -> Tried:
    """Try a start with one more component, if components overlap: a split alone may not help if others would have to move."""
    model = stage.model.resize(stage.k + 1)
    some = whole.part(model.rows_to_learn(ground.width)).propose
    cost = START_PASSES * len(some) + 2.0 * PASSES_EACH * len(ground.propose)
    if ground.restart is None or not budget.affords(cost):
        return NOTHING
    if stage.k > 1 and 1.0 - stage.responsibilities(ground).max(axis=1).mean() < OVERLAP_SHARE:
        return NOTHING
    budget.pay(cost)
    reached = stage.restart_from(ground, ground.restart(model, some))
    before = stage.climb(ground).scores(ground)
    found = compare_scores(reached.scores(ground), before, ground.judges.row_weights)
    good = accepts(ground, found, reached.extra_parameters(stage, ground.width))
    return (reached if good else None), make_step(ground, stage, reached, found, "start anew")


def _try_removal(ground: SearchRows, stage: Stage, budget: Budget) -> Tried:
    """Try the merge or removal that costs least."""
    cost = 3.0 * PASSES_EACH * len(ground.propose)
    if not budget.affords(cost):
        return NOTHING
    budget.pay(cost)
    incumbent = stage.climb(ground)
    given_up = find_removals(incumbent.view(ground), incumbent.reached.statistics, incumbent.kept(ground).count, frozenset())
    fall = max(given_up, key=lambda one: one.gain)
    reached = incumbent.remove(fall).climb(ground)
    found = compare_scores(incumbent.scores(ground), reached.scores(ground), ground.judges.row_weights)
    idle = not accepts(ground, found, stage.extra_parameters(reached, ground.width))
    if ground.judge is not None:
        idle = found.gain < LEAST_STEP_GAIN or found.z < KEEP_Z
    return (reached if idle else None), make_step(ground, stage, reached, Verdict(-found.gain, -found.z), _word(fall))


def _word(fall: Removal) -> str:
    parts = " and ".join(map(str, fall.components))
    return f"{'merge' if len(fall.components) == 2 else 'give up'} {parts}"


MOST_PASSES = 30  # passes over all rows of a warm-up


def grow_on_rows(
    model: Mixture, batch: Batch, key: int, settings: StartSettings, n_threads: int | None = None
) -> tuple[Stage, Growth]:
    """Grow a mixture from one component; the seed and the places of rows decide which propose and which judge."""
    keys = row_keys(key, np.arange(len(batch)))
    order = np.argsort(keys, kind="stable")
    first, others = order[proposes(keys[order])], order[~proposes(keys[order])]
    few = min(len(first), len(others)) < LEAST_JUDGES
    with one_blas_thread():
        geometry = model.family.geometry(batch)
        propose, judge = (batch, None) if few else (batch[first], batch[others])
        ground = _ground(propose, judge, key, settings, geometry, n_threads)
        rng = np.random.default_rng(np.random.SeedSequence((key, len(batch))))
        stage, steps = grow_components(ground, Stage.first(model, ground), rng, Budget(np.inf), len(batch))
    return stage, Growth().after(steps)


def _ground(
    propose: Batch, judge: Batch | None, key: int, settings: StartSettings, geometry: object, n_threads: int | None
) -> SearchRows:
    def restart(model: Mixture, batch: Batch) -> Start:
        return model.start(batch, (key + model.n_components) % 2**63, settings, n_threads)

    return SearchRows(
        propose,
        judge,
        settings.readout,
        seed_method(settings.method),
        geometry,
        restart if settings.polish else None,
        n_threads,
    )


def find_grown_start(model: Mixture, batch: Batch, key: int, settings: StartSettings, n_threads: int | None = None) -> Start:
    """Find a number of components, and a start with it: the grown mixture, or the winner of a tournament if that is better."""
    stage, growth = grow_on_rows(model, batch, key, settings, n_threads)
    after = stage.model
    start = replace(after.start(batch, key, settings, n_threads), records={GROWTH: growth})
    if not settings.polish or after.n_components == 1:
        return start
    with one_blas_thread():
        parameters = stage.reached.parameters
        summary = after.summarize(parameters, batch, n_threads=n_threads)
        end = climb(
            after,
            settings.readout,
            start.prior,
            parameters,
            summary,
            batch,
            MOST_PASSES,
            LEAST_PASS_GAIN,
            n_threads,
            penalised=False,
        )
    if end.trace[-1] <= start.summary.score / start.summary.size:
        return start
    return replace(start, parameters=end.parameters, summary=end.summary)


def regrow(plan: Plan, stream: Stream, on_the_way: bool) -> tuple[Stream, bool]:
    """Return a finalized stream that has grown, or lost components, on its reservoir rows, and whether it had to end too soon.

    On the way of a stream the cost is bounded, and what it does not allow is left to the next search, or to a reader.

    The statistics of components that stay are kept; those of others are estimated from the reservoir.
    """
    growth = stream.base.records.get(GROWTH) or Growth()
    allowed = growth.allowance(stream.rows, plan.warm_up_rows) if on_the_way else np.inf
    model, settings, n_threads = mixture_of(stream), plan.learner.settings, plan.n_threads
    base, reservoir, budget = stream.base, stream.records[RESERVOIR], Budget(allowed)
    batch, halves = reservoir.batch, reservoir.proposes
    propose, judge = (batch[np.flatnonzero(half)] for half in (halves, ~halves))
    few = min(len(propose), len(judge)) < LEAST_JUDGES
    ground = _ground(batch if few else propose, None if few else judge, stream.key + stream.rows, settings, None, n_threads)
    rng = np.random.default_rng(np.random.SeedSequence((stream.key, stream.rows, 1)))
    some = ground.part(model.rows_to_learn(batch.X.shape[1]))
    kept = ControlVariate(model, ground.readout, base.prior, some.propose, some.propose.size, None, n_threads)
    standing = climb_rows(kept, kept.look(stream.parameters)[0], 1)
    stage, steps = grow_components(ground, Stage(model, base.prior, standing), rng, budget, stream.rows)
    growth = growth.after(steps, budget.spent if np.isfinite(allowed) else 0.0)
    if not any(step.accepted for step in steps):
        return replace(stream, base=base.with_record(GROWTH, growth)), budget.short
    after, parameters = stage.model, stage.reached.parameters
    prior = after.refine_prior(stage.prior, parameters, after.family.geometry(some.propose))
    transfer = Transfer(model, after, stream.parameters, parameters, prior, n_threads)
    whole = reservoir.holds_all and plan.half_life is None
    statistics = transfer.restate(stream.statistics, batch, plan.count(stream.progress), whole)
    statistics = statistics.with_share_of_base(stream.statistics.from_base)
    scores = after.log_likelihood(parameters, some.judges, n_threads)
    known = replace(stream.records[REFINEMENT], content=False)  # it was about other components
    record = known.begin_at(stream.rows, scores, some.judges.row_weights, after.rows_to_learn(some.width))
    rows = np.flatnonzero(reservoir.places < base.progress.rows_seen)
    base = replace(transfer.restate_base(base, batch, rows), prior=prior).with_record(GROWTH, growth)
    stream = replace(stream, model=after, base=base, parameters=parameters, statistics=statistics)
    return stream.with_record(REFINEMENT, record), budget.short


COMMON_SIZE = 8  # components that warm-up and reservoir are sized for, if their number is to be found


@dataclass(frozen=True)
class GrowthPolicy(Policy, FindsStart):
    """Finds the number of components: on the rows of the warm-up here, and in a stream by the searches of `SearchPolicy`."""

    name = GROWTH

    def sizing_model(self, model: Model) -> Model:
        return cast(Mixture, model).resize(COMMON_SIZE)

    def find_start(self, plan: Plan, batch: Batch, key: int, settings: StartSettings) -> Start:
        return find_grown_start(cast(Mixture, plan.model), batch, key, settings, plan.n_threads)

    def model_for(self, plan: Plan, statistics: Statistics) -> Model:
        return cast(Mixture, plan.sizing_model).resize(len(cast(ComponentStatistics, statistics).count))

    def in_shard(self) -> Policy:
        return self
