"""RegressionMixture: linear regressions, each of which holds for a part of the rows."""

from __future__ import annotations

import numbers
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

from sklearn.utils._param_validation import Interval, StrOptions

from headwater.core.algorithm import Algorithm
from headwater.core.learner import Learner
from headwater.core.values import RandomState, Values
from headwater.estimators.describers.regression_mixture import RegressionMixtureDescriber
from headwater.estimators.mixture import CONSTRAINTS
from headwater.estimators.regression_answers import RegressionAnswers
from headwater.estimators.start_parameters import GivenCoefficients, check_array, given_noise, given_weights
from headwater.estimators.target_mixture import TargetMixture
from headwater.families.gaussian import Gaussian
from headwater.families.regression import Regression

if TYPE_CHECKING:
    from sklearn.utils import Tags

POSITIVE = Interval(numbers.Real, 0.0, None, closed="neither")
SEEDS = ("planes", "kmeans", "random")


class RegressionMixture(RegressionAnswers):
    """A mixture of linear regressions that learns from streams, or from all rows at once.

    Every row has a hidden component, and its target is that component's linear function of the inputs, with its noise. A
    regressor as scikit-learn has them: `predict` is the expected target and `score` is R2; `score_samples` and
    `predict_components` answer what a mixture answers.

    Parameters
    ----------
    n_components : int or 'auto', default=1
        Number of regressions. With 'auto' it grows by splits that gain more than 2.5 standard errors, and more than 0.0005 nats
        a row, on rows that did not propose them; of fewer than 1000 rows the least BIC decides (see `growth_`).
    fit_intercept : bool, default=True
        Whether the regressions have an intercept. Without one, inputs should not lie far from zero in units of their spread.
    gating : {'fixed', 'input'}, default='fixed'
        Whether a component is as probable at all inputs, or more so near its own: then each has a Gaussian over the inputs, and
        inputs and targets may be missing (NaN, None, NA): they are integrated out.
    tol : float, default=1e-3
        Passes of `fit` end when the objective per row gains less.
    reg_noise : float, default=1e-6
        Least noise variance of maximum likelihood, as a part of the variance of the target.
    reg_covar : float, default=1e-6
        Added to the diagonal of maximum-likelihood covariances of the inputs, if they gate.
    max_iter : int, default=100
        Most passes over the data in `fit`. With 0 a start is taken as it was seeded.
    n_init : int, default=1
        Runs of `fit` from different starts; the best is kept. An online algorithm makes one run of one pass.
    init_params : {'planes', 'kmeans', 'random'}, default='planes'
        How a start is seeded: by groups of rows that lie on planes, by groups of rows that lie together, by chance.
    weights_init : array-like of shape (n_components,), optional
        Weights to start from.
    coef_init : array-like of shape (n_components, n_features), optional
        Coefficients to start from.
    intercept_init : array-like of shape (n_components,), optional
        Intercepts to start from, with `coef_init`. Default: those of planes through the mean of the rows.
    noise_variance_init : float or array-like of shape (n_components,), optional
        Noise variances to start from, with `coef_init`. Default: those found on the rows nearest to each.
    start_weight : float, optional
        Rows that the start counts as: the stream begins as if it had learned so many, distributed as the start says. Default:
        as many as it takes to estimate every parameter, less those of the warm-up. Their inputs are as those of the warm-up;
        without one they lie about the first row, at a distance of 1 in every column.
    random_state : int, RandomState instance or None, default=None
        Seed of all random numbers.
    warm_start : bool, default=False
        Whether `fit` continues from the result of the last one.
    verbose : int, default=0
        Whether to print the passes of `fit`, and how much.
    verbose_interval : int, default=10
        Passes between two lines.
    algorithm : str or algorithm object, default='auto'
        'auto', 'em', 'soem', 'boem', 'online-em', 'simulated-em', 'vb', 'online-vb' or 'quasi-bayes'; see the guide.
        'auto' streams by variational Bayes, and `fit` finishes by passes of EM.
    half_life : float or 'auto', optional
        Rows after which the weight of a row is halved, for streams that drift. The prior is not forgotten. Passes of `fit`
        forget nothing. With 'auto' a component forgets only when its rows score worse than reservoir rows predict; see
        `half_life_`.
    warm_up : int or 'auto', default='auto'
        Rows that a start is found on before learning from the stream begins. The model can be read during the warm-up, too.
        With 0 the stream begins at once, at coef_init and noise_variance_init.
    weight_concentration_prior : float or array-like of shape (n_components,), optional
        Dirichlet parameter of the weights, per component. Default 1.
    coef_prior : array-like of shape (n_features,), optional
        Prior mean of the coefficients. Default 0. The plane of the prior goes through the mean of the warm-up rows.
    coef_precision_prior : float, optional
        Rows that the prior of coefficients and intercept counts as. Default 0.001.
    degrees_of_freedom_prior : float, optional
        Degrees of freedom of the prior of the noise. Default 3.
    noise_variance_prior : float, optional
        Noise variance before any row: the inverse of the prior's mean precision. Default: that of the warm-up.
    n_threads : int, optional
        Threads for large chunks; all cores by default. The result does not depend on it.
    parts : int, default=1
        Learn the stream in this many parts after a common warm-up, and merge them when the model is read.
    reservoir : int or 'auto', default='auto'
        Rows that a stream keeps, a random sample of all of them, by which algorithm 'auto' refines itself (see `health_`). They
        are part of the model, and of its files: with 0, or fewer than 25 a component, none are kept. 'auto' keeps
        20,000, or 80 for every parameter, but no more than 64 MB. `fit` keeps none.

    Attributes
    ----------
    n_components_ : int
        Number of components; with 'auto', the number that was found.
    growth_ : Growth
        How it came to that, step by step; None if n_components is a number.
    half_life_ : ndarray of shape (n_components,)
        Half-life of each component now, in rows of the stream; infinite where nothing is forgotten.
    weights_ : ndarray of shape (n_components,)
        Weight of each component.
    coef_ : ndarray of shape (n_components, n_features)
        Coefficients of each regression.
    intercept_ : ndarray of shape (n_components,)
        Intercept of each regression.
    noise_variance_ : ndarray of shape (n_components,)
        Variance about each regression.
    input_means_, input_covariances_ : ndarray
        Gaussians over the inputs, if they gate.
    weight_concentration_, degrees_of_freedom_ : ndarray of shape (n_components,)
        The belief: Dirichlet parameters of the weights, degrees of freedom of each noise.
    coef_precision_ : ndarray of shape (n_components, n_features, n_features)
        The belief: precisions of the coefficients, in units of the precision of the noise.
    merge_report_ : MergeReport
        What was done by `headwater.merge`, if the model comes from there.
    converged_, n_iter_, lower_bound_, lower_bounds_
        How the passes of `fit` went; dropped when more is learned.
    n_samples_seen_ : int
        Rows learned from.
    n_features_in_, feature_names_in_
        Columns of the inputs seen in the first chunk.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import RegressionMixture
    >>> rng = np.random.default_rng(0)
    >>> model = RegressionMixture(2, random_state=0)
    >>> for _ in range(50):
    ...     X = rng.uniform(-3.0, 3.0, size=(100, 1))
    ...     slope = np.where(rng.random(100) < 0.3, 2.0, -1.0)
    ...     model = model.partial_fit(X, slope * X[:, 0] + 0.2 * rng.normal(size=100))
    >>> order = np.argsort(model.coef_[:, 0])
    >>> (model.coef_[order, 0] + 0.0).round(1).tolist()
    [-1.0, 2.0]
    >>> model.weights_[order].round(1).tolist()
    [0.7, 0.3]
    >>> order[model.predict_components([[2.0]], [3.9])].tolist() == [1]
    True
    """

    _traits = replace(
        TargetMixture._traits,
        shape_parameters=("n_components", "fit_intercept", "gating"),
        prior_parameters=(
            "weight_concentration_prior",
            "coef_prior",
            "coef_precision_prior",
            "degrees_of_freedom_prior",
            "noise_variance_prior",
        ),
        floor_parameters=("reg_noise", "reg_covar"),
        merge_parameters=(
            "n_components",
            "fit_intercept",
            "gating",
            "half_life",
            "reg_noise",
            "reg_covar",
            "weight_concentration_prior",
            "coef_prior",
            "coef_precision_prior",
            "degrees_of_freedom_prior",
            "noise_variance_prior",
        ),
        given_start=("weights_init", "coef_init", "intercept_init", "noise_variance_init"),
        answers=("weights_", "coef_", "intercept_", "noise_variance_"),
        takes_gaps=True,
    )
    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **CONSTRAINTS,
        "fit_intercept": ["boolean"],
        "gating": [StrOptions({"fixed", "input"})],
        "reg_noise": [Interval(numbers.Real, 0.0, None, closed="left")],
        "reg_covar": [Interval(numbers.Real, 0.0, None, closed="left")],
        "init_params": [StrOptions(set(SEEDS))],
        "coef_init": ["array-like", None],
        "intercept_init": ["array-like", None],
        "noise_variance_init": ["array-like", POSITIVE, None],
        "coef_prior": ["array-like", None],
        "coef_precision_prior": [None, POSITIVE],
        "degrees_of_freedom_prior": [None, POSITIVE],
        "noise_variance_prior": [None, POSITIVE],
    }

    @property
    def _describer(self) -> RegressionMixtureDescriber:
        return RegressionMixtureDescriber(self)

    def __init__(
        self,
        n_components: int | Literal["auto"] = 1,
        *,
        fit_intercept: bool = True,
        gating: Literal["fixed", "input"] = "fixed",
        tol: float = 1e-3,
        reg_noise: float = 1e-6,
        reg_covar: float = 1e-6,
        max_iter: int = 100,
        n_init: int = 1,
        init_params: str = "planes",
        weights_init: Values = None,
        coef_init: Values = None,
        intercept_init: Values = None,
        noise_variance_init: Values = None,
        start_weight: float | None = None,
        random_state: RandomState = None,
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 10,
        algorithm: str | Algorithm = "auto",
        half_life: float | Literal["auto"] | None = None,
        warm_up: int | Literal["auto"] = "auto",
        weight_concentration_prior: float | None = None,
        coef_prior: Values = None,
        coef_precision_prior: float | None = None,
        degrees_of_freedom_prior: float | None = None,
        noise_variance_prior: float | None = None,
        n_threads: int | None = None,
        parts: int = 1,
        reservoir: int | Literal["auto"] = "auto",
    ) -> None:
        self.n_components = n_components
        self.fit_intercept = fit_intercept
        self.gating = gating
        self.tol = tol
        self.reg_noise = reg_noise
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weights_init = weights_init
        self.coef_init = coef_init
        self.intercept_init = intercept_init
        self.noise_variance_init = noise_variance_init
        self.start_weight = start_weight
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.algorithm = algorithm
        self.half_life = half_life
        self.warm_up = warm_up
        self.weight_concentration_prior = weight_concentration_prior
        self.coef_prior = coef_prior
        self.coef_precision_prior = coef_precision_prior
        self.degrees_of_freedom_prior = degrees_of_freedom_prior
        self.noise_variance_prior = noise_variance_prior
        self.n_threads = n_threads
        self.parts = parts
        self.reservoir = reservoir

    @property
    def _takes_gaps(self) -> bool:
        return super()._takes_gaps and self.gating == "input"  # without it nothing is known of inputs

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._takes_gaps
        return tags

    # Parameters to learner

    def _described(self, width: int) -> Learner:
        self._check_parameters()
        k, inputs = self.n_components, width - self._traits.target_columns
        coef_prior = None if self.coef_prior is None else check_array(self.coef_prior, (inputs,), "coef_prior")
        gate = Gaussian(k, reg_covar=self.reg_covar) if self.gating == "input" else None
        family = Regression(
            k, bool(self.fit_intercept), self.reg_noise, coef_prior, self.coef_precision_prior, self.degrees_of_freedom_prior,
            self.noise_variance_prior, gate,
        )  # fmt: skip
        weights = given_weights(self.weights_init, k)
        coef = None if self.coef_init is None else check_array(self.coef_init, (k, inputs), "coef_init")
        level = None if self.intercept_init is None else check_array(self.intercept_init, (k,), "intercept_init")
        if level is not None and (coef is None or not self.fit_intercept):
            raise ValueError("intercept_init must come with coef_init, and with fit_intercept=True")
        noise = given_noise(self.noise_variance_init, k, coef is not None)
        given = None if weights is None and coef is None else GivenCoefficients(family, weights, coef, level, noise)
        return self._learner_of(family, width, type(self).__name__, given, polish=coef is None)
