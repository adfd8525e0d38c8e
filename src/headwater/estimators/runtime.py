"""What every estimator keeps: the state that it has learned, the learner of it, and what reading made of them."""

from __future__ import annotations

import numbers
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar, Self, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, check_random_state

from headwater.core.learner import Learner
from headwater.core.loop import milestone_parameters, report, settle
from headwater.core.state import State
from headwater.estimators.component_count import Choosing
from headwater.estimators.thread_safety import ROLE
from headwater.policies.refinement_states import contested


@dataclass
class Cache:
    """What reading made of the state: the settled state with its parameters, those of the last refresh, and open sequences.

    It may always be thrown away, and a copy or a pickle starts without it.
    """

    settled: tuple[State, Any] | None = None
    quick: tuple[Any, Any] | None = None
    carry: Any = None
    learner: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        return (Cache, ())


class Keeping(Choosing, BaseEstimator):
    """The half of every estimator that holds the learned state, `_state`.

    Reading settles it (ends the warm-up, folds the partial batch) into a cached copy and never changes it.
    """

    # Parameters that decide the shape of what is learned.
    _shape_parameters: ClassVar[tuple[str, ...]] = ("n_components",)

    # What was learned, as users read it: the arrays that a model file shows to readers without headwater.
    _answers: ClassVar[tuple[str, ...]] = ()

    random_state: Any

    _state: State
    _cache: Cache
    _parameters: tuple[int, list[Any]]

    # The state

    def __copy__(self) -> Self:
        """Return a copy that learns on its own."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.__dict__.pop(ROLE, None)
        return other

    def __getstate__(self) -> dict[str, Any]:
        known: dict[str, Any] = super().__getstate__()
        known.pop(ROLE, None)
        return known

    def set_params(self, **params: Any) -> Self:
        """Set parameters by their names, as scikit-learn has it.

        Parameters
        ----------
        **params
            The parameters.

        Returns
        -------
        self : object
            The estimator.
        """
        return cast(Self, super().set_params(**params))

    @classmethod
    @cache
    def _parameter_names(cls) -> list[str]:
        return list(cls._get_param_names())

    def _parameter(self, name: str) -> Any:
        """The value of a parameter as it was given, where reading it may tell what was learned in its place."""
        return self.__dict__[name] if name in self.__dict__ else getattr(self, name)

    def _learner_for(self, width: int, going_on: bool) -> Learner:
        """Return the learner of the parameters: the last one if they are the very same, and none of another shape."""
        parameters = [self._parameter(name) for name in self._parameter_names()]
        known = self.__dict__.get("_parameters")
        if known is None:
            return self._make_learner(width)
        if known[0] == width and all(one is other for one, other in zip(parameters, known[1], strict=True)):
            return self._own_learner
        if going_on:
            for name, now, before in zip(self._parameter_names(), parameters, known[1], strict=True):
                if name in self._shape_parameters and now != before:
                    raise ValueError(
                        f"{name} cannot change from {before!r} to {now!r} in a model that goes on learning: make a new one, "
                        f"or fit without warm_start"
                    )
        return self._make_learner(width)

    def _learned_with(self, name: str) -> Any:
        """The value that a parameter had when the model learned last, whatever it has been set to since."""
        return self._parameters[1][self._parameter_names().index(name)]

    def _set(self, state: State, learner: Learner) -> None:
        if self.__dict__.get("_own_learner") is not learner:
            self._own_learner = learner
            self._parameters = learner.width, [self._parameter(name) for name in self._parameter_names()]
        self._state = state
        quick = self._cache.quick if "_cache" in self.__dict__ else None
        known = state.parts or state.statistics
        self._cache = Cache(quick=quick if quick is not None and quick[0] is known else None)

    def _new_key(self) -> int:
        seed = self.random_state
        if isinstance(seed, numbers.Integral):
            return int(seed)
        return int(check_random_state(seed).randint(2**31 - 1))

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence((self._new_key(), 2)))

    # Reading

    def __sklearn_is_fitted__(self) -> bool:
        return self._has_state()

    @property
    def n_samples_seen_(self) -> int:
        """Rows learned from so far, counted once however many passes were made."""
        return self._fitted_state().rows

    def _has_state(self) -> bool:
        return "_state" in self.__dict__

    def _fitted_state(self) -> State:
        check_is_fitted(self)
        return self._state

    def _reading(self) -> tuple[State, Any]:
        """Return the settled state and the parameters the user sees, made once per change of the state."""
        self._fitted_state()
        cache = self._cache
        if cache.settled is None:
            settled = contested(self._learner, settle(self._learner, self._state))
            cache.settled = (settled, report(self._learner, settled))
        return cache.settled

    def _seen_by(self, width: int) -> Any:
        """Parameters that the user sees, for rows of this width."""
        return self._reading()[1]

    def _quick_parameters(self, width: int) -> Any:
        """Reported parameters as of the last refresh: what one-row calls read, without settling anything."""
        state, learner = self._state, self._learner
        if state.base is None:
            return milestone_parameters(learner, state)
        cache, known = self._cache, state.parts or state.statistics
        quick = cache.quick
        if quick is None or quick[0] is not known:
            quick = cache.quick = (known, report(learner, replace(state, pending=None)))
        return quick[1]
