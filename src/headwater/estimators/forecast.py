"""Forecast: the law of the next rows of a sequence."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from headwater.core.statistics import Array
from headwater.core.validation import check_finite, numeric, one_line
from headwater.core.values import AnyArray, RandomState, Values
from headwater.estimators.column_mixture import check_level
from headwater.models.forecasting import RowForecast, StateForecast

Seed: TypeAlias = "int | np.random.Generator"


class Forecast:
    """The law of the next rows of a sequence, step by step; `forecast` of a hidden Markov model makes one.

    Attributes
    ----------
    state_proba : ndarray of shape (steps, n_components)
        Probability of each state at each step.
    mean, variance : ndarray of shape (steps, n_features)
        Mean and variance of each value: over the states, and in them. Of symbols and categories the mean is the most probable
        one, and the variance 1 minus the sum of the squared probabilities.
    names : list of str
        The columns.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(4000, 1)) + 8.0 * (np.arange(4000)[:, None] // 200 % 2)
    >>> model = hw.GaussianHMM(2, random_state=0).fit(rows)
    >>> ahead = model.forecast(3)
    >>> ahead.mean.round(1).ravel().tolist()
    [8.0, 7.9, 7.9]
    >>> low, high = ahead.interval(0.9)
    >>> ahead.sample(100).shape
    (100, 3, 1)
    """

    def __init__(self, states: StateForecast, rows: RowForecast, names: Sequence[str], seed: Seed) -> None:
        self._states, self._rows, self._seed = states, rows, seed
        self.names = [str(name) for name in names]
        self.state_proba = states.laws

    def __len__(self) -> int:
        return len(self.state_proba)

    def __repr__(self) -> str:
        return f"<Forecast: {len(self)} step{'s' * (len(self) != 1)} of {', '.join(self.names[:5])}>"

    @cached_property
    def _moments(self) -> tuple[Array, Array]:
        return self._rows.moments(self._states)

    @property
    def mean(self) -> Array:
        """Mean (steps, n_features) of each value."""
        return self._moments[0]

    @property
    def variance(self) -> Array:
        """Variance (steps, n_features) of each value."""
        return self._moments[1]

    def quantile(self, q: Values) -> Array:
        """Return the values that are not exceeded with these probabilities.

        Parameters
        ----------
        q : float or array-like of shape (n,)
            Probabilities between 0 and 1.

        Returns
        -------
        values : ndarray of shape (steps, n_features), or (n, steps, n_features) for several probabilities
            Quantiles, step by step; NaN for categories and symbols, which have no order.
        """
        wanted = np.asarray(numeric(q, "q"), dtype=float)
        if wanted.ndim > 1 or not wanted.size or not ((wanted > 0.0) & (wanted < 1.0)).all():
            raise ValueError(f"q must be a probability between 0 and 1, or a list of some, got {one_line(q, 60)}")
        found = np.array([self._rows.quantile(self._states, float(one)) for one in wanted.ravel()])
        return found[0] if wanted.ndim == 0 else found

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """Return central intervals, step by step.

        Parameters
        ----------
        level : float, default=0.9
            Probability of each interval.

        Returns
        -------
        low, high : ndarray of shape (steps, n_features)
            Their ends.
        """
        tail = 0.5 - 0.5 * check_level(level)
        low, high = self.quantile([tail, 1.0 - tail])
        return low, high

    def log_density(self, rows: Values) -> Array:
        """Return the log-density of the rows that came, each by itself: the log-score of the forecast.

        Parameters
        ----------
        rows : array-like of shape (steps, n_features)
            The rows.

        Returns
        -------
        log_density : ndarray of shape (steps,)
            Log-density of each row at its step.
        """
        given = np.asarray(numeric(rows, "rows"), dtype=float)
        if given.shape != self.mean.shape:
            raise ValueError(f"rows must have shape {self.mean.shape}, got {given.shape}")
        check_finite(given, "rows")
        return self._rows.log_density(self._states, given)

    def sample(self, size: int = 1, random_state: RandomState = None, *, return_states: bool = False) -> Any:
        """Draw paths: rows that depend on one another as those of the sequence do, as a simulation that goes on from its past.

        Parameters
        ----------
        size : int, default=1
            Number of paths.
        random_state : int, RandomState instance or None, optional
            By default the seed of the forecast, so that the paths are the same each time.

        return_states : bool, default=False
            Whether the states are returned, too.

        Returns
        -------
        paths : ndarray of shape (size, steps, n_features)
            The paths.
        states : ndarray of shape (size, steps)
            Their states, with `return_states`.
        """
        if not isinstance(size, numbers.Integral) or isinstance(size, bool) or size < 1:
            raise ValueError(f"size must be a whole number of at least 1, got {size!r}")
        if isinstance(random_state, np.random.RandomState):
            random_state = int(random_state.randint(2**31 - 1))
        rng = np.random.default_rng(self._seed if random_state is None else random_state)
        states = self._states.draw(int(size), rng)
        paths = self._shown(self._rows.draw(states, rng))
        return (paths, states) if return_states else paths

    def _shown(self, paths: Array) -> AnyArray:
        """Return drawn paths (size, steps, n_features) as the rows of the user are."""
        return paths

    def to_dict(self, level: float = 0.9) -> dict[str, AnyArray]:
        """Return the forecast as columns of a table.

        Parameters
        ----------
        level : float, default=0.9
            Probability of the intervals.

        Returns
        -------
        columns : dict of ndarray of shape (steps,)
            `step`; of each column its mean, called as the column, `_low` and `_high`; and `state_0` etc., probabilities.
        """
        columns: dict[str, AnyArray] = {"step": np.arange(1, len(self) + 1)}
        low, high = self.interval(level)
        for at, name in enumerate(self.names):
            columns |= {name: self.mean[:, at], f"{name}_low": low[:, at], f"{name}_high": high[:, at]}
        return columns | {f"state_{k}": self.state_proba[:, k] for k in range(self.state_proba.shape[1])}


class SymbolForecast(Forecast):
    """The law of the next symbols, step by step; `forecast` of a `CategoricalHMM` makes one.

    Attributes
    ----------
    probabilities : ndarray of shape (steps, n_symbols)
        Probability of each symbol at each step. Symbols have no order: `mean` is the most probable one, and quantiles are NaN.

    Examples
    --------
    >>> import headwater as hw
    >>> model = hw.CategoricalHMM(2, random_state=0).fit([[0], [1]] * 200)
    >>> model.forecast(2).probabilities.round().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    def __init__(self, states: StateForecast, rows: RowForecast, names: Sequence[str], seed: Seed, emissions: Array) -> None:
        super().__init__(states, rows, names, seed)
        self.probabilities = self.state_proba @ emissions

    def to_dict(self, level: float = 0.9) -> dict[str, AnyArray]:
        """Return the forecast as columns of a table.

        Parameters
        ----------
        level : float, default=0.9
            Symbols have no intervals: it is not used.

        Returns
        -------
        columns : dict of ndarray of shape (steps,)
            `step`; `symbol`, the most probable one; `symbol_0` etc. and `state_0` etc., probabilities.
        """
        columns: dict[str, AnyArray] = {"step": np.arange(1, len(self) + 1), "symbol": self.mean[:, 0].astype(np.int64)}
        columns |= {f"symbol_{at}": self.probabilities[:, at] for at in range(self.probabilities.shape[1])}
        return columns | {f"state_{k}": self.state_proba[:, k] for k in range(self.state_proba.shape[1])}
