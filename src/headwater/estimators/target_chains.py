"""TargetChain: chains that learn a target from inputs, where every method takes both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Self, cast

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import Batch
from headwater.core.chunk import values_of
from headwater.core.gapped_rows import GappedRows
from headwater.core.learner import Learner
from headwater.core.statistics import Array
from headwater.core.validation import check_row, check_target, check_width, n_dimensions
from headwater.core.values import Key, Matrix, Row, Rows, Values
from headwater.estimators.chains import Chunk, check_chain_rows, one_of, refuse_part_rows
from headwater.estimators.linear_hmm import LinearHMM
from headwater.estimators.target_rows import Pair
from headwater.estimators.traits import Taken
from headwater.models.typicality import EXPECTED_RATE


class TargetChain(LinearHMM):
    """Base of chains whose rows are inputs and a target. Abstract."""

    _traits = replace(LinearHMM._traits, target_columns=1)

    # Inputs and targets

    def _checked(self, X: Taken, anew: bool = False) -> Array:
        owner = type(self).__name__
        inputs = check_chain_rows(X.X, owner)
        y: Matrix = values_of(X.y)
        if getattr(y, "ndim", 1) == 2 and y.shape[1] == 1:
            y = np.asarray(y)[:, 0]
        target = check_target(y, len(inputs), owner, gaps=True)
        return _without_part_rows(np.column_stack([inputs, target]))

    def _checked_one(self, x: Row, names: Sequence[str] | None, width: int | None) -> Array:
        assert isinstance(x, Pair)
        row = check_row(x.X, names, width, gaps=True)
        given = np.nan if x.y is None else x.y
        y = given if n_dimensions(given) else cast(Matrix, [given])
        target = check_target(y, 1, type(self).__name__, gaps=True)
        inputs = row.values if isinstance(row, GappedRows) else np.asarray(row)
        return _without_part_rows(np.column_stack([inputs, target]))

    def _aligned(self, rows: Matrix) -> Matrix:
        features = self.n_features_in_ if self._has_state() else self._given_width()
        check_width(rows[:, :-1], features, type(self).__name__)
        return rows

    def _beside(self, X: Rows, y: Values) -> Rows:
        return Pair(X, y)

    def _taken(  # type: ignore[override]
        self, reset: bool, X: Rows, y: Values, lengths: Values = None
    ) -> tuple[Batch, Learner]:
        return super()._taken(reset, Pair(X, y), lengths)

    def _is_row(self, X: Rows) -> bool:
        return False

    def _numbered(self, X: Rows, lengths: Values, reset: bool, key: Key = None, streaming: bool = False) -> Chunk:
        if not isinstance(X, Pair):  # a row that was checked
            rows = np.asarray(X)
            X = Pair(rows[:, :-1], rows[:, -1])
        return replace(super()._numbered(X, lengths, reset, key, streaming), given=X.X)

    def _note_columns(self, X: Taken, reset: bool) -> None:
        given = X.given if isinstance(X, Chunk) else X
        if isinstance(given, Pair):
            X = replace(X, given=given.X) if isinstance(X, Chunk) else given.X
        super()._note_columns(X, reset)

    def _check_stored(self, X: Matrix, width: int) -> None:
        rows = np.asarray(X)
        self._checked(Pair(rows[:, :-1], rows[:, -1]))
        refuse_part_rows(rows, type(self).__name__)

    def fit(self, X: Rows, y: Values, lengths: Values = None) -> Self:  # type: ignore[override]
        """Learn from all sequences at once; what was learned before is dropped, except for what `init_params` leaves out.

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
        self : object
            The fitted estimator.
        """
        return super().fit(*beside(X, y, lengths))

    def partial_fit(self, X: Rows, y: Values, lengths: Values = None, *, key: Key = None) -> Self:  # type: ignore[override]
        """Learn a chunk of a stream, of any size; without `lengths` the rows continue the sequence of the last call.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The inputs.
        y : array-like of shape (n_samples,)
            The target.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence; by default all rows are one.
        key : str or int, or array-like of shape (n_samples,), optional
            The sequence that the rows belong to, if there are several at a time; or that of each row.

        Returns
        -------
        self : object
            The estimator.
        """
        pair, _, lengths = beside(X, y, lengths)
        return super().partial_fit(pair, lengths, key=key)

    def update(self, X: Rows, y: Values, lengths: Values = None, *, key: Key = None) -> Array:  # type: ignore[override]
        """Score each row given those before it, as the model was before learning it, and learn it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The inputs.
        y : array-like of shape (n_samples,)
            The target.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence; by default all rows are one.
        key : str or int, or array-like of shape (n_samples,), optional
            The sequence that the rows belong to, if there are several at a time; or that of each row.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Log-density of each target given its inputs and the rows before it in its sequence.
        """
        pair, _, lengths = beside(X, y, lengths)
        return super().update(pair, lengths, key=key)

    def warm_start_from(self, X: Rows, y: Values, lengths: Values = None, *, weight: float = 1.0) -> Self:  # type: ignore[override]
        """Find a start on a sample of sequences, and forget what was learned before; the warm-up is over then.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The inputs.
        y : array-like of shape (n_samples,)
            The target.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence; by default all rows are one.
        weight : float, default=1.0
            How much of the sample counts as learned; less than 1 if its rows will come again in the stream.

        Returns
        -------
        self : object
            The estimator, at the beginning of a stream.
        """
        pair, _, lengths = beside(X, y, lengths)
        return super().warm_start_from(pair, lengths, weight=weight)

    def learn_one(self, x: Row, y: Values, key: Key = None) -> Self:  # type: ignore[override]
        """Learn one row, which follows those before it.

        Parameters
        ----------
        x : array-like of shape (n_features,) or mapping
            The inputs.
        y : float
            The target.
        key : str or int, optional
            The sequence it belongs to.

        Returns
        -------
        self : object
            The estimator.
        """
        return super().learn_one(Pair(x, y), key)

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
            Scores in nats. Rows that are missing score 0.
        """
        pair, _, lengths = beside(X, y, lengths)
        return super().anomaly_score(pair, lengths, rate=rate)

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


def _without_part_rows(rows: Array) -> Array:
    """Return rows; those of which something is missing are missing as a whole."""
    rows[np.isnan(rows).any(axis=1)] = np.nan
    return rows


def beside(X: Rows, y: Values, lengths: Values) -> tuple[Pair, None, object]:
    """Return inputs and targets as a pair, None, and the lengths: also if the call came from a method that has paired them."""
    if isinstance(X, Pair):  # whose lengths come in the second place
        return X, None, one_of(y, lengths)
    return Pair(X, y), None, lengths
