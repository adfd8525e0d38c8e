"""What every streaming estimator shares: chunks in, a state inside, answers out; nothing of any one model."""

from __future__ import annotations

import numbers
import os
import sys
import time
import warnings
from collections.abc import Mapping
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from headwater.core.batch_fit import Passes, learn
from headwater.core.chunk import Chunk, refuse_lost
from headwater.core.climb import Climb
from headwater.core.learner import Learner
from headwater.core.state import Batch, SparseRows, State
from headwater.core.statistics import Array
from headwater.core.validation import (
    check_labels,
    check_names,
    check_row,
    check_rows,
    check_weights,
    check_width,
    make_batch,
    one_line,
)
from headwater.estimators import race_stream
from headwater.estimators.component_count import with_choice
from headwater.estimators.describe import Telling
from headwater.estimators.runtime import Runtime
from headwater.estimators.stream_input import learns_at_once, learns_by_chunk
from headwater.estimators.thread_safety import learns, reads

# What a fit leaves behind, until something else is learned; and what goes when all is learned anew.
FIT_RESULTS = ("converged_", "n_iter_", "lower_bound_", "lower_bounds_", "_end")
RESULTS = (*FIT_RESULTS, "merge_report_", "history_", "distributed_report_", "_open")


class StreamingEstimator(Telling):
    """Base of the estimators. A subclass says how its parameters make a `Learner`, and names what was learned.

    What it has learned is kept by `Keeping` and told by `Telling`; how many components there are is up to `Choosing`.
    """

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

    # Whether rows hang together, in sequences.
    _chained: ClassVar[bool] = False

    # Whether rows are made of symbols.
    _takes_symbols: ClassVar[bool] = False

    # Columns of a row that are no features: the target, if there is one, comes last.
    _target_columns: ClassVar[int] = 0

    _scores_start: bool

    # What a subclass says

    def _chunk(self, X: Any, y: Any = None) -> Any:
        """Return what is learned from: the rows, with their target if the model has one."""
        return X

    def _as_rows(self, X: Any, learning: bool, anew: bool = False) -> Any:
        """Return what is given as rows: counts of words, if X holds documents; `anew`, of a model that forgets all it knows."""
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

    def _note_new_columns(self, X: Any) -> None:
        """Take note of the names of columns that were learned and not known before."""

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

    def _keep_start(self) -> None:
        """Keep beside the parameters what learning anew begins with, where that is something that was learned."""

    def _check_stored(self, X: Any, width: int) -> None:
        """Refuse rows of a model file that this model could not have been given."""
        sparse = isinstance(X, SparseRows)
        self._checked(csr_array((X.data, X.indices, X.indptr), shape=X.shape) if sparse else X)

    # Model files

    @reads
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
        from headwater.estimators.model_file import save

        save(self, path, raw_rows=raw_rows)

    @property
    @reads
    def holds_rows_(self) -> bool:
        """Whether rows are kept as they came: in a warm-up, or because they wait for those after them."""
        return self._fitted().holds_rows

    # Learning

    @learns_at_once
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
        X = self._as_rows(X, learning=True, anew=not self.warm_start)
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
        watch = self._watch()
        state, end = learn(learner.plan, batch, key, Passes(*self._patience(len(batch)), self.n_init), resume, watch)
        if watch is not None:
            watch.end(end)
        self._note_columns(X, reset=resume is None or not self._grows)
        self.n_features_in_ = learner.width - self._target_columns
        self._note_new_columns(X)
        self._runtime = with_choice(Runtime(learner, state, self._parameter_values()), race)
        for name in RESULTS:
            self.__dict__.pop(name, None)
        self._conclude(end, bool(end.converged or learner.algorithm.again) or self.max_iter == 0)
        return self

    def _conclude(self, end: Climb, content: bool, stacklevel: int | None = None) -> None:
        """Keep how passes over all rows ended, and say so if they were not enough."""
        self.converged_ = end.converged
        self.n_iter_ = len(end.trace)
        self.lower_bounds_ = list(end.trace)
        self.lower_bound_ = end.trace[-1] if end.trace else -np.inf
        if self._warns and not content:
            warnings.warn(
                "Best performing initialization did not converge. Try different init parameters, or increase max_iter, "
                "tol, or check for degenerate data.",
                ConvergenceWarning,
                stacklevel=stacklevel or _outside(),
            )

    def _patience(self, rows: int) -> tuple[int, float]:
        """Passes that a `fit` makes at most, and the gain of a pass per row with which it is content."""
        return self.max_iter, self.tol

    @property
    def _grows(self) -> bool:
        """Whether chunks may become wider."""
        return False

    def _widened(self, width: int) -> Self:
        """Return a copy that knows more columns; the model itself, if its chunks never become wider."""
        return self

    def _resumed(self, learner: Learner) -> State | None:
        """The state that a `fit` goes on from, if there is one for rows of this width."""
        return self._runtime.state if self._learner.width == learner.width else None

    @learns_by_chunk
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

    @learns_by_chunk
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
    def _update_after_start(self, **chunk: Any) -> Array:
        """Do what `update` does, but score no rows of the warm-up, for which starts have to be found: they are NaN."""
        self._scores_start = False
        try:
            return self.update(**chunk)
        finally:
            del self._scores_start

    def _learn_chunk(self, X: Any, sample_weight: Any = None, labels: Any = None, scored: bool = False) -> Array:
        first = not self._has_state()
        X = self._as_rows(X, learning=True)
        batch, learner = self._take(X, sample_weight, labels, reset=first)
        _refuse_batch(learner)
        self._note_columns(X, reset=first)
        scores = self._advance(batch, learner, scored)
        self._note_new_columns(X)
        return scores

    def _advance(self, batch: Batch, learner: Learner, scored: bool) -> Array:
        if self._races and not (self._has_state() and self._runtime.race is not None and self._runtime.race.over):
            self._runtime, scores = race_stream.learned(self, batch, learner, scored)
        else:
            scores = np.full(len(batch) if scored else 0, np.nan)
            self._runtime = self._runtime_for(learner).advance(batch, scores, self.__dict__.get("_scores_start", True))
        for name in FIT_RESULTS:
            self.__dict__.pop(name, None)
        return scores

    @learns_at_once
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
        X = self._as_rows(X, learning=True, anew=True)
        batch, learner = self._take(X, sample_weight, labels, reset=True, going_on=False)
        if len(batch) < self._n_labels:
            raise ValueError(f"the sample must have at least {self._n_labels} rows, one for each component, got {len(batch)}")
        _refuse_batch(learner)
        key = self._new_key()
        race, learner = self._chosen(batch, learner, key, going_on=False) if self._races else (None, learner)
        runtime = Runtime.start_on(learner, key, batch, float(weight), self._parameter_values())
        self._note_columns(X, reset=True)
        self._runtime = with_choice(runtime, race)
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
        check_is_fitted(self)
        branched = copy(self)
        branched._branch()
        return branched

    # One row

    @learns
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
        return self._learn_one(x)

    def _learn_one(self, x: Any) -> Self:
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

    @reads
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

    def _rows(self, X: Any) -> Batch:
        check_is_fitted(self)
        X = self._as_rows(X, learning=False)
        rows = self._checked(X)
        self._note_columns(X, reset=False)  # names say more than a width does
        return Batch(self._aligned(rows))

    # The machinery

    def _taken(
        self, reset: bool, X: Any, y: Any = None, sample_weight: Any = None, labels: Any = None
    ) -> tuple[Batch, Learner]:
        """Return the rows of a chunk as `fit` would learn them, and the learner; `reset`, of a model that knows no columns."""
        return self._take(self._chunk(X, y), sample_weight, labels, reset=reset)

    def _take(
        self, X: Any, sample_weight: Any, labels: Any, reset: bool, going_on: bool | None = None
    ) -> tuple[Batch, Learner]:
        refuse_lost(X)
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

    def _watch(self) -> Watch | None:
        return Watch(int(self.verbose), int(self.verbose_interval)) if self.verbose else None


