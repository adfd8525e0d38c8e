"""The number of components of a model: given, found by growth, or found by a race."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.estimators.base import StreamingEstimator
    from headwater.estimators.estimator_core import EstimatorCore

from headwater.core.batch import Batch
from headwater.core.learner import Learner
from headwater.estimators import race_stream
from headwater.estimators.race import Race
from headwater.estimators.runtime import Runtime
from headwater.policies.growth import Growth
from headwater.policies.names import GROWTH

# How the number is found.
GIVEN, RACE = "given", "race"  # or by GROWTH


def choose(
    model: EstimatorCore, batch: Batch, learner: Learner, key: int, going_on: bool
) -> tuple[Race | Growth | None, Learner]:
    """Choose the number of components for rows in memory, if it was not given; return how, and the learner that has it."""
    if model._choice == GIVEN:
        return None, learner
    if model._choice == GROWTH:
        return _choose_by_growth(model, batch, learner, key, going_on)
    if not going_on:
        race = race_stream.at_hand(model, batch, key, learner.width)
        return race, race_stream.rival_of(model, race.leader)._make_learner(learner.width)
    runtime: Runtime = model._runtime
    assert runtime.race is not None
    learner = model._learner if runtime.waits_for_race else learner
    return runtime.race.decided(runtime.rows, learner.model.n_components), learner


def _choose_by_growth(
    model: StreamingEstimator, batch: Batch, learner: Learner, key: int, going_on: bool
) -> tuple[Growth, Learner]:
    if going_on:
        runtime: Runtime = model._runtime
        state = model._read().stream if runtime.warming_up else runtime.state
        learner, growth = learner.for_state(state), model.growth_ or Growth()
    else:
        found, growth = race_stream.grown_at_hand(learner, batch, key)
        learner = replace(learner, model=found)
    return growth, learner.without(GROWTH)


def with_choice(runtime: Runtime, choice: Race | Growth | None) -> Runtime:
    """Return a Runtime that knows how its number of components was chosen on rows in memory."""
    if isinstance(choice, Growth):
        return runtime.with_growth(choice)
    return runtime if choice is None else runtime.with_race(choice)


def end_warm_up(model: EstimatorCore) -> Runtime:
    """Return the Runtime of a model after its warm-up, since no more rows come; a race is held on those there are."""
    runtime: Runtime = model._runtime
    if not runtime.warming_up:
        return runtime
    if runtime.waits_for_race:
        width = runtime.learner.width
        race = race_stream.at_hand(model, runtime.waiting_batch(), runtime.key, width)
        learner = race_stream.rival_of(model, race.leader)._make_learner(width)
        runtime = runtime.with_state(runtime.state, learner).with_race(race)
    return runtime.branch()


def start_branch(model: StreamingEstimator) -> Runtime:
    """Return the Runtime of a branch, which calls all that was learned its base; a race that has not begun is over."""
    runtime: Runtime = model._runtime
    if runtime.waits_for_race:
        assert runtime.race is not None
        learner = model._learner
        race = runtime.race.decided(runtime.rows, learner.model.n_components)
        runtime = runtime.with_state(runtime.state, learner).with_race(race)
    return runtime.branch()
