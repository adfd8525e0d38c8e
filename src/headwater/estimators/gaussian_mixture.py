"""GaussianMixture: the interface of scikit-learn, for streams."""

from __future__ import annotations

import numbers
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from headwater.core.algorithm import Algorithm
from headwater.core.learner import Learner
from headwater.core.validation import n_dimensions, one_line
from headwater.core.values import Matrix, RandomState, Values
from headwater.estimators.component_priors import own_hyperparameters
from headwater.estimators.describers.factor_mixture import FactorMixtureDescriber
from headwater.estimators.describers.gaussian_mixture import GaussianMixtureDescriber
from headwater.estimators.factor_answers import FactorAnswers
from headwater.estimators.factor_settings import factor_family
from headwater.estimators.gap_answers import GapAnswers
from headwater.estimators.gaussian_answers import GaussianAnswers
from headwater.estimators.measured_rows import add_noise
from headwater.estimators.mixture import CONSTRAINTS, MixtureEstimator
from headwater.estimators.precision import DTYPES, NarrowRows
from headwater.estimators.start_parameters import check_array, given_parameters
from headwater.estimators.traits import Taken
from headwater.families.column_steps import check_resolution
from headwater.families.factor_gaussian import FactorGaussian
from headwater.families.gaussian import Gaussian
from headwater.families.gaussian_covariance import COVARIANCES
from headwater.families.gaussian_own_prior import OwnPriorGaussian
from headwater.families.gaussian_scaled import ScaledGaussian
from headwater.models.seeding import INIT_PARAMS

if TYPE_CHECKING:
    from sklearn.utils import Tags


def _has_predictive(model: GaussianMixture) -> bool:
    return model.covariance_type != "factor"  # which keeps no belief about loadings to integrate out