class Watch:
    """What `verbose` prints of a fit: where each start begins, the passes at intervals and the last one, and how it ended.

    Of 2 and more it prints what each pass gained, too, and the seconds.
    """

    def __init__(self, verbose: int, interval: int) -> None:
        self._more, self._interval = verbose > 1, interval
        self._starts, self._last, self._line = 0, -np.inf, ""
        self._began = time.perf_counter()

    def __call__(self, number: int, value: float) -> None:
        """Take note of a pass."""
        if number == 1:
            self._rest()
            print(f"Initialization {self._starts}")
            self._starts, self._last = self._starts + 1, -np.inf
        gain = f"\t gain {value - self._last:.5f}" if self._more and np.isfinite(self._last) else ""
        self._line, self._last = f"  pass {number}\t objective {value:.5f}{gain}", value
        if number % self._interval == 0:
            self._rest()

    def end(self, end: Climb) -> None:
        """Say how it ended; of a stream that was learned in one pass, what it scored."""
        if not self._starts and end.trace:
            self(1, end.trace[-1])
        self._rest()
        seconds = f"\t time {time.perf_counter() - self._began:.2f} s" if self._more else ""
        number = f"{len(end.trace)} pass{'es' * (len(end.trace) != 1)}"
        print(f"Initialization {'converged' if end.converged else 'did not converge'} after {number}.{seconds}")

    def _rest(self) -> None:
        """Print the last pass, if it was not."""
        if self._line:
            print(self._line)
        self._line = ""


def _outside() -> int:
    """The level of the stack, as warnings count it for who asks, on which this package was called."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("headwater."):
        level, frame = level + 1, frame.f_back
    return level


def _refuse_batch(learner: Learner) -> None:
    if not learner.algorithm.online:
        raise ValueError(
            f"algorithm {learner.algorithm.word!r} needs all rows at once: call fit, or stream with its online twin "
            f"{learner.algorithm.twin!r}"
        )
