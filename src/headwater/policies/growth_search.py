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
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from headwater.core.statistics import Array
from headwater.policies.growth import Step
from headwater.policies.growth_stages import SearchRows, Stage
from headwater.policies.search_context import Budget, Verdict, compare_scores
from headwater.policies.search_settings import ACCEPT_Z, PASSES_EACH, START_PASSES
from headwater.policies.split_merge import Move, Removal, Split, apply_move, find_removals, find_split

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
