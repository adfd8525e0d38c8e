"""What every streaming estimator shares: chunks in, a state inside, answers out; nothing of any one model."""

from __future__ import annotations

import numbers
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data

from headwater.chunk import Chunk
from headwater.estimators import racing
from headwater.estimators.describing import Limits, notes_of
from headwater.estimators.description import Description, Value
from headwater.estimators.race import Race
from headwater.learner import Learner, advance, branch, milestone_parameters, planted, report, settle, widened
from headwater.passes import learn
from headwater.state import Batch, SparseRows, State
from headwater.statistics import Array
from headwater.storage.states import holds_rows
from headwater.validation import check_labels, check_names, check_row, check_rows, check_weights, check_width, make_batch

# What a fit leaves behind, until something else is learned; and what goes when all is learned anew.
FIT_RESULTS = ("converged_", "n_iter_", "lower_bound_", "lower_bounds_")
RESULTS = (*FIT_RESULTS, "merge_report_", "history_", "_open")


def one_line(value: Any) -> str:
    """What a value looks like, in one line however it is printed."""
    return " ".join(repr(value).split())


@dataclass
class _Cache:
    """What reading made of the state: the settled state with its parameters, those of the last refresh, and open sequences.

    It may always be thrown away, and a copy or a pickle starts without it.
    """

    settled: tuple[State, Any] | None = None
    quick: tuple[Any, Any] | None = None
    carry: Any = None
    learner: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        return (_Cache, ())


