"""What a mixture over inputs and a target answers: the methods of every mixture, each with `y`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d

from headwater.core.batch import Batch
from headwater.core.chunk import refuse_lost
from headwater.core.gapped_rows import GappedRows
from headwater.core.learner import Learner
from headwater.core.statistics import LARGEST, Array
from headwater.core.validation import check_row, check_rows, check_target, check_width, n_dimensions
from headwater.core.values import Matrix, Row, Rows, Values
from headwater.estimators.calls import (
    answers_at_once,
    answers_by_chunk,
    answers_by_score,
    learns,
    learns_at_once,
    learns_by_chunk,
    reads,
)
from headwater.estimators.describers.mixture import TargetDescriber
from headwater.estimators.mixture import MixtureEstimator
from headwater.estimators.traits import Taken
from headwater.families.regression_gaps import NO_GATE


@dataclass(frozen=True)
class Pair:
    """Inputs and their target, not looked at yet."""

    X: Rows
    y: Values


class TargetMixture(RegressorMixin, MixtureEstimator):
    """Base of the mixtures that predict a target. A row is the inputs, with the target as the last column."""

    _traits = replace(
        MixtureEstimator._traits,
        target_columns=1,
    )

    @answers_at_once
    def score(self, X: object, y: object, sample_weight: object = None) -> float:  # type: ignore[override]
        """Return the coefficient of determination R^2 of `predict(X)`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The inputs.
        y : array-like of shape (n_samples,)
            The target.
        sample_weight : array-like of shape (n_samples,), optional
            The weight of each row.

        Returns
        -------
        r2 : float
            1 at best, 0 for a model that always answers with the mean of the target.
        """
        return RegressorMixin.score(self, X, y, sample_weight)

    @property
    @abstractmethod
    def _describer(self) -> TargetDescriber:
        """What says what was learned."""

    def _chunk(self, X: Rows, y: Values = None) -> Pair:
        return Pair(X, y)

    def _take(self, X: Taken, *arguments: Any, **options: Any) -> tuple[Batch, Learner]:
        refuse_lost(X.X)
        return super()._take(X, *arguments, **options)

    def _checked(self, chunk: Taken) -> Array | GappedRows:
        owner = type(self).__name__
        inputs = self._checked_inputs(chunk.X)
        y: Matrix = chunk.y
        if getattr(y, "ndim", 1) == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        target = check_target(y, len(inputs), owner, gaps=self._takes_gaps)
        if isinstance(inputs, GappedRows):
            return GappedRows.of(np.column_stack([inputs.values, target]))
        rows = np.column_stack([inputs, target])
        return GappedRows.of(rows) if self._takes_gaps and np.isnan(target).any() else rows

    def _checked_inputs(self, X: Rows) -> Array | GappedRows:
        """Return rows of inputs, or refuse them; some may be missing where the model knows how inputs are spread."""
        inputs = check_rows(X, owner=type(self).__name__, gaps=self._traits.takes_gaps)
        if isinstance(inputs, GappedRows) and not self._takes_gaps:
            row = int(np.argmax(inputs.missing.any(axis=1)))
            raise ValueError(f"X contains NaN (first in row {row}): {NO_GATE}")
        return inputs

    def _checked_one(self, x: Row, names: Sequence[str] | None, width: int | None) -> Array:
        if not isinstance(x, Pair):
            return check_row(x, names, width)
        if self._takes_gaps:
            return self._checked_gapped_one(x, names, width)
        inputs, y = check_row(x.X, names, width), x.y
        row = np.empty((1, inputs.shape[1] + 1))
        row[:, :-1] = inputs
        if not isinstance(y, float) or not -LARGEST <= y <= LARGEST:
            y = check_target(y if y is None or n_dimensions(y) else [y], 1, type(self).__name__)[0]
        row[0, -1] = y
        return row

    def _checked_gapped_one(self, x: Pair, names: Sequence[str] | None, width: int | None) -> Any:
        inputs = check_row(x.X, names, width, gaps=True)
        values, y = inputs.values if isinstance(inputs, GappedRows) else inputs, x.y
        target = check_target([np.nan if y is None else y], 1, type(self).__name__, gaps=True)
        rows = np.column_stack([values, target])
        return GappedRows.of(rows) if np.isnan(rows).any() else rows

    def _aligned(self, rows: Any) -> Any:
        if rows.shape[1] - 1 != self.n_features_in_:
            check_width(np.empty((0, rows.shape[1] - 1)), self.n_features_in_, type(self).__name__)
        return rows

    def _check_stored(self, X: Matrix, width: int) -> None:
        values = X.values if isinstance(X, GappedRows) else X
        self._checked(Pair(values[:, :-1], values[:, -1]))

    def _note_columns(self, chunk: Taken, reset: bool) -> None:
        super()._note_columns(chunk.X if isinstance(chunk, Pair) else chunk, reset)

    def _inputs(self, X: Rows) -> Array | GappedRows:
        """Return rows of inputs alone."""
        check_is_fitted(self)
        inputs = self._checked_inputs(X)
        check_width(inputs, self.n_features_in_, type(self).__name__)
        self._note_columns(X, reset=False)
        return inputs

    # Learning

    @learns_at_once
    def fit(self, X: Rows, y: Values = None, sample_weight: Values = None, *, labels: Values = None) -> Self:
        """Learn from all rows at once; what was learned before is dropped, unless `warm_start`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The inputs: an array, or a pandas or polars frame of numbers.
        y : array-like of shape (n_samples,)
            The target.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row; a row of weight 0 is ignored.
        labels : array-like of shape (n_samples,), optional
            The component of each row where it is known, -1 where not.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit(Pair(X, y), sample_weight, labels)

    @learns_by_chunk
    def partial_fit(self, X: Rows, y: Values = None, sample_weight: Values = None, *, labels: Values = None) -> Self:
        """Learn a chunk of a stream, of any size; the result does not depend on how the stream was cut.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The inputs.
        y : array-like of shape (n_samples,)
            The target.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row; a row of weight 0 is ignored.
        labels : array-like of shape (n_samples,), optional
            The component of each row where it is known, -1 where not.

        Returns
        -------
        self : object
            The estimator.
        """
        self._learn_chunk(Pair(X, y), sample_weight, labels)
        return self

    @learns_by_chunk
    def update(  # type: ignore[override]
        self, X: Rows, y: Values = None, sample_weight: Values = None, *, labels: Values = None
    ) -> Array:
        """Score the target of each row as the model was before learning it, and learn it, in one E-step.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The inputs.
        y : array-like of shape (n_samples,)
            The target.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row; a row of weight 0 is scored, but not learned.
        labels : array-like of shape (n_samples,), optional
            The component of each row where it is known, -1 where not.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Log-density of each target, given its inputs, before it was learned; NaN for the first eight rows.
        """
        return self._update(Pair(X, y), sample_weight, labels)

    @learns_at_once
    def warm_start_from(  # type: ignore[override]
        self, X: Rows, y: Values = None, sample_weight: Values = None, *, labels: Values = None, weight: float = 1.0
    ) -> Self:
        """Find a start on a sample, whatever its size, and forget what was learned before; the warm-up is over then.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The inputs of the sample.
        y : array-like of shape (n_samples,)
            Their target.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row; a row of weight 0 is ignored.
        labels : array-like of shape (n_samples,), optional
            The component of each row where it is known, -1 where not.
        weight : float, default=1.0
            How much of the sample counts as learned; less than 1 if its rows will come again in the stream.

        Returns
        -------
        self : object
            The estimator, at the beginning of a stream.
        """
        return self._plant(Pair(X, y), sample_weight, weight, labels)

    @learns
    def learn_one(self, x: Row, y: Values = None) -> Self:
        """Learn one row.

        Parameters
        ----------
        x : array-like of shape (n_features,) or mapping
            The inputs.
        y : float
            The target.

        Returns
        -------
        self : object
            The estimator.
        """
        return self._learn_row(self._one(Pair(x, y), learning=True), x)

    # Answers

    @answers_by_chunk
    def score_samples(self, X: Rows, y: Values = None) -> Array:
        """Return the log-density of each target, given its inputs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The inputs.
        y : array-like of shape (n_samples,)
            The target.

        Returns
        -------
        log_prob : ndarray of shape (n_samples,)
            Log-density of each target under the current parameters.
        """
        return super().score_samples(Pair(X, y))

    @answers_by_chunk
    def predictive_score_samples(self, X: Rows, y: Values = None) -> Array:
        """Return the log-density of each target with the uncertainty of the parameters integrated out.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The inputs.
        y : array-like of shape (n_samples,)
            The target.

        Returns
        -------
        log_prob : ndarray of shape (n_samples,)
            Log posterior predictive density of each target.
        """
        return super().predictive_score_samples(Pair(X, y))

    @reads
    def score_one(self, x: Row, y: Values = None) -> float:
        """Return the log-density of one target, given its inputs, under the parameters of the last refresh.

        Parameters
        ----------
        x : array-like of shape (n_features,) or mapping
            The inputs.
        y : float
            The target.

        Returns
        -------
        score : float
            Its log-density.
        """
        return super().score_one(Pair(x, y))

    @answers_by_chunk
    def predict_components(self, X: Rows, y: Values = None) -> NDArray[np.int64]:
        """Return the most probable component of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The inputs.
        y : array-like of shape (n_samples,), optional
            The target; without it only the inputs decide.

        Returns
        -------
        components : ndarray of shape (n_samples,)
            Indices of components.
        """
        return self.predict_proba(X, y).argmax(axis=1)

    @answers_by_chunk
    def predict_proba(self, X: Rows, y: Values = None) -> Array:
        """Return the probability of each component for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The inputs.
        y : array-like of shape (n_samples,), optional
            The target; without it the probabilities are those given the inputs alone.

        Returns
        -------
        responsibilities : ndarray of shape (n_samples, n_components)
            Probabilities, which sum to one in each row.
        """
        if y is not None:
            return super().predict_proba(Pair(X, y))
        parameters = self._read().parameters
        family: Any = self._model.family
        return family.shares(parameters.components, parameters.log_weights, self._inputs(X), self._threads)

    @learns_at_once
    def fit_predict(
        self, X: Rows, y: Values = None, sample_weight: Values = None, *, labels: Values = None
    ) -> NDArray[np.int64]:
        """Learn from the rows and return the most probable component of each.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The inputs.
        y : array-like of shape (n_samples,)
            The target.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row.
        labels : array-like of shape (n_samples,), optional
            The component of each row where it is known, -1 where not.

        Returns
        -------
        components : ndarray of shape (n_samples,)
            Indices of components.
        """
        return self.fit(X, y, sample_weight, labels=labels).predict_components(X, y)

    @answers_by_score
    def bic(self, X: Rows, y: Values = None) -> float:
        """Return the Bayesian information criterion on the rows; lower is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The inputs.
        y : array-like of shape (n_samples,)
            The target.

        Returns
        -------
        bic : float
            The criterion.
        """
        scores = self.score_samples(X, y)
        return float(-2.0 * scores.sum() + self._n_parameters() * np.log(len(scores)))

    @answers_by_score
    def aic(self, X: Rows, y: Values = None) -> float:
        """Return Akaike's information criterion on the rows; lower is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The inputs.
        y : array-like of shape (n_samples,)
            The target.

        Returns
        -------
        aic : float
            The criterion.
        """
        return float(-2.0 * self.score_samples(X, y).sum() + 2.0 * self._n_parameters())
