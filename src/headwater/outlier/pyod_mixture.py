"""PyODMixture: a mixture as a detector of PyOD."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_array, check_is_fitted

from headwater.core.statistics import Array
from headwater.core.validation import one_line
from headwater.core.values import RandomState, Rows, Values
from headwater.estimators.gaussian_mixture import GaussianMixture
from headwater.outlier.mixture_outlier import copy_of

try:
    from pyod.models.base import BaseDetector
except ImportError as error:
    raise ImportError(
        "headwater.outlier.PyODMixture is a detector of PyOD, which must be installed: pip install pyod"
    ) from error


class PyODMixture(BaseDetector):
    """Outlier detector by the anomaly score of a mixture, with the conventions of PyOD.

    High is odd: `decision_scores_` are the anomaly scores of the learned rows, `labels_` are 1 for outliers and else 0.

    Parameters
    ----------
    estimator : estimator, default=None
        A mixture of this package, which is copied. None stands for ``GaussianMixture("auto")``.
    contamination : float, default=0.1
        Share of the learned rows that are called outliers; above 0, at most one half. Or a threshold of PyThresh.
    random_state : int, RandomState or None, default=None
        Seed of the default mixture.

    Attributes
    ----------
    estimator_ : estimator
        The mixture that has learned the rows.
    decision_scores_ : ndarray of shape (n_samples,)
        Anomaly scores of the learned rows.
    threshold_ : float
        The score above which a row is an outlier.
    labels_ : ndarray of shape (n_samples,)
        1 for outliers among the learned rows, 0 for the others.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater.outlier import PyODMixture  # doctest: +SKIP
    >>> rng = np.random.default_rng(0)
    >>> rows = np.vstack([rng.normal(size=(495, 2)), rng.uniform(-9.0, 9.0, size=(5, 2))])
    >>> PyODMixture(contamination=0.01, random_state=0).fit(rows).predict([[0.0, 0.0], [8.0, -7.0]])  # doctest: +SKIP
    array([0, 1])
    """

    estimator_: Any
    decision_scores_: Array

    def __init__(self, estimator: object = None, *, contamination: float = 0.1, random_state: RandomState = None) -> None:
        super().__init__(contamination=contamination)
        self.estimator = estimator
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
        if not isinstance(self.contamination, float | int) and not hasattr(self.contamination, "fit"):
            raise ValueError(
                "contamination must be a float above 0, at most 0.5, or a threshold of PyThresh, "
                f"got {one_line(self.contamination)}"
            )
        rows = check_array(X)
        self._set_n_classes(y)
        begun = GaussianMixture("auto", random_state=self.random_state) if self.estimator is None else copy_of(self.estimator)
        self.estimator_ = begun.fit(rows)
        self.decision_scores_ = self.estimator_.anomaly_score(rows)
        self._process_decision_scores()
        return self

    def decision_function(self, X: Rows) -> Array:
        """Return how odd each row is: the higher, the odder.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        anomaly_scores : ndarray of shape (n_samples,)
            Scores in nats.
        """
        check_is_fitted(self, ["decision_scores_", "threshold_", "labels_"])
        return np.asarray(self.estimator_.anomaly_score(check_array(X)), dtype=np.float64)
