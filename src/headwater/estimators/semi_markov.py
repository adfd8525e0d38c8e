"""SemiMarkov: hidden Markov models whose states last as long as a law of their own says."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import Interval, StrOptions

from headwater.core.algorithm import Algorithm
from headwater.core.learner import Learner
from headwater.core.statistics import Array
from headwater.core.values import AnyArray, Key, RandomState, Rows, Values
from headwater.estimators.calls import answers_at_once, answers_by_chunk, reads
from headwater.estimators.chain_answers import seed_of
from headwater.estimators.describers.semi_markov import SemiMarkovDescriber
from headwater.estimators.family_hmm import FamilyHMM
from headwater.estimators.forecast import Forecast, Seed
from headwater.estimators.seeds import rng_of
from headwater.families.family import AnyFamily
from headwater.families.gaussian import Gaussian
from headwater.families.gaussian_parameters import column_variances
from headwater.families.poisson import Poisson
from headwater.families.repeated import Repeated
from headwater.models.chain_records import ChainParameters
from headwater.models.durations import LAWS
from headwater.models.forecasting import FamilyRows, RowForecast, StateForecast
from headwater.models.grouped_forecast import PooledStates
from headwater.models.hidden_markov import HiddenMarkov
from headwater.models.semi_markov import SemiMarkovChain
from headwater.models.typicality import EXPECTED_RATE

MOST_PLACES = 1024  # states times durations; a row costs the square of it


class SemiMarkov(FamilyHMM):
    """Hidden semi-Markov model: each state lasts as long as a law of its own says, and then another begins.

    In a hidden Markov model a stay is as likely to end at its first row as at its hundredth. Here durations are explicit:
    heating cycles, sleep stages, shifts, plays, which have a usual length. A row costs the square of states times
    `max_duration`.

    Parameters
    ----------
    n_components : int, default=2
        Number of states, two at least.
    emission : {'gaussian', 'poisson'}, default='gaussian'
        Rows of numbers, or of counts.
    covariance_type : {'diag', 'full', 'tied', 'spherical'}, default='diag'
        Covariance of the numbers.
    min_covar : float, default=1e-6
        Added to the variances of the numbers.
    duration : {'negative-binomial', 'categorical'}, default='negative-binomial'
        The law of the durations: 1 and a negative binomial number of rows, or a table of probabilities.
    max_duration : int, default=30
        Longest duration in rows.
    duration_prior : float, default=1.0
        Stays that the prior of a table of durations is worth; it expects all durations alike.
    decoder : {'viterbi', 'map'}, default='viterbi'
        What `predict` and `decode` do (hmmlearn's `algorithm`).
    random_state : int, RandomState instance or None, default=None
        Seeds the start, and `sample`.
    n_iter : int, default=10
        Most passes of EM in `fit`.
    tol : float, default=1e-2
        A `fit` ends when a pass gains less in the log-likelihood of all rows.
    verbose : int, default=0
        Whether passes are printed.
    algorithm : str or Algorithm, default='auto'
        'auto' streams by online EM in blocks, and `fit` then goes on by passes of EM; 'em' (Baum-Welch), 'online-em' (in
        blocks), 'soem', 'boem'; or an object such as ``OnlineEM(batch_size=1000)``.
    half_life : float, optional
        Rows after which the weight of a row is halved.
    warm_up : int or 'auto', default='auto'
        Rows that a start is found on before learning from the stream begins. With 0 it begins at once, at parameters that are
        all set.
    lag : int, default=50
        Rows that a block looks ahead to.
    n_threads : int, optional
        Threads; all cores by default. The answer is the same.
    implementation : {'log', 'scaling'}, default='log'
        Accepted for compatibility with hmmlearn, and ignored.

    Attributes
    ----------
    n_components_ : int
        Number of states.
    startprob_ : ndarray of shape (n_components,)
        Probability of each state to be the first. A sequence begins with the first row of a stay.
    transmat_ : ndarray of shape (n_components, n_components)
        Probability of each state to follow another; 0 on the diagonal.
    durations_ : ndarray of shape (n_components, max_duration)
        Probability of 1, 2, ... rows in each state.
    expected_durations_ : ndarray of shape (n_components,)
        Their means.
    means_, covars_ : ndarray
        Of 'gaussian' emissions, as of `GaussianHMM`, covariances in the shape of their kind.
    lambdas_ : ndarray of shape (n_components, n_features)
        Rates of 'poisson' emissions.
    n_features_in_, n_samples_seen_ : int
        Columns, and rows learned from.
    monitor_ : Monitor
        How the last `fit` went.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rng = np.random.default_rng(0)
    >>> states = np.tile(np.repeat([0, 1], [5, 12]), 60)
    >>> rows = rng.normal(4.0 * states)[:, None]
    >>> model = hw.SemiMarkov(2, max_duration=20, random_state=0).fit(rows)
    >>> np.sort(model.expected_durations_).round().tolist()
    [5.0, 12.0]
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **{
            name: given
            for name, given in FamilyHMM._parameter_constraints.items()
            if name not in ("startprob_prior", "transmat_prior", "params", "init_params", "start_weight")
        },
        "n_components": [Interval(numbers.Integral, 2, None, closed="left")],
        "emission": [StrOptions({"gaussian", "poisson"})],
        "covariance_type": [StrOptions({"full", "tied", "diag", "spherical"})],
        "min_covar": [Interval(numbers.Real, 0.0, None, closed="left")],
        "duration": [StrOptions(set(LAWS))],
        "max_duration": [Interval(numbers.Integral, 2, None, closed="left")],
        "duration_prior": [Interval(numbers.Real, 0.0, None, closed="neither")],
    }
    _shapes = ("emission", "covariance_type", "duration", "max_duration")
    _traits = replace(
        FamilyHMM._traits,
        finds_number=False,
        shape_parameters=("n_components", *_shapes),
        prior_parameters=("duration_prior",),
        floor_parameters=("min_covar",),
        merge_parameters=("n_components", "half_life", "lag", *_shapes, "min_covar", "duration_prior"),
        answers=("startprob_", "transmat_", "durations_"),
    )
    _letters = "ste"
    _emission_names: ClassVar[dict[str, str]] = {"e": "emissions_"}

    params = init_params = "ste"
    startprob_prior = transmat_prior = start_weight = None

    def __init__(
        self,
        n_components: int = 2,
        *,
        emission: str = "gaussian",
        covariance_type: str = "diag",
        min_covar: float = 1e-6,
        duration: str = "negative-binomial",
        max_duration: int = 30,
        duration_prior: float = 1.0,
        decoder: str = "viterbi",
        random_state: RandomState = None,
        n_iter: int = 10,
        tol: float = 1e-2,
        verbose: int = 0,
        algorithm: str | Algorithm = "auto",
        half_life: float | None = None,
        warm_up: int | str = "auto",
        lag: int = 50,
        n_threads: int | None = None,
        implementation: str = "log",
    ) -> None:
        self.n_components = n_components
        self.emission = emission
        self.covariance_type = covariance_type
        self.min_covar = min_covar
        self.duration = duration
        self.max_duration = max_duration
        self.duration_prior = duration_prior
        self.decoder = decoder
        self.random_state = random_state
        self.n_iter = n_iter
        self.tol = tol
        self.verbose = verbose
        self.algorithm = algorithm
        self.half_life = half_life
        self.warm_up = warm_up
        self.lag = lag
        self.n_threads = n_threads
        self.implementation = implementation

    @property
    def _describer(self) -> SemiMarkovDescriber:
        return SemiMarkovDescriber(self)

    def _check_parameters(self) -> None:
        if isinstance(self.n_components, numbers.Integral) and isinstance(self.max_duration, numbers.Integral):
            places = int(self.n_components) * int(self.max_duration)
            if places > MOST_PLACES:
                raise ValueError(f"n_components times max_duration must be at most {MOST_PLACES}, got {places}")
        if self.algorithm in ("vb", "online-vb"):
            raise ValueError(f"algorithm must be one of EM, such as 'auto', 'em' or 'online-em', got {self.algorithm!r}")
        super()._check_parameters()

    def _family(self, width: int) -> AnyFamily:
        if self.emission == "poisson":
            return Poisson(self.n_components, keeps_prior=False)
        return Gaussian(self.n_components, self.covariance_type, float(self.min_covar))

    def _described(self, width: int) -> Learner:
        learner = super()._described(width)
        plain, longest = cast(HiddenMarkov, learner.model), int(self.max_duration)
        chain = SemiMarkovChain(
            plain.n_components * longest, Repeated.of(plain.family, longest), lag=plain.lag, longest=longest,
            law=self.duration, duration_prior=float(self.duration_prior),
        )  # fmt: skip
        return replace(learner, model=chain)

    def _refuse_rows(self, rows: Array) -> Array:
        if self.emission == "poisson" and (rows < 0.0).any():
            raise ValueError(f"X must hold counts, which are not negative, got {np.nanmin(rows):g}")
        return rows

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
        score, posteriors = super().score_samples(X, lengths)
        return score, self._pool_states(posteriors)

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
        return self._pool_states(super().predict_proba(X, lengths))

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
        """
        return self._pool_states(super().smooth(X, lengths, lag=lag))

    @answers_at_once
    def filter(self, X: Rows, *, key: Key = None) -> Array:
        """Return the probability of each state at each row, given the rows up to it, if they came next.

        The rows follow those that were learned; nothing is learned from them, and the sequence does not go on.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_features,) for one row
            The rows.
        key : str or int, optional
            The open sequence that they follow; if there is none, they begin one.

        Returns
        -------
        states : ndarray of shape (n_samples, n_components), or (n_components,) for one row
            Probabilities, which sum to one in each row.
        """
        return self._pool_states(super().filter(X, key=key))

    @answers_at_once
    def next_state_proba(self, key: Key = None, X: Rows = None) -> Array:
        """Return the probability of each state at the next row of a sequence.

        Parameters
        ----------
        key : str or int, optional
            The open sequence; if there is none with this key, the next row is its first. By default the one without a name, and
            after a `fit` the last one that was learned.
        X : array-like of shape (n_samples, n_features), optional
            The rows so far of another sequence, from its first on; nothing is learned from them.

        Returns
        -------
        states : ndarray of shape (n_components,)
            Probabilities, which sum to one.
        """
        return self._pool_states(super().next_state_proba(key, X))

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
        if algorithm == "map":
            posteriors = self.predict_proba(X, lengths)
            return float(posteriors.max(axis=1).sum()), posteriors.argmax(axis=1)
        score, states = super().decode(X, lengths, algorithm)
        return score, states // self._chain.longest

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
            Scores in nats. Rows that are missing score 0.
        """
        return -self.score_steps(X, lengths)

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
        first = None
        if currstate is not None:
            if not (isinstance(currstate, numbers.Integral) and 0 <= currstate < self.n_components_):
                raise ValueError(f"currstate must be a state, from 0 to {self.n_components_ - 1}, got {currstate!r}")
            rng = rng_of(self) if random_state is None else np.random.default_rng(seed_of(random_state))
            left = int(rng.choice(self._chain.longest, p=self.durations_[currstate]))
            first = int(currstate) * self._chain.longest + left
        return self._drawn(n_samples, random_state, first)

    def _drawn(self, n_samples: int, random_state: RandomState, first: int | None) -> tuple[AnyArray, NDArray[np.int64]]:
        if not isinstance(n_samples, numbers.Integral) or n_samples < 1:
            raise ValueError(f"Invalid value for 'n_samples': {n_samples!r}. The sampling requires at least one sample.")
        rng = rng_of(self) if random_state is None else np.random.default_rng(seed_of(random_state))
        X, states = self._chain.sample(self._parameters_seen(), int(n_samples), rng, first)
        return X, states // self._chain.longest

    def _n_parameters(self) -> int:
        return self._chain.n_parameters(self._learner.width)

    def _row_law(self, parameters: ChainParameters, ahead: Array) -> tuple[Any, Any, Array]:
        return self._inner, parameters.emissions, self._pool_states(ahead)

    def _next_rows(self, parameters: ChainParameters, known: Array) -> RowForecast:
        return FamilyRows(self._inner, parameters.emissions, known, np.arange(known.shape[1]))  # type: ignore[arg-type]

    def _make_forecast(self, states: StateForecast, rows: RowForecast, seed: Seed) -> Forecast:
        return Forecast(PooledStates(states, self._chain.longest), rows, self._forecast_names(), seed)

    # Parameters cannot be set by hand

    def _parameters_seen(self, name: str | None = None) -> ChainParameters:
        if not self._has_state():
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet: call 'fit' or 'partial_fit'")
        return super()._parameters_seen(name)

    def __sklearn_is_fitted__(self) -> bool:
        return self._has_state()

    def _emissions_given(self, letters: str, width: int) -> dict[str, Array]:
        return {}

    def _given_width(self) -> int:
        raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet: call 'fit' or 'partial_fit'")

    def _family_names(self) -> Mapping[str, str]:
        return {}

    def _given_shape(self, name: str, width: int) -> tuple[int, ...]:
        raise AssertionError("parameters cannot be set by hand")
