"""What a chain over inputs and a target answers: as every chain, with the target beside the rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import Batch
from headwater.core.statistics import Array
from headwater.core.values import Key, Row, Rows, Values
from headwater.estimators.chains import one_of
from headwater.estimators.linear_hmm import LinearHMM
from headwater.estimators.target_rows import Pair
from headwater.policies.typicality import EXPECTED_RATE


class TargetChainAnswers(LinearHMM):
    """Scores, states and criteria of rows with a target. Abstract."""

    def score(self, X: Rows, y: Values, lengths: Values = None) -> float:  # type: ignore[override]
        """Return the log-likelihood of all targets together.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The inputs.
        y : array-like of shape (n_samples,)
            The target.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence; by default all rows are one.

        Returns
        -------
        log_prob : float
            Log-likelihood of the targets given the inputs, the sum over the sequences.
        """
        return super().score(*beside(X, y, lengths))

    def score_steps(self, X: Rows, y: Values, lengths: Values = None) -> Array:  # type: ignore[override]
        """Return the log-density of each target given its inputs and the rows before it in its sequence.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The inputs.
        y : array-like of shape (n_samples,)
            The target.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence; by default all rows are one.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Log-densities, whose sum is `score`. Rows that are missing score 0.
        """
        pair, _, lengths = beside(X, y, lengths)
        return super().score_steps(pair, lengths)

    def anomaly_score(self, X: Rows, y: Values, lengths: Values = None, *, rate: float = EXPECTED_RATE) -> Array:  # type: ignore[override]
        """Return how odd each target is, given its inputs and the rows before it (see `GaussianHMM.anomaly_score`).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The inputs.
        y : array-like of shape (n_samples,)
            The target.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence; by default all rows are one.
        rate : float, default=0.05
            Expected share of anomalies among the rows that were learned. With 0 no state is left out.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Scores in nats; NaN for rows that say nothing, such as rows without a value.
        """
        pair, _, lengths = beside(X, y, lengths)
        return super().anomaly_score(pair, lengths, rate=rate)

    def _batch_of(self, X: Rows, y: Values = None, lengths: Values = None) -> Batch:
        pair, _, lengths = beside(X, y, lengths)
        return self._sequences_of(pair, lengths)

    def score_samples(self, X: Rows, y: Values, lengths: Values = None) -> tuple[float, Array]:  # type: ignore[override]
        """Return the log-likelihood of all targets together, and the probability of each state at each of them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The inputs.
        y : array-like of shape (n_samples,)
            The target.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence; by default all rows are one.

        Returns
        -------
        log_prob : float
            Log-likelihood.
        posteriors : ndarray of shape (n_samples, n_components)
            Probability of each state given all rows of the sequence.
        """
        pair, _, lengths = beside(X, y, lengths)
        return super().score_samples(pair, lengths)

    def predict_proba(self, X: Rows, y: Values, lengths: Values = None) -> Array:  # type: ignore[override]
        """Return the probability of each state at each row, given all rows of its sequence.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The inputs.
        y : array-like of shape (n_samples,)
            The target.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence; by default all rows are one.

        Returns
        -------
        posteriors : ndarray of shape (n_samples, n_components)
            Probabilities, which sum to one in each row.
        """
        pair, _, lengths = beside(X, y, lengths)
        return super().predict_proba(pair, lengths)

    def decode(  # type: ignore[override]
        self, X: Rows, y: Values, lengths: Values = None, algorithm: str | None = None
    ) -> tuple[float, NDArray[np.int64]]:
        """Return the most probable states.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The inputs.
        y : array-like of shape (n_samples,)
            The target.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence; by default all rows are one.
        algorithm : {'viterbi', 'map'}, optional
            The most probable path, or the most probable state of each row; by default `decoder`.

        Returns
        -------
        log_prob : float
            Log-probability of path and rows ('viterbi'), or the sum of the states' probabilities ('map').
        states : ndarray of shape (n_samples,)
            The states.
        """
        pair, _, lengths = beside(X, y, lengths)
        return super().decode(pair, lengths, algorithm)

    def predict(self, X: Rows, y: Values, lengths: Values = None) -> NDArray[np.int64]:  # type: ignore[override]
        """Return the most probable states (see `decode`); for targets see `forecast`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The inputs.
        y : array-like of shape (n_samples,)
            The target.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence; by default all rows are one.

        Returns
        -------
        states : ndarray of shape (n_samples,)
            The states.
        """
        pair, _, lengths = beside(X, y, lengths)
        return super().predict(pair, lengths)

    def aic(self, X: Rows, y: Values, lengths: Values = None) -> float:  # type: ignore[override]
        """Return Akaike's information criterion on the rows; lower is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The inputs.
        y : array-like of shape (n_samples,)
            The target.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence; by default all rows are one.

        Returns
        -------
        aic : float
            The criterion.
        """
        pair, _, lengths = beside(X, y, lengths)
        return super().aic(pair, lengths)

    def bic(self, X: Rows, y: Values, lengths: Values = None) -> float:  # type: ignore[override]
        """Return the Bayesian information criterion on the rows; lower is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The inputs.
        y : array-like of shape (n_samples,)
            The target.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence; by default all rows are one.

        Returns
        -------
        bic : float
            The criterion.
        """
        pair, _, lengths = beside(X, y, lengths)
        return super().bic(pair, lengths)

    def filter(self, X: Rows, y: Values, *, key: Key = None) -> Array:  # type: ignore[override]
        """Return the probability of each state at each row, given the rows up to it, if they came next.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The inputs.
        y : array-like of shape (n_samples,)
            The target.
        key : str or int, optional
            The open sequence that they follow; if there is none, they begin one.

        Returns
        -------
        states : ndarray of shape (n_samples, n_components)
            Probabilities, which sum to one in each row.
        """
        return super().filter(Pair(X, y), key=key)

    def score_one(self, x: Row, y: Values, key: Key = None) -> float:  # type: ignore[override]
        """Return the log-density of one target if it came next, under the parameters of the last refresh.

        Parameters
        ----------
        x : array-like of shape (n_features,) or mapping
            The inputs.
        y : float
            The target.
        key : str or int, optional
            The sequence it would belong to.

        Returns
        -------
        score : float
            Its log-density given its inputs and the rows so far.
        """
        return super().score_one(Pair(x, y), key)


def beside(X: Rows, y: Values, lengths: Values) -> tuple[Pair, None, object]:
    """Return inputs and targets as a pair, None, and the lengths: also if the call came from a method that has paired them."""
    if isinstance(X, Pair):  # whose lengths come in the second place
        return X, None, one_of(y, lengths)
    return Pair(X, y), None, lengths
