"""ColumnRegressor and ColumnClassifier: one column of a mixture, predicted from the others, as scikit-learn has it."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from headwater.core.chunk import Chunk
from headwater.core.statistics import Array
from headwater.core.validation import check_finite, check_target, numeric, one_line
from headwater.core.values import AnyArray, Rows, Values
from headwater.estimators.gap_rows import read_gaps

if TYPE_CHECKING:
    from sklearn.utils import Tags


class _ColumnView(BaseEstimator):
    """What both have: a mixture of all columns, of which one is the target."""

    model_: Any
    n_features_in_: int
    place_: int

    def __init__(self, model: Any, column: str | int = -1) -> None:
        self.model = model
        self.column = column

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.model.__sklearn_tags__().input_tags.allow_nan
        tags.target_tags.required = True
        return tags

    def _look_into(self, model: Any) -> None:
        """Take over a mixture that has learned all columns."""
        check_is_fitted(model)
        width, names = model.n_features_in_, getattr(model, "feature_names_in_", None)
        if width < 2:
            raise ValueError("a model of one column has no other columns to predict it from")
        self.place_ = find_column(self.column, width, names)
        self.model_, self.n_features_in_ = model, width - 1
        if names is not None:
            self.feature_names_in_ = np.delete(np.asarray(names, dtype=object), self.place_)

    def _learn(self, rows: Array, y: Array, sample_weight: Values) -> None:
        """Fit a new mixture on the rows with the target among their columns."""
        width, names, named = rows.shape[1] + 1, getattr(self, "feature_names_in_", None), isinstance(self.column, str)
        place = width - 1 if named else find_column(self.column, width, None)
        table = np.insert(rows, place, y, axis=1)
        columns = [*map(str, names), str(self.column)] if named and names is not None else None
        if columns is not None and self.column in columns[:-1]:
            raise ValueError(f"X must not have the column {self.column!r}, which is the target")
        self.model_ = clone(self.model).fit(Chunk(table, columns), sample_weight=sample_weight)
        self.place_ = place

    def _inputs(self, X: Rows, reset: bool = False) -> Array:
        """Return the other columns of rows, NaN where a value is missing."""
        if not reset:
            check_is_fitted(self, "model_")
        if issparse(X):
            raise TypeError(f"X is a sparse matrix, but {type(self).__name__} needs dense rows: pass X.toarray()")
        rows = read_gaps(X, type(self).__name__)
        validate_data(self, X, skip_check_array=True, reset=reset)
        if not self.__sklearn_tags__().input_tags.allow_nan:
            check_finite(rows, "X")
        return rows

    def _with_target(self, rows: Array, target: Array | float) -> Chunk:
        """Rows of the mixture, with this in place of the target."""
        table = np.insert(rows, self.place_, target, axis=1)
        return Chunk(table, getattr(self.model_, "feature_names_in_", None))


class ColumnRegressor(RegressorMixin, _ColumnView):
    """One column of a mixture, predicted from the others: Gaussian mixture regression.

    `GaussianMixture.regressor(column)` makes one that is fitted. Rows have the other columns, of which some may be missing.

    Parameters
    ----------
    model : estimator
        The mixture. `fit` learns a copy of it that knows nothing yet, and leaves this one as it is.
    column : str or int, default=-1
        Name or place of the column. After `fit` a name is that of the last column.

    Attributes
    ----------
    model_ : estimator
        The mixture that predicts.
    place_ : int
        Place of the column among those of the mixture.
    n_features_in_, feature_names_in_
        The other columns.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-3.0, 3.0, size=(5000, 1))
    >>> rows = np.column_stack([x, np.sin(x) + 0.1 * rng.normal(size=(5000, 1))])
    >>> sine = hw.GaussianMixture(8, random_state=0).fit(rows).regressor(1)
    >>> bool(np.abs(sine.predict([[0.0], [1.5]]) - [0.0, np.sin(1.5)]).max() < 0.1)
    True
    >>> low, high = sine.predict_interval([[0.0]], level=0.9)
    >>> bool(low[0] < 0.0 < high[0])
    True
    """

    def fit(self, X: Rows, y: Values, sample_weight: Values = None) -> Self:
        """Learn a new mixture of the rows, with y as one of its columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The other columns.
        y : array-like of shape (n_samples,)
            The column to predict.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        self : object
            The fitted regressor.
        """
        rows = self._inputs(X, reset=True)
        if y is not None:
            y = column_or_1d(y, warn=True)
        self._learn(rows, check_target(y, len(rows), type(self).__name__), sample_weight)
        return self

    def predict(self, X: Rows, return_std: bool = False) -> Any:
        """Return the conditional mean of the column.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The other columns.
        return_std : bool, default=False
            Whether to return the conditional standard deviation, too.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Means.
        y_std : ndarray of shape (n_samples,)
            Standard deviations, if they are asked for.
        """
        rows = self._inputs(X)
        law = self.model_.condition(self._with_target(rows, np.nan))
        mean = law.mean[:, self.place_]
        return (mean, np.sqrt(law.variance[:, self.place_])) if return_std else mean

    def predict_interval(self, X: Rows, level: float = 0.9) -> tuple[Array, Array]:
        """Return the central interval of the column given the others: exact quantiles of the mixture.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The other columns.
        level : float, default=0.9
            Probability that each interval holds.

        Returns
        -------
        low, high : ndarray of shape (n_samples,)
            Ends of the intervals.
        """
        rows = self._inputs(X)
        low, high = self.model_.condition(self._with_target(rows, np.nan)).interval(level)
        return low[:, self.place_], high[:, self.place_]

    def _bound(self) -> Self:
        self._look_into(self.model)
        return self


class ColumnClassifier(ClassifierMixin, _ColumnView):
    """One column of a mixture that takes few values, predicted from the others.

    `GaussianMixture.classifier(column, classes)` makes one that is fitted. Each component has its probability given the
    observed columns, and shares it out among the values by the density of its conditional law (`Conditional.probabilities`).

    Parameters
    ----------
    model : estimator
        The mixture. `fit` learns a copy of it that knows nothing yet, and leaves this one as it is. It needs at least as many
        components as there are classes, unless they lie along a line.
    column : str or int, default=-1
        Name or place of the column. After `fit` a name is that of the last column.

    Attributes
    ----------
    model_ : estimator
        The mixture that predicts.
    classes_ : ndarray of shape (n_classes,)
        The classes.
    codes_ : ndarray of shape (n_classes,)
        The number that the column has for each class: the class itself if it is a number, otherwise its place.
    place_ : int
        Place of the column among those of the mixture.
    n_features_in_, feature_names_in_
        The other columns.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rng = np.random.default_rng(0)
    >>> kind = rng.integers(2, size=2000)
    >>> rows = np.column_stack([3.0 * kind + rng.normal(size=2000), kind])
    >>> model = hw.GaussianMixture(2, random_state=0).fit(rows)
    >>> model.classifier(1, classes=[0, 1]).predict([[-1.0], [4.0]]).tolist()
    [0, 1]
    """

    def fit(self, X: Rows, y: Values, sample_weight: Values = None) -> Self:
        """Learn a new mixture of the rows, with the class as one of its columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The other columns.
        y : array-like of shape (n_samples,)
            The class of each row.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        self : object
            The fitted classifier.
        """
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        rows, target = self._inputs(X, reset=True), column_or_1d(y, warn=True)
        if len(target) != len(rows):
            raise ValueError(f"y must have one class per row of X, got {len(target)} for {len(rows)} rows")
        if target.dtype.kind == "f":
            check_finite(target, "y")
        check_classification_targets(target)
        classes, places = np.unique(target, return_inverse=True)
        codes = _codes(classes)
        self._learn(rows, codes[places], sample_weight)
        self.classes_, self.codes_ = classes, codes
        return self

    def predict_proba(self, X: Rows) -> Array:
        """Return the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The other columns.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            They sum to one in each row.
        """
        return self._class_shares(self._inputs(X))

    def _class_shares(self, rows: Array) -> Array:
        law = self.model_.condition(self._with_target(rows, np.nan))
        return np.asarray(law.probabilities(self.place_, self.codes_))

    def predict(self, X: Rows) -> AnyArray:
        """Return the most probable class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The other columns.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Classes.
        """
        places = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[places])

    def _bound(self, classes: Values) -> Self:
        given = np.asarray(numeric(classes, "classes"))
        if given.ndim != 1 or len(np.unique(given)) < 2 or not np.isfinite(given).all():
            raise ValueError(f"classes must be at least two different numbers, got {one_line(classes, 80)}")
        self._look_into(self.model)
        self.classes_ = np.unique(given)
        self.codes_ = _codes(self.classes_)
        return self


def find_column(column: object, width: int, names: AnyArray | None) -> int:
    """Return the place of a column that is named, or counted from either end; refuse one that is not there."""
    if isinstance(column, str):
        if names is None:
            raise ValueError(f"column must be a number from 0 to {width - 1}, since this model knows no names, got {column!r}")
        if column not in list(names):
            known = ", ".join(map(str, names[:10])) + (" ..." if len(names) > 10 else "")
            raise ValueError(f"column must be one of those that the model learned ({known}), got {column!r}")
        return list(names).index(column)
    if isinstance(column, bool) or not isinstance(column, numbers.Integral):
        raise TypeError(f"column must be the name of a column or its place, got {one_line(column, 60)}")
    if not -width <= int(column) < width:
        raise ValueError(f"column must lie between {-width} and {width - 1}, got {column}")
    return int(column) % width


def _codes(classes: AnyArray) -> Array:
    return classes.astype(np.float64) if classes.dtype.kind in "biuf" else np.arange(len(classes), dtype=np.float64)
