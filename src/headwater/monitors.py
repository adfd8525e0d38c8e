"""Monitor: learns a stream and records its history: held-out scores and weights."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import Batch
from headwater.core.chunk import COMPANIONS, Chunk, Chunks
from headwater.core.statistics import Array
from headwater.core.values import Rows
from headwater.diagnostics.component_description import scores_per_size
from headwater.diagnostics.history import History
from headwater.diagnostics.progress_bar import ProgressBar
from headwater.estimators.calls import lock_of
from headwater.estimators.measured_rows import with_noise
from headwater.estimators.stream_input import refuse_beside

if TYPE_CHECKING:
    from headwater.estimators.base import StreamingEstimator

NO_SCORES: Array = np.empty(0)
THRESHOLD_SCORES = 512  # scores, of which five lie below a threshold at a rate of one in a hundred
EARLY_SHARE = 1.0 / 8.0  # of the rows that are scored until there are that many scores


class Monitor:
    """Learns a stream as `partial_fit` does, bit for bit, and records scores and weights.

    Rows are scored before they are learned (prequential scores). Where the E-step computes the score anyway (mixtures), every
    row is scored; otherwise a small share of the rows, so that the monitor costs little. Rows of the warm-up are not scored.
    Weights are those at the ends of chunks. The history has bounded size, is stored in `model.history_`, and continues the
    history that the model has.

    Parameters
    ----------
    model : estimator
        The model that learns.
    history : History, optional
        The history so far. Default: that of the model, if it has one.
    progress : bool, default=False
        Whether to show a progress bar while a stream is learned, in notebooks and on terminals.
    timed : bool, default=True
        Whether the history notes the seconds that were spent. Without them it is a function of the rows alone.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rng = np.random.default_rng(0)
    >>> monitor = hw.Monitor(hw.GaussianMixture(2, random_state=0))
    >>> for _ in range(10):
    ...     model = monitor.learn(rng.normal(size=(500, 2)))
    >>> history = monitor.history
    >>> len(history.points), history.weights.shape[1]
    (78, 2)
    >>> bool(-3.0 < history.last_score < -2.0)
    True
    >>> bool(history.threshold(0.01) < history.threshold(0.1))
    True
    """

    def __init__(
        self, model: StreamingEstimator, history: History | None = None, *, progress: bool = False, timed: bool = True
    ) -> None:
        if not hasattr(type(model), "_describer"):
            raise TypeError(f"model must be a headwater model, got {type(model).__name__}")
        if history is not None and not isinstance(history, History):
            raise TypeError(f"history must be a History, got {type(history).__name__}")
        self.model, self.progress, self.timed = model, bool(progress), bool(timed)
        found = getattr(model, "history_", None) if history is None else history
        self.history: History = History() if found is None else found

    def __repr__(self) -> str:
        return f"Monitor({type(self.model).__name__}, {self.history!r})"

    def _repr_html_(self) -> str:
        return f"<p>{escape(type(self.model).__name__)}, watched</p>{self.history._repr_html_()}"

    def learn(self, X: Rows, **companions: object) -> object:
        """Learn a chunk. If it is refused, model and history stay as they were.

        Parameters
        ----------
        X : Chunk, stream, or what `partial_fit` takes
            The rows.
        **companions
            Companions of the rows, by the names of `partial_fit`: `y`, `sample_weight`, `labels`, `lengths`, `key`. A
            `Chunk` has its own.

        Returns
        -------
        model : estimator
            The model.
        """
        with lock_of(self.model):  # another thread that learns waits
            return self._learn_stream(X, companions) if isinstance(X, Chunks) else self._learn(X, companions)

    def _learn(self, X: Rows, companions: dict[str, object]) -> object:
        began, model, history = time.perf_counter(), self.model, self.history
        given = _arguments_for(model, X, companions)
        before = model._runtime.rows if model._has_state() else 0
        scores = _learn_and_score(model, given, history)
        sizes = model._describer.row_sizes(given["X"], given.get("lengths")) if len(scores) else None
        ranked = scores_per_size(scores, sizes) if len(scores) else scores
        history = history.after(scores, before, model._runtime.rows, ranked, sizes)
        spent = history.seconds + (time.perf_counter() - began if self.timed else 0.0)
        if history.points and history.points[-1].rows > before:
            shares, effective = model._describer.shares_now(), model._runtime.n_eff
            history = history.with_weights(shares, effective, spent if self.timed else math.nan)
        self.history = model.history_ = replace(history, seconds=spent)
        return model

    def _learn_stream(self, X: Chunks, companions: dict[str, object]) -> object:
        refuse_beside(self.model, "partial_fit", companions)
        before, history = self.model.__dict__.copy(), self.history
        start = self.model._runtime.rows if self.model._has_state() else 0
        try:
            with ProgressBar(type(self.model).__name__) if self.progress else nullcontext() as bar:
                for chunk in X.whole_sequences() if self.model._traits.takes_sequences else X:
                    self.learn(chunk, **companions)
                    if bar is not None:
                        self._show(bar, X, self.model._runtime.rows - start)
        except BaseException:
            self.model.__dict__ = before
            self.history = history
            raise
        return self.model

    def _show(self, bar: ProgressBar, X: Chunks, rows: int) -> None:
        total, size = getattr(X, "total_rows", None), getattr(X, "total_bytes", None)
        share = rows / total if total else getattr(X, "bytes_read", 0) / size if size else None
        score = self.history.last_score
        bar.update(rows, share, score if np.isfinite(score) else None)


def _arguments_for(model: StreamingEstimator, X: Rows, companions: dict[str, object]) -> dict[str, object]:
    """Return the arguments for `partial_fit`: a target only if the model learns one."""
    unknown = [name for name in companions if name not in COMPANIONS]
    if unknown:
        raise TypeError(f"learn takes {', '.join(COMPANIONS)} beside the rows, got {unknown[0]!r}")
    given = {**X} if isinstance(X, Chunk) else {"X": list(X) if isinstance(X, Iterator) else X}
    given["X"] = model._as_rows(given["X"], learning=True)
    given.update((name, value) for name, value in companions.items() if value is not None)
    if not model._traits.target_columns:
        given.pop("y", None)
    return given


def _learn_and_score(model: StreamingEstimator, given: dict[str, object], history: History) -> Array:
    """Learn a chunk and return the scores of its rows; NaN for rows that were not scored."""
    if model._traits.scores_by_learning and history.all_scored <= model._traits.scored_share * history.seen:
        return np.asarray(model._update_after_start(**given))
    if model._traits.scores_by_learning or not model._has_state() or model._runtime.warming_up:
        model.partial_fit(**given)
        return NO_SCORES
    rows = model._aligned(model._checked(with_noise(given["X"], given.get("noise"))))
    some = rows[chosen := _rows_to_score(len(rows), model, history)]
    # Scored by the parameters of the last refresh, so that reading finalizes nothing.
    found = model._learner.model.log_likelihood(model._quick_parameters(some.shape[1]), Batch(some), model._threads)
    model.partial_fit(**given)
    scores = np.full(len(rows), np.nan)
    scores[chosen] = found
    return scores


def _rows_to_score(rows: int, model: StreamingEstimator, history: History) -> NDArray[np.int64]:
    """Return the places of rows to score: a small share, or more while there are too few scores for thresholds."""
    number = rows * model._traits.scored_share
    if history.seen == model._runtime.rows:  # the monitor has seen the whole stream
        number = max(number, min(THRESHOLD_SCORES, EARLY_SHARE * (history.seen + rows)) - history.all_scored)
    return np.unique(np.linspace(0, rows, min(rows, max(1, round(number))), endpoint=False).astype(np.int64))
