"""The number of components of an estimator: one that was asked for, one that it grows to, or the one that leads a race."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

from sklearn.utils.validation import check_is_fitted

from headwater.core.learner import Learner
from headwater.core.state import Batch
from headwater.estimators import race_stream
from headwater.estimators.race import Race
from headwater.estimators.runtime import Reading, Runtime
from headwater.estimators.thread_safety import reads
from headwater.policies.growth import Growth
from headwater.policies.names import GROWTH


class Choosing(ABC):
    """The half of every estimator that knows of growth and races; of the other it uses the state and what is made of it."""

    # Parameters that hold something for every component, and mean nothing once there are others of them.
    _given_start: ClassVar[tuple[str, ...]] = ()
    # The smallest number of components that n_components="auto" thinks of.
    _least_components: ClassVar[int] = 1

    # Whether components can be split, so that n_components="auto" grows; other models race.
    _splits: ClassVar[bool] = False

    n_components: Any  # a number, or "auto"; not all models have it

    _runtime: Runtime

    @abstractmethod
    def _described(self, width: int) -> Learner:
        """Check the parameters and return the learner they describe; the number of components is a number."""

    @abstractmethod
    def _has_state(self) -> bool:
        """Whether anything was learned."""

    @abstractmethod
    def _read(self) -> Reading:
        """Return what the user sees."""

    @abstractmethod
    def _parameter_values(self) -> tuple[Any, ...]:
        """The values of all parameters."""

    @property
    def _auto(self) -> bool:
        """Whether the number of components is to be found."""
        n_components = getattr(self, "n_components", None)
        return isinstance(n_components, str) and n_components == race_stream.AUTO

    @property
    def _grown(self) -> bool:
        """Whether what was learned has grown."""
        return self._has_state() and self._runtime.learner.has(GROWTH)

    @property
    def _races(self) -> bool:
        """Whether it is found by a race."""
        return self._auto and not self._splits

    @property
    @reads
    def n_components_(self) -> int:
        """Number of components: as asked for, the one that it has grown to, or that of the leader of a race."""
        check_is_fitted(self)
        if self._grown:
            return int(self._read().model.n_components)
        return int(self._reader.n_components if self._has_state() else self.n_components)

    @property
    @reads
    def growth_(self) -> Growth | None:
        """How the number of components came about, split by split; None if it was given, or found by a race."""
        check_is_fitted(self)
        return self._read().growth if self._grown else None

    @property
    @reads
    def race_(self) -> Race | None:
        """How the numbers of components that "auto" tries compare; None if there was nothing to try."""
        check_is_fitted(self)
        return self._runtime.race if self._has_state() else None

    @property
    def _waits(self) -> bool:
        """Whether rows wait for a race to begin."""
        return self._has_state() and self._runtime.waits_for_race

    @property
    def _reader(self) -> Runtime:
        """The Runtime that is read. Where rows wait for a race, its number of components suits those rows."""
        runtime = self._runtime
        if not runtime.waits_for_race:
            return runtime
        if runtime.cache.reader is None:
            runtime.cache.reader = race_stream.reader_of(self, runtime)
        return runtime.cache.reader

    @property
    def _learner(self) -> Learner:
        """The learner of what was learned. In the warm-up of a race it depends on the rows that wait."""
        return self._reader.learner

    def _make_learner(self, width: int) -> Learner:
        """Check the parameters and return the learner they describe; of a race, that of its leader."""
        if self._auto and self._splits:
            return race_stream.growing_learner(self, width)
        if self._auto:
            return race_stream.learner_of(self, width, self._runtime.race if self._has_state() else None)
        return self._described(width)

    def _chosen(self, batch: Batch, learner: Learner, key: int, going_on: bool) -> tuple[Race | Growth | None, Learner]:
        """Choose the number of components for rows at hand, if nobody did, and return the learner that has it."""
        if not self._auto:
            return None, learner
        if self._splits:
            if going_on:
                runtime = self._runtime
                state = self._read().stream if runtime.warming_up else runtime.state
                learner, growth = learner.for_state(state), self.growth_ or Growth()
            else:
                model, growth = race_stream.grown_at_hand(learner, batch, key)
                learner = replace(learner, model=model)
            return growth, learner.without(GROWTH)
        if going_on:
            runtime = self._runtime
            assert runtime.race is not None
            learner = self._learner if runtime.waits_for_race else learner
            return runtime.race.decided(runtime.rows, learner.model.n_components), learner
        race = race_stream.at_hand(self, batch, key, learner.width)
        return race, race_stream.rival_of(self, race.leader)._make_learner(learner.width)

    def _end_warm_up(self) -> None:
        """Learn the rows that wait for a warm-up to be over, since no more of them come; a race is held on those there are."""
        runtime = self._runtime
        if not runtime.warming_up:
            return
        if runtime.waits_for_race:
            width = runtime.learner.width
            race = race_stream.at_hand(self, runtime.waiting_batch(), runtime.key, width)
            learner = race_stream.rival_of(self, race.leader)._make_learner(width)
            runtime = runtime.with_state(runtime.state, learner).with_race(race)
        self._runtime = runtime.branch()

    def _branch(self) -> None:
        """Call all that was learned the base; a race that has not begun is over."""
        runtime = self._runtime
        if runtime.waits_for_race:
            assert runtime.race is not None
            learner = self._learner
            race = runtime.race.decided(runtime.rows, learner.model.n_components)
            runtime = runtime.with_state(runtime.state, learner).with_race(race)
        self._runtime = runtime.branch()


def with_choice(runtime: Runtime, choice: Race | Growth | None) -> Runtime:
    """Return a Runtime that knows how its number of components was chosen on rows at hand."""
    if isinstance(choice, Growth):
        return runtime.with_growth(choice)
    return runtime if choice is None else runtime.with_race(choice)
