"""RegressionHMM: a regression whose coefficients change with a hidden state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from headwater.core.algorithm import Algorithm
from headwater.core.statistics import Array
from headwater.core.values import Key, RandomState, Rows, Values
from headwater.estimators.calls import answers_at_once, learns, reads
from headwater.estimators.chain_forecasts import check_steps
from headwater.estimators.chains import check_chain_rows, check_numbers
from headwater.estimators.describers.linear_chains import RegressionChainDescriber
from headwater.estimators.forecast import Forecast
from headwater.estimators.linear_hmm import LETTERS
from headwater.estimators.seeds import new_key
from headwater.estimators.target_diagnostics import TargetDiagnostics
from headwater.estimators.target_rows import Pair
from headwater.families.linear_gaussian import LinearGaussian
from headwater.models.chain_records import ChainParameters
from headwater.models.forecasting import FamilyRows, RowForecast


class RegressionHMM(TargetDiagnostics):
    """Markov-switching regression: a target is linear in the inputs, and a hidden state says how, and with how much noise.

    Demand and temperature by season of business, returns and factors in calm and in panic. It learns from sequences that may
    never end. Every method takes the inputs X and the target y.

    Parameters
    ----------
    n_components : int or 'auto', default=1
        Number of states. With 'auto' models with up to 32 states are compared on rows that they have not learned yet (see
        `race_`).
    fit_intercept : bool, default=True
        Whether the regressions have an intercept.
    reg_noise : float, default=1e-6
        Least noise variance of passes of EM, as a part of the variance of the target.
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
    coef_ : ndarray of shape (n_components, n_features)
        Coefficients of each state.
    intercept_ : ndarray of shape (n_components,)
        Intercept of each state.
    noise_variance_ : ndarray of shape (n_components,)
        Variance of the noise of each state.
    n_features_in_, n_samples_seen_ : int
        Inputs, and rows learned from.
    monitor_ : Monitor
        How the last `fit` went.

    See Also
    --------
    RegressionMixture : regressions that hold for rows which do not follow one another.

    Notes
    -----
    A row whose target or one of whose inputs is missing (NaN) says nothing: time passes, and it scores 0.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rng = np.random.default_rng(0)
    >>> X, slopes = rng.normal(size=(2000, 1)), np.repeat([2.0, -1.0, 2.0, -1.0], 500)
    >>> y = slopes * X[:, 0] + 0.5 * rng.normal(size=2000)
    >>> model = hw.RegressionHMM(2, random_state=0).fit(X, y)
    >>> np.sort(model.coef_.ravel()).round(1).tolist()
    [-1.0, 2.0]
    >>> model.forecast(2, future=[[1.0], [2.0]]).mean.shape
    (2, 1)
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **TargetDiagnostics._parameter_constraints,
        "fit_intercept": ["boolean"],
    }
    _traits = replace(
        TargetDiagnostics._traits,
        shape_parameters=(*TargetDiagnostics._traits.shape_parameters, "fit_intercept"),
        merge_parameters=(*TargetDiagnostics._traits.merge_parameters, "fit_intercept"),
        answers=("startprob_", "transmat_", "coef_", "intercept_", "noise_variance_"),
    )
    _emission_names: ClassVar[dict[str, str]] = {"c": "coef_", "i": "intercept_", "n": "noise_variance_"}

    def __init__(
        self,
        n_components: int | Literal["auto"] = 1,
        *,
        fit_intercept: bool = True,
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
        self.fit_intercept = fit_intercept
        self.reg_noise = reg_noise

    def _family(self, width: int) -> LinearGaussian:
        return LinearGaussian(self.n_components, 1, bool(self.fit_intercept), float(self.reg_noise))

    def next_state_proba(self, key: Key = None, X: Rows = None, y: Values = None) -> Array:
        """Return the probability of each state at the next row of a sequence.

        Parameters
        ----------
        key : str or int, optional
            The open sequence; if there is none with this key, the next row is its first. By default the one without a name, and
            after a `fit` the last one that was learned.
        X : array-like of shape (n_samples, n_features), optional
            The inputs so far of another sequence, from its first row on; nothing is learned from them.
        y : array-like of shape (n_samples,), optional
            The targets of these rows.

        Returns
        -------
        states : ndarray of shape (n_components,)
            Probabilities, which sum to one.
        """
        return super().next_state_proba(key, None if X is None else Pair(X, y))

    @answers_at_once
    def forecast(  # type: ignore[override]
        self,
        steps: int,
        X: Rows = None,
        y: Values = None,
        key: Key = None,
        future: Rows = None,
        *,
        random_state: RandomState = None,
    ) -> Forecast:
        """Return the law of the next targets of a sequence, whose inputs are known.

        Parameters
        ----------
        steps : int
            How many rows ahead.
        X : array-like of shape (n_samples, n_features), optional
            The inputs so far of a sequence, from its first row on; nothing is learned from them. By default the sequence is one
            that was learned.
        y : array-like of shape (n_samples,), optional
            The targets of these rows.
        key : str or int, optional
            The open sequence. By default the one without a name, and after a `fit` the last one that was learned.
        future : array-like of shape (steps, n_features)
            The inputs of the next rows.
        random_state : int, RandomState instance or None, optional
            Seeds the sampled paths; by default that of the model.

        Returns
        -------
        forecast : Forecast
            State probabilities, mean, variance, quantiles, sampled paths.
        """
        return super().forecast(check_steps(steps), None if X is None else Pair(X, y), key, future, random_state=random_state)

    def _known_future(self, future: Rows, steps: int) -> Array:
        features = self.n_features_in_ if self._has_state() else self._given_width()
        if future is None:
            raise ValueError(
                f"future must hold the inputs of the next {steps} row{'s' * (steps > 1)}, {features} column"
                f"{'s' * (features > 1)}, got None"
            )
        inputs = check_chain_rows(future, type(self).__name__, "future")
        if inputs.shape != (steps, features):
            raise ValueError(f"future must have shape {(steps, features)}, got {inputs.shape}")
        if np.isnan(inputs).any():
            raise ValueError("future must have no missing values, got some")
        return np.column_stack([inputs, np.full(steps, np.nan)])

    def _next_rows(self, parameters: ChainParameters, known: Array) -> RowForecast:
        return FamilyRows(self._linear, parameters.emissions, known, np.array([known.shape[1] - 1]))

    def _forecast_names(self) -> list[str]:
        return ["target"]

    @reads
    def sample(  # type: ignore[override]
        self, X: Rows, random_state: RandomState = None, currstate: int | None = None
    ) -> tuple[Array, NDArray[np.int64]]:
        """Draw targets for a sequence of inputs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The inputs.
        random_state : int, RandomState instance or None, optional
            By default that of the model.
        currstate : int, optional
            The state to begin in.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            The targets.
        states : ndarray of shape (n_samples,)
            The states they came from.
        """
        inputs = check_chain_rows(X, type(self).__name__)
        _, states = super().sample(len(inputs), random_state, currstate)
        if isinstance(random_state, np.random.RandomState):
            random_state = int(random_state.randint(2**31 - 1))
        seed = new_key(self) if random_state is None else random_state
        rng = seed if isinstance(seed, np.random.Generator) else np.random.default_rng((seed, 3))
        rows = np.column_stack([inputs, np.zeros(len(inputs))])
        return self._linear.sample(self._parameters_seen().emissions, states, rng, rows)[:, -1], states

    # What was learned

    def _moments(self) -> tuple[Array, Array]:
        return self._target_moments()

    def _moment_names(self) -> list[str]:
        return ["target"]

    @property
    def _describer(self) -> RegressionChainDescriber:
        return RegressionChainDescriber(self)

    @property
    @reads
    def coef_(self) -> Array:
        """Coefficients of each state (n_components, n_features). May be set before learning (see `init_params`)."""
        if not self._has_state():
            self._parameters_seen("coef_")
            return self._given["coef_"]
        return self._linear.coefficients(self._emissions)[0][:, 0]

    @coef_.setter
    @learns
    def coef_(self, value: Values) -> None:
        self._give("coef_", check_numbers(value, (self._given_number(), -1), "coef_"))

    @property
    @reads
    def intercept_(self) -> Array:
        """Intercept of each state (n_components,). May be set before learning (see `init_params`)."""
        if not self._has_state():
            self._parameters_seen("intercept_")
            return self._given["intercept_"]
        return self._linear.coefficients(self._emissions)[1][:, 0]

    @intercept_.setter
    @learns
    def intercept_(self, value: Values) -> None:
        self._set_level(value, (self._given_number(),))

    @property
    @reads
    def noise_variance_(self) -> Array:
        """Variance of the noise of each state (n_components,). May be set before learning (see `init_params`)."""
        if not self._has_state():
            self._parameters_seen("noise_variance_")
            return self._given["noise_variance_"]
        return self._linear.covariances(self._emissions)[:, 0, 0]

    @noise_variance_.setter
    @learns
    def noise_variance_(self, value: Values) -> None:
        variances = check_numbers(value, (self._given_number(),), "noise_variance_")
        if variances.min(initial=1.0) <= 0.0:
            raise ValueError(f"noise_variance_ must be positive, got {variances.min():g}")
        self._give("noise_variance_", variances)

    # Parameters that are set by hand

    def _given_width(self) -> int:
        return int(self._given["coef_"].shape[1])

    def _given_emissions(self) -> object:
        width = self._width_with(self._given_width())
        return self._family(width).with_parameters(self._emissions_given("".join(self._emission_names), width), None)

    def _emissions_given(self, letters: str, width: int) -> dict[str, Array]:
        found = super()._emissions_given(letters, width)
        if not found:
            return found
        return {
            "coef": found["coef"][:, None],
            "intercept": found["intercept"][:, None],
            "covariance": found["covariance"][:, None, None],
        }

    def _family_names(self) -> Mapping[str, str]:
        return {"coef_": "coef", "intercept_": "intercept", "noise_variance_": "covariance"}

    def _given_shape(self, name: str, width: int) -> tuple[int, ...]:
        k = int(self.n_components)
        return (k, width - 1) if name == "coef_" else (k,)
