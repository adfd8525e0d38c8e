"""AutoregressiveHMM: series whose autoregression changes with a hidden state."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from headwater.core.algorithm import Algorithm
from headwater.core.statistics import Array
from headwater.core.values import Key, Matrix, RandomState, Rows, Values
from headwater.estimators.calls import learns, reads
from headwater.estimators.chain_positions import NOBODY
from headwater.estimators.chains import Chunk, check_chain_rows, check_key, check_numbers, refuse_part_rows
from headwater.estimators.forecast import Forecast, Seed
from headwater.estimators.lagged_rows import check_pasts, lag_rows
from headwater.estimators.linear_hmm import LETTERS, LinearHMM, check_covariances
from headwater.families.linear_gaussian import LinearGaussian
from headwater.kernels.autoregression import walk_autoregression
from headwater.models.autoregressive_forecast import Autoregression, AutoregressiveRows
from headwater.models.chain_records import ChainParameters
from headwater.models.forecasting import MarkovStates, RowForecast, StateForecast


class AutoregressiveHMM(LinearHMM):
    """Markov-switching autoregression: in each state a row is linear in the rows before it, with noise of that state.

    Calm and turbulent times of prices, gaits of a walker, modes of a machine. Rows may have several columns, each of which
    depends on all columns of the rows before (a vector autoregression). It learns from sequences that may never end.

    Parameters
    ----------
    n_components : int or 'auto', default=1
        Number of states. With 'auto' models with up to 32 states are compared on rows that they have not learned yet (see
        `race_`).
    order : int, default=1
        Rows that a row depends on.
    reg_noise : float, default=1e-6
        Least noise variance of passes of EM, as a part of the variance of the column.
    startprob_prior, transmat_prior : float or array-like, optional
        Dirichlet parameters of the first state and of the transitions; 1 is flat. By default flat for passes of EM, and a
        tenth of a count in a stream.
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
    params, init_params : str, default='stcin'
        Letters of what is learned, and of what is found at the start: startprob, transmat, and coef, intercept and the noise,
        which are learned together or not at all. What `init_params` leaves out starts as it was set; if it was never set, it
        is found, too. A first state or a transition that is set to 0 stays impossible.
    algorithm : str or Algorithm, default='auto'
        'auto' streams by online EM in blocks, and `fit` then goes on by passes of EM; 'em' (Baum-Welch), 'online-em', 'soem',
        'boem', 'online-vb', 'vb'; or an object such as ``OnlineEM(batch_size=1000)``.
    half_life : float, optional
        Rows after which the weight of a row is halved.
    warm_up : int or 'auto', default='auto'
        Rows that a start is found on before learning from the stream begins.
    lag : int, default=50
        Rows that a block looks ahead to.
    start_weight : float, optional
        Rows that parameters which are set count as: the stream begins as if it had learned so many, distributed as the start
        says. Default: as many as it takes to estimate every parameter, less those of the warm-up.
    n_threads : int, optional
        Threads; all cores by default. The answer is the same.
    implementation : {'log', 'scaling'}, default='log'
        Accepted for compatibility with hmmlearn, and ignored.

    Attributes
    ----------
    n_components_ : int
        Number of components; with 'auto', that of the best model so far.
    race_ : Race
        How the numbers that 'auto' tries compare; None if n_components is a number.
    startprob_, transmat_ : ndarray
        What was learned of the chain. They may be set before learning.
    coef_ : ndarray of shape (n_components, order, n_features, n_features)
        How much of each column of the rows before (last axis), the newest first, is in each column.
    intercept_ : ndarray of shape (n_components, n_features)
        What is added.
    covars_ : ndarray of shape (n_components, n_features, n_features)
        Covariances of the noise.
    n_features_in_, n_samples_seen_ : int
        Columns, and rows learned from.
    monitor_ : Monitor
        How the last `fit` went.

    Notes
    -----
    The first `order` rows of a sequence are conditioned upon: they score 0, and time passes. So it is with a row of which
    something is missing (NaN), and with the `order` rows after it.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rng = np.random.default_rng(0)
    >>> slopes, x = np.repeat([0.9, -0.5, 0.9, -0.5], 500), np.zeros((2000, 1))
    >>> for t in range(1, 2000):
    ...     x[t] = slopes[t] * x[t - 1] + rng.normal()
    >>> model = hw.AutoregressiveHMM(2, random_state=0, n_iter=50).fit(x)
    >>> np.sort(model.coef_.ravel()).round(1).tolist()
    [-0.5, 0.9]
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **LinearHMM._parameter_constraints,
        "order": [Interval(numbers.Integral, 1, None, closed="left")],
    }
    _traits = replace(
        LinearHMM._traits,
        shape_parameters=(*LinearHMM._traits.shape_parameters, "order"),
        merge_parameters=(*LinearHMM._traits.merge_parameters, "order"),
        answers=("startprob_", "transmat_", "coef_", "intercept_", "covars_"),
    )
    _emission_names: ClassVar[dict[str, str]] = {"c": "coef_", "i": "intercept_", "n": "covars_"}

    _pasts: dict[int, Array]  # the last rows (order, d) of open sequences, the newest first
    _end_rows: Array  # and of the last sequence of a `fit`

    def __init__(
        self,
        n_components: int | Literal["auto"] = 1,
        order: int = 1,
        *,
        reg_noise: float = 1e-6,
        startprob_prior: Values = None,
        transmat_prior: Values = None,
        decoder: str = "viterbi",
        random_state: RandomState = None,
        n_iter: int = 10,
        tol: float = 1e-2,
        verbose: int = 0,
        params: str = LETTERS,
        init_params: str = LETTERS,
        algorithm: str | Algorithm = "auto",
        half_life: float | None = None,
        warm_up: int | str = "auto",
        lag: int = 50,
        start_weight: float | None = None,
        n_threads: int | None = None,
        implementation: str = "log",
    ) -> None:
        super().__init__(
            n_components,
            startprob_prior=startprob_prior,
            transmat_prior=transmat_prior,
            decoder=decoder,
            random_state=random_state,
            n_iter=n_iter,
            tol=tol,
            verbose=verbose,
            params=params,
            init_params=init_params,
            algorithm=algorithm,
            half_life=half_life,
            warm_up=warm_up,
            lag=lag,
            start_weight=start_weight,
            n_threads=n_threads,
            implementation=implementation,
        )
        self.order = order
        self.reg_noise = reg_noise

    def _family(self, width: int) -> LinearGaussian:
        return LinearGaussian(self.n_components, self._features_of(width), True, float(self.reg_noise))

    def _features_of(self, width: int) -> int:
        return width // (1 + int(self.order))

    def _width_with(self, features: int) -> int:
        return features * (1 + int(self.order))

    # Rows beside those before them

    def _width_of(self, rows: Array) -> int:
        return int(rows.shape[1])

    def _numbered(self, X: Rows, lengths: Values, reset: bool, key: Key = None, streaming: bool = False) -> Chunk:
        if reset:
            self._check_parameters()
        chunk = super()._numbered(X, lengths, reset, key, streaming)
        pasts = self.__dict__.get("_pasts", {}) if streaming and self._has_state() else {}
        order = int(self.order) if reset else self._lags
        rows, after = lag_rows(chunk.rows, chunk.sequences, order, pasts)
        if streaming:
            opened = set(chunk.opened.values())
            self._pasts = {number: past for number, past in {**pasts, **after}.items() if number in opened}
        return replace(chunk, rows=rows)

    def fit(self, X: Rows, y: Values = None, lengths: Values = None) -> Self:
        """Learn from all sequences at once; what was learned before is dropped, except for what `init_params` leaves out.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows of all sequences, one after the other.
        y : array-like of shape (n_sequences,), optional
            The position of `lengths` in ``fit(X, lengths)``; pipelines pass None here.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence; by default all rows are one.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        super().fit(X, y, lengths)
        rows = check_chain_rows(X, type(self).__name__)
        sizes = y if lengths is None else lengths
        last = len(rows) if sizes is None else int(np.asarray(sizes)[-1])
        self._end_rows = self._past_of(rows[len(rows) - last :])
        return self

    @property
    def _lags(self) -> int:
        """The order of what was learned, or of what is to be."""
        return int(self._runtime.made_with["order"] if self._has_state() else self.order)

    def _beside_past(
        self, rows: Array, sequences: NDArray[np.int64], pasts: Mapping[int, Array]
    ) -> tuple[Array, dict[int, Array]]:
        return lag_rows(rows, sequences, self._lags, pasts)

    def _past_of(self, rows: Array) -> Array:
        order = self._lags
        return np.vstack([np.full((order, rows.shape[1]), np.nan), rows])[: -order - 1 : -1].copy()

    def _went_on(self, rows: Matrix, key: Key, scores: Array, states: Array) -> None:
        number = self.__dict__.get("_open", {}).get(check_key(key), NOBODY)
        past = self.__dict__.get("_pasts", {}).get(number)
        known = {} if past is None else {number: past}
        lagged, _ = self._beside_past(np.asarray(rows), np.full(len(rows), number), known)
        super()._went_on(lagged, key, scores, states)

    def _check_stored(self, X: Matrix, width: int) -> None:
        super()._check_stored(X, width)
        if X.shape[1] != width:
            raise ValueError(f"{type(self).__name__} keeps rows beside those before them")
        refuse_part_rows(np.asarray(X), type(self).__name__)

    def _check_kept(self) -> None:
        kept = *self.__dict__.get("_pasts", {}).values(), *([self._end_rows] if "_end_rows" in self.__dict__ else [])
        check_pasts(kept, (self._lags, self._row_width()), type(self).__name__)

    # Forecasts

    def _make_forecast(self, states: StateForecast, rows: RowForecast, seed: Seed) -> Forecast:
        assert isinstance(states, MarkovStates) and isinstance(rows, AutoregressiveRows)
        number = int(seed.integers(2**31)) if isinstance(seed, np.random.Generator) else int(seed)
        return Forecast(states, replace(rows, states=states, seed=number), self._forecast_names(), number)

    def _next_rows(self, parameters: ChainParameters, known: Array) -> RowForecast:
        past = self.__dict__.pop("_forecast_past")
        if np.isnan(past).any():
            raise ValueError(
                f"X must end with {self._lags} whole row{'s' * (self._lags > 1)} to forecast from, as order says, got fewer, "
                f"or some with missing values"
            )
        states = MarkovStates(parameters.start, parameters.transitions, len(known))
        return AutoregressiveRows(self._autoregression(parameters), past, states, 0)

    def _position_of(self, key: Key, X: Rows) -> tuple[ChainParameters, Array]:
        opened, name = self.__dict__.get("_open", {}), check_key(key)
        if X is not None:
            past = self._past_of(check_chain_rows(X, type(self).__name__))
        elif name is None and name not in opened and "_end_rows" in self.__dict__:
            past = self._end_rows
        else:
            past = self.__dict__.get("_pasts", {}).get(opened.get(name, NOBODY), np.full((self._lags, 1), np.nan))
        self.__dict__["_forecast_past"] = past  # of this view of the model, which nobody else sees
        return super()._position_of(key, X)

    def _autoregression(self, parameters: ChainParameters) -> Autoregression:
        family = self._linear
        slopes, level = family.coefficients(parameters.emissions)
        return Autoregression(self._by_lag(slopes), level, family.covariances(parameters.emissions))

    def _by_lag(self, slopes: Array) -> Array:
        """Coefficients (K, d, order d) as (K, order, d, d)."""
        k, d, _ = slopes.shape
        return np.ascontiguousarray(np.moveaxis(slopes.reshape(k, d, self._lags, d), 2, 1))

    @reads
    def sample(
        self, n_samples: int = 1, random_state: RandomState = None, currstate: int | None = None
    ) -> tuple[Array, NDArray[np.int64]]:
        """Draw a sequence; the rows before its first one are zeros.

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
        noise, states = super().sample(n_samples, random_state, currstate)
        parameters = self._parameters_seen()
        law, d = self._autoregression(parameters), self._row_width()
        # What was drawn is a row whose rows before it are at their means.
        slopes, level = self._linear.coefficients(parameters.emissions)
        noise = noise[:, -d:] - level[states] - np.einsum("nij,nj->ni", slopes[states], noise[:, :-d])
        X = np.ascontiguousarray(noise)
        walk_autoregression(law.coef, np.ascontiguousarray(level), states, X, self._lags)
        return X, states

    # What was learned

    def _moments(self) -> tuple[Array, Array]:
        return self._target_moments()

    @property
    @reads
    def coef_(self) -> Array:
        """Coefficients (n_components, order, n_features, n_features): of each column, on each column of the rows before."""
        if not self._has_state():
            self._parameters_seen("coef_")
            return self._given["coef_"]
        return self._by_lag(self._linear.coefficients(self._emissions)[0])

    @coef_.setter
    @learns
    def coef_(self, value: Values) -> None:
        self._give("coef_", check_numbers(value, (self._given_number(), int(self.order), -1, -1), "coef_"))

    @property
    @reads
    def intercept_(self) -> Array:
        """What is added to each column (n_components, n_features)."""
        if not self._has_state():
            self._parameters_seen("intercept_")
            return self._given["intercept_"]
        return self._linear.coefficients(self._emissions)[1]

    @intercept_.setter
    @learns
    def intercept_(self, value: Values) -> None:
        self._set_level(value, (self._given_number(), -1))

    @property
    @reads
    def covars_(self) -> Array:
        """Covariances of the noise (n_components, n_features, n_features)."""
        if not self._has_state():
            self._parameters_seen("covars_")
            return self._given["covars_"]
        return self._linear.covariances(self._emissions)

    @covars_.setter
    @learns
    def covars_(self, value: Values) -> None:
        self._give("covars_", check_covariances(value, (self._given_number(), -1, -1), "covars_"))

    # Parameters that are set by hand

    def _given_width(self) -> int:
        return int(self._given["intercept_"].shape[1])

    def _given_emissions(self) -> object:
        d = self._given_width()
        family = self._family(self._width_with(d))
        return family.with_parameters(self._emissions_given("".join(self._emission_names), self._width_with(d)), None)

    def _emissions_given(self, letters: str, width: int) -> dict[str, Array]:
        found = super()._emissions_given(letters, width)
        if "coef" in found:
            k, order, d, _ = found["coef"].shape
            found["coef"] = np.moveaxis(found["coef"], 1, 2).reshape(k, d, order * d)
        return found

    def _family_names(self) -> Mapping[str, str]:
        return {"coef_": "coef", "intercept_": "intercept", "covars_": "covariance"}

    def _given_shape(self, name: str, width: int) -> tuple[int, ...]:
        k, d = int(self.n_components), self._features_of(width)
        return {"coef_": (k, int(self.order), d, d), "intercept_": (k, d), "covars_": (k, d, d)}[name]
