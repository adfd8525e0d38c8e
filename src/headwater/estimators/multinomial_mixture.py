"""MultinomialMixture: streaming soft clustering of documents, baskets and other rows of counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln
from sklearn.utils._param_validation import StrOptions

from headwater.algorithms import Algorithm
from headwater.estimators.given import given_weights, shaped
from headwater.estimators.mixture import CONSTRAINTS, MixtureEstimator
from headwater.families.multinomial import Multinomial
from headwater.learner import Learner
from headwater.models.mixture import MixtureParameters
from headwater.models.seeding import INIT_PARAMS
from headwater.statistics import Array
from headwater.validation import check_count_row, check_counts


@dataclass(frozen=True)
class GivenProbabilities:
    """Replaces what a start found by the parameters that the user gave."""

    family: Multinomial
    weights: Array | None
    probabilities: Array | None

    @property
    def complete(self) -> bool:
        """Whether nothing is left to find."""
        return self.probabilities is not None

    def __call__(self, found: MixtureParameters) -> MixtureParameters:
        """Return the start's parameters with the given ones in their place."""
        log_weights = found.log_weights if self.weights is None else np.log(np.maximum(self.weights, 1e-300))
        components = found.components
        if self.probabilities is not None:
            components = self.family.from_probabilities(self.probabilities)
        return MixtureParameters(log_weights, components)


