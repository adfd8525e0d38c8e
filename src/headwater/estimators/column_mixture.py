"""ColumnMixture: what mixtures whose columns are independent in each component have in common."""

from __future__ import annotations

import numbers
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from headwater.core.chunk import Chunk
from headwater.core.statistics import Array
from headwater.core.validation import n_dimensions
from headwater.core.values import Rows, Values
from headwater.diagnostics.component_description import column_names
from headwater.diagnostics.component_intervals import ComponentIntervals
from headwater.diagnostics.observed_information import Scale
from headwater.estimators.calls import reads
from headwater.estimators.family_mixture import FamilyMixture
from headwater.estimators.gap_answers import GapAnswers
from headwater.estimators.informed_rows import component_values, find_widening
from headwater.estimators.start_parameters import check_array
from headwater.estimators.traits import Taken
from headwater.families.columns import mark_gaps
from headwater.families.parameter_scores import ParameterScores


@dataclass(frozen=True)
class ColumnValues:
    """Numbers of the columns of each component, such as rates, whose belief is known: what their intervals are made of."""

    called: str
    names: tuple[str, ...]
    learned: Array
    scale: Scale
    scores: Callable[[Array], ParameterScores]
    quantiles: Callable[[Array], Array]


class ColumnMixture(GapAnswers, FamilyMixture):
    """Base of the mixtures of columns that are independent in each component. Abstract."""

    _traits = replace(FamilyMixture._traits, takes_gaps=True)

    def _as_rows(self, X: Rows, learning: bool, anew: bool = False) -> Rows:
        """Return the rows; take note of the names of the columns that a model learns first."""
        if learning and (anew or not self._has_state()):
            names = X.columns if isinstance(X, Chunk) else getattr(X, "columns", None)
            self.__dict__["_first_columns"] = None if names is None else [str(name) for name in names]
        return super()._as_rows(X, learning, anew)

    def _share_columns(self, other: Self) -> None:
        for name in ("_first_columns", "feature_names_in_"):
            if name in other.__dict__:
                self.__dict__[name] = other.__dict__[name]

    def _note_columns(self, X: Taken, reset: bool) -> None:
        super()._note_columns(X, reset)
        self.__dict__.pop("_first_columns", None)  # scikit-learn's attribute has them from here on

    def _gap_rows(self, X: Rows) -> tuple[Array, NDArray[np.bool_]]:
        rows = np.array(mark_gaps(self._rows(X).X))
        return rows, np.isnan(rows)

    def _belief_totals(self) -> tuple[Any, Any]:
        """The prior of the components, and the total statistics that they were learned from."""
        prior, statistics, count = self._proper_belief()
        return prior.components, statistics.scaled(count)

    @abstractmethod
    def _column_values(self) -> ColumnValues:
        """Return the numbers that have intervals."""

    @reads
    def credible_intervals(
        self,
        level: float = 0.9,
        *,
        method: Literal["observed-information", "mean-field"] = "observed-information",
        X: Rows | None = None,
    ) -> ComponentIntervals:
        """Return central credible intervals of the weights, and of what each component has in each column, one by one.

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
            `weights` (K, 2) and `values` (K, columns, 2), which are probabilities or rates; printed, they are a table.
        """
        level, found = check_level(level), self._column_values()
        wider = find_widening(self, method, X, found.learned.size + len(found.learned), found.scores)
        weights, values = component_values(self, level, wider, found.quantiles, found.scale)
        return ComponentIntervals(level, weights, values, found.called, found.names)

    @property
    def _column_names(self) -> list[str]:
        return [str(name) for name in column_names(self, self.n_features_in_)]


def find_column(model: ColumnMixture, column: int | str | None, width: int, parameter: str) -> int | None:
    """Return the place of a column that a parameter names, or refuse it."""
    if column is None:
        return None
    if isinstance(column, str):
        known = getattr(model, "feature_names_in_", None)
        names = [str(name) for name in known] if known is not None else model.__dict__.get("_first_columns")
        if names is None:
            raise ValueError(f"{parameter} is {column!r}, but the columns have no names: give its place, a whole number")
        if column not in names:
            raise ValueError(f"{parameter} must be one of the columns {', '.join(names[:20])}, got {column!r}")
        column = names.index(column)
    if column >= width or width < 2:
        raise ValueError(f"{parameter} must be the place of one of {width} columns, beside at least one other, got {column}")
    return int(column)


def spread_prior(value: Values, n_components: int, width: int, parameter: str, most: float = np.inf) -> Array | float | None:
    """Return what a prior expects, checked: None, a number, one for each column, or one for each component, too."""
    if value is None:
        return None
    shapes: dict[int, tuple[int, ...]] = {0: (), 1: (width,)}
    array = check_array(value, shapes.get(n_dimensions(value), (n_components, width)), parameter)
    if array.min() <= 0.0 or array.max() >= most:
        between = "positive" if np.isinf(most) else f"between 0 and {most:g}"
        raise ValueError(f"{parameter} must be {between}, got {array.flat[np.argmax((array <= 0.0) | (array >= most))]:g}")
    return float(array) if array.ndim == 0 else array


def check_level(level: float) -> float:
    """Return the level of an interval, or refuse it."""
    if not isinstance(level, numbers.Real) or not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}")
    return float(level)
