"""Forecasts of hidden Markov models: the law of the rows that come next."""

from __future__ import annotations

import numbers

import numpy as np

from headwater.core.statistics import Array
from headwater.core.values import Key, RandomState, Rows
from headwater.diagnostics.component_description import column_names
from headwater.estimators.calls import answers_at_once
from headwater.estimators.chain_positions import ChainPositions
from headwater.estimators.chains import check_key
from headwater.estimators.forecast import Forecast, Seed
from headwater.estimators.seeds import new_key
from headwater.models.chain_records import ChainParameters
from headwater.models.forecasting import FamilyRows, MarkovStates, RowForecast, StateForecast

MOST_STEPS = 2**20


class ChainForecasts(ChainPositions):
    """Questions about rows that have not come yet."""

    @answers_at_once
    def forecast(
        self, steps: int, X: Rows = None, key: Key = None, future: Rows = None, *, random_state: RandomState = None
    ) -> Forecast:
        """Return the law of the next rows of a sequence.

        Mean, variance, quantiles and log-density of each step are exact: they are those of a mixture, whose weights are the
        probabilities of the states. Parameters are those of the last refresh, as for `next_state_proba`.

        Parameters
        ----------
        steps : int
            How many rows ahead.
        X : array-like of shape (n_samples, n_features), optional
            The rows so far of a sequence, from its first on; nothing is learned from them. By default the sequence is one that
            was learned.
        key : str or int, optional
            The open sequence. By default the one without a name, and after a `fit` the last one that was learned.
        future : array-like of shape (steps, n_inputs), optional
            Inputs of the next rows, for models that have inputs.
        random_state : int, RandomState instance or None, optional
            Seeds the sampled paths; by default that of the model.

        Returns
        -------
        forecast : Forecast
            State probabilities, mean, variance, quantiles, sampled paths.

        Examples
        --------
        >>> import headwater as hw
        >>> rows = [[0.0], [0.1], [5.0], [5.2]] * 50
        >>> model = hw.GaussianHMM(2, random_state=0).fit(rows)
        >>> model.forecast(2).state_proba.shape
        (2, 2)
        """
        steps, known = check_steps(steps), self._known_future(future, steps)
        parameters, first = self._position_of(key, X)
        seed = new_key(self) if random_state is None else random_state
        if isinstance(seed, np.random.RandomState):
            seed = int(seed.randint(2**31 - 1))
        states = MarkovStates(first, parameters.transitions, steps)
        return self._make_forecast(states, self._next_rows(parameters, known), seed)

    def _make_forecast(self, states: StateForecast, rows: RowForecast, seed: Seed) -> Forecast:
        return Forecast(states, rows, self._forecast_names(), seed)

    def _position_of(self, key: Key, X: Rows) -> tuple[ChainParameters, Array]:
        """Parameters, and the law of the next state; a key that names no open sequence is refused."""
        key, opened = check_key(key), self.__dict__.get("_open", {})
        if X is None and key is not None and key not in opened:
            named = [one for one in opened if one is not None]
            some = ", ".join(map(repr, named[:5])) + (" ..." if len(named) > 5 else "")
            raise ValueError(f"key must be that of an open sequence, got {key!r}; open are: {some or 'none'}")
        return self._next_states(key, X)

    def _known_future(self, future: Rows, steps: int) -> Array:
        """Return what is known of the next rows, NaN where nothing is."""
        if future is not None:
            raise ValueError(f"future must be None, since {type(self).__name__} has no inputs, got some")
        return np.full((steps, self._row_width()), np.nan)

    def _row_width(self) -> int:
        """Columns of a row, as the model holds it."""
        if not self._has_state():
            self._parameters_seen()  # or a sentence, if there are none
        return int(self.n_features_in_ if self._has_state() else self._given_width())

    def _next_rows(self, parameters: ChainParameters, known: Array) -> RowForecast:
        """Return the laws of the next rows, given the states."""
        return FamilyRows(self._model.family, parameters.emissions, known, np.arange(known.shape[1]))  # type: ignore[arg-type]

    def _forecast_names(self) -> list[str]:
        """Return the names of what is forecast."""
        return column_names(self, self._row_width())


def check_steps(steps: object) -> int:
    """Return the number of rows ahead, or refuse it."""
    if not isinstance(steps, numbers.Integral) or isinstance(steps, bool) or not 1 <= int(steps) <= MOST_STEPS:
        raise ValueError(f"steps must be a whole number from 1 to {MOST_STEPS:,}, got {steps!r}")
    return int(steps)
