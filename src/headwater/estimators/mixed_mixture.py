"""MixedMixture: one model for a table of numbers, categories, flags and counts."""

from __future__ import annotations

import numbers
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal, Self, cast

from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions

from headwater.core.algorithm import Algorithm
from headwater.core.learner import Learner
from headwater.core.statistics import Array
from headwater.core.values import RandomState, Rows, Values
from headwater.estimators.background_answers import BackgroundAnswers
from headwater.estimators.column_kinds import GAUSSIAN, choose_kinds
from headwater.estimators.family_mixture import FamilyMixture
from headwater.estimators.mixed_answers import MixedAnswers
from headwater.estimators.mixed_family import column_product, known_levels
from headwater.estimators.rounded_columns import cell_volumes
from headwater.estimators.table_mixture import TableMixture
from headwater.estimators.table_schema import TableSchema
from headwater.families.background import Background
from headwater.families.column_steps import check_resolution
from headwater.families.family import Family
from headwater.families.gaussian import Gaussian
from headwater.models.mixture import Mixture

if TYPE_CHECKING:
    from sklearn.utils import Tags


class MixedMixture(MixedAnswers, BackgroundAnswers):
    """A mixture for a table as it is: numbers, categories, yes and no, counts, and gaps.

    Given the component, numbers are Gaussian (together, with one covariance matrix), and every other column is independent:
    categories have a table of probabilities, flags a probability, counts a rate. It learns from streams (`partial_fit`) or
    from all rows at once (`fit`): market segments, risk groups, kinds of events.

    Parameters
    ----------
    n_components : int or 'auto', default=1
        Number of components. With 'auto' it grows by splits that gain on rows that did not propose them (see `growth_`).
    columns : 'auto' or mapping, default='auto'
        What columns are, by their names or places: 'gaussian', 'categorical', 'bernoulli', 'poisson' or 'ignore'; positive
        numbers with a tail to the right 'lognormal' or 'gamma'; and with many zeros 'zero-inflated-lognormal',
        'zero-inflated-gamma' or 'zero-inflated-poisson'. Those that are not named, or all with 'auto', are decided on the first
        chunk: numbers are Gaussian, text and categories categorical, booleans Bernoulli. Ids, free text and columns of one
        value are left out, with a warning.
    covariance_type : {'full', 'tied', 'diag', 'spherical'}, default='full'
        Covariance of the numbers.
    reg_covar : float, default=1e-6
        Added to the variances of the numbers.
    resolution : 'auto', None, float or array-like of shape (n_numbers,), default='auto'
        The step that each of the numbers is rounded to, as of `GaussianMixture`. 'auto' finds it on the rows of the warm-up:
        whole numbers make no component thinner than their step.
    max_categories : int, default=256
        Most categories of a column.
    prior_weight : float, default=1.0
        Rows that the prior of all columns but the Gaussian ones is worth: it expects what the rows of the warm-up show.
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
    background : bool or float, default=False
        Whether some rows belong to no component, as in `GaussianMixture`: they are -1 in `predict`. In the background numbers
        and counts may be anywhere, and flags and categories are all as probable.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Weight of each component.
    background_weight_ : float
        With `background`, its weight: what the weights of the components lack of one.
    columns_ : dict
        What each column is, by its name.
    means_, covariances_ : ndarray
        Of the numbers, in the order of `columns_`: shapes as of `GaussianMixture`.
    resolution_ : dict of float
        The step of each of the numbers, 0 where there is none.
    rates_ : dict of ndarray of shape (n_components,)
        Rate of each column of counts.
    column_parameters_ : dict of dict of ndarray of shape (n_components,)
        Of each skewed column: `log_mean` and `log_deviation`, or `shape` and `rate`, and `zero_probability` if it is
        zero-inflated; of 'zero-inflated-poisson' the latter and `rate`.
    probabilities_ : dict of ndarray
        Probability of yes (n_components,) of each flag, and of each category (n_components, n_categories).
    categories_ : dict of ndarray
        Categories of each categorical column, in the order in which they were seen.
    n_components_ : int
        Number of components; with 'auto', the number that was found.
    converged_, n_iter_, lower_bound_, lower_bounds_
        How the passes of `fit` went; dropped when more is learned.
    n_samples_seen_ : int
        Rows learned from.
    n_features_in_, feature_names_in_
        Number and names of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from headwater import MixedMixture
    >>> rng = np.random.default_rng(0)
    >>> young = rng.random(3000) < 0.4
    >>> table = pd.DataFrame(
    ...     {
    ...         "age": np.where(young, rng.normal(25, 4, 3000), rng.normal(60, 6, 3000)),
    ...         "pays": np.where(rng.random(3000) < np.where(young, 0.9, 0.2), "card", "cash"),
    ...         "visits": rng.poisson(np.where(young, 8, 2)),
    ...     }
    ... )
    >>> model = MixedMixture(2, columns={"visits": "poisson"}, random_state=0).fit(table)
    >>> model.columns_
    {'age': 'gaussian', 'pays': 'categorical', 'visits': 'poisson'}
    >>> np.sort(model.means_[:, 0]).round().tolist()
    [25.0, 60.0]
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **FamilyMixture._parameter_constraints,
        "columns": [StrOptions({"auto"}), dict],
        "covariance_type": [StrOptions({"full", "tied", "diag", "spherical"})],
        "reg_covar": [Interval(numbers.Real, 0.0, None, closed="left")],
        "resolution": [None, StrOptions({"auto"}), Interval(numbers.Real, 0.0, None, closed="left"), "array-like"],
        "max_categories": [Interval(numbers.Integral, 2, 65536, closed="both")],
        "prior_weight": [Interval(numbers.Real, 0.0, None, closed="neither")],
        "background": ["boolean", Interval(numbers.Real, 0.0, 0.5, closed="right")],
    }
    _traits = replace(
        TableMixture._traits,
        answers=("weights_",),
        merge_parameters=(
            *TableMixture._traits.merge_parameters,
            "columns",
            "covariance_type",
            "reg_covar",
            "resolution",
            "max_categories",
            "prior_weight",
            "background",
        ),
        shape_parameters=(
            *TableMixture._traits.shape_parameters,
            "columns",
            "covariance_type",
            "max_categories",
            "background",
        ),
        prior_parameters=(*TableMixture._traits.prior_parameters, "prior_weight", "resolution"),
        floor_parameters=("reg_covar",),
    )

    def __init__(
        self,
        n_components: int | Literal["auto"] = 1,
        *,
        columns: Literal["auto"] | dict[object, str] = "auto",
        covariance_type: str = "full",
        reg_covar: float = 1e-6,
        resolution: Values = "auto",
        max_categories: int = 256,
        prior_weight: float = 1.0,
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
        background: bool | float = False,
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
        self.columns = columns
        self.covariance_type = covariance_type
        self.reg_covar = reg_covar
        self.resolution = resolution
        self.max_categories = max_categories
        self.prior_weight = prior_weight
        self.background = background

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.allow_nan = True
        return tags

    def _schema_of(self, names: list[str] | None, columns: list[object]) -> TableSchema:
        shown = names or [f"x{at}" for at in range(len(columns))]
        return TableSchema.of(choose_kinds(columns, shown, self.columns, self._capacity))

    def _family_of(self, width: int) -> Family:
        schema = self.__dict__.get("_schema") or TableSchema.of((GAUSSIAN,) * width)
        resolution = check_resolution(self.resolution, schema.kinds.count(GAUSSIAN))
        gaussian = Gaussian(self.n_components, self.covariance_type, self.reg_covar, resolution=resolution)
        return self._with_background(column_product(schema, width, gaussian, self._capacity, self.prior_weight))

    def _known_sizes(self, learner: Learner) -> tuple[int, ...]:
        family = cast(Mixture, learner.model).family
        return known_levels(family.components if isinstance(family, Background) else family)

    def _to_predict(self, column: str | int, kind: str) -> Self:
        given = dict(self.columns) if isinstance(self.columns, dict) else {}
        return clone(self).set_params(columns={**given, column: given.get(column, kind)})

    def score_samples(self, X: Rows, *, cells: bool = False) -> Array:
        """Return the log-density of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        cells : bool, default=False
            Whether the logarithms of the steps of rounded numbers are added (see `resolution_`): to the first order that is
            the log-probability of the cell that a row was rounded to, so it does not depend on units. If all numbers have a
            step, scores are log-probabilities then, as those of categories and counts are.

        Returns
        -------
        log_prob : ndarray of shape (n_samples,)
            Log-density of each row under the current parameters.
        """
        scores = super().score_samples(X)
        if not cells:
            return scores
        places = [at for at, kind in enumerate(self._schema.kinds) if kind == GAUSSIAN]
        return scores + cell_volumes(self._steps(), self._rows(X).X[:, places])
