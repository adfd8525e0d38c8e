"""PoissonMixture: clusters of rows of counts, each column with its own rate."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv
from sklearn.utils._param_validation import Interval

from headwater.core.algorithm import Algorithm
from headwater.core.gapped_rows import GappedRows
from headwater.core.statistics import Array
from headwater.core.values import Matrix, RandomState, Row, Rows, Values
from headwater.diagnostics.observed_information import POSITIVE
from headwater.estimators.calls import reads
from headwater.estimators.column_mixture import ColumnMixture, ColumnValues, find_column, spread_prior
from headwater.estimators.family_mixture import FamilyMixture
from headwater.estimators.gap_rows import check_gap_rows
from headwater.estimators.traits import Taken
from headwater.families.count_scores import poisson_scores
from headwater.families.parameter_scores import ParameterScores
from headwater.families.poisson import Poisson


class PoissonMixture(ColumnMixture):
    """A mixture of rows of counts whose columns are independent Poisson variables in each component.

    Calls a day, goals a match, errors an hour: each component has a rate for every column. It learns from streams
    (`partial_fit`) or from all rows at once (`fit`).

    Parameters
    ----------
    n_components : int or 'auto', default=1
        Number of components. With 'auto' it grows by splits that gain on rows that did not propose them (see `growth_`).
    exposure : int or str, optional
        The column, by its place or its name, with the time or size in which a row was counted: rates are then events per unit
        of it. It must be positive, and is not scored. Default: every row was counted in one unit.
    rate_prior : float or array-like, optional
        Rates that the prior expects: one for all columns, one for each (n_counts,), or one for each component, too
        (n_components, n_counts). Default: those of all rows of the warm-up.
    rate_prior_weight : float, default=1.0
        Rows that the prior counts as. Modes and means are (prior events + events) / (prior exposure + exposure).
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
    rates_ : ndarray of shape (n_components, n_counts)
        Rate of each column in each component; `n_counts` is the number of columns beside the exposure.
    n_components_ : int
        Number of components; with 'auto', the number that was found.
    converged_, n_iter_, lower_bound_, lower_bounds_
        How the passes of `fit` went; dropped when more is learned.
    n_samples_seen_ : int
        Rows learned from.
    n_features_in_, feature_names_in_
        Number and names of the columns.

    See Also
    --------
    MultinomialMixture : counts of a row whose total says nothing, such as words of documents.

    Notes
    -----
    The prior is Gamma, and the predictive density (`predictive_score_samples`, algorithm 'quasi-bayes') negative binomial.
    Values that are not whole are taken as they are, as scikit-learn's Poisson regression does: the density is then that of the
    same formula. A missing value (NaN) is left out of its row.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import PoissonMixture
    >>> rng = np.random.default_rng(0)
    >>> rates = np.array([[1.0, 8.0], [6.0, 2.0]])
    >>> model = PoissonMixture(2, random_state=0)
    >>> for _ in range(30):
    ...     model = model.partial_fit(rng.poisson(rates[rng.integers(2, size=100)]))
    >>> model.rates_[np.argsort(model.rates_[:, 0])].round().tolist()
    [[1.0, 8.0], [6.0, 2.0]]
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **FamilyMixture._parameter_constraints,
        "exposure": [None, Interval(numbers.Integral, 0, None, closed="left"), str],
        "rate_prior": [None, "array-like", Interval(numbers.Real, 0.0, None, closed="neither")],
        "rate_prior_weight": [Interval(numbers.Real, 0.0, None, closed="neither")],
    }
    _traits = replace(
        ColumnMixture._traits,
        answers=("weights_", "rates_"),
        column_parameters=("exposure",),
        merge_parameters=(*ColumnMixture._traits.merge_parameters, "exposure", "rate_prior", "rate_prior_weight"),
        prior_parameters=(*ColumnMixture._traits.prior_parameters, "exposure", "rate_prior", "rate_prior_weight"),
    )
    _positive_only = True

    def __init__(
        self,
        n_components: int | Literal["auto"] = 1,
        *,
        exposure: int | str | None = None,
        rate_prior: Values = None,
        rate_prior_weight: float = 1.0,
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
        self.exposure = exposure
        self.rate_prior = rate_prior
        self.rate_prior_weight = rate_prior_weight

    def _family_of(self, width: int) -> Poisson:
        at = find_column(self, self.exposure, width, "exposure")
        guess = spread_prior(self.rate_prior, int(self.n_components), width - (at is not None), "rate_prior")
        return Poisson(self.n_components, at, guess, self.rate_prior_weight)

    def _checked(self, X: Taken) -> Matrix:
        return self._check_exposure(super()._checked(X))

    def _checked_one(self, x: Row, names: Sequence[str] | None, width: int | None) -> Matrix:
        return self._check_exposure(super()._checked_one(x, names, width))

    def _check_exposure(self, rows: Matrix) -> Matrix:
        at = find_column(self, self.exposure, rows.shape[1], "exposure")
        if at is None:
            return rows
        if isinstance(rows, GappedRows):  # a row in which nothing was counted has no value, whatever its exposure
            uncounted = GappedRows.of(np.delete(rows.values, at, axis=1)).is_empty
            rows = GappedRows.of(np.where(uncounted[:, None], np.nan, rows.values))
            exposure = rows.values[~uncounted, at]
        else:
            exposure = rows[:, at]
        self._refuse_exposure(exposure)
        return rows

    def _refuse_exposure(self, exposure: Array) -> None:
        wrong = exposure[~(exposure > 0.0)]
        if wrong.size:
            found = "a missing value" if np.isnan(wrong[0]) else f"{wrong[0]:g}"
            raise ValueError(f"column {self.exposure!r}, the exposure, must be positive, got {found}")

    def _gap_rows(self, X: Rows) -> tuple[Array, NDArray[np.bool_]]:
        """An exposure must be there, also of rows in which nothing was counted."""
        rows = check_gap_rows(self, X)
        self._refuse_negative(np.nan_to_num(rows, nan=0.0))
        at = find_column(self, self.exposure, rows.shape[1], "exposure")
        if at is not None:
            self._refuse_exposure(rows[:, at])
        return rows, np.isnan(rows)

    def _check_stored(self, X: Matrix, width: int) -> None:
        super()._check_stored(X, width)
        self._check_exposure(self._refuse_negative(X))

    def _column_values(self) -> ColumnValues:
        family, (prior, totals) = cast(Poisson, self._model.family), self._belief_totals()
        shape, rate = family.belief(prior, totals)
        before, _ = family.belief(prior, totals.scaled(0.0))
        at, learned = find_column(self, self.exposure, self.n_features_in_, "exposure"), self.rates_

        def scores(rows: Array) -> ParameterScores:
            exposure = np.ones(len(rows)) if at is None else rows[:, at]
            return poisson_scores(learned, before, rows if at is None else np.delete(rows, at, axis=1), exposure)

        def quantiles(probabilities: Array) -> Array:
            return np.asarray(gammaincinv(shape[..., None], probabilities) / rate[..., None])

        return ColumnValues("rates", tuple(self._count_names), learned, POSITIVE, scores, quantiles)

    @property
    @reads
    def rates_(self) -> Array:
        """Rate of each column in each component."""
        return self._components.rates

    def _moments(self) -> tuple[Array, Array]:
        rates = self._with_exposure(self.rates_, 1.0)
        return rates, self._with_exposure(self.rates_, 0.0)

    def _with_exposure(self, values: Array, exposure: float) -> Array:
        at = find_column(self, self.exposure, self.n_features_in_, "exposure")
        return values if at is None else np.insert(values, at, exposure, axis=1)

    @property
    def _count_names(self) -> list[str]:
        names, at = self._column_names, find_column(self, self.exposure, self.n_features_in_, "exposure")
        return [name for place, name in enumerate(names) if place != at]
