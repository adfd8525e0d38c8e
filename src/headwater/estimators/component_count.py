"""The number of components of an estimator: one that was asked for, one that it grows to, or the one that leads a race."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, cast

from sklearn.utils.validation import check_is_fitted

from headwater.core.learner import Learner, suited
from headwater.core.loop import branch
from headwater.core.state import Batch, State
from headwater.estimators import race_stream
from headwater.estimators.race import Race
from headwater.policies.growth import Growth


class Choosing(ABC):
    """The half of every estimator that knows of growth and races; of the other it uses the state and what is made of it."""

    # Parameters that hold something for every component, and mean nothing once there are others of them.
    _given_start: ClassVar[tuple[str, ...]] = ()
    # The smallest number of components that n_components="auto" thinks of.
    _least_components: ClassVar[int] = 1

    # Whether components can be split, so that n_components="auto" grows; other models race.
    _splits: ClassVar[bool] = False

    n_components: Any  # a number, or "auto"; not all models have it

    _state: State
    _own_learner: Learner
    _cache: Any
    _race: Race
    _rivals: tuple[Any, ...]

    @abstractmethod
    def _described(self, width: int) -> Learner:
        """Check the parameters and return the learner they describe; the number of components is a number."""

    @abstractmethod
    def _has_state(self) -> bool:
        """Whether anything was learned."""

    @abstractmethod
    def _reading(self) -> tuple[State, Any]:
        """Return the settled state and the parameters the user sees."""

    @property
    def _auto(self) -> bool:
        """Whether the number of components is to be found."""
        n_components = getattr(self, "n_components", None)
        return isinstance(n_components, str) and n_components == race_stream.AUTO

    @property
    def _grown(self) -> bool:
        """Whether what was learned has grown."""
        return self._has_state() and self._own_learner.grows

    @property
    def _races(self) -> bool:
        """Whether it is found by a race."""
        return self._auto and not self._splits

    @property
    def n_components_(self) -> int:
        """Number of components: as asked for, the one that it has grown to, or that of the leader of a race."""
        check_is_fitted(self)
        if self._grown:
            return int(suited(self._own_learner, self._reading()[0]).model.n_components)
        return int(self._learner.model.n_components if self._has_state() else self.n_components)

    @property
    def growth_(self) -> Growth | None:
        """How the number of components came about, split by split; None if it was given, or found by a race."""
        check_is_fitted(self)
        base = self._reading()[0].base if self._grown else None
        return None if base is None else base.growth

    @property
    def race_(self) -> Race | None:
        """How the numbers of components that "auto" tries compare; None if there was nothing to try."""
        check_is_fitted(self)
        return self.__dict__.get("_race")

    @property
    def _waits(self) -> bool:
        """Whether rows wait for a race to begin."""
        return "_race" in self.__dict__ and self._has_state() and self._state.base is None and not self._race.over

    @property
    def _learner(self) -> Learner:
        """The learner of what was learned. In the warm-up of a race it depends on the rows that wait."""
        if not self._waits:
            return self._own_learner
        cache = self._cache
        if cache.learner is None:
            cache.learner = race_stream.provisional(self, self._state, self._own_learner.width, self._race)
        return cast(Learner, cache.learner)

    @_learner.setter
    def _learner(self, learner: Learner) -> None:
        self._own_learner = learner

    def _make_learner(self, width: int) -> Learner:
        """Check the parameters and return the learner they describe; of a race, that of its leader."""
        if self._auto and self._splits:
            return race_stream.growing_learner(self, width)
        return race_stream.learner_of(self, width) if self._auto else self._described(width)

    def _chosen(self, batch: Batch, learner: Learner, key: int, going_on: bool) -> tuple[Race | Growth | None, Learner]:
        """Choose the number of components for rows at hand, if nobody did, and return the learner that has it."""
        if not self._auto:
            return None, learner
        if self._splits:
            if going_on:
                state = self._state if self._state.base is not None else self._reading()[0]
                learner, growth = suited(learner, state), self.growth_ or Growth()
            else:
                model, growth = race_stream.grown_at_hand(learner, batch, key)
                learner = replace(learner, model=model)
            return growth, replace(learner, grows=False)
        if going_on:
            learner = self._learner if self._waits else learner
            return self._race.decided(self._state.rows, learner.model.n_components), learner
        race = race_stream.at_hand(self, batch, key, learner.width)
        return race, race_stream.rival_of(self, race.leader)._make_learner(learner.width)

    def _win(self, race: Race | Growth | None) -> None:
        """Take note of a race that is over, or of a growth on rows at hand."""
        for name in ("_race", "_rivals"):
            self.__dict__.pop(name, None)
        if isinstance(race, Growth):
            if self._state.base is not None:
                self._state = replace(self._state, base=replace(self._state.base, growth=race))
            self._own_learner = suited(replace(self._own_learner, grows=True), self._state)
        elif race is not None:
            self._race, self._rivals = race, ()

    def _end_warm_up(self) -> None:
        """Learn the rows that wait for a warm-up to be over, since no more of them come; a race is held on those there are."""
        if self._state.base is not None:
            return
        if self._waits:
            assert self._state.buffer is not None
            width = self._own_learner.width
            self._race, self._rivals = race_stream.at_hand(self, self._state.buffer.batch(), self._state.key, width), ()
            self._own_learner = race_stream.rival_of(self, self._race.leader)._make_learner(width)
        race_stream.each_state(self, branch)

    def _branch(self) -> None:
        """Call all that was learned the base; a race that has not begun is over."""
        if self._waits:
            learner = self._learner
            self._race, self._rivals = self._race.decided(self._state.rows, learner.model.n_components), ()
            self._own_learner = learner
        race_stream.each_state(self, branch)
