"""The private half of every estimator: checks and learns rows, and holds and reads a Runtime.

`base.py` has the public half. A subclass says how its parameters make a `Learner`, and what is special about its rows.
"""

from __future__ import annotations

import numbers
import operator
import sys
import warnings
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

from headwater.core.batch import Batch
from headwater.core.batch_fit import Passes, learn
from headwater.core.chunk import Chunk, refuse_lost
from headwater.core.climb import Climb
from headwater.core.contracts import NO_SCORES
from headwater.core.gapped_rows import GappedRows
from headwater.core.learner import Learner
from headwater.core.loop import advance
from headwater.core.state import State
from headwater.core.statistics import Array
from headwater.core.validation import check_labels, check_threads, check_weights, make_batch, one_line
from headwater.core.values import Matrix, RandomState, Row, Rows, Values
from headwater.estimators import race_stream
from headwater.estimators.calls import call_like_inherited, learns
from headwater.estimators.changed_settings import refuse_algorithm, refuse_priors, refuse_shapes
from headwater.estimators.component_count import GIVEN, RACE, choose, with_choice
from headwater.estimators.reading import Reading
from headwater.estimators.row_hooks import RowHooks, refuse_batch_algorithm, refuse_gaps, refuse_no_weight, telling_rows
from headwater.estimators.runtime import Runtime
from headwater.estimators.seeds import new_key
from headwater.estimators.start_parameters import refuse_no_start
from headwater.estimators.traits import Taken, Traits
from headwater.estimators.verbose import watch_of
from headwater.policies.identity import carry_identity
from headwater.policies.names import GROWTH

# Results of a fit, dropped when more is learned; and attributes that are dropped when learning starts anew.
FIT_RESULTS = ("converged_", "n_iter_", "lower_bound_", "lower_bounds_", "_end", "_end_rows")
NAMES = "_names"  # of the components, by their numbers
RESULTS = (*FIT_RESULTS, "merge_report_", "history_", "distributed_report_", "_open", "_pasts")

_names_of: dict[object, tuple[str, ...]] = {}


