"""How many components: a mixture grows by splits that are accepted on rows which did not propose them.

Half of the rows propose. Every component is split in two by a local refit before the others (`models/moves.py`), the splits
that promise most are climbed from, and judged on the other half of the rows beside the mixture as it is, which climbs as long.

**The criterion.** A step is accepted if it gains more than `SURE` standard errors on the rows that judge, and more than
`NEGLIGIBLE` nats a row. Where rows are too few to judge (`FEW` of them), all propose, and it is accepted if it gains more than
the Bayesian information criterion asks for: p/2 log(n) nats in all, for p parameters more. At the end components fall (two are
merged, one is given up) that are of use by less than `DOUBT` standard errors, or negligibly so.

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
from headwater.policies.growth_stages import PASSES, Ground, Stage
from headwater.policies.refinement import Budget, Verdict, judged
from headwater.policies.split_merge import Fall, Move, Split, exchanged, falls, split

SURE = 2.5  # standard errors
NEGLIGIBLE = 5e-4  # nats a row that are not worth another component
DOUBT = 1.0  # standard errors by which a component must be of use to stay
FEW = 500  # rows that judge, at least
RIVALS = 2  # splits that are tried at once
EACH = 10  # rows that propose, for each component
MORE, MOST_TIMES = 4, 4  # times as many rows, if nothing is accepted
MOST_STEPS = 1000
OVERLAP = 0.02  # responsibility that is not the largest of its row, from which on components overlap
START = 100  # passes that a new start costs

Tried = tuple[Stage | None, Step | None]  # where a step that is accepted leads, and what it was
NOTHING: Tried = (None, None)


@dataclass(frozen=True)
class Round:
    """A stage on some rows: the splits of its components, the best first, and how it scores after a climb."""

    ground: Ground
    stage: Stage
    splits: list[Split]
    before: Array
    budget: Budget

    @classmethod
    def of(cls, ground: Ground, stage: Stage, rng: np.random.Generator, budget: Budget) -> Round | None:
        """Rate the splits that promise more than the chance of their parameters; None if that costs too much."""
        cost = (4.0 + ground.clumps + PASSES) * len(ground.propose)
        if not budget.affords(cost):
            return None
        budget.pay(cost)
        view = stage.view(ground)
        price = 0.5 * stage.model.resized(stage.k + 1).rows_to_learn(ground.width) / (stage.k + 1) / len(ground.propose)
        found = [split(view, k, rng) for k in range(stage.k)]
        splits = sorted((one for one in found if one is not None and one.gain > price), key=lambda one: -one.gain)
        return cls(ground, stage, splits, stage.climbed(ground).scores(ground), budget)

    def best(self, tried: Sequence[Stage], words: Sequence[str]) -> Tried:
        """Let stages climb; return the best, if it is accepted."""
        cost = PASSES * len(tried) * len(self.ground.propose)
        if not tried or not self.budget.affords(cost):
            return NOTHING
        self.budget.pay(cost)
        reached = [one.climbed(self.ground) for one in tried]
        verdicts = [judged(one.scores(self.ground), self.before, self.ground.judges.row_weights) for one in reached]
        at = max(range(len(tried)), key=lambda one: verdicts[one].gain)
        good = accepted(self.ground, verdicts[at], reached[at].more(self.stage, self.ground.width))
        return (reached[at] if good else None), step_of(self.ground, self.stage, reached[at], verdicts[at], words[at])


def grown(
    whole: Ground, stage: Stage, rng: np.random.Generator, budget: Budget, rows: int = 0
) -> tuple[Stage, tuple[Step, ...]]:
    """Split, exchange and fall as long as rows that judge agree; return where that led, the steps, and the best refused one."""
    steps: list[Step] = []
    refused: Step | None = None
    times = 1
    while len(steps) < MOST_STEPS:
        ground = whole.part(stage.model.resized(stage.k + 1).rows_to_learn(whole.width), times)
        if len(ground.propose) < EACH * (stage.k + 1):
            break
        stage = stage.climbed(ground, 1)
        found, step = _farther(Round.of(ground, stage, rng, budget))
        refused = step or refused
        if found is None and times < MOST_TIMES and (len(ground.propose) < len(whole.propose) or whole.judge is None):
            times *= MORE
            continue
        if found is None:
            found, step = _anew(whole, ground, stage, budget)
        if found is None or step is None:
            break
        budget.pay(PASSES * len(ground.propose))
        stage, refused = found.settled(ground), None
        steps.append(replace(step, rows=rows, accepted=True))
    while stage.k > 1:
        found, step = _less(whole.part(stage.model.rows_to_learn(whole.width), times), stage, budget)
        if found is None or step is None:
            break
        stage = found
        steps.append(replace(step, rows=rows, accepted=True))
    return stage, (*steps, *(replace(one, rows=rows) for one in (refused,) if one is not None))


def accepted(ground: Ground, found: Verdict, parameters: int) -> bool:
    """The criterion, for a contender with so many parameters more."""
    if ground.judge is not None:
        return found.z > SURE and found.gain > NEGLIGIBLE
    n = ground.propose.size
    return found.gain * n > 0.5 * max(parameters, 1) * np.log(max(n, 2.0))


def step_of(ground: Ground, before: Stage, after: Stage, found: Verdict, word: str) -> Step:
    """Return a step, as it is told."""
    return Step(0, before.k, after.k, found.gain, found.z, 0 if ground.judge is None else len(ground.judge), word)


def _farther(now: Round | None) -> Tried:
    """Try splits, two of them at once, and an exchange; the first that is accepted."""
    if now is None or not now.splits:
        return NOTHING
    stage, splits = now.stage, now.splits
    found, step = now.best(
        [stage.divided([one]) for one in splits[:RIVALS]], [f"split {one.component}" for one in splits[:RIVALS]]
    )
    if found is None and len(splits) > 1:
        word = f"split {splits[0].component} and {splits[1].component}"
        found, other = now.best([stage.divided(splits[:2])], [word])
        step = other if found is not None else step
    if found is None and stage.k > 2:
        given_up = falls(stage.view(now.ground), stage.reached.statistics, stage.kept(now.ground).count, frozenset())
        moves = [Move(one, fall, one.gain + fall.gain) for one in splits for fall in given_up]
        moves = [move for move in moves if move.gain > 0.0 and move.split.component not in move.fall.components]
        if moves:
            move = max(moves, key=lambda one: one.gain)
            begun = replace(stage.reached, statistics=exchanged(stage.model, stage.reached.statistics, move))
            found, other = now.best([replace(stage, reached=begun)], [move.word])
            step = other if found is not None else step
    return found, step


def _anew(whole: Ground, ground: Ground, stage: Stage, budget: Budget) -> Tried:
    """Try a start with one component more, if components overlap: a split may lead nowhere, since others would have to move."""
    model = stage.model.resized(stage.k + 1)
    some = whole.part(model.rows_to_learn(ground.width)).propose
    cost = START * len(some) + 2.0 * PASSES * len(ground.propose)
    if ground.restart is None or not budget.affords(cost):
        return NOTHING
    if stage.k > 1 and 1.0 - stage.shares(ground).max(axis=1).mean() < OVERLAP:
        return NOTHING
    budget.pay(cost)
    reached = stage.anew(ground, ground.restart(model, some))
    before = stage.climbed(ground).scores(ground)
    found = judged(reached.scores(ground), before, ground.judges.row_weights)
    good = accepted(ground, found, reached.more(stage, ground.width))
    return (reached if good else None), step_of(ground, stage, reached, found, "start anew")


def _less(ground: Ground, stage: Stage, budget: Budget) -> Tried:
    """Try the fall that costs least."""
    cost = 3.0 * PASSES * len(ground.propose)
    if not budget.affords(cost):
        return NOTHING
    budget.pay(cost)
    incumbent = stage.climbed(ground)
    given_up = falls(incumbent.view(ground), incumbent.reached.statistics, incumbent.kept(ground).count, frozenset())
    fall = max(given_up, key=lambda one: one.gain)
    reached = incumbent.fallen(fall).climbed(ground)
    found = judged(incumbent.scores(ground), reached.scores(ground), ground.judges.row_weights)
    idle = not accepted(ground, found, stage.more(reached, ground.width))
    if ground.judge is not None:
        idle = found.gain < NEGLIGIBLE or found.z < DOUBT
    return (reached if idle else None), step_of(ground, stage, reached, Verdict(-found.gain, -found.z), _word(fall))


def _word(fall: Fall) -> str:
    parts = " and ".join(map(str, fall.components))
    return f"{'merge' if len(fall.components) == 2 else 'give up'} {parts}"
