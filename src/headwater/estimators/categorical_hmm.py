"""CategoricalHMM: hidden Markov models of symbols, from sequences that may never end."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from headwater.core.algorithm import Algorithm
from headwater.core.statistics import Array
from headwater.core.values import Key, Matrix, RandomState, Row, Rows, Values
from headwater.estimators.calls import answers_at_once, learns, reads
from headwater.estimators.chains import check_numbers, check_probabilities, check_symbols
from headwater.estimators.component_count import GIVEN
from headwater.estimators.describers.chains import CategoricalChainDescriber
from headwater.estimators.forecast import Seed, SymbolForecast
from headwater.estimators.hidden_markov import HiddenMarkovEstimator
from headwater.estimators.row_hooks import note_schema
from headwater.estimators.sequences import check_merged_symbols, check_same_symbols
from headwater.estimators.traits import Taken
from headwater.families.categorical import Categorical
from headwater.models.forecasting import RowForecast, StateForecast


class CategoricalHMM(HiddenMarkovEstimator):
    """Hidden Markov model of symbols, learned in one pass, from sequences that may never end.

    Names and meanings are hmmlearn's. Beyond it, `partial_fit` goes on with an open sequence, and the answer does not depend on
    how it was cut.

    Parameters
    ----------
    n_components : int or 'auto', default=1
        Number of states. With 'auto' models with up to 32 states are compared on rows that they have not learned yet (see
        `race_`).
    startprob_prior, transmat_prior, emissionprob_prior : float or array-like, optional
        Dirichlet parameters of the first state, of the transitions and of the symbols of each state; 1 is flat. By default
        symbols have a tenth of a count, so that symbols that were never seen are not impossible, and so have states and
        transitions in a stream.
    n_features : int, optional
        Number of symbols, which are 0 to n_features - 1. By default as many as the first chunk has, so give it if a stream may
        bring more.
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
    params, init_params : str, default='ste'
        Letters of what is learned, and of what is found at the start: startprob, transmat and emissionprob. What `init_params`
        leaves out starts as it was set, and a second `fit` continues with it; if it was never set, it is found, too. A first
        state or a transition that is set to 0 stays impossible. What `params` leaves out stays as it was set, or as the start
        finds it.
    algorithm : str or Algorithm, default='auto'
        'auto' streams by online EM in blocks, and `fit` then goes on by passes of EM; 'em' (Baum-Welch), 'online-em' (Cappé's
        recursion, step by step), 'soem', 'boem', 'online-vb', 'vb'; or an object such as ``OnlineEM(batch_size=1000)``.
    half_life : float, optional
        Rows after which the weight of a row is halved.
    warm_up : int or 'auto', default='auto'
        Rows that a start is found on before learning from the stream begins. With 0 it begins at once, at parameters that are
        all set.
    start_weight : float, optional
        Rows that parameters which are set counts as: the stream begins as if it had learned so many, distributed as the start
        says. Default: as many as it takes to estimate every parameter, less those of the warm-up.
    lag : int, default=50
        Rows that a block looks ahead to.
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
    startprob_, transmat_, emissionprob_ : ndarray
        What was learned. They may be set before learning.
    n_features_in_, n_features, n_samples_seen_ : int
        Symbols (twice, as scikit-learn and hmmlearn call them), and rows learned from.
    monitor_ : Monitor
        How the last `fit` went.

    Examples
    --------
    >>> import headwater as hw
    >>> letters = [ord(letter) - 97 for letter in "banana" * 500]
    >>> model = hw.CategoricalHMM(2, random_state=0).fit([[letter] for letter in letters])
    >>> model.predict([[1], [0], [13], [0]]).tolist() in ([0, 1, 0, 1], [1, 0, 1, 0])
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **HiddenMarkovEstimator._parameter_constraints,
        "emissionprob_prior": [None, "array-like", Interval(numbers.Real, 0.0, None, closed="neither")],
        "n_features": [None, Interval(numbers.Integral, 1, None, closed="left")],
    }
    _traits = replace(
        HiddenMarkovEstimator._traits,
        shape_parameters=("n_components", "n_features", "params"),
        prior_parameters=(*HiddenMarkovEstimator._traits.prior_parameters, "emissionprob_prior"),
        merge_parameters=(*HiddenMarkovEstimator._traits.merge_parameters, "emissionprob_prior"),
        takes_symbols=True,
        answers=("startprob_", "transmat_", "emissionprob_"),
    )
    _letters = "ste"
    _concentrations = ("startprob_prior", "transmat_prior", "emissionprob_prior")
    _emission_names: ClassVar[dict[str, str]] = {"e": "emissionprob_"}

    @property
    def _describer(self) -> CategoricalChainDescriber:
        return CategoricalChainDescriber(self)

    def __init__(
        self,
        n_components: int | Literal["auto"] = 1,
        *,
        startprob_prior: Values = None,
        transmat_prior: Values = None,
        emissionprob_prior: Values = None,
        start_weight: float | None = None,
        n_features: int | None = None,
        decoder: str = "viterbi",
        random_state: RandomState = None,
        n_iter: int = 10,
        tol: float = 1e-2,
        verbose: int = 0,
        params: str = "ste",
        init_params: str = "ste",
        algorithm: str | Algorithm = "auto",
        half_life: float | None = None,
        warm_up: int | str = "auto",
        lag: int = 50,
        n_threads: int | None = None,
        implementation: str = "log",
    ) -> None:
        self.n_components = n_components
        self.startprob_prior = startprob_prior
        self.transmat_prior = transmat_prior
        self.emissionprob_prior = emissionprob_prior
        self.start_weight = start_weight
        self.n_features = n_features
        self.decoder = decoder
        self.random_state = random_state
        self.n_iter = n_iter
        self.tol = tol
        self.verbose = verbose
        self.params = params
        self.init_params = init_params
        self.algorithm = algorithm
        self.half_life = half_life
        self.warm_up = warm_up
        self.lag = lag
        self.n_threads = n_threads
        self.implementation = implementation

    def _family(self, width: int) -> Categorical:
        self._check_concentration("emissionprob_prior", (self.n_components, width))
        prior = self.emissionprob_prior
        return Categorical(self.n_components, None if prior is None else np.asarray(prior, dtype=float), n_symbols=width)

    def _n_symbols(self, anew: bool) -> int | None:
        """Number of symbols, if it is known by now; `anew`, of a model that forgets what it learned."""
        given = self.__dict__.get("_given", {}).get("emissionprob_")
        begins_with_given = not anew or ("e" not in self.init_params and self._choice == GIVEN)
        if self._has_state() and begins_with_given:
            return self.n_features_in_
        if given is not None and begins_with_given:
            return int(given.shape[1])
        number = self._given_parameters()["n_features"]
        return None if number is None else int(number)

    @property
    @reads
    def n_features(self) -> int | None:
        """Number of symbols: as given, as in the learned or given probabilities, or None if it is not known."""
        number: int | None = self._given_parameters()["n_features"]
        return self._n_symbols(False) if number is None else number

    @n_features.setter
    @learns
    def n_features(self, value: int | None) -> None:
        self.__dict__["n_features"] = value

    @reads
    def get_params(self, deep: bool = True) -> dict[str, object]:
        """Return the parameters as they were given, whatever was learned.

        Parameters
        ----------
        deep : bool, default=True
            Whether parameters of parameters are returned, too.

        Returns
        -------
        params : dict
            Values by name.
        """
        return {**super().get_params(deep), "n_features": self._given_parameters()["n_features"]}

    def _checked(self, X: Taken, anew: bool = False) -> Array:
        if not anew:
            check_same_symbols(X, self)
        return check_symbols(X, self._n_symbols(anew), type(self).__name__)

    def _check_merge(self, other: Self) -> None:
        super()._check_merge(other)
        check_merged_symbols(self, other)

    def _checked_one(self, x: Row, names: Sequence[str] | None, width: int | None) -> Array:
        values: Matrix = list(x.values()) if isinstance(x, Mapping) else x
        symbols = check_symbols(np.atleast_1d(values), self._n_symbols(False), type(self).__name__, "the row")
        if len(symbols) != 1:
            raise ValueError(f"the row must be one symbol, got {len(symbols)}")
        return symbols

    def _width_of(self, rows: Array) -> int:
        known, present = self._n_symbols(True), rows[~np.isnan(rows)]
        if known is None and not present.size:
            raise ValueError("every row is missing (NaN), so the number of symbols is unknown: give n_features")
        return int(present.max()) + 1 if known is None else known

    def _is_row(self, X: Rows) -> bool:
        given: Matrix = X
        return np.ndim(given) < 2 and np.size(given) == 1

    def _aligned(self, rows: Matrix) -> Matrix:
        return rows  # symbols beyond those that are known were refused before

    def _check_stored(self, X: Matrix, width: int) -> None:
        check_symbols(X, width, type(self).__name__)

    def _note_columns(self, X: Taken, reset: bool) -> None:
        note_schema(self, getattr(X, "given", X), reset)
        if reset:
            self.n_features_in_ = self._width_of(X.rows)

    # What was learned

    @property
    def _categorical(self) -> Categorical:
        return cast(Categorical, self._model.family)

    @property
    @reads
    def emissionprob_(self) -> Array:
        """Probability of each symbol in each state (n_components, n_features). May be set before learning."""
        if not self._has_state():
            self._parameters_seen("emissionprob_")
            return self._given["emissionprob_"]
        probabilities = self._categorical.probabilities(self._read().parameters.emissions)
        return probabilities / probabilities.sum(axis=1, keepdims=True)

    @emissionprob_.setter
    @learns
    def emissionprob_(self, value: object) -> None:
        self._give("emissionprob_", check_probabilities(value, (self._given_number(), -1), "emissionprob_"))

    @answers_at_once
    def next_distribution(self, key: Key = None, X: Rows = None) -> Array:
        """Return the probability of each symbol at the next row of a sequence.

        Parameters
        ----------
        key : str or int, optional
            The open sequence; if there is none with this key, the next row is its first. By default the one without a name, and
            after a `fit` the last one that was learned.
        X : array-like of shape (n_samples, n_features), optional
            The rows so far of another sequence, from its first on; nothing is learned from them.

        Returns
        -------
        probabilities : ndarray of shape (n_symbols,)
            Probabilities, which sum to one.
        """
        parameters, states = self._next_states(key, X)
        probabilities = self._categorical.probabilities(parameters.emissions)
        return states @ (probabilities / probabilities.sum(axis=1, keepdims=True))

    @reads
    def sample(
        self, n_samples: int = 1, random_state: RandomState = None, currstate: int | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
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
        X : ndarray of shape (n_samples, 1)
            The symbols.
        states : ndarray of shape (n_samples,)
            The states they came from.
        """
        X, states = super().sample(n_samples, random_state, currstate)
        return X.astype(np.int64), states

    def _row_width(self) -> int:
        return 1

    def _forecast_names(self) -> list[str]:
        return ["symbol"]

    def _make_forecast(self, states: StateForecast, rows: RowForecast, seed: Seed) -> SymbolForecast:
        return SymbolForecast(states, rows, self._forecast_names(), seed, self.emissionprob_)

    # Parameters that are set by hand

    def _given_width(self) -> int:
        return int(self._given["emissionprob_"].shape[1])

    def _emissions_given(self, letters: str, width: int) -> dict[str, Array]:
        given = self.__dict__.get("_given", {})
        if "e" not in letters or "emissionprob_" not in given:
            return {}
        return {"probabilities": check_numbers(given["emissionprob_"], (self.n_components, width), "emissionprob_")}

    def _learned_values(self, names: list[str]) -> dict[str, Array]:
        return {name: getattr(self, name) for name in names}

    def _given_emissions(self) -> object:
        width = self._given_width()
        return self._family(width).from_probabilities(self._emissions_given("e", width)["probabilities"])

    # How it looks
