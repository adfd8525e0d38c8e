"""BayesianGaussianMixture: scikit-learn's names and priors, for streams too."""

from __future__ import annotations

import numbers
from dataclasses import replace
from typing import Any, ClassVar, Literal

from sklearn.utils._param_validation import Interval, StrOptions

from headwater.core.algorithm import Algorithm
from headwater.core.algorithms import AutoVB
from headwater.core.learner import Learner
from headwater.core.statistics import Array
from headwater.core.values import RandomState, Rows, Values
from headwater.estimators.calls import reads
from headwater.estimators.component_priors import component_priors
from headwater.estimators.gaussian_mixture import GaussianMixture
from headwater.estimators.start_parameters import check_array
from headwater.families.family import AnyFamily
from headwater.families.gaussian_covariance import COVARIANCES
from headwater.families.gaussian_records import GaussianPrior
from headwater.families.gaussian_spread import SpreadGaussian
from headwater.models.mixture import Mixture
from headwater.models.mixture_records import MixtureParameters
from headwater.models.stick_breaking import StickBreakingMixture, stick_belief

DIRICHLET, PROCESS = "dirichlet_distribution", "dirichlet_process"
WEIGHTS: dict[str, type[Mixture]] = {DIRICHLET: Mixture, PROCESS: StickBreakingMixture}