class GaussianMixture(GapAnswers, FactorAnswers, NarrowRows, GaussianAnswers):
    """A mixture of Gaussians that learns from streams, or from all rows at once.

    Names, shapes and meanings are those of `sklearn.mixture.GaussianMixture`. In addition there are `partial_fit`, weights,
    labels, online algorithms, posterior beliefs and `headwater.merge`.

    Parameters
    ----------
    n_components : int or 'auto', default=1
        Number of components. With 'auto' it grows by splits that gain more than 2.5 standard errors, and more than 0.0005 nats
        a row, on rows that did not propose them; of fewer than 1000 rows the least BIC decides (see `growth_`). Streams
        grow by 'auto', 'boem', 'online-vb' and 'quasi-bayes', which then learn in batches and keep a reservoir.
    covariance_type : {'full', 'tied', 'diag', 'spherical', 'factor'}, default='full'
        Each component its own matrix, all the same matrix, each its own diagonal, each its own single variance, or each a few
        factors and a diagonal: a mixture of factor analysers, for many columns and few rows.
    tol : float, default=1e-3
        Passes of `fit` end when the objective per row gains less.
    reg_covar : float, default=1e-6
        Added to the diagonal of maximum-likelihood covariances. With 0 nothing is regularized: `fit` of 'auto' then maximises
        the likelihood, as 'em' does.
    max_iter : int, default=100
        Most passes over the data in `fit`. With 0 a start is taken as it was seeded.
    n_init : int, default=1
        Runs of `fit` from different starts; the best is kept. An online algorithm makes one run of one pass.
    init_params : {'kmeans', 'k-means++', 'random', 'random_from_data'}, default='kmeans'
        How a start is seeded.
    weights_init, means_init, precisions_init : array-like, optional
        Parameters to start from, by any algorithm; precisions in the shape of the covariance type. If means are given, the
        other parameters are found on the rows nearest to each.
    start_weight : float, optional
        Rows that the start counts as: the stream begins as if it had learned so many, distributed as the start says. Default:
        as many as it takes to estimate every parameter, less those of the warm-up.
    random_state : int, RandomState instance or None, default=None
        Seed of all random numbers.
    warm_start : bool, default=False
        Whether `fit` continues from the result of the last one.
    verbose : int, default=0
        Whether to print the passes of `fit`, and how much.
    verbose_interval : int, default=10
        Passes between two lines.
    algorithm : str or algorithm object, default='auto'
        'auto', 'em', 'soem', 'boem', 'online-em', 'vb', 'online-vb', 'quasi-bayes' or 'moment-matching' (not for tied
        covariance); see the guide. 'auto' streams by variational Bayes, and `fit` finishes by passes of EM
        under the prior of the stream. 'em' is maximum likelihood, as in scikit-learn.
    half_life : float or 'auto', optional
        Rows after which the weight of a row is halved, for streams that drift. The prior is not forgotten. Passes of `fit`
        forget nothing. With 'auto' a component forgets only when its rows score worse than reservoir rows predict; see
        `half_life_`.
    warm_up : int or 'auto', default='auto'
        Rows that a start is found on before learning from the stream begins. The model can be read during the warm-up, too.
        With 0 the stream begins at once, at means_init and precisions_init. If labels have named only some components, 'auto'
        waits for the others, for up to four times the rows.
    weight_concentration_prior : float or array-like of shape (n_components,), optional
        Dirichlet parameter of the weights: of all components, or of each. Default 1.
    mean_prior : array-like of shape (n_features,) or (n_components, n_features), optional
        Prior mean of the components, or of each: then learning starts there, unless `means_init` is given. Default: the mean of
        the warm-up rows.
    mean_precision_prior : float or array-like of shape (n_components,), optional
        Rows that the prior mean counts as, or each of them. Default 0.01.
    degrees_of_freedom_prior : float or array-like of shape (n_components,), optional
        Degrees of freedom of the prior of the precisions. Default n_features + 2 (full, tied) or 3 (diag, spherical).
    covariance_prior : array-like, optional
        Prior scale of the covariances: a matrix, a vector (diag) or a number (spherical), which divided by the degrees of
        freedom is a covariance; or one for each component, along a first axis (not tied). Default: the covariance within the
        clusters of the warm-up times the degrees of freedom.
    n_threads : int, optional
        Threads for large chunks; all cores by default. The result does not depend on it.
    parts : int, default=1
        Learn the stream in this many parts after a common warm-up, in parallel if threads allow, and merge them when the
        model is read. Changes the result a little. Rows are dealt in turns, and each part forgets by its part of the
        `half_life`. Passes of `fit` have no parts.

    scale_columns : bool, default=False
        Whether columns are measured in units of their spread among the rows of the warm-up, for good. Then the answer does not
        depend on the units that they come in: reg_covar is a part of the spread, and a spherical covariance is a sphere in
        these units. All that is reported is in the units of the columns; of a sphere `covariances_` then has shape
        (n_components, n_features).
    dtype : {None, 'float32', 'float64'}, default=None
        The type that products with rows are taken in, and of `score_samples` and `predict_proba`. With None both follow the
        rows: of many components and columns, products with float32, float16, int8 and uint8 are taken in float32, and float32
        rows get float32 answers. What is learned is kept in float64, and rounded when it is read if all rows were float32.
    n_factors : int, default=2
        Factors of each component with covariance_type='factor': the rank of its covariance without the diagonal. This type is
        learned by 'auto', 'em', 'soem', 'online-em' and 'simulated-em'. Other types have no factors.
    reservoir : int or 'auto', default='auto'
        Rows that a stream keeps, a random sample of all of them, by which algorithm 'auto' refines itself (see `health_`). They
        are part of the model, and of its files: with 0, or fewer than 25 a component, none are kept. 'auto' keeps
        20,000, or 80 for every parameter, but no more than 64 MB. `fit` keeps none.
    missing : {'accept', 'error'}, default='accept'
        What to do with missing values (NaN, None or NA). They are integrated out, in learning and in every answer, which is
        right if values are missing at random given the observed ones; or they are refused. `health_` says how much was missing.
        A row without any value is left out. Moment matching, and components with factors, learn from complete rows alone.
    resolution : None, 'auto', float or array-like of shape (n_features,), default=None
        The step that each column is rounded to, 0 for none: 1 for whole numbers, 0.01 for cents. Rounding is a measurement
        error of variance step^2 / 12, and no covariance is less than it, so that components which sit on repeated values
        have densities that say something. 'auto' finds the steps on the rows of the warm-up (see `resolution_`). Algorithms
        that fold every row by itself take a readout for each row then, which is slow; moment matching refuses steps.
    background : bool or float, default=False
        Whether some rows belong to no component: broken ones, or some of another kind. With True there is a background beside
        the components, a law so wide that any row may be its own, about the middle of the warm-up rows; its weight is learned.
        A number up to 0.5 is its weight. So one broken row in a thousand neither makes a component nor moves a mean. Rows
        of the background are -1 in `predict`, and the probabilities of `predict_proba` sum to what it leaves. Moment matching
        has no background, and neither have starts that are given.

    Attributes
    ----------
    n_components_ : int
        Number of components; with 'auto', the number that was found.
    growth_ : Growth
        How the number of components was found, step by step; None if n_components is a number.
    half_life_ : ndarray of shape (n_components,)
        Half-life of each component now, in rows of the stream; infinite where nothing is forgotten.
    weights_ : ndarray of shape (n_components,)
        Weight of each component.
    background_weight_ : float
        With `background`, its weight: what the weights of the components lack of one.
    means_ : ndarray of shape (n_components, n_features)
        Mean of each component.
    covariances_, precisions_, precisions_cholesky_ : ndarray
        Covariances, their inverses, and the upper triangular factors of those, shaped by `covariance_type`.
    loadings_ : ndarray of shape (n_components, n_features, n_factors)
        With covariance_type='factor', the loadings of the factors of each component; they are defined up to a rotation.
    resolution_ : ndarray of shape (n_features,)
        The step of each column, 0 where there is none; without `resolution`, all are 0.
    noise_variances_ : ndarray of shape (n_components, n_features)
        With covariance_type='factor', the variance that no factor explains.
    weight_concentration_, mean_precision_, degrees_of_freedom_ : ndarray of shape (n_components,)
        The belief: Dirichlet parameters of the weights, rows behind each mean, degrees of freedom of each precision. With
        diagonal covariance and moment matching the last two are (n_components, n_features).
    merge_report_ : MergeReport
        What was done by `headwater.merge`, if the model comes from there.
    converged_, n_iter_, lower_bound_, lower_bounds_
        How the passes of `fit` went; dropped when more is learned. The bound is the mean log-likelihood, log-posterior
        or free energy per row.
    n_samples_seen_ : int
        Rows learned from.
    n_features_in_, feature_names_in_
        Number and names of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import GaussianMixture
    >>> rng = np.random.default_rng(0)
    >>> model = GaussianMixture(2, random_state=0)
    >>> for _ in range(50):
    ...     chunk = np.where(rng.random((100, 1)) < 0.3, -2.0, 3.0) + rng.normal(size=(100, 1))
    ...     model = model.partial_fit(chunk)
    >>> order = np.argsort(model.means_[:, 0])
    >>> model.means_[order].round(1).ravel().tolist()
    [-2.0, 3.0]
    >>> model.weights_[order].round(1).tolist()
    [0.3, 0.7]
    >>> model.n_samples_seen_
    5000

    The number of components need not be known:

    >>> rows = rng.normal(size=(4000, 2)) + 8.0 * rng.integers(3, size=(4000, 1))
    >>> model = GaussianMixture("auto", random_state=0).partial_fit(rows)
    >>> model.n_components_
    3
    >>> print(model.growth_.steps[0].move, [step.after for step in model.growth_.steps if step.accepted])
    split 0 [2, 3]
    """

    _traits = replace(
        MixtureEstimator._traits,
        shape_parameters=("n_components", "covariance_type", "scale_columns", "n_factors", "background"),
        prior_parameters=(
            "weight_concentration_prior",
            "mean_prior",
            "mean_precision_prior",
            "degrees_of_freedom_prior",
            "covariance_prior",
            "resolution",
        ),
        floor_parameters=("reg_covar",),
        merge_parameters=(
            "n_components",
            "covariance_type",
            "scale_columns",
            "n_factors",
            "background",
            "half_life",
            "reg_covar",
            "weight_concentration_prior",
            "mean_prior",
            "mean_precision_prior",
            "degrees_of_freedom_prior",
            "covariance_prior",
            "resolution",
        ),
        given_start=("weights_init", "means_init", "precisions_init"),
        takes_gaps=True,
        answers=("weights_", "means_", "covariances_"),
    )
    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **CONSTRAINTS,
        "covariance_type": [StrOptions({*COVARIANCES, "factor"})],
        "n_factors": [Interval(numbers.Integral, 1, None, closed="left")],
        "scale_columns": ["boolean"],
        "missing": [StrOptions({"accept", "error"})],
        "background": ["boolean", Interval(numbers.Real, 0.0, 0.5, closed="right")],
        "dtype": [StrOptions(set(DTYPES)), None],
        "reg_covar": [Interval(numbers.Real, 0.0, None, closed="left")],
        "init_params": [StrOptions(set(INIT_PARAMS))],
        "means_init": ["array-like", None],
        "precisions_init": ["array-like", None],
        "mean_prior": ["array-like", None],
        "mean_precision_prior": ["array-like", None, Interval(numbers.Real, 0.0, None, closed="neither")],
        "degrees_of_freedom_prior": ["array-like", None, Interval(numbers.Real, 0.0, None, closed="neither")],
        "covariance_prior": ["array-like", None, Interval(numbers.Real, 0.0, None, closed="neither")],
        "resolution": [None, StrOptions({"auto"}), Interval(numbers.Real, 0.0, None, closed="left"), "array-like"],
    }

    @property
    def _describer(self) -> GaussianMixtureDescriber | FactorMixtureDescriber:
        factors = self._has_state() and isinstance(self._component_family, FactorGaussian)
        return FactorMixtureDescriber(self) if factors else GaussianMixtureDescriber(self)

    def __init__(
        self,
        n_components: int | Literal["auto"] = 1,
        *,
        covariance_type: Literal["full", "tied", "diag", "spherical", "factor"] = "full",
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        max_iter: int = 100,
        n_init: int = 1,
        init_params: str = "kmeans",
        weights_init: Values = None,
        means_init: Values = None,
        precisions_init: Values = None,
        start_weight: float | None = None,
        random_state: RandomState = None,
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 10,
        algorithm: str | Algorithm = "auto",
        half_life: float | Literal["auto"] | None = None,
        warm_up: int | Literal["auto"] = "auto",
        weight_concentration_prior: float | None = None,
        mean_prior: Values = None,
        mean_precision_prior: float | None = None,
        degrees_of_freedom_prior: float | None = None,
        covariance_prior: Values = None,
        n_threads: int | None = None,
        parts: int = 1,
        scale_columns: bool = False,
        n_factors: int = 2,
        dtype: Literal["float32", "float64"] | None = None,
        reservoir: int | Literal["auto"] = "auto",
        missing: Literal["accept", "error"] = "accept",
        resolution: Values = None,
        background: bool | float = False,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weights_init = weights_init
        self.means_init = means_init
        self.precisions_init = precisions_init
        self.start_weight = start_weight
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.algorithm = algorithm
        self.half_life = half_life
        self.warm_up = warm_up
        self.weight_concentration_prior = weight_concentration_prior
        self.mean_prior = mean_prior
        self.mean_precision_prior = mean_precision_prior
        self.degrees_of_freedom_prior = degrees_of_freedom_prior
        self.covariance_prior = covariance_prior
        self.n_threads = n_threads
        self.parts = parts
        self.scale_columns = scale_columns
        self.n_factors = n_factors
        self.dtype = dtype
        self.reservoir = reservoir
        self.missing = missing
        self.resolution = resolution
        self.background = background

    @property
    def _takes_gaps(self) -> bool:
        return super()._takes_gaps and self.covariance_type != "factor"  # whose loadings are learned from complete rows

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._takes_gaps
        return tags

    def _checked(self, X: Taken) -> Matrix:
        return add_noise(X, super()._checked(X))

    predictive_score_samples = available_if(_has_predictive)(MixtureEstimator.predictive_score_samples)

    def _is_large(self, width: int) -> bool:
        dense = self.covariance_type in COVARIANCES and self.covariance_type != "factor"  # the others are refused later
        if not dense or self.scale_columns or self.background or isinstance(self.n_components, str):
            return False
        return COVARIANCES[self.covariance_type].dense_from(int(self.n_components), width)

    # Parameters to learner

    def _described(self, width: int) -> Learner:
        self._check_parameters()
        own = own_hyperparameters(self, width)
        mean_prior = None if self.mean_prior is None or own else check_array(self.mean_prior, (width,), "mean_prior")
        name = f"{type(self).__name__} with {self.covariance_type} covariance"
        resolution = check_resolution(self.resolution, width)
        if self.covariance_type == "factor":
            analysers = self._with_background(factor_family(self, width, mean_prior, resolution))
            return self._learner_of(analysers, width, name, None, polish=True)
        kind = ScaledGaussian if self.scale_columns else Gaussian
        family = OwnPriorGaussian(self.n_components, self.covariance_type, self.reg_covar, *own) if own else kind(
            self.n_components, self.covariance_type, self.reg_covar, mean_prior, self.mean_precision_prior,
            self.degrees_of_freedom_prior, self.covariance_prior, resolution,
        )  # fmt: skip
        family.check_prior(width)
        means_init = self.mean_prior if self.means_init is None and n_dimensions(self.mean_prior) == 2 else self.means_init
        given = given_parameters(family, width, self.weights_init, means_init, self.precisions_init)
        if given is not None and self.background:
            raise ValueError("weights_init, means_init and precisions_init are starts of models without a background")
        learner = self._learner_of(self._with_background(family), width, name, given, polish=means_init is None)
        if resolution is not None and learner.algorithm.projection is not None:
            raise ValueError(
                f"resolution must be None for algorithm {learner.algorithm.word!r}, which projects beliefs without a bound on "
                f"their covariances, got {one_line(self.resolution)}"
            )
        return learner
