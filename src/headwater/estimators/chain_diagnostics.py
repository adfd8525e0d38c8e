"""Answers of every hidden Markov model about how well it fits: residuals, states with a short look ahead, durations."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from headwater.core.statistics import Array
from headwater.core.values import RandomState, Rows, Values
from headwater.estimators.calls import answers_at_once, reads
from headwater.estimators.chain_answers import ChainAnswers, seed_of
from headwater.estimators.seeds import rng_of
from headwater.models.chain_lag import smooth_lagged, states_before
from headwater.models.chain_records import ChainParameters

BLOCK = 2**14  # rows whose laws are held at a time
LEAST = 1e-16  # probability that a residual has at least, so that it is a finite number of standard deviations


class ChainDiagnostics(ChainAnswers):
    """Methods that only read."""

    def _row_law(self, parameters: ChainParameters, ahead: Array) -> tuple[Any, Any, Array]:
        """Return the family of the rows, its parameters, and the weights (n, K) of its components before each row."""
        return self._model.family, parameters.emissions, ahead

    def _target_places(self, width: int) -> NDArray[np.int64]:
        """Columns of a row, as the model holds it, that have a law."""
        return np.arange(width)

    @property
    @reads
    def expected_durations_(self) -> Array:
        """Rows that a stay in each state lasts on average (n_components,); infinite where it is never left."""
        stays = np.diag(self.transmat_)
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / (1.0 - stays))

    @answers_at_once
    def smooth(self, X: Rows, lengths: Values = None, *, lag: int | None = None) -> Array:
        """Return the probability of each state at each row, given the rows up to `lag` rows later.

        What a monitor knows that may wait a little: with lag 0 that is the filter, and with all rows it is `predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence; by default all rows are one.
        lag : int, optional
            How many rows to look ahead; by default to the end of the sequence.

        Returns
        -------
        states : ndarray of shape (n_samples, n_components)
            Probabilities, which sum to one in each row.

        Examples
        --------
        >>> import numpy as np
        >>> import headwater as hw
        >>> rows = np.random.default_rng(0).normal(size=(600, 1)) + 2.0 * (np.arange(600)[:, None] // 100 % 2)
        >>> model = hw.GaussianHMM(2, random_state=0).fit(rows)
        >>> late, late_by_5 = model.smooth(rows), model.smooth(rows, lag=5)
        >>> bool(np.abs(late - late_by_5).mean() < 0.02)
        True
        """
        if lag is not None and (not isinstance(lag, numbers.Integral) or isinstance(lag, bool) or lag < 0):
            raise ValueError(f"lag must be a whole number of at least 0, or None for all rows, got {lag!r}")
        batch, parameters = self._sequences_of(X, lengths), self._parameters_seen()
        if lag is None:
            return self._pool_states(self._model.posterior(parameters, batch, self._threads))
        return self._pool_states(smooth_lagged(self._model, parameters, batch, int(lag), self._threads))

    @answers_at_once
    def residuals(self, X: Rows, lengths: Values = None, *, kind: str = "normal", random_state: RandomState = None) -> Array:
        """Return how far each value is from what was expected of it, given the rows before: pseudo-residuals.

        The probability of a smaller value, given the rows before it in its sequence, is uniform if the model is right; of
        counts, flags and categories the probability of the value itself is added in part, at random (the randomised probability
        integral transform). Residuals that are not uniform, or not independent, show what the model misses. Categories are in
        the order of their codes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence; by default all rows are one.
        kind : {'normal', 'uniform'}, default='normal'
            Quantiles of the standard normal law at these probabilities, or the probabilities.
        random_state : int, RandomState instance or None, optional
            Seeds the random part of discrete values; by default the seed of the model.

        Returns
        -------
        residuals : ndarray of shape (n_samples, n_features)
            One for each value; NaN for what is missing.

        Examples
        --------
        >>> import numpy as np
        >>> import headwater as hw
        >>> counts = np.random.default_rng(0).poisson(3.0, size=(2000, 1))
        >>> found = hw.PoissonHMM(1, random_state=0).fit(counts).residuals(counts, kind="uniform")
        >>> bool(abs(found.mean() - 0.5) < 0.02)
        True
        """
        if kind not in ("normal", "uniform"):
            raise ValueError(f"kind must be 'normal' or 'uniform', got {kind!r}")
        batch, parameters = self._sequences_of(X, lengths), self._parameters_seen()
        rng = rng_of(self) if random_state is None else np.random.default_rng(seed_of(random_state))
        rows, targets = np.asarray(batch.X), self._target_places(batch.X.shape[1])
        uniform = rng.random((len(rows), len(targets)))
        family, emissions, weights = self._row_law(parameters, states_before(self._model, parameters, batch, self._threads))
        found = np.full(uniform.shape, np.nan)
        for start in range(0, len(rows), BLOCK):
            part = slice(start, start + BLOCK)
            found[part] = _transform(family, emissions, rows[part], targets, weights[part], uniform[part])
        return found if kind == "uniform" else ndtri(np.clip(found, LEAST, 1.0 - LEAST))


def _transform(family: Any, parameters: Any, rows: Array, targets: NDArray[np.int64], weights: Array, uniform: Array) -> Array:
    """Return the probability (n, t) of less than each value, and a part of that of the value itself."""
    missing = np.zeros(rows.shape, dtype=bool)
    missing[:, targets] = True
    known = rows.copy()
    others = np.setdiff1d(np.arange(rows.shape[1]), targets)
    found = np.full(uniform.shape, np.nan)
    lacking = np.asarray(np.isnan(rows[:, others]).any(axis=1))  # a regression needs all of its inputs
    seen = ~np.isnan(rows[:, targets]) & ~lacking[:, None]
    at, places = np.nonzero(seen)
    if not len(at):
        return found
    known[np.isnan(known)] = 0.0
    entries = family.conditional(parameters, known, missing).entries(at, targets[places])
    less, upto = entries.bounds(rows[at, targets[places]])
    own = weights[at]
    low, high = (own * less).sum(axis=1), (own * upto).sum(axis=1)
    found[at, places] = low + uniform[at, places] * (high - low)
    return found
