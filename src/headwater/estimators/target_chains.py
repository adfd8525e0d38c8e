"""TargetChain: chains that learn a target from inputs, where every method takes both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Self, cast

import numpy as np

from headwater.core.batch import Batch
from headwater.core.chunk import values_of
from headwater.core.gapped_rows import GappedRows
from headwater.core.learner import Learner
from headwater.core.statistics import Array
from headwater.core.validation import check_row, check_target, check_width, n_dimensions
from headwater.core.values import Key, Matrix, Row, Rows, Values
from headwater.estimators.chains import Chunk, check_chain_rows, refuse_part_rows
from headwater.estimators.target_chain_answers import TargetChainAnswers, beside
from headwater.estimators.target_rows import Pair
from headwater.estimators.traits import Taken


class TargetChain(TargetChainAnswers):
    """Base of chains whose rows are inputs and a target. Abstract."""

    _traits = replace(TargetChainAnswers._traits, target_columns=1)

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


def _without_part_rows(rows: Array) -> Array:
    """Return rows; those of which something is missing are missing as a whole."""
    rows[np.isnan(rows).any(axis=1)] = np.nan
    return rows
