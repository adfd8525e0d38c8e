"""GMMHMM: hidden Markov models whose states are mixtures of Gaussians."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Literal, cast

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from headwater.core.algorithm import Algorithm
from headwater.core.statistics import Array
from headwater.core.values import RandomState, Values
from headwater.estimators.calls import learns, reads
from headwater.estimators.chain_covariances import compact_covariances, factor_of
from headwater.estimators.chains import check_numbers, check_probabilities
from headwater.estimators.covariance_priors import gaussian_hyperparameters
from headwater.estimators.family_hmm import FamilyHMM
from headwater.families.gaussian import Gaussian
from headwater.families.grouped import Grouped
from headwater.families.tied_groups import TiedGroups
from headwater.models.chain_records import ChainParameters
from headwater.models.forecasting import FamilyRows, RowForecast
from headwater.models.grouped_forecast import GroupedRows

PRIORS = ("weights_prior", "means_prior", "means_weight", "covars_prior", "covars_weight")
POSITIVE = Interval(numbers.Real, 0.0, None, closed="neither")


class GMMHMM(FamilyHMM):
    """Hidden Markov model whose rows are, in each state, those of a mixture of Gaussians.

    Names and meanings are hmmlearn's. Beyond it, `partial_fit` goes on with an open sequence, the answer does not depend on how
    it was cut, NaN is a missing value, and there are forecasts.

    Parameters
    ----------
    n_components : int or 'auto', default=1
        Number of states. With 'auto' models with up to 32 states are compared on rows that they have not learned yet (see
        `race_`).
    n_mix : int, default=1
        Number of Gaussians of each state.
    covariance_type : {'diag', 'full', 'tied', 'spherical'}, default='diag'
        Covariance of every Gaussian; 'tied' is a full one for all Gaussians of a state.
    min_covar : float, default=1e-6
        Added to the variances.
    weights_prior : float, default=1.0
        Dirichlet parameter of the weights of each state; 1 is flat.
    means_prior, means_weight : float or array-like, and float, default=0.0
        The Normal prior of every mean: a mean, one number or one for each column, and how many rows it counts as.
    covars_prior, covars_weight : float or array-like, optional
        The prior of every covariance, as hmmlearn has it: scale (n_features, n_features) and degrees of freedom of an inverse
        Wishart law for 'full' and 'tied', shape and scale of an inverse Gamma law for 'diag' and 'spherical'. By default flat
        for passes of EM; in a stream what is not given is found on the rows of the warm-up.
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
    params, init_params : str, default='stmcw'
        Letters of what is learned, and of what is found at the start: startprob, transmat, means, covars and weights, of which
        the last three go together. What `init_params` leaves out starts as it was set, and a second `fit` continues with it; if
        it was never set, it is found, too. A first state or a transition that is set to 0 stays impossible. What `params`
        leaves out stays as it was set, or as the start finds it.
    algorithm : str or Algorithm, default='auto'
        'auto' streams by online EM in blocks, and `fit` then goes on by passes of EM; 'em' (Baum-Welch), 'online-em' (Cappé's
        recursion, step by step), 'soem', 'boem', 'online-vb', 'vb'; or an object such as ``OnlineEM(batch_size=1000)``.
    half_life : float, optional
        Rows after which the weight of a row is halved.
    warm_up : int or 'auto', default='auto'
        Rows that a start is found on before learning from the stream begins. With 0 it begins at once, at parameters that are
        all set.
    start_weight : float, optional
        Rows that parameters which are set count as: the stream begins as if it had learned so many, distributed as the start
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
    startprob_, transmat_ : ndarray
        What was learned of the chain. They may be set before learning.
    weights_ : ndarray of shape (n_components, n_mix)
        Weights of the Gaussians of each state. They, means and covariances may be set before learning.
    means_ : ndarray of shape (n_components, n_mix, n_features)
        Their means.
    covars_ : ndarray of shape (n_components, n_mix), (n_components, n_mix, n_features) or (..., n_features, n_features)
        Their covariances: 'spherical', 'diag' or 'full'; (n_components, n_features, n_features) if 'tied'.
    n_features_in_, n_samples_seen_ : int
        Columns, and rows learned from.
    monitor_ : Monitor
        How the last `fit` went.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rng = np.random.default_rng(0)
    >>> states = np.arange(4000) // 100 % 2
    >>> rows = rng.normal(5.0 * rng.integers(2, size=4000) + 20.0 * states, 1.0)[:, None]
    >>> model = hw.GMMHMM(2, n_mix=2, random_state=0).fit(rows)
    >>> np.sort(model.means_.ravel()).round().tolist()
    [0.0, 5.0, 20.0, 25.0]
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **FamilyHMM._parameter_constraints,
        "n_mix": [Interval(numbers.Integral, 1, None, closed="left")],
        "covariance_type": [StrOptions({"full", "tied", "diag", "spherical"})],
        "min_covar": [Interval(numbers.Real, 0.0, None, closed="left")],
        "weights_prior": [POSITIVE],
        "means_prior": [numbers.Real, "array-like"],
        "means_weight": [Interval(numbers.Real, 0.0, None, closed="left")],
        "covars_prior": [None, numbers.Real, "array-like"],
        "covars_weight": [None, numbers.Real, "array-like"],
    }
    _traits = replace(
        FamilyHMM._traits,
        shape_parameters=(*FamilyHMM._traits.shape_parameters, "n_mix", "covariance_type"),
        prior_parameters=(*FamilyHMM._traits.prior_parameters, *PRIORS),
        floor_parameters=("min_covar",),
        merge_parameters=(*FamilyHMM._traits.merge_parameters, "n_mix", "covariance_type", "min_covar", *PRIORS),
        answers=("startprob_", "transmat_", "weights_", "means_", "covars_"),
    )
    _letters = "stmcw"
    _emission_names: ClassVar[dict[str, str]] = {"m": "means_", "c": "covars_", "w": "weights_"}
    _concentrations: ClassVar[tuple[str, ...]] = ("startprob_prior", "transmat_prior", "weights_prior")

    def __init__(
        self,
        n_components: int | Literal["auto"] = 1,
        n_mix: int = 1,
        *,
        covariance_type: str = "diag",
        min_covar: float = 1e-6,
        weights_prior: float = 1.0,
        means_prior: Values = 0.0,
        means_weight: float = 0.0,
        covars_prior: Values = None,
        covars_weight: Values = None,
        startprob_prior: Values = None,
        transmat_prior: Values = None,
        decoder: str = "viterbi",
        random_state: RandomState = None,
        n_iter: int = 10,
        tol: float = 1e-2,
        verbose: int = 0,
        params: str = "stmcw",
        init_params: str = "stmcw",
        algorithm: str | Algorithm = "auto",
        half_life: float | None = None,
        warm_up: int | str = "auto",
        start_weight: float | None = None,
        lag: int = 50,
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
            start_weight=start_weight,
            lag=lag,
            n_threads=n_threads,
            implementation=implementation,
        )
        self.n_mix = n_mix
        self.covariance_type = covariance_type
        self.min_covar = min_covar
        self.weights_prior = weights_prior
        self.means_prior = means_prior
        self.means_weight = means_weight
        self.covars_prior = covars_prior
        self.covars_weight = covars_weight

    def _family(self, width: int) -> Grouped:
        kind, floor, size = self.covariance_type, float(self.min_covar), int(self.n_mix)
        prior = gaussian_hyperparameters(
            kind, width, (self.means_prior, self.means_weight), (self.covars_prior, self.covars_weight)
        )
        tied = kind == "tied"
        inner = TiedGroups(size, "full", floor, *prior, group=size) if tied else Gaussian(size, kind, floor, *prior)
        return Grouped.of(self.n_components, size, inner, float(self.weights_prior))

    # What was learned

    @property
    def _grouped(self) -> Grouped:
        return cast(Grouped, self._model.family)

    def _by_state(self, values: Array) -> Array:
        return values.reshape(self.n_components_, -1, *values.shape[1:])

    @property
    @reads
    def weights_(self) -> Array:
        """Weights (n_components, n_mix). May be set before learning (see `init_params`)."""
        if not self._has_state():
            self._parameters_seen("weights_")
            return self._given["weights_"]
        weights = np.exp(self._emissions.log_weights)
        return weights / weights.sum(axis=1, keepdims=True)

    @weights_.setter
    @learns
    def weights_(self, value: Values) -> None:
        self._give("weights_", check_probabilities(value, (self._given_number(), int(self.n_mix)), "weights_"))

    @property
    @reads
    def means_(self) -> Array:
        """Means (n_components, n_mix, n_features). May be set before learning (see `init_params`)."""
        if not self._has_state():
            self._parameters_seen("means_")
            return self._given["means_"]
        return self._by_state(self._grouped.inner.means(self._emissions.inner))

    @means_.setter
    @learns
    def means_(self, value: Values) -> None:
        self._give("means_", check_numbers(value, (self._given_number(), int(self.n_mix), -1), "means_"))

    @property
    @reads
    def covars_(self) -> Array:
        """Covariances, in the shape of their kind. May be set before learning (see `init_params`)."""
        if not self._has_state():
            self._parameters_seen("covars_")
            return self._given["covars_"]
        covars = self._by_state(self._grouped.inner.covariances(self._emissions.inner))
        return covars[:, 0].copy() if self.covariance_type == "tied" else covars

    @covars_.setter
    @learns
    def covars_(self, value: Values) -> None:
        k, size, kind = self._given_number(), int(self.n_mix), self.covariance_type
        shape = {"full": (k, size, -1, -1), "tied": (k, -1, -1), "diag": (k, size, -1), "spherical": (k, size)}[kind]
        given = check_numbers(value, shape, "covars_")
        flat = given if kind == "tied" else given.reshape(k * size, *given.shape[2:])
        compact_covariances(flat, len(flat), "full" if kind == "tied" else kind)  # or a refusal
        self._give("covars_", given)

    def _moments(self) -> tuple[Array, Array]:
        weights, means, inner = self.weights_, self.means_, self._grouped.inner
        variances = inner.covariances(self._emissions.inner)
        if inner.kind.matrix:
            variances = np.diagonal(variances, axis1=1, axis2=2)
        spread = np.broadcast_to(variances[:, None] if variances.ndim == 1 else variances, (len(variances), means.shape[2]))
        mean = np.einsum("km,kmd->kd", weights, means)
        return mean, np.einsum("km,kmd->kd", weights, self._by_state(spread) + (means - mean[:, None]) ** 2)

    # Forecasts

    def _row_law(self, parameters: ChainParameters, ahead: Array) -> tuple[Gaussian, object, Array]:
        joint = ahead[:, :, None] * np.exp(parameters.emissions.log_weights)
        return self._grouped.inner, parameters.emissions.inner, joint.reshape(len(ahead), -1)

    def _next_rows(self, parameters: ChainParameters, known: Array) -> RowForecast:
        grouped = self._grouped
        rows = FamilyRows(grouped.inner, parameters.emissions.inner, known, np.arange(known.shape[1]))
        weights = np.exp(parameters.emissions.log_weights)
        return GroupedRows(rows, weights / weights.sum(axis=1, keepdims=True))

    # Parameters that are set by hand

    def _given_width(self) -> int:
        return int(self._given["means_"].shape[2])

    def _family_names(self) -> Mapping[str, str]:
        return {"weights_": "weights", "means_": "centres", "covars_": "factor"}

    def _given_shape(self, name: str, width: int) -> tuple[int, ...]:
        k, size = int(self.n_components), int(self.n_mix)
        if name == "weights_":
            return k, size
        if name == "means_":
            return k, size, width
        shapes = {"full": (k, size, width, width), "tied": (k, width, width), "diag": (k, size, width), "spherical": (k, size)}
        return shapes[self.covariance_type]

    def _emissions_given(self, letters: str, width: int) -> dict[str, Array]:
        found = super()._emissions_given(letters, width)
        if "factor" in found and self.covariance_type == "tied":
            found["factor"] = np.repeat(factor_of(found["factor"], "full")[:, None], int(self.n_mix), axis=1)
        elif "factor" in found:
            flat = found["factor"].reshape(-1, *found["factor"].shape[2:])
            found["factor"] = factor_of(flat, self.covariance_type).reshape(found["factor"].shape)
        return found
