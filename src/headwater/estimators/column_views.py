"""ColumnRegressor and ColumnClassifier: one column of a mixture, predicted from the others, as scikit-learn has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from headwater.core.statistics import Array
from headwater.core.validation import check_finite, check_target, numeric, one_line
from headwater.core.values import AnyArray, Rows, Values
from headwater.estimators.column_kinds import BERNOULLI, CATEGORICAL, GAUSSIAN, POISSON, SKEWED
from headwater.estimators.column_place import find_column
from headwater.estimators.conditional import Conditional
from headwater.estimators.view_inputs import Inputs, category_codes, known_classes, numeric_law, read_inputs

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from headwater.estimators.gap_answers import GapAnswers


class _ColumnView(BaseEstimator):
    """What both have: a mixture of all columns, of which one is the target."""

    model_: GapAnswers
    n_features_in_: int
    place_: int

    def __init__(self, model: GapAnswers, column: str | int = -1) -> None:
        self.model = model
        self.column = column

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        taken = self.model.__sklearn_tags__().input_tags
        tags.input_tags.allow_nan, tags.input_tags.string = taken.allow_nan, taken.string
        tags.target_tags.required = True
        return tags

    def _look_into(self, model: GapAnswers) -> None:
        """Take over a mixture that has learned all columns."""
        check_is_fitted(model)
        width, names = model.n_features_in_, getattr(model, "feature_names_in_", None)
        if width < 2:
            raise ValueError("a model of one column has no other columns to predict it from")
        self.place_ = find_column(self.column, width, names)
        self.model_, self.n_features_in_ = model, width - 1
        if names is not None:
            self.feature_names_in_ = np.delete(np.asarray(names, dtype=object), self.place_)

    def _learn(self, inputs: Inputs, y: AnyArray, sample_weight: Values, kind: str) -> None:
        """Fit a new mixture on the rows with the target among their columns."""
        width, names, named = inputs.width + 1, getattr(self, "feature_names_in_", None), isinstance(self.column, str)
        place = width - 1 if named else find_column(self.column, width, None)
        if named and names is not None and self.column in list(names):
            raise ValueError(f"X must not have the column {self.column!r}, which is the target")
        known = named and names is not None
        name, at = (str(self.column), self.column) if known else (None, place)
        self.model_ = inputs.blank(self.model, at, kind).fit(inputs.with_column(place, name, y), sample_weight=sample_weight)
        self.place_ = place

    def _inputs(self, X: Rows, reset: bool = False) -> Inputs:
        """Return the other columns of rows, with gaps where a value is missing."""
        if not reset:
            check_is_fitted(self, "model_")
        if issparse(X):
            raise TypeError(f"X is a sparse matrix, but {type(self).__name__} needs dense rows: pass X.toarray()")
        inputs = read_inputs(self.model if reset else self.model_, X, type(self).__name__)
        validate_data(self, X, skip_check_array=True, reset=reset)
        if not self.__sklearn_tags__().input_tags.allow_nan:
            inputs.refuse_gaps()
        return inputs

    def _law(self, inputs: Inputs) -> Conditional:
        """The conditional law of the column."""
        names = getattr(self.model_, "feature_names_in_", None)
        name = None if names is None else str(names[self.place_])
        rows = inputs.with_column(self.place_, name, inputs.gaps())
        return numeric_law(self.model_.condition(rows))

    def _refuse_kind(self, wanted: str, *kinds: str) -> None:
        """Refuse a column of a table that holds something else than what is predicted."""
        schema = getattr(self.model_, "_schema", None)
        if schema is None:
            return
        kind = schema.kinds[self.place_]
        if kind not in kinds:
            raise ValueError(f"column {self.column!r} is {kind!r}, which {wanted}")


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
            Weight of each row.

        Returns
        -------
        self : object
            The fitted regressor.
        """
        rows = self._inputs(X, reset=True)
        if y is not None:
            y = column_or_1d(y, warn=True)
        self._learn(rows, check_target(y, len(rows), type(self).__name__), sample_weight, GAUSSIAN)
        return self

    def predict(self, X: Rows, return_std: bool = False) -> Array | tuple[Array, Array]:
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
        law = self._law(self._inputs(X))
        mean = law.mean[:, self.place_]
        return (mean, np.sqrt(law.variance[:, self.place_])) if return_std else mean

    def predict_interval(self, X: Rows, level: float = 0.9) -> tuple[Array, Array]:
        """Return the central interval of the column given the others: exact quantiles of the mixture.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The other columns.
        level : float, default=0.9
            Probability of each interval.

        Returns
        -------
        low, high : ndarray of shape (n_samples,)
            Ends of the intervals.
        """
        low, high = self._law(self._inputs(X)).interval(level)
        return low[:, self.place_], high[:, self.place_]

    def _bound(self) -> Self:
        self._look_into(self.model)
        self._refuse_kind("has no mean: ask for a classifier", GAUSSIAN, POISSON, *SKEWED)
        return self


