"""MultinomialMixture: streaming soft clustering of documents, baskets and other rows of counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from headwater.core.algorithm import Algorithm
from headwater.core.batch import drop_zeros
from headwater.core.count_validation import check_count_items, check_count_row, check_counts
from headwater.core.learner import Learner
from headwater.core.statistics import Array
from headwater.core.validation import n_dimensions
from headwater.core.values import Matrix, RandomState, Row, Rows, Values
from headwater.diagnostics.component_description import column_names
from headwater.diagnostics.component_intervals import ComponentIntervals
from headwater.diagnostics.observed_information import MOST_PARAMETERS, SHARES
from headwater.estimators.calls import reads
from headwater.estimators.column_mixture import check_level
from headwater.estimators.count_mixture import CountMixture
from headwater.estimators.describers.counts import MultinomialMixtureDescriber
from headwater.estimators.documents import DocumentReader
from headwater.estimators.informed_rows import component_values, find_widening
from headwater.estimators.mixture import CONSTRAINTS
from headwater.estimators.seeds import rng_of
from headwater.estimators.start_parameters import check_array, given_probabilities
from headwater.estimators.traits import Taken
from headwater.families.count_scores import multinomial_scores
from headwater.families.multinomial import Multinomial
from headwater.families.multinomial_rows import worth_thinning
from headwater.families.parameter_scores import ParameterScores

if TYPE_CHECKING:
    from sklearn.utils import Tags


class MultinomialMixture(DocumentReader, CountMixture):
    """A mixture of multinomials that learns from streams of count rows, dense or sparse, or from all rows at once.

    Documents, baskets and other rows of counts (or of weights that are not negative, such as tf-idf) are clustered softly, in
    one pass and without a learning rate to tune. A sparse batch costs what is in it: its rows are never made dense, and of the
    table of all columns only those are touched that it has.

    Parameters
    ----------
    n_components : int or 'auto', default=1
        Number of components. With 'auto' it grows by splits that gain more than 2.5 standard errors, and more than 0.0005 nats
        a row, on rows that did not propose them; of fewer than 1000 rows the least BIC decides (see `growth_`).
    tol : float, default=1e-3
        Passes of `fit` end when the objective per row gains less.
    max_iter : int, default=100
        Most passes over the data in `fit`. With 0 a start is taken as it was seeded.
    n_init : int, default=1
        Runs of `fit` from different starts; the best is kept. An online algorithm makes one run of one pass.
    init_params : {'auto', 'kmeans', 'farthest-first', 'k-means++', 'random', 'random_from_data'}, default='auto'
        How a start is seeded, under the Hellinger distance; 'auto' lets k-means and farthest-first compete.
    weights_init : array-like of shape (n_components,), optional
        Weights to start from.
    probabilities_init : array-like of shape (n_components, n_features), optional
        Probabilities to start from.
    start_weight : float, optional
        Rows that the start counts as: the stream begins as if it had learned so many, distributed as the start says. Default:
        as many as it takes to estimate every parameter, less those of the warm-up. These rows are as long as those of the
        warm-up are on average; without one, as the first row of the stream.
    random_state : int, RandomState instance or None, default=None
        Seed of all random numbers.
    warm_start : bool, default=False
        Whether `fit` continues from the result of the last one.
    verbose : int, default=0
        Whether to print the passes of `fit`, and how much.
    verbose_interval : int, default=10
        Passes between two lines.
    algorithm : str or algorithm object, default='auto'
        'auto', 'em', 'soem', 'boem', 'online-em', 'vb', 'online-vb' or 'quasi-bayes'; see the guide.
    half_life : float or 'auto', optional
        Rows after which the weight of a row is halved, for streams that drift. The prior is not forgotten. Passes of `fit`
        forget nothing. With 'auto' a component forgets only when its rows score worse than reservoir rows predict; see
        `half_life_`.
    warm_up : int or 'auto', default='auto'
        Rows that a start is found on before learning from the stream begins. The model can be read during the warm-up, too.
        With 0 the stream begins at once, at probabilities_init. If labels have named only some components, 'auto' waits for the
        others, for up to four times the rows.
    weight_concentration_prior : float or array-like of shape (n_components,), optional
        Dirichlet parameter of the weights, per component. Default 1.
    probability_concentration_prior : float or array-like, optional
        Dirichlet parameter of the probabilities: one for all columns, one for each (n_features,), or one for each component,
        too (n_components, n_features). For a mode, 1 is subtracted, so with 1 'em' is maximum likelihood. Default: 0.1 counts
        are added to each column, for means and modes alike.
    n_threads : int, optional
        Threads for large sparse chunks; all cores by default. The result does not depend on it.
    parts : int, default=1
        Parts that rows are dealt to in turns; each is learned on its own thread, and they are merged when the model is read.
        Unlike the number of threads, it changes the result.
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
        How the passes of `fit` went; dropped when more is learned. The bound is the mean log-likelihood, log-posterior
        or free energy per row.
    n_samples_seen_ : int
        Rows learned from.
    n_features_in_, feature_names_in_
        Number and names of the columns.

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

    _traits = replace(
        CountMixture._traits,
        measure="counts",
        prior_parameters=("weight_concentration_prior", "probability_concentration_prior"),
        merge_parameters=(
            "n_components",
            "half_life",
            "weight_concentration_prior",
            "probability_concentration_prior",
        ),
        given_start=("weights_init", "probabilities_init"),
        answers=("weights_", "probabilities_"),
    )
    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **CountMixture._parameter_constraints,
        "probabilities_init": ["array-like", None],
        "probability_concentration_prior": ["array-like", None, *CONSTRAINTS["weight_concentration_prior"][1:]],
    }

    @property
    def _describer(self) -> MultinomialMixtureDescriber:
        return MultinomialMixtureDescriber(self)

    def __init__(
        self,
        n_components: int | Literal["auto"] = 1,
        *,
        tol: float = 1e-3,
        max_iter: int = 100,
        n_init: int = 1,
        init_params: str = "auto",
        weights_init: Values = None,
        probabilities_init: Values = None,
        start_weight: float | None = None,
        random_state: RandomState = None,
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 10,
        algorithm: str | Algorithm = "auto",
        half_life: float | Literal["auto"] | None = None,
        warm_up: int | Literal["auto"] = "auto",
        weight_concentration_prior: float | None = None,
        probability_concentration_prior: Values = None,
        n_threads: int | None = None,
        parts: int = 1,
        reservoir: int | Literal["auto"] = "auto",
    ) -> None:
        self.n_components = n_components
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weights_init = weights_init
        self.probabilities_init = probabilities_init
        self.start_weight = start_weight
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
        self.reservoir = reservoir

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    def _checked(self, X: Taken) -> Matrix:
        return _thin_rows(check_counts(X, owner=type(self).__name__))

    def _checked_one(self, x: Row, names: Sequence[str] | None, width: int | None) -> Matrix:
        if isinstance(x, str):
            return self._one_document(x)
        if isinstance(x, Mapping) and names is not None:
            return check_count_items(x, self._places(names), type(self).__name__)
        return _thin_rows(check_count_row(x, names, width, type(self).__name__))

    def _described(self, width: int) -> Learner:
        self._check_parameters()
        prior = self.probability_concentration_prior
        if prior is not None:
            shapes = {0: (), 1: (width,)}
            prior = check_array(
                prior, shapes.get(n_dimensions(prior), (self.n_components, width)), "probability_concentration_prior"
            )
        family = Multinomial(self.n_components, prior)
        given = given_probabilities(family, width, self.weights_init, self.probabilities_init)
        polish = self.probabilities_init is None
        return self._counts_learner(family, width, given, polish, "probability_concentration_prior")

    def _parameters_of(self, kept: NDArray[np.bool_]) -> dict[str, object]:
        prior = self.probability_concentration_prior
        own = {"probability_concentration_prior": np.asarray(prior)[kept]} if n_dimensions(prior) == 2 else {}
        return {**super()._parameters_of(kept), **own}

    @reads
    def sample(self, n_samples: int = 1, length: Values = None) -> tuple[Array, NDArray[np.int64]]:
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
        lengths = self._checked_lengths(n_samples, length)
        return self._model.sample(self._read().parameters, n_samples, rng_of(self), lengths)

    @reads
    def credible_intervals(
        self,
        level: float = 0.9,
        *,
        method: Literal["observed-information", "mean-field"] = "observed-information",
        X: Rows | None = None,
    ) -> ComponentIntervals:
        """Return central credible intervals of weights and probabilities, one by one.

        Parameters
        ----------
        level : float, default=0.9
            Probability of each interval.
        method : {"observed-information", "mean-field"}, default="observed-information"
            How wide intervals are: as the observed information has it (Louis, 1982), but no narrower than the approximate
            posterior; or as wide as that, which is too narrow where components overlap.
        X : array-like of shape (n_samples, n_features), optional
            Rows like those that were learned, by which the information is computed. Default: reservoir rows, where there are
            some without gaps, else rows that are drawn from the model.

        Returns
        -------
        intervals : ComponentIntervals
            `weights` (K, 2) and `values` (K, n_features, 2), which are probabilities; printed, they are a table.

        Examples
        --------
        >>> import numpy as np
        >>> import headwater as hw
        >>> rows = np.random.default_rng(0).multinomial(6, [[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]], size=(500, 2)).reshape(-1, 3)
        >>> model = hw.MultinomialMixture(2, random_state=0).partial_fit(rows)
        >>> for method in ("mean-field", "observed-information"):
        ...     print(model.credible_intervals(method=method).values[0, 0].round(2))
        [0.16 0.18]
        [0.14 0.2 ]
        """
        level, learned = check_level(level), self.probabilities_
        belief, before = self._probability_concentration, self._prior_counts
        if method != "mean-field" and learned.shape[1] > MOST_PARAMETERS:
            raise ValueError(
                f"method must be 'mean-field' with more than {MOST_PARAMETERS:,} columns, got {learned.shape[1]:,}"
            )

        def scores(rows: Array) -> ParameterScores:
            return multinomial_scores(learned, before, rows)

        def quantiles(probabilities: Array) -> Array:
            rest = belief.sum(axis=1, keepdims=True) - belief
            return np.asarray(betaincinv(belief[..., None], rest[..., None], probabilities))

        wider = find_widening(self, method, X, learned.size + len(learned), scores, self._drawn_lengths)
        weights, values = component_values(self, level, wider, quantiles, SHARES)
        return ComponentIntervals(
            level, weights, values, "probabilities", tuple(map(str, column_names(self, learned.shape[1])))
        )

    @property
    def _prior_counts(self) -> Array:
        """Counts (K,) that the priors of the probabilities are worth."""
        prior = self._proper_belief()[0].components
        return np.asarray(np.broadcast_to(prior.beta, self.probabilities_.T.shape).sum(axis=0))

    def _drawn_lengths(self, n: int) -> tuple[NDArray[np.int64]]:
        return (self._checked_lengths(n, None),)

    @property
    @reads
    def probabilities_(self) -> Array:
        """Probability of each column in each component."""
        return self._probabilities

    @property
    @reads
    def probability_concentration_(self) -> Array:
        """Dirichlet parameters (posterior) of the probabilities."""
        return self._probability_concentration


def _thin_rows(rows: Matrix) -> object:
    """Rows without their zeros, if there is little else: they may have to wait."""
    return drop_zeros(rows) if isinstance(rows, np.ndarray) and worth_thinning(rows) else rows
