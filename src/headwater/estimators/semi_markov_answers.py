"""What semi-Markov models answer: of their states, whatever place in a stay a row has."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.core.values import Rows, Values
from headwater.estimators.calls import answers_at_once, reads
from headwater.estimators.family_hmm import FamilyHMM
from headwater.estimators.forecast import Forecast, Seed
from headwater.families.family import AnyFamily
from headwater.families.gaussian import Gaussian
from headwater.families.gaussian_records import column_variances
from headwater.families.poisson import Poisson
from headwater.families.repeated import Repeated
from headwater.models.chain_records import ChainParameters
from headwater.models.forecasting import FamilyRows, RowForecast, StateForecast
from headwater.models.grouped_forecast import PooledStates
from headwater.models.semi_markov import SemiMarkovChain
from headwater.policies.typicality import EXPECTED_RATE


class SemiMarkovAnswers(FamilyHMM):
    """Base of `SemiMarkov`. Abstract."""

    # What was learned

    @property
    def _chain(self) -> SemiMarkovChain:
        return cast(SemiMarkovChain, self._model)

    @property
    def _inner(self) -> AnyFamily:
        return cast(Repeated, self._chain.family).inner

    @property
    @reads
    def n_components_(self) -> int:
        """Number of states."""
        return self._chain.n_states

    @property  # type: ignore[misc]
    @reads
    def startprob_(self) -> Array:
        """Probability of each state to be the first (n_components,)."""
        return self._chain.parts(self._parameters_seen())[0]

    @property  # type: ignore[misc]
    @reads
    def transmat_(self) -> Array:
        """Probability of each state to follow another (n_components, n_components); 0 on the diagonal."""
        return self._chain.parts(self._parameters_seen())[1]

    @property
    @reads
    def durations_(self) -> Array:
        """Probability of 1, 2, ... rows in each state (n_components, max_duration)."""
        return self._chain.parts(self._parameters_seen())[2]

    @property
    @reads
    def expected_durations_(self) -> Array:
        """Rows that a stay in each state lasts on average (n_components,)."""
        return self.durations_ @ np.arange(1.0, self._chain.longest + 1.0)

    @property
    @reads
    def means_(self) -> Array:
        """Means of 'gaussian' emissions (n_components, n_features)."""
        return np.asarray(self._gaussian.means(self._emissions))

    @property
    @reads
    def covars_(self) -> Array:
        """Covariances of 'gaussian' emissions, in the shape of their kind."""
        return np.asarray(self._gaussian.covariances(self._emissions))

    @property
    def _gaussian(self) -> Gaussian:
        if not isinstance(self._inner, Gaussian):
            raise AttributeError("emissions are counts: see lambdas_")
        return self._inner

    @property
    @reads
    def lambdas_(self) -> Array:
        """Rates of 'poisson' emissions (n_components, n_features)."""
        if not isinstance(self._inner, Poisson):
            raise AttributeError("emissions are numbers: see means_ and covars_")
        return np.array(self._emissions.rates)

    def _moments(self) -> tuple[Array, Array]:
        if isinstance(self._inner, Poisson):
            return self.lambdas_, self.lambdas_
        return self.means_, column_variances(self._gaussian, self._emissions)

    def _pool_states(self, values: Array) -> Array:
        return self._chain.pooled(values)

    def _pool_path(self, path: NDArray[np.int64]) -> NDArray[np.int64]:
        return path // self._chain.longest

    def _place_of(self, state: int, rng: np.random.Generator) -> int:
        return state * self._chain.longest + int(rng.choice(self._chain.longest, p=self.durations_[state]))

    @reads
    def get_stationary_distribution(self) -> Array:
        """Return the share of rows that the chain spends in each state in the long run.

        Returns
        -------
        probabilities : ndarray of shape (n_components,)
            The shares.
        """
        shares = super().get_stationary_distribution() * self.expected_durations_
        return np.asarray(shares / shares.sum())

    # Answers

    @answers_at_once
    def anomaly_score(self, X: Rows, lengths: Values = None, *, rate: float = EXPECTED_RATE) -> Array:
        """Return how odd each row is, given the rows before it in its sequence: the higher, the odder.

        Minus its log-density; no state is left out.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence; by default all rows are one.
        rate : float, default=0.05
            Not used.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Scores in nats; NaN for rows that say nothing, such as rows without a value.
        """
        return self._with_marks(self._sequences_of(X, lengths), -self.score_steps(X, lengths))

    def _n_parameters(self) -> int:
        return self._chain.n_parameters(self._learner.width)

    def _row_law(self, parameters: ChainParameters, ahead: Array) -> tuple[Any, Any, Array]:
        return self._inner, parameters.emissions, self._pool_states(ahead)

    def _next_rows(self, parameters: ChainParameters, known: Array) -> RowForecast:
        return FamilyRows(self._inner, parameters.emissions, known, np.arange(known.shape[1]))  # type: ignore[arg-type]

    def _make_forecast(self, states: StateForecast, rows: RowForecast, seed: Seed) -> Forecast:
        return Forecast(PooledStates(states, self._chain.longest), rows, self._forecast_names(), seed)
