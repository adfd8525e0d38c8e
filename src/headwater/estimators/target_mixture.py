"""What a mixture over inputs and a target answers: the methods of every mixture, each with `y`."""

from __future__ import annotations

from abc import abstractmethod
from typing import Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from headwater.core.batch import Batch
from headwater.core.statistics import Array
from headwater.core.values import Row, Rows, Values
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
from headwater.estimators.target_rows import Pair, TargetRows
from headwater.families.regression import Regression
from headwater.policies.typicality import EXPECTED_RATE


class TargetMixture(RegressorMixin, TargetRows):
    """Base of the mixtures that predict a target. A row is the inputs, with the target as the last column."""

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
    def anomaly_score(self, X: Rows, y: Values = None, *, rate: float = EXPECTED_RATE) -> Array:
        """Return how odd each target is, given its inputs: the higher, the odder.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The inputs.
        y : array-like of shape (n_samples,)
            The target.
        rate : float, default=0.05
            Expected share of anomalies among the rows that were learned: lighter components are left out.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Scores in nats.
        """
        return super().anomaly_score(Pair(X, y), rate=rate)

    def _batch_of(self, X: Rows, y: Values = None, lengths: Values = None) -> Batch:
        return self._rows(Pair(X, y))

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
        family = cast(Regression, self._model.family)
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
