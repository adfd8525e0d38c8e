"""What every estimator does with its Runtime: it makes the learner of its parameters, learns, and reads."""

from __future__ import annotations

import numbers
import operator
from functools import cache
from typing import Any, ClassVar, Self, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, check_random_state

from headwater.core.learner import Learner
from headwater.core.state import State
from headwater.estimators.component_count import Choosing
from headwater.estimators.runtime import Reading, Runtime
from headwater.estimators.thread_safety import learns, reads


class Keeping(Choosing, BaseEstimator):
    """The half of every estimator that holds what was learned: one Runtime, `_runtime`, which is never changed."""

    # Parameters that decide the shape of what is learned.
    _shape_parameters: ClassVar[tuple[str, ...]] = ("n_components",)

    # What was learned, as users read it: the arrays that a model file shows to readers without headwater.
    _answers: ClassVar[tuple[str, ...]] = ()

    random_state: Any

    _runtime: Runtime

    # The state

    def __copy__(self) -> Self:
        """Return a copy that learns on its own."""
        other = object.__new__(type(self))
        other.__dict__ = self.__dict__.copy()
        return other

    @learns
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

    def _parameter_values(self) -> tuple[Any, ...]:
        """The values of all parameters, in the order of their names."""
        return tuple([self._parameter(name) for name in self._parameter_names()])

    def _learner_for(self, width: int, going_on: bool) -> Learner:
        """Return the learner of the parameters: the last one if they are the very same, and none of another shape."""
        if not self._has_state():
            return self._make_learner(width)
        runtime, parameters = self._runtime, self._parameter_values()
        same = all(map(operator.is_, parameters, runtime.made_with))
        if same and runtime.learner.width == width:
            return runtime.learner
        if going_on and not same:
            for name, now, before in zip(self._parameter_names(), parameters, runtime.made_with, strict=True):
                if name in self._shape_parameters and now != before:
                    raise ValueError(
                        f"{name} cannot change from {before!r} to {now!r} in a model that goes on learning: make a new one, "
                        f"or fit without warm_start"
                    )
        return self._make_learner(width)

    def _learned_with(self, name: str) -> Any:
        """The value that a parameter had when the model learned last, whatever it has been set to since."""
        return self._runtime.made_with[self._parameter_names().index(name)]

    def _runtime_for(self, learner: Learner) -> Runtime:
        """Return the Runtime that goes on with a learner: of a new stream, if nothing was learned."""
        if not self._has_state():
            return Runtime.begin(learner, self._new_key(), self._parameter_values())
        runtime = self._runtime
        return runtime if learner is runtime.learner else runtime.with_learner(learner, self._parameter_values())

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
    @reads
    def n_samples_seen_(self) -> int:
        """Rows learned from so far, counted once however many passes were made."""
        return self._fitted().rows

    def _has_state(self) -> bool:
        return "_runtime" in self.__dict__

    def _fitted(self) -> Runtime:
        """The Runtime that is read; an error, if nothing was learned."""
        check_is_fitted(self)
        return self._reader

    @property
    def _state(self) -> State:
        return self._runtime.state

    def _read(self) -> Reading:
        """Return what the user sees, made once per change of the state. A stream that refines itself may search here."""
        return self._fitted().read()

    def _seen_by(self, width: int) -> Any:
        """Parameters that the user sees, for rows of this width."""
        return self._read().parameters

    def _quick_parameters(self, width: int) -> Any:
        """Reported parameters as of the last refresh, for rows of this width: what one-row calls read."""
        return self._reader.quick_parameters()
