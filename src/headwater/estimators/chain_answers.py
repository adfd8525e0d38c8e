"""Answers of every hidden Markov model about sequences in memory, with the names of hmmlearn: scores, states, samples."""

from __future__ import annotations

import numbers
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import Batch
from headwater.core.statistics import Array
from headwater.core.values import AnyArray, RandomState, Rows, Values
from headwater.estimators.anomaly_answers import checked_share
from headwater.estimators.anomaly_decisions import AnomalyDecisions
from headwater.estimators.calls import answers_at_once, answers_by_chunk, answers_by_score, reads
from headwater.estimators.chains import one_of
from headwater.estimators.seeds import rng_of
from headwater.models.chain_records import ChainParameters
from headwater.models.hidden_markov import HiddenMarkov
from headwater.policies.mark_policy import scores_of_values, scores_with_marks
from headwater.policies.typicality import EXPECTED_RATE, usual_chain


class ChainAnswers(AnomalyDecisions):
    """Methods that only read: scores, states and samples of sequences."""

    # With metadata routing, a pipeline passes sample_weight=None to every `score`, and refuses one that does not take it.
    __metadata_request__score: ClassVar[dict[str, None]] = {"sample_weight": None}

    # What the learning half says

    @property
    @abstractmethod
    def _model(self) -> HiddenMarkov: ...

    @abstractmethod
    def _sequences_of(self, X: Rows, lengths: Values) -> Batch:
        """Rows of complete sequences, checked."""

    @abstractmethod
    def _parameters_seen(self, name: str | None = None) -> ChainParameters:
        """Parameters that were learned, or set by hand."""

    @abstractmethod
    def _n_parameters(self) -> int: ...

    @property
    @abstractmethod
    @reads
    def transmat_(self) -> Array:
        """Probability of each transition."""

    # What a subclass may say, whose model has several states for each that a user sees

    def _pool_states(self, values: Array) -> Array:
        """Return what the model has of each of its states (..., K) by the states that users see."""
        return values

    def _pool_path(self, path: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return a path of the model by the states that users see."""
        return path

    def _place_of(self, state: int, rng: np.random.Generator) -> int:
        """Return a state of the model, for one that users see."""
        return state

    # Answers

    @answers_by_score
    def score(self, X: Rows, y: Values = None, lengths: Values = None) -> float:
        """Return the log-likelihood of all rows together.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_sequences,), optional
            The position of `lengths` in ``score(X, lengths)``; pipelines pass None here.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence; by default all rows are one.

        Returns
        -------
        log_prob : float
            Log-likelihood, the sum over the sequences.
        """
        return float(self.score_steps(X, one_of(y, lengths)).sum())

    @answers_at_once
    def score_steps(self, X: Rows, lengths: Values = None) -> Array:
        """Return the log-density of each row given the rows before it in its sequence.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence; by default all rows are one.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Log-densities, whose sum is `score`. Rows that are missing score 0.
        """
        batch = self._sequences_of(X, lengths)
        return self._model.log_likelihood(self._parameters_seen(), batch, self._threads)

    @answers_at_once
    def anomaly_score(self, X: Rows, lengths: Values = None, *, rate: float = EXPECTED_RATE) -> Array:
        """Return how odd each row is, given the rows before it in its sequence: the higher, the odder.

        Minus its log-density under a chain without the states that are lighter than `rate`, since anomalies may have made them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence; by default all rows are one.
        rate : float, default=0.05
            Expected share of anomalies among the rows that were learned. With 0 no state is left out.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Scores in nats; NaN for rows that say nothing, such as rows without a value.

        Examples
        --------
        >>> import numpy as np
        >>> import headwater as hw
        >>> rng = np.random.default_rng(0)
        >>> rows = rng.normal(size=(4000, 1)) + 8.0 * (np.arange(4000)[:, None] // 200 % 2)
        >>> scores = hw.GaussianHMM(2, random_state=0).fit(rows).anomaly_score([[0.0], [0.1], [4.0], [0.2]])
        >>> int(scores.argmax())
        2
        """
        rate = checked_share(rate, "rate", least=0.0, below=0.5)
        batch, parameters = self._sequences_of(X, lengths), self._parameters_seen()
        model, parameters = usual_chain(self._model, parameters, self._state_shares(), rate)
        return self._with_marks(batch, -model.log_likelihood(parameters, batch, self._threads))

    def _with_marks(self, batch: Batch, scores: Array) -> Array:
        """Anomaly scores, moved by the marks that the model has; without learned rows there are none."""
        if not self._has_state():
            return scores_of_values(batch, scores, scores)
        return scores_with_marks(self._read().stream, batch, scores)

    def _batch_of(self, X: Rows, y: Values = None, lengths: Values = None) -> Batch:
        return self._sequences_of(X, lengths)

    def _state_shares(self) -> Array:
        """Shares of the learned rows that each state has; all alike, where none was learned."""
        if not self._has_state():
            return np.ones(self._model.n_components)
        return np.maximum(self._read().stream.statistics.emissions.count, 0.0)

    @answers_by_chunk
    def score_samples(self, X: Rows, lengths: Values = None) -> tuple[float, Array]:
        """Return the log-likelihood of all rows together, and the probability of each state at each of them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence; by default all rows are one.

        Returns
        -------
        log_prob : float
            Log-likelihood.
        posteriors : ndarray of shape (n_samples, n_components)
            Probability of each state given all rows of the sequence.
        """
        batch = self._sequences_of(X, lengths)
        scores = np.empty(len(batch))
        posteriors = self._model.smoothed(self._parameters_seen(), batch, scores, self._threads)
        return float(scores.sum()), self._pool_states(posteriors)

    @answers_by_chunk
    def predict_proba(self, X: Rows, lengths: Values = None) -> Array:
        """Return the probability of each state at each row, given all rows of its sequence.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence; by default all rows are one.

        Returns
        -------
        posteriors : ndarray of shape (n_samples, n_components)
            Probabilities, which sum to one in each row.
        """
        batch = self._sequences_of(X, lengths)
        return self._pool_states(self._model.posterior(self._parameters_seen(), batch, self._threads))

    @answers_at_once
    def decode(self, X: Rows, lengths: Values = None, algorithm: str | None = None) -> tuple[float, NDArray[np.int64]]:
        """Return the most probable states.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
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
        algorithm = self.decoder if algorithm is None else algorithm
        if algorithm not in ("viterbi", "map"):
            raise ValueError(f"algorithm must be 'viterbi' or 'map', got {algorithm!r}")
        if algorithm == "map":
            posteriors = self.predict_proba(X, lengths)
            return float(posteriors.max(axis=1).sum()), posteriors.argmax(axis=1)
        score, path = self._model.best(self._parameters_seen(), self._sequences_of(X, lengths), self._threads)
        return score, self._pool_path(path)

    @answers_by_chunk
    def predict(self, X: Rows, lengths: Values = None) -> NDArray[np.int64]:
        """Return the most probable states (see `decode`).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence; by default all rows are one.

        Returns
        -------
        states : ndarray of shape (n_samples,)
            The states.
        """
        return self.decode(X, lengths)[1]

    @reads
    def sample(
        self, n_samples: int = 1, random_state: RandomState = None, currstate: int | None = None
    ) -> tuple[AnyArray, NDArray[np.int64]]:
        """Draw a sequence.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        random_state : int, RandomState instance or None, optional
            By default that of the model.
        currstate : int, optional
            The state to begin in.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            The rows.
        states : ndarray of shape (n_samples,)
            The states they came from.
        """
        parameters = self._parameters_seen()
        if not isinstance(n_samples, numbers.Integral) or n_samples < 1:
            raise ValueError(f"Invalid value for 'n_samples': {n_samples!r}. The sampling requires at least one sample.")
        if currstate is not None and not (isinstance(currstate, numbers.Integral) and 0 <= currstate < self.n_components_):
            raise ValueError(f"currstate must be a state, from 0 to {self.n_components_ - 1}, got {currstate!r}")
        first = None if currstate is None else self._place_of(int(currstate), self._sampling_rng(random_state))
        X, path = self._model.sample(parameters, int(n_samples), self._sampling_rng(random_state), first)
        return X, self._pool_path(path)

    def _sampling_rng(self, random_state: RandomState) -> np.random.Generator:
        return rng_of(self) if random_state is None else np.random.default_rng(seed_of(random_state))

    @answers_by_score
    def aic(self, X: Rows, lengths: Values = None) -> float:
        """Return Akaike's information criterion on the rows; lower is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence; by default all rows are one.

        Returns
        -------
        aic : float
            The criterion.
        """
        return -2.0 * self.score(X, lengths) + 2.0 * self._n_parameters()

    @answers_by_score
    def bic(self, X: Rows, lengths: Values = None) -> float:
        """Return the Bayesian information criterion on the rows; lower is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence; by default all rows are one.

        Returns
        -------
        bic : float
            The criterion.
        """
        return -2.0 * self.score(X, lengths) + self._n_parameters() * float(np.log(len(self._checked(X))))

    @reads
    def get_stationary_distribution(self) -> Array:
        """Return the stationary distribution of the states.

        Returns
        -------
        probabilities : ndarray of shape (n_components,)
            The share of time that the chain spends in each state in the long run.
        """
        transitions = self.transmat_
        k = len(transitions)
        equations = np.vstack([transitions.T - np.eye(k), np.ones(k)])
        found = np.linalg.lstsq(equations, np.append(np.zeros(k), 1.0), rcond=None)[0]
        return np.maximum(found, 0.0) / np.maximum(found, 0.0).sum()


def seed_of(random_state: RandomState) -> Any:
    """Return what seeds a generator."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return random_state