class StreamingEstimator(BaseEstimator, ABC):
    """Base of the estimators. A subclass says how its parameters make a `Learner`, and names what was learned.

    The learned state is `_state`. Reading settles it (ends the warm-up, folds the partial batch) into a cached copy and
    never changes it.
    """

    # Parameters that hold something for every component, and mean nothing once there are others of them.
    _given_start: ClassVar[tuple[str, ...]] = ()
    # The smallest number of components that n_components="auto" thinks of.
    _least_components: ClassVar[int] = 1
    # Parameters that decide the shape of what is learned.
    _shape_parameters: ClassVar[tuple[str, ...]] = ("n_components",)
    # Parameters in which models must agree to be merged.
    _merge_parameters: ClassVar[tuple[str, ...]] = ("n_components", "half_life")

    # Runs of `fit` from different starts, where there is no parameter for it.
    n_init = 1

    # Whether a `fit` that has not converged says so by a warning.
    _warns: ClassVar[bool] = True

    # Whether a row is a sequence of symbols, of any length.
    _takes_sequences: ClassVar[bool] = False

    # Whether the scores of `update` are those of `score_samples`, and what share of a stream can be scored at little cost.
    _scores_by_learning: ClassVar[bool] = True
    _scored_share: ClassVar[float] = 1.0

    # What a row is called, and a column that has no name, before its number.
    _unit: ClassVar[str] = "rows"
    _column_word: ClassVar[str] = "x"

    # Whether rows are made of symbols.
    _takes_symbols: ClassVar[bool] = False

    # Columns of a row that are no features: the target, if there is one, comes last.
    _target_columns: ClassVar[int] = 0

    # What was learned, as users read it: the arrays that a model file shows to readers without headwater.
    _answers: ClassVar[tuple[str, ...]] = ()

    n_components: Any  # a number, or "auto"; not all models have it

    _state: State
    _own_learner: Learner
    _cache: _Cache
    _race: Race
    _rivals: tuple[Any, ...]
    _parameters: tuple[int, list[Any]]
    _scores_start: bool

    # What a subclass says

    @abstractmethod
    def _described(self, width: int) -> Learner:
        """Check the parameters and return the learner they describe; the number of components is a number."""

    def _chunk(self, X: Any, y: Any = None) -> Any:
        """Return what is learned from: the rows, with their target if the model has one."""
        return X

    def _checked(self, X: Any) -> Any:
        """Return the rows of a chunk, or refuse them in one sentence."""
        return check_rows(X, owner=type(self).__name__)

    def _checked_one(self, x: Any, names: Any, width: int | None) -> Any:
        """Return one row as a chunk, or refuse it."""
        return check_row(x, names, width)

    def _aligned(self, rows: Any) -> Any:
        """Return the rows in the width of the model, or refuse them."""
        check_width(rows, self.n_features_in_, type(self).__name__)
        return rows

    def _note_columns(self, X: Any, reset: bool) -> None:
        """Take note of the number and names of the columns, or refuse others than those known."""
        self._note_schema(X, reset)
        if not isinstance(X, Chunk) or X.columns is None:
            validate_data(self, X.X if isinstance(X, Chunk) else X, skip_check_array=True, reset=reset)
        elif reset:
            validate_data(self, X.X, skip_check_array=True, reset=True)
            self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        else:
            check_names(X.columns, getattr(self, "feature_names_in_", None), type(self).__name__)

    def _note_schema(self, X: Any, reset: bool) -> None:
        """Take note of how the rows were made of what was read, if they came from a stream."""
        if reset:
            self.__dict__.pop("schema_", None)
            if isinstance(X, Chunk) and X.schema is not None:
                self.schema_ = X.schema

    @property
    def _n_labels(self) -> int:
        """Number of components that a label may name, and the least number of rows to find them in."""
        return 1 if self._auto else int(self.n_components)

    def _check_merge(self, other: Any) -> None:
        """Refuse to be merged with another model of this class, where more than parameters must agree."""

    def __copy__(self) -> Self:
        """Return a copy that learns on its own: rows that wait for the end of a warm-up are not shared."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        if self._has_state() and self._state.buffer is not None:
            other._state = replace(self._state, buffer=self._state.buffer.changed(lambda rows: rows))
        return other

    # Model files

    def save(self, path: str | os.PathLike[str], *, raw_rows: bool = True) -> None:
        """Write the model to a file, from which `headwater.load` reads it; saved in mid-stream, it goes on as if never stopped.

        Parameters
        ----------
        path : str or path
            The file. It is replaced in one step, when all is written.
        raw_rows : bool, default=True
            Whether rows that wait, because the warm-up is not over or rows after them are to come, are kept in the file as they
            came. Without them, the model is saved as if the stream ended here.
        """
        from headwater.estimators.saving import save

        save(self, path, raw_rows=raw_rows)

    @property
    def holds_rows_(self) -> bool:
        """Whether rows are kept as they came: in a warm-up, or because they wait for those after them."""
        return holds_rows(self._fitted_state())

    def _check_stored(self, X: Any, width: int) -> None:
        """Refuse rows of a model file that this model could not have been given."""
        sparse = isinstance(X, SparseRows)
        if not sparse and X.shape[1] != width:
            raise ValueError(f"rows must have {width} columns, got {X.shape[1]}")
        self._checked(csr_array((X.data, X.indices, X.indptr), shape=X.shape) if sparse else X)

    # Learning

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from all rows at hand, forgetting what was learned before (unless `warm_start`).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows: an array, or a pandas or polars frame of numbers.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts; 0 is as good as absent.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit(X, sample_weight)

    def _fit(self, X: Any, sample_weight: Any, labels: Any = None) -> Self:
        batch, learner = self._take(X, sample_weight, labels, reset=True)
        if batch.X.shape[0] < self._n_labels:
            raise ValueError(
                f"Expected n_samples >= n_components but got n_components = {self._n_labels}, n_samples = {len(batch)}"
            )
        resume, key = None, self._new_key()
        if self.warm_start and self._has_state():
            state = self._resumed(learner)
            resume = None if state is None else (state, getattr(self, "lower_bound_", -np.inf))
        race, learner = self._chosen(batch, learner, key, resume is not None)
        state, end = learn(
            learner,
            batch,
            key,
            *self._patience(batch),
            self.n_init,
            resume,
            self._watch(),
        )
        self._note_columns(X, reset=resume is None or not self._grows)
        self.n_features_in_ = learner.width - self._target_columns
        self._set(state, learner)
        self._win(race)
        for name in RESULTS:
            self.__dict__.pop(name, None)
        self.converged_ = end.converged
        self.n_iter_ = len(end.trace)
        self.lower_bounds_ = list(end.trace)
        self.lower_bound_ = end.trace[-1] if end.trace else -np.inf
        if self._warns and not (end.converged or learner.algorithm.again) and self.max_iter > 0:
            warnings.warn(
                "Best performing initialization did not converge. Try different init parameters, or increase max_iter, "
                "tol, or check for degenerate data.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def _patience(self, batch: Batch) -> tuple[int, float]:
        """Passes that a `fit` makes at most, and the gain of a pass per row with which it is content."""
        return self.max_iter, self.tol

    @property
    def _grows(self) -> bool:
        """Whether chunks may become wider."""
        return False

    def _widened(self, width: int) -> Self:
        """A copy that knows more columns."""
        raise NotImplementedError

    def _resumed(self, learner: Learner) -> State | None:
        """The state that a `fit` goes on from, if there is one for rows of this width."""
        return self._state if self._learner.width == learner.width else None

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn a chunk of a stream, of any size; the answer does not depend on how the stream was cut.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts; 0 is as good as absent.

        Returns
        -------
        self : object
            The estimator, a chunk wiser.
        """
        self._learn_chunk(X, sample_weight)
        return self

    def update(self, X: Any, sample_weight: Any = None) -> Array:
        """Score each row as the model was before learning it, and learn it; in one E-step, if it is exact.

        Within a batch, and between the powers of two of the warm-up, parameters stand still, so this is the honest
        (prequential) score of a stream. The first eight rows, when not even the scale is known, score NaN. Variational
        algorithms score their lower bound of the log-density, which is close to it once there are rows enough.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts; 0 is as good as absent, but scored.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Log-density of each row before it was learned.
        """
        return self._update(X, sample_weight)

    def _update(self, X: Any, sample_weight: Any, labels: Any = None) -> Array:
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

    def _update_after_start(self, **chunk: Any) -> Array:
        """Do what `update` does, but score no rows of the warm-up, for which starts have to be found: they are NaN."""
        self._scores_start = False
        try:
            return self.update(**chunk)
        finally:
            del self._scores_start

    def _learn_chunk(self, X: Any, sample_weight: Any = None, labels: Any = None, scored: bool = False) -> Array:
        first = not self._has_state()
        batch, learner = self._take(X, sample_weight, labels, reset=first)
        _refuse_batch(learner)
        self._note_columns(X, reset=first)
        return self._advance(batch, learner, scored)

    def _advance(self, batch: Batch, learner: Learner, scored: bool) -> Array:
        if self._auto and not (self._has_state() and self._race.over):
            scores = racing.learned(self, batch, learner, scored)
            for name in FIT_RESULTS:
                self.__dict__.pop(name, None)
            return scores
        state = self._state if self._has_state() else State(self._new_key())
        if self._has_state() and learner.width > self._learner.width:
            state = widened(learner, state)
        scores = np.full(len(batch) if scored else 0, np.nan)
        state, _ = advance(learner, state, batch, scores, self.__dict__.get("_scores_start", True))
        self._set(state, learner)
        for name in FIT_RESULTS:
            self.__dict__.pop(name, None)
        return scores

    def warm_start_from(self, X: Any, sample_weight: Any = None, *, weight: float = 1.0) -> Self:
        """Find a start on a sample, whatever its size, and forget what was learned before; the warm-up is over then.

        Workers that share the start, as branches of this model or copies made at once, can be merged without any matching.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The sample.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts; 0 is as good as absent.
        weight : float, default=1.0
            How much of the sample counts as learned. Less than 1 if its rows will come again in the stream: they then only
            hold the start in place, and are not among `n_samples_seen_`.

        Returns
        -------
        self : object
            The estimator, at the beginning of a stream.

        Examples
        --------
        >>> import numpy as np
        >>> import headwater as hw
        >>> rows = np.random.default_rng(0).normal(size=(9000, 2))
        >>> start = hw.GaussianMixture(2, random_state=0).warm_start_from(rows[::9], weight=0.1)
        >>> parts = [start.branch().partial_fit(rows[part::3]) for part in range(3)]
        >>> hw.merge(parts).n_samples_seen_
        9000
        """
        return self._plant(X, sample_weight, weight)

    def _plant(self, X: Any, sample_weight: Any, weight: float, labels: Any = None) -> Self:
        if isinstance(weight, bool) or not isinstance(weight, numbers.Real) or not 0.0 < weight <= 1.0:
            raise ValueError(f"weight must be a number greater than 0 and at most 1, got {one_line(weight)}")
        batch, learner = self._take(X, sample_weight, labels, reset=True, going_on=False)
        if len(batch) < self._n_labels:
            raise ValueError(f"the sample must have at least {self._n_labels} rows, one for each component, got {len(batch)}")
        _refuse_batch(learner)
        key = self._new_key()
        race, learner = self._chosen(batch, learner, key, going_on=False)
        state = planted(learner, key, batch, float(weight))
        self._note_columns(X, reset=True)
        self._set(state, learner)
        self._win(race)
        for name in RESULTS:
            self.__dict__.pop(name, None)
        return self

    def branch(self) -> Self:
        """Return a copy that others can be merged with: it has learned the same, and calls all of it its base.

        Branches of one model may learn apart, on other machines if need be; `headwater.merge` adds what each learned and
        counts what they share once. A warm-up that is still going on ends in the branch, with the rows there are.

        Returns
        -------
        model : estimator
            The branch; the model itself is left as it is.

        Examples
        --------
        >>> import numpy as np
        >>> import headwater as hw
        >>> rng = np.random.default_rng(0)
        >>> model = hw.GaussianMixture(2, random_state=0).partial_fit(rng.normal(size=(3000, 2)))
        >>> parts = [model.branch().partial_fit(rng.normal(size=(1000, 2))) for _ in range(3)]
        >>> hw.merge(parts).n_samples_seen_
        6000
        """
        self._fitted_state()
        branched = copy(self)
        branched._branch()
        return branched

    def _branch(self) -> None:
        """Call all that was learned the base; a race that has not begun is over."""
        if self._waits:
            learner = self._learner
            self._race, self._rivals = self._race.decided(self._state.rows, learner.model.n_components), ()
            self._own_learner = learner
        racing.each_state(self, branch)

    # One row

    def learn_one(self, x: Any) -> Self:
        """Learn one row, given as an array or as a mapping from column names to values.

        Parameters
        ----------
        x : array-like of shape (n_features,) or mapping
            The row.

        Returns
        -------
        self : object
            The estimator, a row wiser.
        """
        return self._learn_row(self._one(x, learning=True), x)

    def _learn_row(self, row: Any, x: Any) -> Self:
        learner = self._learner_for(row.shape[1], self._has_state())
        _refuse_batch(learner)
        if not self._has_state():
            self.n_features_in_ = row.shape[1] - self._target_columns
            if isinstance(x, Mapping):
                self.feature_names_in_ = np.asarray(list(x), dtype=object)
        self._advance(Batch(row), learner, scored=False)
        return self

    def score_one(self, x: Any) -> float:
        """Return the log-density of one row under the parameters of the last refresh.

        Parameters
        ----------
        x : array-like of shape (n_features,) or mapping
            The row.

        Returns
        -------
        score : float
            Its log-density.
        """
        row = self._one(x)
        learner = self._learner
        return float(learner.model.log_likelihood(self._quick_parameters(row.shape[1]), Batch(row), 1)[0])

    def _one(self, x: Any, learning: bool = False) -> Any:
        if not learning:
            check_is_fitted(self)
        return self._checked_one(x, getattr(self, "feature_names_in_", None), getattr(self, "n_features_in_", None))

    def _seen_by(self, width: int) -> Any:
        """Parameters that the user sees, for rows of this width."""
        return self._reading()[1]

    def _quick_parameters(self, width: int) -> Any:
        """Reported parameters as of the last refresh: what one-row calls read, without settling anything."""
        state, learner = self._state, self._learner
        if state.base is None:
            return milestone_parameters(learner, state)
        if state.parts:
            return self._reading()[1]
        cache = self._cache
        if cache.quick is None or cache.quick[0] is not state.statistics:
            cache.quick = (state.statistics, report(learner, replace(state, pending=None)))
        return cache.quick[1]

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
        if self._cache.settled is None:
            settled = settle(self._learner, self._state)
            self._cache.settled = (settled, report(self._learner, settled))
        return self._cache.settled

    def describe(self, *, values: int = 12, components: int = 32, level: float = 0.9) -> Description:
        """Return what was learned, in parts that are the same for every model: for tables, reports and other programs.

        Parameters
        ----------
        values : int, default=12
            Most columns, words or coefficients to tell of each component: those that tell most.
        components : int, default=32
            Most components to tell of: the heaviest.
        level : float, default=0.9
            Probability of the credible intervals.

        Returns
        -------
        description : Description
            A frozen record; `to_dict` makes of it what JSON knows.

        Examples
        --------
        >>> import numpy as np
        >>> import headwater as hw
        >>> rows = np.random.default_rng(0).normal(size=(3000, 2))
        >>> description = hw.GaussianMixture(1, random_state=0).partial_fit(rows).describe()
        >>> print(description.title)
        GaussianMixture (auto), 1 component: 3,000 rows of 2 columns seen
        >>> [value.name for value in description.components[0].values]
        ['x0', 'x1']
        """
        for name, wanted in (("values", values), ("components", components)):
            if isinstance(wanted, bool) or not isinstance(wanted, numbers.Integral) or wanted < 1:
                raise ValueError(f"{name} must be a whole number of at least 1, got {one_line(wanted)}")
        if isinstance(level, bool) or not isinstance(level, numbers.Real) or not 0.0 < level < 1.0:
            raise ValueError(f"level must lie between 0 and 1, got {one_line(level)}")
        state = self._fitted_state()
        limits = Limits(int(values), int(components), float(level))
        found = self._describe(limits)
        return replace(
            found,
            model=type(self).__name__,
            algorithm=self._learner.algorithm.word,
            rows=state.rows,
            columns=found.columns or self.n_features_in_,
            unit=self._unit,
            level=limits.level,
            notes=(*notes_of(self, found), *found.notes),
        )

    @abstractmethod
    def _describe(self, limits: Limits) -> Description:
        """Describe what only this model has: components, matrices, curves, facts."""

    def _patterns(self) -> Array | None:
        """What components are in all columns (K, d), where that may be looked at as images."""
        return None

    def _gaussians(self) -> Any:
        """What has `weights_`, `means_`, `covariances_` and `covariance_type`, if components are Gaussians over the columns."""
        return None

    def _row_scorer(self) -> Callable[..., Array]:
        """Return what scores the rows of one chunk after the other, by what is known now."""
        return self.score_samples

    def _oddities(self, row: Any, most: int) -> tuple[Value, ...]:
        """Say what makes a row odd: some of its values, how far each stands out, the farthest first."""
        return ()

    def _shares_now(self) -> Array:
        """Shares of the components by the statistics as they are: nothing is settled; empty in the warm-up."""
        state = self._fitted_state()
        if state.base is None:
            return np.empty(0)
        shares = np.mean([self._shares_of(one) for one in state.parts or (state,)], axis=0)
        return np.asarray(shares / max(float(np.sum(shares)), 1e-300))

    def _shares_of(self, state: State) -> Array:
        """Shares of the components in a state; empty if it has none."""
        return np.empty(0)

    def _rows(self, X: Any) -> Batch:
        check_is_fitted(self)
        rows = self._aligned(self._checked(X))
        self._note_columns(X, reset=False)
        return Batch(rows)

    # The number of components

    @property
    def _auto(self) -> bool:
        """Whether the number of components is found by a race."""
        n_components = getattr(self, "n_components", None)
        return isinstance(n_components, str) and n_components == racing.AUTO

    @property
    def n_components_(self) -> int:
        """Number of components: as asked for, or that of the leader of a race."""
        check_is_fitted(self)
        return int(self._learner.model.n_components if self._has_state() else self.n_components)

    @property
    def race_(self) -> Race | None:
        """How the numbers of components that "auto" tries compare; None if there was nothing to try."""
        self._fitted_state()
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
        if self._cache.learner is None:
            self._cache.learner = racing.provisional(self, self._state, self._own_learner.width, self._race)
        return self._cache.learner

    @_learner.setter
    def _learner(self, learner: Learner) -> None:
        self._own_learner = learner

    def _make_learner(self, width: int) -> Learner:
        """Check the parameters and return the learner they describe; of a race, that of its leader."""
        return racing.learner_of(self, width) if self._auto else self._described(width)

    def _chosen(self, batch: Batch, learner: Learner, key: int, going_on: bool) -> tuple[Race | None, Learner]:
        """Choose the number of components for rows at hand, if nobody did, and return the learner that has it."""
        if not self._auto:
            return None, learner
        if going_on:
            learner = self._learner if self._waits else learner
            return self._race.decided(self._state.rows, learner.model.n_components), learner
        race = racing.at_hand(self, batch, key, learner.width)
        return race, racing.rival_of(self, race.leader)._make_learner(learner.width)

    def _win(self, race: Race | None) -> None:
        """Take note of a race that is over."""
        for name in ("_race", "_rivals"):
            self.__dict__.pop(name, None)
        if race is not None:
            self._race, self._rivals = race, ()

    # The machinery

    def _take(
        self, X: Any, sample_weight: Any, labels: Any, reset: bool, going_on: bool | None = None
    ) -> tuple[Batch, Learner]:
        rows = self._checked(X)
        if going_on is None:
            going_on = not reset or (self.warm_start and self._has_state())
        if not reset or (going_on and self._grows):
            rows = self._aligned(rows)
        learner = self._learner_for(rows.shape[1], going_on)
        weights = check_weights(sample_weight, len(rows))
        if self._auto and labels is not None:
            raise ValueError("labels name components, so n_components must be a number, got 'auto'")
        return make_batch(rows, weights, check_labels(labels, len(rows), self._n_labels)), learner

    @classmethod
    @cache
    def _parameter_names(cls) -> list[str]:
        return list(cls._get_param_names())

    def _learner_for(self, width: int, going_on: bool) -> Learner:
        """Return the learner of the parameters: the last one if they are the very same, and none of another shape."""
        parameters = [getattr(self, name) for name in self._parameter_names()]
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
            self._parameters = learner.width, [getattr(self, name) for name in self._parameter_names()]
        self._state = state
        quick = self._cache.quick if "_cache" in self.__dict__ else None
        self._cache = _Cache(quick=quick if quick is not None and quick[0] is state.statistics else None)

    def _new_key(self) -> int:
        seed = self.random_state
        if isinstance(seed, numbers.Integral):
            return int(seed)
        return int(check_random_state(seed).randint(2**31 - 1))

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence((self._new_key(), 2)))

    def _watch(self) -> Any:
        verbose = self.verbose
        if not verbose:
            return None
        interval = self.verbose_interval
        last = [-np.inf]

        def watch(number: int, value: float) -> None:
            if number % interval == 0:
                gain = f"\t gain {value - last[0]:.5f}" if verbose > 1 and np.isfinite(last[0]) else ""
                print(f"  pass {number}\t objective {value:.5f}{gain}")
            last[0] = value

        return watch


def _refuse_batch(learner: Learner) -> None:
    if not learner.algorithm.online:
        raise ValueError(
            f"algorithm {learner.algorithm.word!r} needs all rows at once: call fit, or stream with its online twin "
            f"{learner.algorithm.twin!r}"
        )
