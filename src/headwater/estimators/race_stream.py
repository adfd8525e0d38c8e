"""n_components="auto": rivals with a number of components each learn the same rows, and are judged on them before they do.

Rows wait in one buffer until all rivals can start on them, from the smallest on, as long as larger ones may be better. What
comes after that is learned by all; at fixed numbers of rows those that are behind drop out.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from headwater.estimators.base import StreamingEstimator
    from headwater.estimators.estimator_core import EstimatorCore

import numpy as np

from headwater.core.batch import Batch
from headwater.core.contracts import NO_SCORES
from headwater.core.gapped_rows import find_absent
from headwater.core.learner import Learner
from headwater.core.lineage import root_stream
from headwater.core.statistics import Array
from headwater.core.steps import report_parameters
from headwater.core.warm_up import find_start
from headwater.estimators.component_priors import refuse_component_priors
from headwater.estimators.race import BLOCK, Race, Rival, Tally
from headwater.estimators.runtime import Runtime
from headwater.models.mixture import Mixture
from headwater.policies.drift_monitor import adapts
from headwater.policies.growth import Growth
from headwater.policies.growth_states import GrowthPolicy, grow_on_rows
from headwater.policies.reservoir_policy import sample_rows

AUTO = "auto"
COMPONENTS = (*range(1, 13), 16, 24, 32)
USUAL = 8  # components that the common warm-up is sized for
ROWS_EACH = 20  # rows of a start for each component, at least
JUDGES = 256  # rows of the first comparison, at least
DOUBLINGS = 6  # of the rows judged, until the leader wins
FOLDS = 4
GLANCE = 4096  # rows that choose a number for reading before the race begins
FEW = 1000  # rows to start on, at least; with fewer than twice as many, cross-validation judges
STRETCHES = 64  # that sequences in memory are cut into


def rival_of(model: EstimatorCore, n_components: int, warm_up: int = 0) -> EstimatorCore:
    """Return an estimator with the parameters of a model and this number of components, that has learned nothing."""
    given = [name for name in model._traits.given_start if getattr(model, name) is not None]
    if given:
        raise ValueError(f"n_components must be a number where {given[0]} says something of each component, got {AUTO!r}")
    refuse_component_priors(model)
    rival = type(model)(**{**model._given_parameters(), "n_components": n_components, "warm_up": warm_up or model.warm_up})
    rival._share_columns(model)
    return rival


def growing_learner(model: EstimatorCore, width: int) -> Learner:
    """Return the learner of a model that grows: of one component, as long as nothing was learned."""
    learner: Learner = rival_of(model, model._traits.least_components)._make_learner(width).with_policy(GrowthPolicy())
    if learner.algorithm.online:
        refining = learner.algorithm.refining()
        if refining is None:
            raise ValueError(
                f"n_components={AUTO!r} grows in a stream by {AUTO!r}, 'boem', 'online-vb' and 'quasi-bayes', whose counts can "
                f"be restated: give n_components a number for algorithm {learner.algorithm.word!r}"
            )
        learner = replace(learner, algorithm=refining)
    if adapts(learner):
        raise ValueError(
            "half_life='auto' watches components that stay, so n_components or half_life must be a number, got 'auto' twice"
        )
    return learner.for_state(model._runtime.state) if model._has_state() else learner


def grown_at_hand(learner: Learner, batch: Batch, key: int) -> tuple[Mixture, Growth]:
    """Return the model of a learner that grows, with the number of components that rows in memory have, and how it grew."""
    n, most = len(batch), sample_rows(learner.plan)
    if n > most:
        rng = np.random.default_rng(np.random.SeedSequence((key, n)))
        batch = batch[np.sort(rng.choice(n, most, replace=False))]
    stage, growth = grow_on_rows(cast(Mixture, learner.plan.sizing_model), batch, key, learner.settings, learner.n_threads)
    return stage.model, growth


def learner_of(model: EstimatorCore, width: int, race: Race | None = None) -> Learner:
    """Return the learner of the leader of a race, or of the smallest rival as long as there is none."""
    if race is None or not race.leader:
        return rival_of(model, model._traits.least_components)._make_learner(width)
    return rival_of(model, race.leader, race.warm_up)._make_learner(width)


def plan_race(model: EstimatorCore, width: int) -> Race:
    """Return the race before its first row: rows that all rivals start on, and those of the first and the last comparison."""
    warm_up = rival_of(model, USUAL)._make_learner(width).plan.warm_up_rows
    until = -(-_judges(warm_up) // BLOCK) * BLOCK
    return Race(warm_up=warm_up, until=until, last=until << DOUBLINGS)


def _judges(warm_up: int) -> int:
    return max(JUDGES, warm_up // 4)


def learn_rows(model: EstimatorCore, learner: Learner, batch: Batch, scores: Array) -> Runtime:
    """Learn rows of a stream by all that race; return the Runtime, whose state is the leader's. The leader scores the rows."""
    known = model._has_state() and learner is model._runtime.learner
    runtime: Runtime = model._runtime_for(learner)
    race, rivals = runtime.race or plan_race(model, learner.width), runtime.rivals
    if not race.rivals:
        at, over = runtime.rows_to_wait(batch, race.warm_up + race.until)
        first = scores[:at] if model.__dict__.get("_scores_start", True) else NO_SCORES
        runtime = _wait(model, runtime.with_race(race), batch[:at], first)
        if not over:
            return runtime
        race, rivals = _begin_race(model, race, runtime.waiting_batch(), runtime.key, learner.width)
        batch, scores = batch[at:], scores[at:]
    elif not known:
        rivals = _with_parameters(model, race, rivals, learner.width)
    return follow(runtime, *_run(race, rivals, batch, scores))