class BayesianGaussianMixture(GaussianMixture):
    """A mixture of Gaussians learned by variational Bayes, under the priors of scikit-learn's class of this name.

    Components that the rows do not ask for stay empty. `fit` makes passes over all rows, and `partial_fit` learns streams.

    Parameters
    ----------
    n_components : int, default=1
        Number of components, of which some may stay empty.
    covariance_type : {'full', 'tied', 'diag', 'spherical'}, default='full'
        Each component its own matrix, all the same matrix, each its own diagonal, or each its own single variance.
    tol : float, default=1e-3
        Passes of `fit` end when the bound per row gains less.
    reg_covar : float, default=1e-6
        Variance of columns that are constant. Others have their prior.
    max_iter : int, default=100
        Most passes over the data in `fit`.
    n_init : int, default=1
        Runs of `fit` from different starts; the best is kept.
    init_params : {'kmeans', 'k-means++', 'random', 'random_from_data'}, default='kmeans'
        How a start is seeded.
    weight_concentration_prior_type : {'dirichlet_process', 'dirichlet_distribution'}, default='dirichlet_process'
        The prior of the weights: sticks broken off one after another, or a Dirichlet distribution.
    weight_concentration_prior : float, optional
        Concentration: the less, the fewer components are used. Default 1 / n_components.
    mean_precision_prior : float, optional
        Rows that the prior mean counts as. Default 1.
    mean_prior : array-like of shape (n_features,), optional
        Prior mean of the components. Default: the mean of the rows.
    degrees_of_freedom_prior : float, optional
        Degrees of freedom of the prior of the precisions, more than n_features - 1. Default n_features.
    covariance_prior : float or array-like, optional
        Prior scale of the covariances: a matrix, a vector (diag) or a number (spherical). Default: the covariance of the rows.
    random_state : int, RandomState instance or None, default=None
        Seed of all random numbers.
    warm_start : bool, default=False
        Whether `fit` continues from the result of the last one.
    verbose : int, default=0
        Whether to print the passes of `fit`, and how much.
    verbose_interval : int, default=10
        Passes between two lines.
    algorithm : {'auto', 'vb', 'online-vb'} or algorithm object, default='auto'
        'auto' streams by online variational Bayes in batches, and `fit` finishes by passes over all rows. With a Dirichlet
        distribution, any algorithm of `GaussianMixture`.
    half_life : float, optional
        Rows after which the weight of a row is halved, for streams that drift. The prior is not forgotten.
    warm_up : int or 'auto', default='auto'
        Rows that a start, and what is not given of the prior, are found on.
    n_threads : int, optional
        Threads for large chunks; all cores by default. The result does not depend on it.
    parts : int, default=1
        Learn the stream in this many parts after a common warm-up (see `GaussianMixture`).
    dtype : {None, 'float32', 'float64'}, default=None
        The type that products with rows are taken in, and of answers about rows (see `GaussianMixture`).
    reservoir : int or 'auto', default='auto'
        Rows that a stream keeps where algorithm 'auto' learns it (see `GaussianMixture`).
    missing : {'accept', 'error'}, default='accept'
        What to do with missing values (see `GaussianMixture`).

    Attributes
    ----------
    weights_, means_, covariances_, precisions_, precisions_cholesky_ : ndarray
        As those of `GaussianMixture`: expected weights, means, and inverses of expected precisions.
    weight_concentration_ : tuple of two ndarray, or ndarray, of shape (n_components,)
        Both parameters of the Beta of every stick; or Dirichlet parameters.
    mean_precision_ : ndarray of shape (n_components,)
        Rows behind each mean.
    degrees_of_freedom_ : ndarray of shape (n_components,), or float
        Degrees of freedom of each precision; of a tied one, those that scikit-learn gives.
    weight_concentration_prior_, mean_precision_prior_, mean_prior_, degrees_of_freedom_prior_, covariance_prior_
        The prior, as it was given or found.
    converged_, n_iter_, lower_bound_, lower_bounds_
        How the passes of `fit` went; the bound is the free energy per row.
    n_samples_seen_, n_features_in_, feature_names_in_
        Rows learned from; number and names of the columns.

    Notes
    -----
    `score_samples`, `predict_proba` and `predict` take the expected log-density, as scikit-learn's do. For 'full' and 'tied'
    covariance answers are those of scikit-learn at the same optimum. For 'diag' and 'spherical' scikit-learn expects
    log-determinants as if precisions were matrices; here each is the Gamma that it is, so the fits differ a little.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(500, 2)) + 9.0 * rng.integers(2, size=(500, 1))
    >>> model = hw.BayesianGaussianMixture(n_components=6, random_state=0).fit(rows)
    >>> np.sort(model.weights_)[-3:].round(1).tolist()
    [0.0, 0.5, 0.5]
    """

    # What scikit-learn's class has not.
    weights_init = means_init = precisions_init = resolution = None
    scale_columns = background = False
    n_factors = 0

    _PRIORS = (
        "weight_concentration_prior_type",
        "weight_concentration_prior",
        "mean_prior",
        "mean_precision_prior",
        "degrees_of_freedom_prior",
        "covariance_prior",
    )
    _traits = replace(
        GaussianMixture._traits,
        shape_parameters=("n_components", "covariance_type"),
        prior_parameters=_PRIORS,
        merge_parameters=("n_components", "covariance_type", "half_life", "reg_covar", *_PRIORS),
        given_start=(),
        finds_number=False,  # components that are not needed stay empty
        splits=False,
        scores_bound=True,
    )
    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **{
            name: values
            for name, values in GaussianMixture._parameter_constraints.items()
            if name
            not in {"weights_init", "means_init", "precisions_init", "scale_columns", "n_factors", "resolution", "background"}
        },
        "n_components": [Interval(numbers.Integral, 1, None, closed="left")],
        "covariance_type": [StrOptions(set(COVARIANCES))],
        "half_life": [None, Interval(numbers.Real, 0.0, None, closed="neither")],
        "weight_concentration_prior_type": [StrOptions(set(WEIGHTS))],
        "weight_concentration_prior": [None, Interval(numbers.Real, 0.0, None, closed="neither")],
    }

    def __init__(
        self,
        *,
        n_components: int = 1,
        covariance_type: Literal["full", "tied", "diag", "spherical"] = "full",
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        max_iter: int = 100,
        n_init: int = 1,
        init_params: str = "kmeans",
        weight_concentration_prior_type: Literal["dirichlet_process", "dirichlet_distribution"] = "dirichlet_process",
        weight_concentration_prior: float | None = None,
        mean_precision_prior: float | None = None,
        mean_prior: Values = None,
        degrees_of_freedom_prior: float | None = None,
        covariance_prior: Values = None,
        random_state: RandomState = None,
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 10,
        algorithm: str | Algorithm = "auto",
        half_life: float | None = None,
        warm_up: int | Literal["auto"] = "auto",
        n_threads: int | None = None,
        parts: int = 1,
        dtype: Literal["float32", "float64"] | None = None,
        reservoir: int | Literal["auto"] = "auto",
        missing: Literal["accept", "error"] = "accept",
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weight_concentration_prior_type = weight_concentration_prior_type
        self.weight_concentration_prior = weight_concentration_prior
        self.mean_precision_prior = mean_precision_prior
        self.mean_prior = mean_prior
        self.degrees_of_freedom_prior = degrees_of_freedom_prior
        self.covariance_prior = covariance_prior
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.algorithm = algorithm
        self.half_life = half_life
        self.warm_up = warm_up
        self.n_threads = n_threads
        self.parts = parts
        self.dtype = dtype
        self.reservoir = reservoir
        self.missing = missing

    # Parameters to learner

    def _described(self, width: int) -> Learner:
        self._check_parameters()
        for name in component_priors(self):
            raise ValueError(
                f"{name} must be that of all components, as in scikit-learn; GaussianMixture(algorithm='vb') takes one for each"
            )
        tied, k = self.covariance_type == "tied", int(self.n_components)
        freedom = float(width if self.degrees_of_freedom_prior is None else self.degrees_of_freedom_prior)
        if freedom <= width - 1.0:
            raise ValueError(
                f"The parameter 'degrees_of_freedom_prior' should be greater than {width - 1}, but got {freedom:.3f}."
            )
        mean_prior = None if self.mean_prior is None else check_array(self.mean_prior, (width,), "mean_prior")
        covariance = self.covariance_prior
        if covariance is not None and tied:
            covariance = k * check_array(covariance, (width, width), "covariance_prior")
        family = SpreadGaussian(
            k, self.covariance_type, self.reg_covar, mean_prior,
            1.0 if self.mean_precision_prior is None else float(self.mean_precision_prior),
            k * freedom if tied else freedom, covariance,
        )  # fmt: skip
        family.check_prior(width)
        name = f"{type(self).__name__} with weight_concentration_prior_type={self.weight_concentration_prior_type!r}"
        return self._learner_of(family, width, name, None, polish=True, modal=False)

    @property
    def _concentration(self) -> float:
        return 1.0 / int(self.n_components) if self.weight_concentration_prior is None else self.weight_concentration_prior

    def _mixture_of(self, family: AnyFamily) -> Mixture:
        return WEIGHTS[self.weight_concentration_prior_type](self.n_components, family, self._concentration)

    def _auto(self, family: AnyFamily) -> Algorithm:
        return AutoVB()

    # Answers

    def _row_parameters(self) -> MixtureParameters:
        return self._model.readout("expect_log", *self._proper_belief())

    def score_samples(self, X: Rows, *, noise: Values = None, cells: bool = False) -> Array:
        """Return the expected log-density of each row: a lower bound of its log-density under the belief.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        noise : array-like of shape (n_samples, n_features) or (n_samples, n_features, n_features), optional
            Variances of the measurement errors of the values, or covariances of those of each row.
        cells : bool, default=False
            Has no effect: columns have no steps here.

        Returns
        -------
        log_prob : ndarray of shape (n_samples,)
            Expected log-density of each row.
        """
        return super().score_samples(X, noise=noise, cells=cells)

    # What was learned

    @property
    @reads
    def weight_concentration_(self) -> Any:
        """Both parameters of the Beta of every stick; of a Dirichlet distribution, its parameters."""
        prior, statistics, count = self._proper_belief()
        if self.weight_concentration_prior_type == PROCESS:
            return stick_belief(prior.concentration, count * statistics.count)
        return prior.concentration + count * statistics.count

    @property
    @reads
    def degrees_of_freedom_(self) -> Any:
        """Degrees of freedom of the belief about each precision."""
        found = super().degrees_of_freedom_
        return float(found[0]) / int(self.n_components) if self.covariance_type == "tied" else found

    @property
    @reads
    def weight_concentration_prior_(self) -> float:
        """Concentration of the prior of the weights."""
        return float(self._proper_belief()[0].concentration[0])

    @property
    @reads
    def mean_precision_prior_(self) -> float:
        """Rows that the prior mean counts as."""
        return float(self._component_prior().mean_precision)

    @property
    @reads
    def mean_prior_(self) -> Array:
        """Prior mean of the components."""
        prior = self._component_prior()
        return prior.origin + prior.mean

    @property
    @reads
    def degrees_of_freedom_prior_(self) -> float:
        """Degrees of freedom of the prior of each precision."""
        return float(self._component_prior().dof) / self._sharing

    @property
    @reads
    def covariance_prior_(self) -> Array | float:
        """Prior scale of the covariances, in the shape of `covariance_type`."""
        scale = self._component_prior().scale / self._sharing
        return float(scale[0]) if self.covariance_type == "spherical" else scale

    def _component_prior(self) -> GaussianPrior:
        prior = self._proper_belief()[0].components
        assert isinstance(prior, GaussianPrior)
        return prior

    @property
    def _sharing(self) -> int:
        """Components that share a covariance."""
        return int(self.n_components) if self.covariance_type == "tied" else 1
