"""MixtureOutlier: a mixture as an outlier detector of scikit-learn."""

from __future__ import annotations

import numbers
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from headwater.core.statistics import Array
from headwater.core.values import RandomState, Rows, Values
from headwater.estimators.gaussian_mixture import GaussianMixture


class MixtureOutlier(OutlierMixin, BaseEstimator):
    """Outlier detector by the anomaly score of a mixture, with the conventions of scikit-learn.

    Low is odd, as in `IsolationForest`: `score_samples` is minus `anomaly_score`, `decision_function` is negative for outliers,
    and `predict` says -1 for outliers and 1 for the others.

    Parameters
    ----------
    estimator : estimator, default=None
        A mixture of this package, which is copied. None stands for ``GaussianMixture("auto")``.
    contamination : float, default=0.1
        Share of the learned rows that are called outliers; above 0, at most one half.
    random_state : int, RandomState or None, default=None
        Seed of the default mixture.

    Attributes
    ----------
    estimator_ : estimator
        The mixture that has learned the rows.
    offset_ : float
        `decision_function` is `score_samples` less this.
    n_features_in_ : int
        Number of columns.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater.outlier import MixtureOutlier
    >>> rng = np.random.default_rng(0)
    >>> rows = np.vstack([rng.normal(size=(495, 2)), rng.uniform(-9.0, 9.0, size=(5, 2))])
    >>> outlier = MixtureOutlier(contamination=0.01, random_state=0).fit(rows)
    >>> outlier.predict([[0.0, 0.0], [8.0, -7.0]])
    array([ 1, -1])
    """

    _parameter_constraints: ClassVar[dict[str, list[object] | str]] = {
        "estimator": "no_validation",
        "contamination": [Interval(numbers.Real, 0.0, 0.5, closed="right")],
        "random_state": ["random_state"],
    }

    estimator_: Any
    offset_: float
    n_features_in_: int

    def __init__(self, estimator: object = None, *, contamination: float = 0.1, random_state: RandomState = None) -> None:
        self.estimator = estimator
        self.contamination = contamination
        self.random_state = random_state

    def fit(self, X: Rows, y: Values = None) -> Self:
        """Learn all rows, among which `contamination` are outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        self : object
            The fitted detector.
        """
        self._validate_params()
        rows = self._checked(X, reset=True)
        self.estimator_ = self._new().fit(rows)
        self.offset_ = float(np.percentile(self._scores(rows), 100.0 * self.contamination))
        return self

    def partial_fit(self, X: Rows, y: Values = None) -> Self:
        """Learn a chunk of a stream; the offset is that of all rows so far, by their scores before they were learned.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        self : object
            The detector.
        """
        self._validate_params()
        first = not hasattr(self, "estimator_")
        rows = self._checked(X, reset=first)
        self.estimator_ = (self._new() if first else self.estimator_).partial_fit(rows)
        self.offset_ = -float(self.estimator_.threshold(self.contamination))
        return self

    def score_samples(self, X: Rows) -> Array:
        """Return minus the anomaly score of each row: the lower, the odder.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Scores in nats.
        """
        check_is_fitted(self)
        return self._scores(self._checked(X, reset=False))

    def decision_function(self, X: Rows) -> Array:
        """Return how far each row is from being an outlier: negative for outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            `score_samples` less `offset_`.
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: Rows) -> NDArray[np.int64]:
        """Return -1 for outliers and 1 for the others.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            -1 or 1.
        """
        return np.where(self.decision_function(X) < 0.0, -1, 1)

    def _new(self) -> Any:
        if self.estimator is None:
            return GaussianMixture("auto", random_state=self.random_state)
        return copy_of(self.estimator)

    def _checked(self, X: Rows, reset: bool) -> Any:
        """Rows of numbers, checked as scikit-learn does; the rows themselves for mixtures of tables, which check them."""
        if self.estimator is not None and not isinstance(self.estimator, GaussianMixture):
            return X
        return validate_data(
            self, cast(Any, X), reset=reset, dtype=[np.float64, np.float32], ensure_min_samples=2 if reset else 1
        )

    def _scores(self, rows: Any) -> Array:
        return -np.asarray(self.estimator_.anomaly_score(rows), dtype=np.float64)


def copy_of(estimator: object) -> Any:
    """Return a new mixture with the same settings, or refuse what has no anomaly score."""
    if not hasattr(estimator, "anomaly_score"):
        raise TypeError(f"estimator must have an anomaly_score, as mixtures of headwater do, got {estimator!r}")
    return clone(cast(Any, estimator))