def reader_of(model: EstimatorCore, runtime: Runtime) -> Runtime:
    """Return the Runtime by which rows are read that wait for the race: its number of components suits them so far."""
    cache, width, race = runtime.cache, runtime.learner.width, runtime.race
    asked = type(model)(**runtime.made_with)  # parameters that were set since then hold from the next row on
    asked._share_columns(model)
    rows = min(1 << (runtime.waiting_rows.bit_length() - 1), GLANCE)
    if cache.leader is None or cache.leader[0] != rows:
        cache.leader = rows, race_on_folds(asked, runtime.waiting_batch(rows), runtime.key, width).leader
    assert race is not None
    learner: Learner = rival_of(asked, cache.leader[1], race.warm_up)._make_learner(width)
    return Runtime(learner, runtime.state, runtime.made_with)


def at_hand(model: EstimatorCore, batch: Batch, key: int, width: int) -> Race:
    """Return a race on rows in memory, in another order than they came in; the leader has won."""
    sprinter = model if rival_of(model, model._traits.least_components)._make_learner(width).algorithm.online else copy(model)
    if sprinter is not model:
        sprinter.algorithm = AUTO
    n = len(batch)
    if n < 2 * FEW:
        return race_on_folds(sprinter, batch, key, width)
    warm_up = min(max(FEW, plan_race(sprinter, width).warm_up), n // 2)
    batch = _shuffle_rows(batch, key, warm_up + (_judges(warm_up) << DOUBLINGS))
    cut, _ = Runtime.begin(learner_of(sprinter, width), key).rows_to_wait(batch, warm_up)
    doublings = int(np.log2(max((len(batch) - cut) / _judges(warm_up), 1.0)))
    until = (len(batch) - cut) // (BLOCK << doublings) * BLOCK
    race = Race(warm_up=warm_up, until=until, last=until << doublings)
    race, rivals = _begin_race(sprinter, race, batch[: cut + until], key, width)
    race, _ = _run(race, rivals, batch[cut + until :], NO_SCORES)
    return replace(race.decided(n, race.leader), warm_up=0)


def race_on_folds(model: EstimatorCore, batch: Batch, key: int, width: int) -> Race:
    """Return a race on few rows: each is scored by a start on the rows of other folds. The leader has won."""
    n, least = len(batch), model._traits.least_components
    batch = _shuffle_rows(batch, key, n)
    chained = batch.sequences.size > 0
    pieces = np.concatenate([[0], np.cumsum(np.diff(batch.sequences) != 0)]) if chained else np.arange(n)
    folds = pieces % FOLDS if pieces[-1] >= FOLDS else np.arange(n) * FOLDS // n
    tells = np.bincount(folds[~find_absent(batch.X)] if chained else folds, minlength=FOLDS)  # rows may be missing
    numbers = [k for k in COMPONENTS if least <= k <= (tells.sum() - tells.max()) // ROWS_EACH] or [least]
    if len(numbers) == 1:
        return Race((Rival(numbers[0]),), numbers[0])
    tally = Tally.of(0)
    columns: list[Array] = []
    for k in numbers:
        learner: Learner = rival_of(model, k)._make_learner(width)
        column = np.empty(n)
        for fold in range(FOLDS):
            start = find_start(learner.plan, batch[np.flatnonzero(folds != fold)], key)
            judged = np.flatnonzero(folds == fold)
            parameters = report_parameters(learner.plan, root_stream(learner.plan, key, start))
            column[judged] = learner.model.log_likelihood(parameters, batch[judged], learner.n_threads)
        columns.append(column)
        tally = Tally.of(len(columns)).after(np.stack(columns, axis=1), batch.row_weights, BLOCK if chained else 1)
        if tally.exhausted():
            break
    if not tally.blocks:
        return Race((Rival(least),), least)
    return Race(tally.told(numbers[: len(columns)])).decided(n, numbers[tally.leader])


def runtime_of(model: EstimatorCore, n_components: int, warm_up: int) -> Runtime:
    """Return what learned for a model with this number of components: a rival, itself, or one that has rows waiting."""
    runtime: Runtime = model._runtime
    for rival in runtime.rivals:
        if rival.n_components == n_components:
            return rival
    if not runtime.waits_for_race:
        return runtime.with_race(None)
    learner = rival_of(model, n_components, warm_up)._make_learner(runtime.learner.width)
    return Runtime(learner, runtime.state, runtime.made_with)


def resume(runtime: Runtime, races: list[Race], rivals: list[Runtime], leader: int) -> Runtime:
    """Let a model that was merged go on with the race, of those that run in all of its parts."""
    reference = runtime.race if runtime.race is not None and runtime.race.rivals else races[0]
    judged = sum(race.judged for race in races)
    running = {rival.n_components for rival in rivals}
    entered = tuple(
        replace(one, dropped_at=None if one.n_components in running else one.dropped_at or rivals[0].rows)
        for one in reference.rivals
    )
    race = replace(reference, rivals=entered, leader=leader, judged=judged, until=2 * judged, tally=Tally.of(len(rivals)))
    if len(rivals) == 1:
        race = race.decided(rivals[0].rows, leader)
    return follow(runtime, race, tuple(rivals))


def _wait(model: StreamingEstimator, runtime: Runtime, batch: Batch, scores: Array) -> Runtime:
    """Put rows into the warm-up; if they are to be scored, by what is known at each power of two."""
    at = 0
    while at < len(batch):
        rows, stop, reader = runtime.waiting_rows, len(batch), runtime.learner
        if scores.size:
            stop = min(stop, at + (1 << rows.bit_length()) - rows)
            reader = reader_of(model, runtime).learner if rows else reader
        runtime = runtime.wait(batch[at:stop], reader, scores[at:stop])
        at = stop
    return runtime


def _begin_race(model: EstimatorCore, race: Race, batch: Batch, key: int, width: int) -> tuple[Race, tuple[Runtime, ...]]:
    """Start rivals on the first rows and judge them on the others, as long as larger ones may be better."""
    rivals: list[Runtime] = []
    columns: list[Array] = []
    tally = Tally.of(0)
    for k in COMPONENTS:
        if k < model._traits.least_components or (rivals and k * ROWS_EACH > race.warm_up):
            continue
        learner: Learner = rival_of(model, k, race.warm_up)._make_learner(width)
        if rivals and learner.model.rows_to_learn(width) > max(race.warm_up, rivals[0].learner.model.rows_to_learn(width)):
            break
        rival = Runtime.begin(learner, key)
        cut, _ = rival.rows_to_wait(batch, learner.plan.warm_up_rows)
        column = np.empty(len(batch) - cut)
        rivals.append(rival.advance(batch[:cut]).advance(batch[cut:], column))
        columns.append(column)
        tally = Tally.of(len(rivals)).after(np.stack(columns, axis=1), batch[cut:].row_weights)
        if tally.exhausted():
            break
    entered = tuple(Rival(rival.n_components) for rival in rivals)
    race = replace(race, rivals=entered, tally=tally, judged=len(columns[0]))
    return _compare_rivals(race, rivals, len(batch))


def _with_parameters(model: EstimatorCore, race: Race, rivals: tuple[Runtime, ...], width: int) -> tuple[Runtime, ...]:
    """Let rivals go on with the parameters that the model has now."""
    learners = [rival_of(model, rival.n_components, race.warm_up)._make_learner(width) for rival in rivals]
    return tuple(rival.with_learner(learner, {}) for rival, learner in zip(rivals, learners, strict=True))


def _run(race: Race, rivals: tuple[Runtime, ...], batch: Batch, scores: Array) -> tuple[Race, tuple[Runtime, ...]]:
    """Let rivals learn rows, and compare them whenever it is time."""
    at = 0
    while at < len(batch):
        racing = race.until > 0
        part = batch[at : at + race.until - race.judged] if racing else batch[at:]
        table = np.full((len(rivals), len(part)), np.nan)
        keep = racing or scores.size > 0
        rivals = tuple(rival.advance(part, column if keep else NO_SCORES) for rival, column in zip(rivals, table, strict=True))
        if scores.size:
            scores[at : at + len(part)] = table[[rival.n_components for rival in rivals].index(race.leader)]
        at += len(part)
        if racing:
            race = race.after(np.ascontiguousarray(table.T), part.row_weights)
            if race.judged == race.until:
                race, rivals = _compare_rivals(race, list(rivals), rivals[0].rows)
    return race, rivals


def _compare_rivals(race: Race, rivals: list[Runtime], rows: int) -> tuple[Race, tuple[Runtime, ...]]:
    race = race.compared(rows)
    running = set(race.running)
    return race, tuple(rival for rival in rivals if rival.n_components in running)


def follow(runtime: Runtime, race: Race, rivals: tuple[Runtime, ...]) -> Runtime:
    """Return the Runtime that answers as the leader of its race does."""
    leader = next(rival for rival in rivals if rival.n_components == race.leader)
    return runtime.with_state(leader.state, leader.learner).with_race(race, rivals)


def _shuffle_rows(batch: Batch, key: int, rows: int) -> Batch:
    """Rows at hand in an order of their own, or some of them; of sequences, stretches that count as complete."""
    n = len(batch)
    rng = np.random.default_rng(np.random.SeedSequence((key, n)))
    if not batch.sequences.size:
        return batch[rng.permutation(n)[:rows]]
    begins = np.concatenate([[0], np.flatnonzero(np.diff(batch.sequences)) + 1])
    within = np.arange(n) - np.repeat(begins, np.diff(np.append(begins, n)))
    cuts = np.flatnonzero(within % max(n // STRETCHES, BLOCK) == 0)
    lengths = np.diff(np.append(cuts, n))
    order = rng.permutation(len(cuts))
    order = order[: int(np.searchsorted(np.cumsum(lengths[order]), rows)) + 1]
    places = np.concatenate([np.arange(cuts[one], cuts[one] + lengths[one]) for one in order])
    return replace(batch[places], sequences=np.repeat(-1 - cuts[order], lengths[order]))
