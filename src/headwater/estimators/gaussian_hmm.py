"""GaussianHMM: hidden Markov models of dense rows, from sequences that may never end."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal, cast

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from headwater.core.algorithm import Algorithm
from headwater.core.gapped_rows import GappedRows
from headwater.core.statistics import Array
from headwater.core.validation import check_row
from headwater.core.values import Key, Matrix, RandomState, Row, Rows, Values
from headwater.estimators.calls import answers_at_once, learns, reads
from headwater.estimators.chain_covariances import KINDS, compact_covariances, factor_of
from headwater.estimators.chains import check_chain_rows, check_numbers
from headwater.estimators.describers.chains import GaussianChainDescriber
from headwater.estimators.hidden_markov import HiddenMarkovEstimator
from headwater.estimators.traits import Taken
from headwater.families.gaussian import Gaussian
from headwater.families.gaussian_scaled import ScaledGaussian

if TYPE_CHECKING:
    from sklearn.utils import Tags


class GaussianHMM(HiddenMarkovEstimator):
    """Hidden Markov model with Gaussian emissions, learned in one pass, from sequences that may never end.

    Names and meanings are hmmlearn's. Beyond it, `partial_fit` goes on with an open sequence, and the answer does not depend on
    how it was cut. NaN, None and NA in some columns of a row are gaps, which are integrated out; a row without any value passes
    time.

    Parameters
    ----------
    n_components : int or 'auto', default=1
        Number of states. With 'auto' models with up to 32 states are compared on rows that they have not learned yet (see
        `race_`).
    covariance_type : {'spherical', 'diag', 'full', 'tied'}, default='diag'
        The kind of covariance.
    min_covar : float, default=1e-6
        Added to the diagonal of the covariances by passes of EM; those of a stream are kept from collapsing by a prior.
    startprob_prior, transmat_prior : float or array-like, optional
        Dirichlet parameters of the first state and of the transitions; 1 is flat. By default flat for passes of EM, and a
        tenth of a count in a stream.
    mean_prior, mean_precision_prior, degrees_of_freedom_prior, covariance_prior : optional
        Prior of the emissions, as in `GaussianMixture`.
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
    params, init_params : str, default='stmc'
        Letters of what is learned, and of what is found at the start: startprob, transmat, means and covars. What `init_params`
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
    scale_columns : bool, default=False
        Whether columns are measured in units of their spread among the rows of the warm-up, for good. Then the answer does not
        depend on the units that they come in: min_covar is a part of the spread, and a spherical covariance is a sphere in
        these units. All that is reported is in the units of the columns; of a sphere the variances then differ by column.

    Attributes
    ----------
    n_components_ : int
        Number of components; with 'auto', that of the best model so far.
    race_ : Race
        How the numbers that 'auto' tries compare; None if n_components is a number.
    startprob_, transmat_, means_, covars_ : ndarray
        What was learned. They may be set before learning.
    n_features_in_, n_features, n_samples_seen_ : int
        Columns (twice, as scikit-learn and hmmlearn call them), and rows learned from.
    monitor_ : Monitor
        How the last `fit` went.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rng = np.random.default_rng(0)
    >>> calm = np.repeat([0, 1, 0, 1, 0, 1], 500)
    >>> rows = rng.normal(scale=np.where(calm, 1.0, 4.0))[:, None]
    >>> model = hw.GaussianHMM(2, random_state=0)
    >>> for chunk in np.split(rows, 10):
    ...     model = model.partial_fit(chunk)
    >>> bool(np.diag(model.transmat_).min() > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **HiddenMarkovEstimator._parameter_constraints,
        "covariance_type": [StrOptions(set(KINDS))],
        "scale_columns": ["boolean"],
        "min_covar": [Interval(numbers.Real, 0.0, None, closed="left")],
        "mean_prior": ["array-like", None],
        "mean_precision_prior": [None, Interval(numbers.Real, 0.0, None, closed="neither")],
        "degrees_of_freedom_prior": [None, Interval(numbers.Real, 0.0, None, closed="neither")],
        "covariance_prior": [None, "array-like", Interval(numbers.Real, 0.0, None, closed="neither")],
    }
    _traits = replace(
        HiddenMarkovEstimator._traits,
        shape_parameters=("n_components", "covariance_type", "scale_columns", "params"),
        prior_parameters=(
            *HiddenMarkovEstimator._traits.prior_parameters,
            "mean_prior",
            "mean_precision_prior",
            "degrees_of_freedom_prior",
            "covariance_prior",
        ),
        floor_parameters=("min_covar",),
        merge_parameters=(
            *HiddenMarkovEstimator._traits.merge_parameters,
            "covariance_type",
            "scale_columns",
            "min_covar",
            "mean_prior",
            "mean_precision_prior",
            "degrees_of_freedom_prior",
            "covariance_prior",
        ),
        answers=("startprob_", "transmat_", "means_", "covars_"),
        takes_gaps=True,
    )
    _letters = "stmc"
    _emission_names: ClassVar[dict[str, str]] = {"m": "means_", "c": "covars_"}

    @property
    def _describer(self) -> GaussianChainDescriber:
        return GaussianChainDescriber(self)

    def __init__(
        self,
        n_components: int | Literal["auto"] = 1,
        covariance_type: str = "diag",
        *,
        min_covar: float = 1e-6,
        startprob_prior: Values = None,
        transmat_prior: Values = None,
        mean_prior: Values = None,
        mean_precision_prior: float | None = None,
        degrees_of_freedom_prior: float | None = None,
        covariance_prior: Values = None,
        start_weight: float | None = None,
        decoder: str = "viterbi",
        random_state: RandomState = None,
        n_iter: int = 10,
        tol: float = 1e-2,
        verbose: int = 0,
        params: str = "stmc",
        init_params: str = "stmc",
        algorithm: str | Algorithm = "auto",
        half_life: float | None = None,
        warm_up: int | str = "auto",
        lag: int = 50,
        n_threads: int | None = None,
        scale_columns: bool = False,
        implementation: str = "log",
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.min_covar = min_covar
        self.startprob_prior = startprob_prior
        self.transmat_prior = transmat_prior
        self.mean_prior = mean_prior
        self.mean_precision_prior = mean_precision_prior
        self.degrees_of_freedom_prior = degrees_of_freedom_prior
        self.covariance_prior = covariance_prior
        self.start_weight = start_weight
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
        self.scale_columns = scale_columns
        self.implementation = implementation

    def _family(self, width: int) -> Gaussian:
        mean = (
            None
            if self.mean_prior is None
            else check_numbers(np.atleast_1d(np.asarray(self.mean_prior)), (width,), "mean_prior")
        )
        kind = ScaledGaussian if self.scale_columns else Gaussian
        if self.scale_columns and set(self.params) < set(self._letters):
            raise ValueError(f"params must name all of {self._letters!r} with scale_columns=True, got {self.params!r}")
        family = kind(
            self.n_components,
            self.covariance_type,
            float(self.min_covar),
            mean,
            self.mean_precision_prior,
            self.degrees_of_freedom_prior,
            self.covariance_prior,
        )
        family.check_prior(width)
        return family

    @property
    @reads
    def n_features(self) -> int:
        """Number of columns, learned or given. May be set before learning, as for hmmlearn."""
        if self._has_state():
            return int(self.n_features_in_)
        given = self.__dict__.get("_given", {})
        if "_n_features" not in self.__dict__ and not {"means_", "covars_"} & set(given):
            raise AttributeError(f"{type(self).__name__} has no n_features yet: nothing was learned, and no means were set")
        return int(self.__dict__.get("_n_features", self._given_width()))

    @n_features.setter
    @learns
    def n_features(self, value: int) -> None:
        if self._has_state():
            raise AttributeError("n_features was learned and cannot be set: make a new model")
        if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
            raise ValueError(f"n_features must be a whole number of at least 1, got {value!r}")
        self._n_features = int(value)

    def _width_of(self, rows: Array) -> int:
        width, wanted = super()._width_of(rows), self.__dict__.get("_n_features")
        if wanted not in (None, width):
            raise ValueError(f"X must have {wanted} columns, as n_features says, got {width}")
        return width

    def _note_columns(self, X: Taken, reset: bool) -> None:
        super()._note_columns(X, reset)
        if reset:
            self.__dict__.pop("_n_features", None)  # which is known by now

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _checked(self, X: Taken, anew: bool = False) -> Array:
        return check_chain_rows(X, type(self).__name__)

    def _checked_one(self, x: Row, names: Sequence[str] | None, width: int | None) -> Array:
        row = check_row(x, names, width, gaps=True)
        return row.values if isinstance(row, GappedRows) else np.asarray(row)

    def _check_stored(self, X: Matrix, width: int) -> None:
        if not isinstance(X, np.ndarray):
            raise ValueError(f"{type(self).__name__} takes rows of numbers")
        self._checked(X)

    # What was learned

    @property
    def _gaussian(self) -> Gaussian:
        return cast(Gaussian, self._model.family)

    @property
    @reads
    def means_(self) -> Array:
        """Mean of each state (n_components, n_features). May be set before learning (see `init_params`)."""
        if not self._has_state():
            self._parameters_seen("means_")
            return self._given["means_"]
        return self._gaussian.means(self._read().parameters.emissions)

    @means_.setter
    @learns
    def means_(self, value: Values) -> None:
        self._give("means_", check_numbers(value, (self._given_number(), -1), "means_"))

    @property
    @reads
    def covars_(self) -> Array:
        """Covariance of each state (n_components, n_features, n_features), as hmmlearn has it for every kind.

        May be set before learning, in this shape or in that of the kind: (n_components, n_features) for 'diag', (n_components,)
        for 'spherical', (n_features, n_features) for 'tied'.
        """
        if self._has_state():
            return self._matrices(self._gaussian.covariances(self._read().parameters.emissions), self.n_features_in_)
        self._parameters_seen("covars_")
        return self._matrices(self._given["covars_"], self._given_width())

    @covars_.setter
    @learns
    def covars_(self, value: Values) -> None:
        self._give("covars_", compact_covariances(value, self._given_number(), self.covariance_type))

    def _matrices(self, covariance: Array, width: int) -> Array:
        """One matrix for each state, whatever the kind."""
        if self.covariance_type == "full":
            return np.array(covariance)
        if self.covariance_type == "tied":
            return np.tile(covariance, (self.n_components_ if self._has_state() else self._given_number(), 1, 1))
        return (covariance[:, None, None] if covariance.ndim == 1 else covariance[:, :, None]) * np.eye(width)

    @answers_at_once
    def next_distribution(self, key: Key = None, X: Rows = None) -> tuple[Array, Array]:
        """Return mean and covariance of the next row of a sequence.

        Parameters
        ----------
        key : str or int, optional
            The open sequence; if there is none with this key, the next row is its first. By default the one without a name, and
            after a `fit` the last one that was learned.
        X : array-like of shape (n_samples, n_features), optional
            The rows so far of another sequence, from its first on; nothing is learned from them.

        Returns
        -------
        mean : ndarray of shape (n_features,)
            Its expectation.
        covariance : ndarray of shape (n_features, n_features)
            Its covariance, over the states it may come from.
        """
        parameters, states = self._next_states(key, X)
        means = self._gaussian.means(parameters.emissions)
        covars = self._matrices(self._gaussian.covariances(parameters.emissions), means.shape[1])
        mean = states @ means
        apart = means - mean
        return mean, np.einsum("k,kij->ij", states, covars) + np.einsum("k,ki,kj->ij", states, apart, apart)

    # Parameters that are set by hand

    def _given_width(self) -> int:
        given = self.__dict__.get("_given", {})
        if "means_" in given:
            return int(given["means_"].shape[1])
        covars = given.get("covars_")
        if covars is None or covars.ndim == 1:
            return int(self.__dict__.get("_n_features", 1))
        return int(covars.shape[-1])

    def _emissions_given(self, letters: str, width: int) -> dict[str, Array]:
        given, found = self.__dict__.get("_given", {}), {}
        k, kind = self.n_components, self.covariance_type
        if "m" in letters and "means_" in given:
            found["means"] = check_numbers(given["means_"], (k, width), "means_")
        if "c" in letters and "covars_" in given:
            shape = {"full": (k, width, width), "tied": (width, width), "diag": (k, width), "spherical": (k,)}[kind]
            if given["covars_"].ndim == 2 and self.scale_columns:  # spheres in units of columns, as they are learned
                shape = (k, width) if kind == "spherical" else shape
            found["factor"] = factor_of(check_numbers(given["covars_"], shape, "covars_"), kind)
        return found

    def _learned_values(self, names: list[str]) -> dict[str, Array]:
        kind = self._runtime.made_with["covariance_type"]
        if "covars_" in names and kind != self.covariance_type:
            raise ValueError(
                f"covariance_type was {kind!r} when covars_ was learned, and is {self.covariance_type!r} now: add 'c' to "
                f"init_params, so that covariances are found anew"
            )
        parameters = self._read().parameters
        return {
            name: self._gaussian.covariances(parameters.emissions) if name == "covars_" else getattr(self, name)
            for name in names
        }

    def _given_emissions(self) -> object:
        width = self._given_width()
        found = self._emissions_given("mc", width)
        return self._family(width).from_precisions(np.zeros(width), found["means"], found["factor"])
