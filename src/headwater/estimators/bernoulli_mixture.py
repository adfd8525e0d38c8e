"""BernoulliMixture: clusters of rows of yes and no."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Literal, cast

import numpy as np
from scipy.special import betaincinv
from sklearn.utils._param_validation import Interval

from headwater.core.algorithm import Algorithm
from headwater.core.gapped_rows import GappedRows
from headwater.core.statistics import Array
from headwater.core.values import Matrix, RandomState, Row, Values
from headwater.diagnostics.observed_information import SHARES
from headwater.estimators.calls import reads
from headwater.estimators.column_mixture import ColumnMixture, ColumnValues, spread_prior
from headwater.estimators.family_mixture import FamilyMixture
from headwater.estimators.traits import Taken
from headwater.families.bernoulli import Bernoulli
from headwater.families.columns import mark_gaps
from headwater.families.count_scores import bernoulli_scores
from headwater.families.parameter_scores import ParameterScores


class BernoulliMixture(ColumnMixture):
    """A mixture of rows of yes (1) and no (0) whose columns are independent in each component.

    Answers of a questionnaire, products bought or not, flags of events: each component has a probability for every column.
    With two or more columns that depend on each other it is latent class analysis of yes/no questions.

    Parameters
    ----------
    n_components : int or 'auto', default=1
        Number of components. With 'auto' it grows by splits that gain on rows that did not propose them (see `growth_`).
    binarize : float, optional
        Values above it are 1, the others 0. Default: values must be 0 or 1, or booleans.
    probability_prior : float or array-like, optional
        Probabilities that the prior expects: one for all columns, one for each (n_features,), or one for each component, too
        (n_components, n_features). Default: the shares of ones in the warm-up.
    probability_prior_weight : float, default=1.0
        Rows that the prior counts as. Modes and means are (prior ones + ones) / (prior rows + rows).
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
    probabilities_ : ndarray of shape (n_components, n_features)
        Probability of 1 in each column of each component.
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
    The prior is Beta, and the predictive probability of a row is that at the mean of the belief. A missing value (NaN) is left
    out of its row.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import BernoulliMixture
    >>> rng = np.random.default_rng(0)
    >>> yes = np.array([[0.9, 0.8, 0.9, 0.1], [0.1, 0.2, 0.1, 0.8]])
    >>> model = BernoulliMixture(2, random_state=0)
    >>> for _ in range(30):
    ...     model = model.partial_fit(rng.random((100, 4)) < yes[rng.integers(2, size=100)])
    >>> model.probabilities_[np.argsort(model.probabilities_[:, 0])].round(1).tolist()
    [[0.1, 0.2, 0.1, 0.8], [0.9, 0.8, 0.9, 0.1]]
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **FamilyMixture._parameter_constraints,
        "binarize": [None, Interval(numbers.Real, None, None, closed="neither")],
        "probability_prior": [None, "array-like", Interval(numbers.Real, 0.0, 1.0, closed="neither")],
        "probability_prior_weight": [Interval(numbers.Real, 0.0, None, closed="neither")],
    }
    _traits = replace(
        ColumnMixture._traits,
        answers=("weights_", "probabilities_"),
        merge_parameters=(
            *ColumnMixture._traits.merge_parameters,
            "binarize",
            "probability_prior",
            "probability_prior_weight",
        ),
        prior_parameters=(*ColumnMixture._traits.prior_parameters, "probability_prior", "probability_prior_weight"),
    )

    def __init__(
        self,
        n_components: int | Literal["auto"] = 1,
        *,
        binarize: float | None = None,
        probability_prior: Values = None,
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
        self.binarize = binarize
        self.probability_prior = probability_prior
        self.probability_prior_weight = probability_prior_weight

    def _family_of(self, width: int) -> Bernoulli:
        guess = spread_prior(self.probability_prior, int(self.n_components), width, "probability_prior", most=1.0)
        return Bernoulli(self.n_components, guess, self.probability_prior_weight)

    def _checked(self, X: Taken) -> Matrix:
        return self._as_bits(super()._checked(X))

    def _checked_one(self, x: Row, names: Sequence[str] | None, width: int | None) -> Matrix:
        return self._as_bits(super()._checked_one(x, names, width))

    def _n_class_columns(self) -> int:
        return self.n_features_in_

    def _as_bits(self, rows: Matrix) -> Matrix:
        if isinstance(rows, GappedRows):
            return GappedRows(self._as_bits(rows.values), rows.missing)
        if self.binarize is not None:
            return np.where(np.isnan(rows), np.nan, rows > self.binarize).astype(float)
        wrong = rows[(rows != 0.0) & (rows != 1.0) & ~np.isnan(rows)]
        if wrong.size:
            raise ValueError(
                f"X must hold 0 and 1 only, got {wrong[0]:g}: set binarize= to a threshold, or choose another model"
            )
        return rows

    def _check_stored(self, X: Matrix, width: int) -> None:
        super()._check_stored(X, width)
        values = mark_gaps(X)
        if ((values != 0.0) & (values != 1.0) & ~np.isnan(values)).any():
            raise ValueError("rows must hold 0 and 1 only")

    def _column_values(self) -> ColumnValues:
        family, (prior, totals) = cast(Bernoulli, self._model.family), self._belief_totals()
        ones, zeros = family.belief(prior, totals)
        before, learned = np.add(*family.belief(prior, totals.scaled(0.0))), self.probabilities_

        def scores(rows: Array) -> ParameterScores:
            return bernoulli_scores(learned, before, rows)

        def quantiles(probabilities: Array) -> Array:
            return np.asarray(betaincinv(ones[..., None], zeros[..., None], probabilities))

        return ColumnValues("probabilities", tuple(self._column_names), learned, SHARES, scores, quantiles)

    @property
    @reads
    def probabilities_(self) -> Array:
        """Probability of 1 in each column of each component."""
        return np.exp(self._components.log_ones)

    def _moments(self) -> tuple[Array, Array]:
        chance = self.probabilities_
        return chance, chance * (1.0 - chance)
