"""CategoricalMixture: latent classes, clusters of rows of categories."""

from __future__ import annotations

import numbers
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from headwater.core.algorithm import Algorithm
from headwater.core.learner import Learner
from headwater.core.statistics import Array
from headwater.core.values import RandomState
from headwater.estimators.calls import reads
from headwater.estimators.column_kinds import CATEGORICAL
from headwater.estimators.family_mixture import FamilyMixture
from headwater.estimators.table_mixture import BeliefBlock, TableMixture, category_indicators
from headwater.estimators.table_schema import TableSchema
from headwater.families.category_tables import CategoryTables
from headwater.models.mixture import Mixture

if TYPE_CHECKING:
    from sklearn.utils import Tags


class CategoricalMixture(TableMixture):
    """A mixture of rows of categories (text, whole numbers, booleans) whose columns are independent in each component.

    This is latent class analysis: answers of a questionnaire, attributes of products, codes of claims. Each component has a
    table of probabilities for every column. Columns are given as they are, as a frame, a table or an array, with gaps. A
    new category gets its own cell of the table.

    Parameters
    ----------
    n_components : int or 'auto', default=1
        Number of components. With 'auto' it grows by splits that gain on rows that did not propose them (see `growth_`).
    max_categories : int, default=256
        Most categories of a column. A column with more is refused: it is an id, or free text.
    probability_prior_weight : float, default=1.0
        Rows that the prior is worth: it expects the shares of the warm-up, with a little for categories to come. Modes and
        means are (prior rows of a category + rows) / (prior rows + rows).
    tol : float, default=1e-3
        Passes of `fit` end when the objective per row gains less.
    max_iter : int, default=100
        Most passes over the data in `fit`. With 0 a start is taken as it was seeded.
    n_init : int, default=1
        Runs of `fit` from different starts; the best is kept. An online algorithm makes one run of one pass.
    init_params : {'kmeans', 'farthest-first', 'k-means++', 'random', 'random_from_data', 'auto'}, default='kmeans'
        How a start is seeded; 'auto' lets k-means and farthest-first compete.
    random_state : int, RandomState instance or None, default=None
        Seed of all random numbers.
    warm_start : bool, default=False
        Whether `fit` continues from the result of the last one.
    verbose : int, default=0
        Whether to print the passes of `fit`, and how much.
    verbose_interval : int, default=10
        Passes between two lines.
    algorithm : str or algorithm object, default='auto'
        'auto', 'em', 'soem', 'boem', 'online-em', 'vb', 'online-vb' or 'quasi-bayes'.
    half_life : float or 'auto', optional
        Rows after which the weight of a row is halved, for streams that drift; with 'auto' a component forgets when its rows
        score worse than reservoir rows predict.
    warm_up : int or 'auto', default='auto'
        Rows that a start is found on before learning from the stream begins. The model can be read during the warm-up, too.
    weight_concentration_prior : float or array-like of shape (n_components,), optional
        Dirichlet parameter of the weights, per component. Default 1.
    n_threads : int, optional
        Threads; all cores by default. The result does not depend on it.
    parts : int, default=1
        Parts that rows are dealt to in turns; each is learned on its own thread, and they are merged when the model is read.
    reservoir : int or 'auto', default='auto'
        Rows of the random sample that a stream keeps, by which algorithm 'auto' refines the model.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Weight of each component.
    categories_ : list of ndarray
        Categories of each column, in the order in which they were seen.
    probabilities_ : list of ndarray of shape (n_components, n_categories)
        Probability of each category of each column in each component. What is left to one is that of categories to come.
    n_components_ : int
        Number of components; with 'auto', the number that was found.
    converged_, n_iter_, lower_bound_, lower_bounds_
        How the passes of `fit` went; dropped when more is learned.
    n_samples_seen_ : int
        Rows learned from.
    n_features_in_, feature_names_in_
        Number and names of the columns.

    Notes
    -----
    The prior is Dirichlet, and the predictive probability of a row is that at the mean of the belief. A gap (None, NaN) is left
    out of its row. Latent classes need at least three columns to be told apart.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import CategoricalMixture
    >>> rng = np.random.default_rng(0)
    >>> words = np.array([["red", "round", "sweet"], ["green", "long", "sour"]], dtype=object)
    >>> model = CategoricalMixture(2, random_state=0)
    >>> for _ in range(30):
    ...     kinds = rng.integers(2, size=(100, 1)) ^ (rng.random((100, 3)) < 0.1)
    ...     model = model.partial_fit(words[kinds, np.arange(3)])
    >>> sorted(model.categories_[0].tolist())
    ['green', 'red']
    >>> model.probabilities_[0].max(axis=1).round(1).tolist()
    [0.9, 0.9]
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **FamilyMixture._parameter_constraints,
        "max_categories": [Interval(numbers.Integral, 2, 65536, closed="both")],
        "probability_prior_weight": [Interval(numbers.Real, 0.0, None, closed="neither")],
    }
    _traits = replace(
        TableMixture._traits,
        answers=("weights_",),
        merge_parameters=(*TableMixture._traits.merge_parameters, "max_categories", "probability_prior_weight"),
        shape_parameters=(*TableMixture._traits.shape_parameters, "max_categories"),
        prior_parameters=(*TableMixture._traits.prior_parameters, "probability_prior_weight"),
    )

    def __init__(
        self,
        n_components: int | Literal["auto"] = 1,
        *,
        max_categories: int = 256,
        probability_prior_weight: float = 1.0,
        tol: float = 1e-3,
        max_iter: int = 100,
        n_init: int = 1,
        init_params: str = "kmeans",
        random_state: RandomState = None,
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 10,
        algorithm: str | Algorithm = "auto",
        half_life: float | Literal["auto"] | None = None,
        warm_up: int | Literal["auto"] = "auto",
        weight_concentration_prior: float | None = None,
        n_threads: int | None = None,
        parts: int = 1,
        reservoir: int | Literal["auto"] = "auto",
    ) -> None:
        super().__init__(
            n_components,
            tol=tol,
            max_iter=max_iter,
            n_init=n_init,
            init_params=init_params,
            random_state=random_state,
            warm_start=warm_start,
            verbose=verbose,
            verbose_interval=verbose_interval,
            algorithm=algorithm,
            half_life=half_life,
            warm_up=warm_up,
            weight_concentration_prior=weight_concentration_prior,
            n_threads=n_threads,
            parts=parts,
            reservoir=reservoir,
        )
        self.max_categories = max_categories
        self.probability_prior_weight = probability_prior_weight

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.allow_nan = True
        return tags

    def _schema_of(self, names: list[str] | None, columns: list[object]) -> TableSchema:
        return TableSchema.of((CATEGORICAL,) * len(columns))

    def _family_of(self, width: int) -> CategoryTables:
        levels = self._schema.codebook.sizes if "_schema" in self.__dict__ else ()
        return CategoryTables(self.n_components, self._capacity, levels, self.probability_prior_weight)

    def _known_sizes(self, learner: Learner) -> tuple[int, ...]:
        return cast(CategoryTables, cast(Mixture, learner.model).family).levels

    def _belief_blocks(self, prior: Any, totals: Any) -> list[BeliefBlock]:
        return [(self._model.family, prior, totals)]

    def _block_value_names(self) -> list[list[str]]:
        return [self._category_names(self._column_names)]

    @property
    @reads
    def categories_(self) -> list[NDArray[np.generic]]:
        """Categories of each column."""
        self._fitted()
        return [one.as_array() for one in self._schema.codebook.levels]

    @property
    @reads
    def probabilities_(self) -> list[Array]:
        """Probability of each category of each column in each component."""
        shares = np.exp(self._components.logs)
        return [shares[:, at, :size] for at, size in enumerate(self._schema.codebook.sizes)]

    def _indicators(self) -> list[tuple[str, Array, Array]]:
        return category_indicators(self._column_names, self._schema.codebook, self._components)
