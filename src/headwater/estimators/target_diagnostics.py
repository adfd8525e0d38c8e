"""How well a chain of regressions fits its targets: residuals, and states with a short look ahead."""

from __future__ import annotations

from headwater.core.statistics import Array
from headwater.core.values import RandomState, Rows, Values
from headwater.estimators.target_chain_answers import beside
from headwater.estimators.target_chains import TargetChain


class TargetDiagnostics(TargetChain):
    """Methods that only read. Abstract."""

    def smooth(self, X: Rows, y: Values, lengths: Values = None, *, lag: int | None = None) -> Array:  # type: ignore[override]
        """Return the probability of each state at each row, given the rows up to `lag` rows later.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The inputs.
        y : array-like of shape (n_samples,)
            The target.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence; by default all rows are one.
        lag : int, optional
            How many rows to look ahead; by default to the end of the sequence.

        Returns
        -------
        states : ndarray of shape (n_samples, n_components)
            Probabilities, which sum to one in each row.
        """
        pair, _, lengths = beside(X, y, lengths)
        return super().smooth(pair, lengths, lag=lag)

    def residuals(  # type: ignore[override]
        self, X: Rows, y: Values, lengths: Values = None, *, kind: str = "normal", random_state: RandomState = None
    ) -> Array:
        """Return how far each target is from what was expected of it, given its inputs and the rows before.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The inputs.
        y : array-like of shape (n_samples,)
            The target.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence; by default all rows are one.
        kind : {'normal', 'uniform'}, default='normal'
            Quantiles of the standard normal law at these probabilities, or the probabilities.
        random_state : int, RandomState instance or None, optional
            Not used: targets are continuous.

        Returns
        -------
        residuals : ndarray of shape (n_samples, 1)
            One for each target; NaN for what is missing.
        """
        pair, _, lengths = beside(X, y, lengths)
        return super().residuals(pair, lengths, kind=kind, random_state=random_state)
