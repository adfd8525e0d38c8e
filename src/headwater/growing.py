"""How many components: a mixture grows by splits that are accepted on rows which did not propose them.

Half of the rows propose. Every component is split in two by a local refit before the others (`models/moves.py`), the splits that
promise most are climbed from, and judged on the other half of the rows beside the mixture as it is, which climbs as long.

**The criterion.** A split is accepted if it gains more than `SURE` standard errors on the rows that judge, and more than
`NEGLIGIBLE` nats a row. Where rows are too few to judge (`FEW` of them), all propose, and it is accepted if it gains more than
the Bayesian information criterion asks for, p/2 log(n) nats for p parameters more. If no split is accepted, two of them at once
are tried, and then an exchange (a split, and a merger of others). At the end components fall (two are merged, one is given up)
whose loss is less than `DOUBT` standard errors, or negligible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headwater.growth import Step
from headwater.healing import Purse, Verdict, judged
from headwater.models.kept_rows import Kept, Reached, climbed
from headwater.models.mixture import Mixture
from headwater.models.protocol import Start
from headwater.models.moves import Fall, Move, Split, View, exchanged, falls, split
from headwater.state import Batch
from headwater.statistics import Array

SURE = 2.5  # standard errors
NEGLIGIBLE = 5e-4  # nats a row that are not worth another component
DOUBT = 1.0  # standard errors by which a component must be of use to stay
FEW = 500  # rows that judge, at least
ROWS = 2000  # that propose at first, and that judge
PROPOSING, JUDGING = 5, 10  # and as many times what moves every parameter
RIVALS = 2  # splits that are tried at once
PASSES = 8  # of every contender
SETTLING = 16  # passes after a step
MORE = 4  # times as many rows, if nothing is accepted
MOST_TIMES = 4
MOST_STEPS = 1000
CLUMPS = 6  # ways more to split a component
OVERLAP = 0.02  # responsibility that is not the largest of its row, from which on components overlap
START = 100  # passes that one costs
EACH = 10  # rows that propose, for each component


@dataclass(frozen=True)
class Ground:
    """Rows that propose and rows that judge, both in a random order, and how mixtures climb on them.

    Without rows that judge, all propose. With a `geometry`, of all of them, the prior is found anew for each number of components.
    """

    propose: Batch
    judge: Batch | None
    readout: str
    method: str
    geometry: Any = None
    clumps: int = 0
    restart: Callable[[Mixture, Batch], Start] | None = None
    n_threads: int | None = None

    def part(self, enough: int, times: int = 1) -> Ground:
        """Return as much of it as a mixture needs for which so many rows move every parameter, or so many times that."""
        if self.judge is None:
            return self
        rows, judges = times * max(ROWS, PROPOSING * enough), times * max(ROWS, JUDGING * enough)
        return replace(self, propose=self.propose[:rows], judge=self.judge[:judges], clumps=CLUMPS if times > 1 else 0)


@dataclass(frozen=True)
class Stage:
    """A mixture on its way: the model with its number of components, the prior, and where it has climbed."""

    model: Mixture
    prior: Any
    reached: Reached

    def kept(self, ground: Ground) -> Kept:
        """The rows that propose, to climb on."""
        batch = ground.propose
        return Kept(self.model, ground.readout, self.prior, batch, batch.size, None, ground.n_threads)

    def climbed(self, ground: Ground, passes: int, statistics: Any = None) -> Stage:
        """Return it after more passes, from other statistics if some are given."""
        start = self.reached.statistics if statistics is None else statistics
        return replace(self, reached=climbed(self.kept(ground), start, passes))

    def scores(self, ground: Ground) -> Array:
        """Scores of the rows that judge."""
        batch = ground.propose if ground.judge is None else ground.judge
        return self.model.log_likelihood(self.reached.parameters, batch, ground.n_threads)

    def settled(self, ground: Ground) -> Stage:
        """Return it under the prior of components like these, after some passes."""
        model, geometry, batch = self.model, ground.geometry, ground.propose
        if geometry is None:
            return self.climbed(ground, PASSES)
        shares = model.looked_at(self.reached.parameters, batch, ground.n_threads)[0]
        prior = model.prior(geometry, batch, shares)
        if len(batch) >= 5 * batch.X.shape[1] * model.n_components:
            prior = model.refined(prior, self.reached.parameters, geometry)
        return replace(self, prior=prior).climbed(ground, SETTLING)


def first_stage(model: Mixture, ground: Ground) -> Stage:
    """Return the mixture of one component."""
    one = model.resized(1)
    batch = ground.propose
    prior = one.prior(ground.geometry, batch, np.ones((len(batch), 1)))
    summary = one.collect(ground.geometry, batch, np.ones((len(batch), 1)))
    stage = Stage(one, prior, Reached(None, summary.mean, 0.0, 0))
    return stage.climbed(ground, 2)


def grown(
    whole: Ground, stage: Stage, rng: np.random.Generator, purse: Purse, rows: int = 0
) -> tuple[Stage, tuple[Step, ...]]:
    """Split, exchange and fall as long as rows that judge agree; return where that led, the steps, and the best refused one."""
    steps: list[Step] = []
    refused: Step | None = None
    width, times = whole.propose.X.shape[1], 1
    while len(steps) < MOST_STEPS:
        model = stage.model
        ground = whole.part(model.resized(model.n_components + 1).rows_to_learn(width), times)
        stage = stage.climbed(ground, 1)
        found, step = _one_more(ground, stage, rng, purse)
        if found is None and model.n_components > 2:
            found, other = _another(ground, stage, rng, purse)
            step = other if found is not None else step
        if found is not None and step is not None:
            stage = found.settled(ground)
            steps.append(replace(step, rows=rows, accepted=True))
            continue
        refused = step or refused
        if len(ground.propose) < len(whole.propose) and times < MOST_TIMES:
            times *= MORE
            continue
        found, step = _anew(whole, ground, stage, purse)
        if found is None or step is None:
            break
        stage = found
        steps.append(replace(step, rows=rows, accepted=True))
    while stage.model.n_components > 1:
        found, step = _one_less(whole.part(stage.model.rows_to_learn(width), times), stage, purse)
        if found is None or step is None:
            break
        stage = found
        steps.append(replace(step, rows=rows, accepted=True))
    if refused is not None:
        steps.append(replace(refused, rows=rows))
    return stage, tuple(steps)


def _view(ground: Ground, stage: Stage) -> View:
    return View.of(
        stage.model, ground.readout, stage.prior, stage.reached.parameters, ground.propose, ground.method, ground.n_threads,
        ground.clumps,
    )


def _splits(ground: Ground, stage: Stage, rng: np.random.Generator, purse: Purse) -> list[Split]:
    """Rate the split of every component; those that promise most come first."""
    view = _view(ground, stage)
    purse.pay(4.0 * len(ground.propose))
    found = [split(view, k, rng) for k in range(stage.model.n_components)]
    return sorted((one for one in found if one is not None), key=lambda one: -one.gain)


def divided(stage: Stage, chosen: Sequence[Split]) -> Stage:
    """Return a stage with some components split: the first half stays in its place, the other comes last."""
    k = stage.model.n_components
    model, statistics = stage.model.resized(k + len(chosen)), stage.reached.statistics
    order = [*range(k), *(one.component for one in chosen)]
    own = np.eye(k + len(chosen), k)
    for one in chosen:
        own[one.component] = 0.0
    for place, one in enumerate(chosen):
        new = np.zeros((k + len(chosen), 2))
        new[one.component, 0] = new[k + place, 1] = 1.0
        statistics = model.recombined(statistics, own if place == 0 else np.eye(k + len(chosen)), one.statistics, new)
    return Stage(model, stage.model.chosen(stage.prior, order), replace(stage.reached, statistics=statistics))


def _one_more(ground: Ground, stage: Stage, rng: np.random.Generator, purse: Purse) -> tuple[Stage | None, Step | None]:
    """Try the splits that promise most, and two of them at once if none is accepted."""
    if len(ground.propose) < EACH * (stage.model.n_components + 1):
        return None, None
    splits = _splits(ground, stage, rng, purse)
    tried = [[one] for one in splits[:RIVALS]]
    if not tried:
        return None, None
    incumbent = stage.climbed(ground, PASSES)
    before = incumbent.scores(ground)
    found, step = _best(ground, stage, before, tried, purse)
    if found is not None or step is None:
        return found, step
    pairs = [splits[:2]] if len(splits) > 1 else []
    farther = _best(ground, stage, before, pairs, purse) if pairs else (None, None)
    return farther if farther[0] is not None else (None, step)


def _best(
    ground: Ground, stage: Stage, before: Array, tried: Sequence[Sequence[Split]], purse: Purse
) -> tuple[Stage | None, Step | None]:
    """Climb from each of some groups of splits, and judge it."""
    cost = (len(tried) + 1.0) * PASSES * len(ground.propose)
    if not purse.affords(cost):
        return None, None
    purse.pay(cost)
    reached = [divided(stage, chosen).climbed(ground, PASSES) for chosen in tried]
    verdicts = [verdict(ground, one.scores(ground), before) for one in reached]
    at = max(range(len(tried)), key=lambda one: verdicts[one].gain)
    words = " and ".join(str(one.component) for one in tried[at])
    step = _step(stage, reached[at], verdicts[at], f"split {words}")
    return (reached[at] if accepted(ground, verdicts[at], _more(ground, stage, reached[at])) else None), step


def _another(ground: Ground, stage: Stage, rng: np.random.Generator, purse: Purse) -> tuple[Stage | None, Step | None]:
    """Try the exchange that promises most: a split and a fall."""
    model, kept = stage.model, stage.kept(ground)
    view = _view(ground, stage)
    given_up = falls(view, stage.reached.statistics, kept.count, frozenset())
    moves = [
        Move(one, fall, one.gain + fall.gain)
        for one in _splits(ground, stage, rng, purse)
        for fall in given_up
        if one.component not in fall.components
    ]
    cost = 2.0 * PASSES * len(ground.propose)
    if not moves or not purse.affords(cost):
        return None, None
    move = max(moves, key=lambda one: one.gain)
    if move.gain <= 0.0:
        return None, None
    purse.pay(cost)
    before = stage.climbed(ground, PASSES).scores(ground)
    reached = stage.climbed(ground, PASSES, exchanged(model, stage.reached.statistics, move))
    found = verdict(ground, reached.scores(ground), before)
    return (reached if accepted(ground, found, 0) else None), _step(stage, reached, found, move.word)


def _anew(whole: Ground, ground: Ground, stage: Stage, purse: Purse) -> tuple[Stage | None, Step | None]:
    """Try a start with one component more, if components overlap: splits may then lead nowhere, since others had to move, too."""
    k = stage.model.n_components
    model = stage.model.resized(k + 1)
    some = whole.part(model.rows_to_learn(ground.propose.X.shape[1])).propose
    cost = START * len(some) + 2.0 * PASSES * len(ground.propose)
    if ground.restart is None or not purse.affords(cost) or len(some) < EACH * (k + 1):
        return None, None
    shares = stage.model.looked_at(stage.reached.parameters, some, ground.n_threads)[0]
    if k > 1 and 1.0 - shares.max(axis=1).mean() < OVERLAP:
        return None, None
    purse.pay(cost)
    start, prior = ground.restart(model, some), stage.model.chosen(stage.prior, [*range(k), 0])
    begun = Stage(model, prior, replace(stage.reached, statistics=model.brought(prior, start.prior, start.summary.mean)))
    reached = _in_order(ground, stage, begun.climbed(ground, PASSES))
    found = verdict(ground, reached.scores(ground), stage.climbed(ground, PASSES).scores(ground))
    return (reached if accepted(ground, found, _more(ground, stage, reached)) else None), _step(stage, reached, found, "start anew")


def _in_order(ground: Ground, stage: Stage, other: Stage) -> Stage:
    """Return another stage with its components in the order of those that are most like them."""
    old, new = (one.model.looked_at(one.reached.parameters, ground.propose, ground.n_threads)[0] for one in (stage, other))
    products = old.T @ new / np.sqrt(np.outer((old**2).sum(axis=0), (new**2).sum(axis=0)) + 1e-12)
    order: list[int] = []
    for row in products:
        row[order] = -1.0
        order.append(int(np.argmax(row)))
    order += [k for k in range(other.model.n_components) if k not in order]
    reached = replace(
        other.reached,
        parameters=other.model.picked(other.reached.parameters, order),
        statistics=other.model.permuted(other.reached.statistics, order),
    )
    return Stage(other.model, other.model.chosen(other.prior, order), reached)


def _more(ground: Ground, stage: Stage, other: Stage) -> int:
    """How many parameters a stage has more than another."""
    width = ground.propose.X.shape[1]
    return other.model.n_parameters(width) - stage.model.n_parameters(width)


def _one_less(ground: Ground, stage: Stage, purse: Purse) -> tuple[Stage | None, Step | None]:
    """Try the fall that costs least."""
    model, kept = stage.model, stage.kept(ground)
    cost = 3.0 * PASSES * len(ground.propose)
    if not purse.affords(cost):
        return None, None
    purse.pay(cost)
    incumbent = stage.climbed(ground, PASSES)
    given_up = falls(_view(ground, incumbent), incumbent.reached.statistics, kept.count, frozenset())
    fall = max(given_up, key=lambda one: one.gain)
    reached = fallen(incumbent, fall).climbed(ground, PASSES)
    found = verdict(ground, incumbent.scores(ground), reached.scores(ground))
    less = _more(ground, reached, stage)
    idle = found.gain < NEGLIGIBLE or found.z < DOUBT if ground.judge is not None else not accepted(ground, found, less)
    word = f"merge {fall.components[0]} and {fall.components[1]}" if len(fall.components) == 2 else f"give up {fall.components[0]}"
    return (reached if idle else None), _step(stage, reached, replace(found, gain=-found.gain, z=-found.z), word)


def fallen(stage: Stage, fall: Fall) -> Stage:
    """Return a stage in which two components are one, or one is no more."""
    k, gone = stage.model.n_components, fall.components[-1]
    own = np.eye(k)
    if len(fall.components) == 2:
        own[fall.components[0], gone] = 1.0
    order = [one for one in range(k) if one != gone]
    model = stage.model.resized(k - 1)
    statistics = model.recombined(stage.reached.statistics, own[order])
    return Stage(model, stage.model.chosen(stage.prior, order), replace(stage.reached, statistics=statistics))


def verdict(ground: Ground, scores: Array, before: Array) -> Verdict:
    """How a contender did on the rows that judge; without such rows there are no standard errors."""
    batch = ground.propose if ground.judge is None else ground.judge
    found = judged(scores, before, batch.row_weights)
    return found if ground.judge is not None else replace(found, z=np.nan)


def accepted(ground: Ground, found: Verdict, parameters: int) -> bool:
    """The criterion, for a contender with so many parameters more."""
    if ground.judge is not None:
        return found.z > SURE and found.gain > NEGLIGIBLE
    n = ground.propose.size
    return found.gain * n > 0.5 * max(parameters, 1) * np.log(max(n, 2.0))


def _step(before: Stage, after: Stage, found: Verdict, word: str) -> Step:
    return Step(0, before.model.n_components, after.model.n_components, found.gain, found.z, word)