class EstimatorCore(RowHooks):
    """An estimator is its parameters, one Runtime (`_runtime`), and the results of a fit."""

    _traits: ClassVar[Traits] = Traits()
    n_init = 1  # runs of `fit` from different starts, where there is no parameter for it

    n_components: Any  # a number, or "auto"; not all models have it
    n_features_in_: int
    n_threads: int | None
    random_state: RandomState
    _runtime: Runtime
    _scores_start: bool

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        call_like_inherited(cls)

    def __copy__(self) -> Self:
        """Return a copy that learns on its own."""
        other = object.__new__(type(self))
        other.__dict__ = self.__dict__.copy()
        return other

    # Parameters

    def _given_parameters(self) -> dict[str, Any]:
        """All parameters as they were given; reading an attribute may return a learned value instead."""
        given = self.__dict__
        return {name: given[name] if name in given else getattr(self, name) for name in parameter_names(type(self))}

    @property
    def _threads(self) -> int | None:
        """Threads that an answer may use; a value that was set since something was learned is checked here."""
        return check_threads(self.n_threads)

    @property
    def _choice(self) -> str:
        """How the number of components is found: GIVEN, by GROWTH or by a RACE."""
        n_components = self.__dict__.get("n_components")
        if not isinstance(n_components, str) or n_components != race_stream.AUTO or not self._traits.finds_number:
            return GIVEN
        return GROWTH if self._traits.splits else RACE

    @abstractmethod
    def _described(self, width: int) -> Learner:
        """Check the parameters and return the learner they describe; the number of components is a number."""

    def _make_learner(self, width: int) -> Learner:
        """Check the parameters and return the learner they describe; of a race, that of its leader."""
        choice = self._choice
        if choice == GROWTH:
            return race_stream.growing_learner(self, width)
        if choice == RACE:
            return race_stream.learner_of(self, width, self._runtime.race if self._has_state() else None)
        return refuse_no_start(self._described(width), self._traits.given_start)

    def _learner_for(self, width: int, going_on: bool, streams: bool = True) -> Learner:
        """Return the learner of the parameters: the last one if they are the very same.

        If learning continues, settings that do not fit what was learned are refused; `streams` says whether rows are added to a
        stream, or passed over again.
        """
        if not self._has_state():
            return self._make_learner(width)
        runtime, parameters = self._runtime, self._given_parameters()
        same = all(map(operator.is_, parameters.values(), runtime.made_with.values()))
        if same and runtime.learner.width == width:
            return runtime.learner
        if same or not going_on:
            return self._make_learner(width)
        refuse_shapes(self._traits, runtime.made_with, parameters)
        learner = self._make_learner(width)
        if not runtime.warming_up:
            refuse_priors(self._traits, runtime.made_with, parameters, streams)
            refuse_algorithm(runtime.learner.algorithm, learner.algorithm)
        return learner

    def _runtime_for(self, learner: Learner) -> Runtime:
        """Return the Runtime that goes on with a learner: of a new stream, if nothing was learned."""
        if not self._has_state():
            return Runtime.begin(learner, new_key(self), self._given_parameters())
        runtime = self._runtime
        return runtime if learner is runtime.learner else runtime.with_learner(learner, self._given_parameters())

    @property
    def _n_labels(self) -> int:
        """Number of components that a label may name, and the least number of rows to find them in."""
        return 1 if self._choice != GIVEN else int(self.n_components)

    def _resumed(self, learner: Learner) -> State | None:
        """The state that a `fit` goes on from, if there is one for rows of this width."""
        return self._runtime.state if self._learner.width == learner.width else None

    # Reading

    def __sklearn_is_fitted__(self) -> bool:
        return self._has_state()

    def _has_state(self) -> bool:
        return "_runtime" in self.__dict__

    def _check_fitted(self) -> None:
        """Raise scikit-learn's error if nothing was learned; its own check makes the tags of the estimator first."""
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)

    def _check_stream(self) -> None:
        """Raise an error if no row was learned: parameters that were set by hand answer questions, and have no stream."""
        self._check_fitted()
        if not self._has_state():
            raise NotFittedError(f"this {type(self).__name__} has learned no rows: call fit or partial_fit")

    def _fitted(self) -> Runtime:
        """The Runtime that is read; an error, if nothing was learned."""
        self._check_stream()
        return self._reader

    @property
    def _state(self) -> State:
        return self._runtime.state

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

    def _read(self) -> Reading:
        """Return what the user sees, made once per change of the state. A stream that refines itself may search here."""
        return self._fitted().read()

    def _seen_by(self, width: int) -> Any:
        """Parameters that the user sees, for rows of this width."""
        return self._read().parameters

    def _quick_parameters(self, width: int) -> Any:
        """Reported parameters as of the last refresh, for rows of this width: what one-row calls read."""
        return self._reader.quick_parameters()

    # Rows

    def _one(self, x: Row, learning: bool = False) -> Matrix:
        if not learning:
            self._check_fitted()
        return self._checked_one(x, getattr(self, "feature_names_in_", None), getattr(self, "n_features_in_", None))

    def _rows(self, X: Rows) -> Batch:
        self._check_fitted()
        X = self._as_rows(X, learning=False)
        rows = self._checked(X)
        self._note_columns(X, reset=False)  # an error about names is more helpful than one about the width
        return Batch(self._aligned(rows))

    def _taken(
        self, reset: bool, X: Rows, y: Values = None, sample_weight: Values = None, labels: Values = None
    ) -> tuple[Batch, Learner]:
        """Return the rows of a chunk as `fit` would learn them, and the learner; `reset`, of a model that knows no columns."""
        batch, learner = self._take(self._chunk(X, y), sample_weight, labels, reset=reset)
        return telling_rows(batch)[0], learner

    def _take(
        self, X: Taken, sample_weight: Values, labels: Values, reset: bool, going_on: bool | None = None
    ) -> tuple[Batch, Learner]:
        if isinstance(X, Chunk):
            refuse_lost(X)
        rows = self._checked(X)
        if going_on is None:
            going_on = not reset or (self.warm_start and self._has_state())
        if not reset or (going_on and self._vocabulary_is_open):
            rows = self._aligned(rows)
        learner = self._learner_for(rows.shape[1], going_on, streams=not reset)
        if isinstance(rows, GappedRows):
            refuse_gaps(learner)
        weights = check_weights(sample_weight, len(rows))
        if self._choice != GIVEN and labels is not None:
            raise ValueError("labels name components, so n_components must be a number, got 'auto'")
        return make_batch(rows, weights, check_labels(labels, len(rows), self._n_labels)), learner

    # Learning

    def _fit(self, X: Rows, sample_weight: Values, labels: Values = None) -> Self:
        X = self._as_rows(X, learning=True, anew=not self.warm_start)
        batch, learner = self._take(X, sample_weight, labels, reset=True)
        batch, _ = telling_rows(batch)
        if batch.X.shape[0] < self._n_labels:
            raise ValueError(
                f"Expected n_samples >= n_components but got n_components = {self._n_labels}, n_samples = {len(batch)}"
            )
        resume, key = None, new_key(self)
        if self.warm_start and self._has_state():
            state = self._resumed(learner)
            resume = None if state is None else (state, getattr(self, "lower_bound_", -np.inf))
        race, learner = choose(self, batch, learner, key, resume is not None)
        watch = watch_of(self)
        state, end = learn(learner.plan, batch, key, Passes(*self._patience(len(batch)), self.n_init), resume, watch)
        if watch is not None:
            watch.end(end)
        self._note_columns(X, reset=resume is None or not self._vocabulary_is_open)
        self.n_features_in_ = self._features_of(learner.width)
        state = carry_identity(resume[0], state) if resume else state
        self._runtime = with_choice(Runtime(learner, state, self._given_parameters()), race)
        self._note_learned(X, resume is None)
        forget(self, RESULTS if resume else (*RESULTS, NAMES))
        self._conclude(end, bool(end.converged or learner.algorithm.again) or self.max_iter == 0)
        return self

    def _conclude(self, end: Climb, content: bool, stacklevel: int | None = None) -> None:
        """Keep how passes over all rows ended, and say so if they were not enough."""
        self.converged_ = end.converged
        self.n_iter_ = len(end.trace)
        self.lower_bounds_ = list(end.trace)
        self.lower_bound_ = end.trace[-1] if end.trace else -np.inf
        if self._traits.warns and not content:
            warnings.warn(
                "Best performing initialization did not converge. Try different init parameters, or increase max_iter, "
                "tol, or check for degenerate data.",
                ConvergenceWarning,
                stacklevel=stacklevel or _outside(),
            )

    def _update(self, X: Rows, sample_weight: Values, labels: Values = None) -> Array:
        X = self._as_rows(X, learning=True)
        if sample_weight is None:
            return self._learn_chunk(X, None, labels, scored=True)
        rows = self._checked(X)
        kept = check_weights(sample_weight, len(rows)) != 0.0
        scores = np.full(len(rows), np.nan)
        if kept.size and not kept.all():
            if self._has_state():
                idle = Batch(self._aligned(rows[~kept]))
                scores[~kept] = self._learner.model.log_likelihood(self._seen_by(idle.X.shape[1]), idle)
            scores[kept] = self._learn_chunk(X, sample_weight, labels, scored=True)
            return scores
        return self._learn_chunk(X, sample_weight, labels, scored=True)

    @learns
    def _update_after_start(self, **chunk: object) -> Array:
        """Do what `update` does, but do not score rows of the warm-up, which needs extra starts: they are NaN."""
        self._scores_start = False
        try:
            return self.update(**chunk)
        finally:
            del self._scores_start

    def _learn_chunk(self, X: Rows, sample_weight: Values = None, labels: Values = None, scored: bool = False) -> Array:
        """Learn a chunk; return the scores of its rows before they were learned, if they are to be `scored`."""
        first = not self._has_state()
        X = self._as_rows(X, learning=True)
        whole, learner = self._take(X, sample_weight, labels, reset=first)
        refuse_batch_algorithm(learner)
        batch, telling = telling_rows(whole, least=int(first))
        if not len(batch):
            return np.full(len(whole) if scored else 0, np.nan)
        self._note_columns(X, reset=first)
        scores = np.full(len(batch) if scored else 0, np.nan)
        if self._races_on:
            self._runtime = race_stream.learn_rows(self, learner, batch, scores)
        else:
            runtime = self._runtime_for(learner)
            state, _ = advance(learner.plan, runtime.state, batch, scores, self.__dict__.get("_scores_start", True))
            self._runtime = runtime.after(state)
        forget(self, FIT_RESULTS)
        self._note_learned(X, first)
        if scored and len(batch) < len(whole):  # rows without a value have no score
            known, scores = scores, np.full(len(whole), np.nan)
            scores[telling] = known
        return scores

    @property
    def _races_on(self) -> bool:
        """Whether rows are learned by several numbers of components, which race."""
        if self._choice != RACE:
            return False
        return not (self._has_state() and self._runtime.race is not None and self._runtime.race.over)

    def _plant(self, X: Rows, sample_weight: Values, weight: float, labels: Values = None) -> Self:
        if isinstance(weight, bool) or not isinstance(weight, numbers.Real) or not 0.0 < weight <= 1.0:
            raise ValueError(f"weight must be a number greater than 0 and at most 1, got {one_line(weight)}")
        X = self._as_rows(X, learning=True, anew=True)
        batch, learner = self._take(X, sample_weight, labels, reset=True, going_on=False)
        batch, _ = telling_rows(batch)
        if len(batch) < self._n_labels:
            raise ValueError(f"the sample must have at least {self._n_labels} rows, one for each component, got {len(batch)}")
        refuse_batch_algorithm(learner)
        refuse_no_weight(weight, batch)
        key = new_key(self)
        race, learner = choose(self, batch, learner, key, going_on=False) if self._choice == RACE else (None, learner)
        runtime = Runtime.start_on(learner, key, batch, float(weight), self._given_parameters())
        self._note_columns(X, reset=True)
        self._runtime = with_choice(runtime, race)
        self._note_learned(X, anew=True)
        forget(self, (*RESULTS, NAMES))
        return self

    def _learn_one(self, x: Row) -> Self:
        return self._learn_row(self._one(x, learning=True), x)

    def _learn_row(self, row: Matrix, x: Row) -> Self:
        learner = self._learner_for(row.shape[1], self._has_state())
        refuse_batch_algorithm(learner)
        if isinstance(row, GappedRows):
            refuse_gaps(learner)
            if not len(telling_rows(Batch(row), least=int(not self._has_state()))[0]):
                return self
        first = not self._has_state()
        if first:
            self.n_features_in_ = row.shape[1] - self._traits.target_columns
            if isinstance(x, Mapping):
                self.feature_names_in_ = np.asarray(list(x), dtype=object)
        if self._races_on:
            self._runtime = race_stream.learn_rows(self, learner, Batch(row), NO_SCORES)
        else:
            self._runtime = self._runtime_for(learner).advance(Batch(row))
        self._note_learned(x, first)
        forget(self, FIT_RESULTS)
        return self


def parameter_names(kind: type[EstimatorCore]) -> tuple[str, ...]:
    """Return the names of the parameters of a class of estimators; scikit-learn takes long to find them."""
    names = _names_of.get(kind)
    if names is None:
        names = _names_of[kind] = tuple(kind._get_param_names())
    return names


def forget(model: object, results: Iterable[str]) -> None:
    """Remove results of a fit, which no longer hold."""
    for name in results:
        model.__dict__.pop(name, None)


def _outside() -> int:
    """The level of the stack, as warnings count it for who asks, on which this package was called."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("headwater."):
        level, frame = level + 1, frame.f_back
    return level