class CountMixture(MixtureEstimator):
    """Base of the mixtures over counts, which share a family."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CONSTRAINTS,
        "init_params": [StrOptions({"auto", "farthest-first", *INIT_PARAMS})],
    }

    def _check_prior(self, prior: Array | None, name: str) -> None:
        """Refuse Dirichlet parameters that are not positive, and those without a mode if that is what is asked for."""
        if prior is None:
            return
        if prior.min() <= 0.0:
            raise ValueError(f"{name} must be positive, got {prior.min():g}")

    def _counts_learner(self, family: Multinomial, width: int, given: Any, names: str) -> Learner:
        learner = self._learner_of(family, width, type(self).__name__, given, polish=given is None or not given.complete)
        prior = family.concentration_prior
        if prior is not None and learner.algorithm.readout == "mode" and np.nanmin(prior) < 1.0:
            raise ValueError(
                f"{names} must be at least 1 for algorithm {learner.algorithm.word!r}, whose probabilities are a mode, got "
                f"{np.nanmin(prior):g}"
            )
        return learner

    def log_posterior(self, X: Any) -> float:
        """Return the log-density of the current parameters and the rows: what MAP-EM maximises.

        The sum of `score_samples`, and the log-density of the prior at the parameters. A prior below 1, which has no mode,
        counts as 1, and without one its default is a part of a count more than 1.

        Parameters
        ----------
        X : array-like or sparse matrix
            The rows.

        Returns
        -------
        log_posterior : float
            Up to the evidence of the rows, which does not depend on the parameters.
        """
        scores = self.score_samples(X)
        state, parameters = self._reading()
        assert state.base is not None
        prior, components = state.base.prior, state.base.prior.components
        alpha = np.maximum(prior.concentration, 1.0)
        weights = gammaln(alpha.sum()) - gammaln(alpha).sum() + ((alpha - 1.0) * parameters.log_weights).sum()
        excess = np.broadcast_to(components.beta - components.shift, (components.width, self.n_components))
        sums = components.totals - components.shift_totals
        sizes = np.bincount(self._family.groups) if self._family.groups.size else np.array([components.width])
        constants = gammaln(sums + sizes[:, None]).sum() - gammaln(excess + 1.0).sum()
        words = self._family.log_prior(components, parameters.components)
        return float(scores.sum() + weights + constants + words)

    @property
    def _family(self) -> Multinomial:
        family = self._model.family
        assert isinstance(family, Multinomial)
        return family

    @property
    def _probabilities(self) -> Array:
        """Probabilities (K, V) of all columns."""
        return self._family.probabilities(self._reading()[1].components)

    def _mean_length(self) -> float:
        """Counts of a row on average."""
        _, statistics, _ = self._proper_belief()
        return float(statistics.length.sum() / statistics.count.sum())


class MultinomialMixture(CountMixture):
    """A mixture of multinomials that learns from streams of count rows, dense or sparse, or from all rows at once.

    Documents, baskets and other rows of counts (or of weights that are not negative, such as tf-idf) are clustered softly, in
    one pass and without a learning rate to tune. A sparse batch costs what is in it: its rows are never made dense, and of the
    table of all columns only those are touched that it has.

    Parameters
    ----------
    n_components : int, default=1
        Number of components.
    tol : float, default=1e-3
        Passes of `fit` end when the objective per row gains less.
    max_iter : int, default=100
        Most passes over the data in `fit`. With 0 a start is taken as it was seeded.
    n_init : int, default=1
        Runs of `fit` from different starts, of which the best is kept. An online algorithm makes one run of one pass.
    init_params : {'auto', 'kmeans', 'farthest-first', 'k-means++', 'random', 'random_from_data'}, default='auto'
        How a start is seeded, under the Hellinger distance; 'auto' lets k-means and farthest-first compete.
    weights_init : array-like of shape (n_components,), optional
        Weights to start from.
    probabilities_init : array-like of shape (n_components, n_features), optional
        Probabilities to start from.
    random_state : int, RandomState instance or None, default=None
        Seed of everything that is random.
    warm_start : bool, default=False
        Whether `fit` goes on from where the last one ended.
    verbose : int, default=0
        Whether to print the passes of `fit`, and how much.
    verbose_interval : int, default=10
        Passes between two lines.
    algorithm : str or algorithm object, default='auto'
        'auto', 'em', 'soem', 'boem', 'online-em', 'vb', 'online-vb' or 'quasi-bayes'; see the table in the README.
    half_life : float, optional
        Rows after which a row counts half, for streams that drift. The prior is not forgotten. Passes of `fit` forget nothing.
    warm_up : int or 'auto', default='auto'
        Rows that are kept to find a start on before the stream proper begins. The model answers during warm-up, too. If labels
        name some components and not yet others, 'auto' waits for these, for up to four times the rows.
    weight_concentration_prior : float, optional
        Dirichlet parameter of the weights, per component. Default 1.
    probability_concentration_prior : float or array-like, optional
        Dirichlet parameter of the probabilities: one for all columns, one for each (n_features,), or one for each component,
        too (n_components, n_features). A mode takes 1 off it, so that 1 makes maximum likelihood of 'em'. Default: 0.1 counts
        are added to each column, for means and modes alike.
    n_threads : int, optional
        Threads for large sparse chunks; all cores by default. Never changes the answer.
    parts : int, default=1
        Parts that the stream is dealt out to, each learned on a thread of its own and merged when the model is read. Unlike
        the number of threads, it changes the answer.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Weight of each component.
    probabilities_ : ndarray of shape (n_components, n_features)
        Probability of each column in each component.
    weight_concentration_ : ndarray of shape (n_components,)
        The belief about the weights: Dirichlet parameters.
    probability_concentration_ : ndarray of shape (n_components, n_features)
        The belief about the probabilities: Dirichlet parameters.
    n_active_ : int
        Number of components with at least one row's worth of belief; see `prune`.
    merge_report_ : MergeReport
        What was done by `headwater.merge`, if the model comes from there.
    converged_, n_iter_, lower_bound_, lower_bounds_
        How the passes of `fit` went, until something else is learned. The bound is the mean log-likelihood, log-posterior
        or free energy per row.
    n_samples_seen_ : int
        Rows learned from.
    n_features_in_, feature_names_in_
        Columns seen in the first chunk.

    Notes
    -----
    Scores are log-probabilities of the counts in the order in which they were drawn: the number of orders, which no parameter
    changes and which weights that are not whole do not have, is left out.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from headwater import MultinomialMixture
    >>> rng = np.random.default_rng(0)
    >>> topics = np.array([[0.7, 0.2, 0.1, 0.0], [0.0, 0.1, 0.2, 0.7]])
    >>> model = MultinomialMixture(2, random_state=0)
    >>> for _ in range(30):
    ...     kinds = rng.integers(2, size=100)
    ...     model = model.partial_fit(csr_array(rng.multinomial(20, topics[kinds])))
    >>> order = np.argsort(model.probabilities_[:, 3])
    >>> model.probabilities_[order].round(1).tolist()
    [[0.7, 0.2, 0.1, 0.0], [0.0, 0.1, 0.2, 0.7]]
    """

    _merge_parameters = (
        "n_components", "half_life", "weight_concentration_prior", "probability_concentration_prior",
    )  # fmt: skip
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CountMixture._parameter_constraints,
        "probabilities_init": ["array-like", None],
        "probability_concentration_prior": ["array-like", None, *CONSTRAINTS["weight_concentration_prior"][1:]],
    }
    _given_start = ("weights_init", "probabilities_init")

    def __init__(
        self,
        n_components: int = 1,
        *,
        tol: float = 1e-3,
        max_iter: int = 100,
        n_init: int = 1,
        init_params: str = "auto",
        weights_init: Any = None,
        probabilities_init: Any = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 10,
        algorithm: str | Algorithm = "auto",
        half_life: float | None = None,
        warm_up: int | Literal["auto"] = "auto",
        weight_concentration_prior: float | None = None,
        probability_concentration_prior: Any = None,
        n_threads: int | None = None,
        parts: int = 1,
    ) -> None:
        self.n_components = n_components
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weights_init = weights_init
        self.probabilities_init = probabilities_init
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.algorithm = algorithm
        self.half_life = half_life
        self.warm_up = warm_up
        self.weight_concentration_prior = weight_concentration_prior
        self.probability_concentration_prior = probability_concentration_prior
        self.n_threads = n_threads
        self.parts = parts

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    def _checked(self, X: Any) -> Any:
        return check_counts(X, owner=type(self).__name__)

    def _checked_one(self, x: Any, names: Any, width: int | None) -> Any:
        return check_count_row(x, names, width, type(self).__name__)

    def _make_learner(self, width: int) -> Learner:
        self._check_parameters()
        prior = self.probability_concentration_prior
        if prior is not None:
            shapes = {0: (), 1: (width,)}
            prior = shaped(prior, shapes.get(np.ndim(prior), (self.n_components, width)), "probability_concentration_prior")
            self._check_prior(prior, "probability_concentration_prior")
        family = Multinomial(self.n_components, prior)
        weights, probabilities = given_weights(self.weights_init, self.n_components), None
        if self.probabilities_init is not None:
            probabilities = shaped(self.probabilities_init, (self.n_components, width), "probabilities")
            if probabilities.min() < 0.0 or not np.allclose(probabilities.sum(axis=1), 1.0):
                raise ValueError("The parameter 'probabilities' should have rows that are not negative and sum to 1")
        given = None
        if weights is not None or probabilities is not None:
            given = GivenProbabilities(family, weights, probabilities)
        return self._counts_learner(family, width, given, "probability_concentration_prior")

    def _parameters_of(self, kept: NDArray[np.bool_]) -> dict[str, Any]:
        prior = self.probability_concentration_prior
        return {"probability_concentration_prior": np.asarray(prior)[kept]} if np.ndim(prior) == 2 else {}

    def sample(self, n_samples: int = 1, length: Any = None) -> tuple[Array, NDArray[np.int64]]:
        """Draw rows of counts from the mixture.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        length : int or array-like of shape (n_samples,), optional
            Counts of each row, which the mixture does not model. Default: the mean of the rows learned from.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            The rows, sorted by component.
        y : ndarray of shape (n_samples,)
            The component of each row.
        """
        n_samples = self._checked_number(n_samples)
        lengths = np.asarray(max(1, round(self._mean_length())) if length is None else length)
        if lengths.dtype.kind not in "iu" or lengths.shape not in ((), (n_samples,)) or lengths.min() < 0:
            raise ValueError(f"length must be a whole number, or one for each of the {n_samples} rows, got {length!r}")
        return self._model.sample(self._reading()[1], n_samples, self._rng(), lengths)

    @property
    def probabilities_(self) -> Array:
        """Probability of each column in each component."""
        return self._probabilities

    @property
    def probability_concentration_(self) -> Array:
        """Dirichlet parameters of the belief about the probabilities."""
        prior, statistics, count = self._proper_belief()
        return np.ascontiguousarray((prior.components.beta + count * np.asarray(statistics.table)).T)

    def _columns(self, components: NDArray[np.int64]) -> tuple[str, list[str], list[list[str]]]:
        names = getattr(self, "feature_names_in_", None)
        lines = []
        for probabilities in self.probabilities_[components]:
            top = np.argsort(-probabilities, kind="stable")[:4]
            lines.append([f"{names[at] if names is not None else at} {probabilities[at]:.2g}" for at in top])
        return "most probable columns", [f"top {place}" for place in range(1, min(4, self.n_features_in_) + 1)], lines
