"""ColumnMixture: what mixtures whose columns are independent in each component have in common."""

from __future__ import annotations

import numbers
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from headwater.core.chunk import Chunk
from headwater.core.statistics import Array
from headwater.core.validation import n_dimensions
from headwater.core.values import Rows, Values
from headwater.diagnostics.component_description import column_names
from headwater.estimators.family_mixture import FamilyMixture
from headwater.estimators.gap_answers import GapAnswers
from headwater.estimators.start_parameters import check_array
from headwater.estimators.traits import Taken
from headwater.families.columns import mark_gaps


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