class ColumnClassifier(ClassifierMixin, _ColumnView):
    """One column of a mixture that takes few values, predicted from the others.

    `GaussianMixture.classifier(column, classes)` and `MixedMixture.classifier(column)` make one that is fitted. Each component
    has its probability given the observed columns, and shares it out among the values by the density of its conditional law
    (`Conditional.probabilities`). A column of categories has probabilities, and its classes are its categories.

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
        The number that the column has for each class: the class itself if it is a number, otherwise its place; in a table the
        code of the category.
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
            Weight of each row.

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
        _check_words(target)
        check_classification_targets(target)
        classes, places = np.unique(target, return_inverse=True)
        if rows.holds_words:
            self._learn(rows, target, sample_weight, CATEGORICAL)
            codes = category_codes(self.model_._schema, self.place_, classes)
        else:
            codes = _codes(classes)
            self._learn(rows, codes[places], sample_weight, GAUSSIAN)
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

    def _class_shares(self, inputs: Inputs) -> Array:
        return np.asarray(self._law(inputs).probabilities(self.place_, self.codes_))

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
        self._look_into(self.model)
        schema = getattr(self.model_, "_schema", None)
        self._refuse_kind("the model has left out", GAUSSIAN, POISSON, BERNOULLI, CATEGORICAL, *SKEWED)
        if schema is not None and schema.kinds[self.place_] in (BERNOULLI, CATEGORICAL):
            self.classes_ = known_classes(schema, self.place_, classes)
            self.codes_ = category_codes(schema, self.place_, self.classes_)
            return self
        given = np.asarray(numeric(classes, "classes")) if classes is not None else np.empty(0)
        if given.ndim != 1 or len(np.unique(given)) < 2 or not np.isfinite(given).all():
            raise ValueError(f"classes must be at least two different numbers, got {one_line(classes, 80)}")
        self.classes_ = np.unique(given)
        self.codes_ = _codes(self.classes_)
        return self


NOTHING = ("NAType", "NaTType")  # of pandas, which need not be there


def _check_words(target: AnyArray) -> None:
    """Refuse labels that are missing, or text among numbers; they have no order that classes could be sorted by."""
    if target.dtype.kind != "O":
        return
    values = target.tolist()
    missing = next((row for row, one in enumerate(values) if one is None or type(one).__name__ in NOTHING or one != one), None)
    if missing is not None:
        raise ValueError(f"y has no label in row {missing}, got {one_line(values[missing], 40)}: drop the rows without a label")
    first = type(values[0])
    other = next((one for one in values if isinstance(one, str) != isinstance(values[0], str)), None)
    if other is not None:
        raise ValueError(f"y must hold labels of one kind, got {first.__name__} and {type(other).__name__}")


def _codes(classes: AnyArray) -> Array:
    return classes.astype(np.float64) if classes.dtype.kind in "biuf" else np.arange(len(classes), dtype=np.float64)
