"""What every latent factor model answers: weights of the factors, scores; nothing of any one model."""

from __future__ import annotations

import numbers
from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from headwater.core.batch import Batch
from headwater.core.statistics import Array
from headwater.core.values import Row, Rows, Values
from headwater.estimators.base import StreamingEstimator
from headwater.estimators.calls import learns_at_once, reads
from headwater.estimators.describers.factors import FactorDescriber
from headwater.estimators.mixture import CONSTRAINTS
from headwater.estimators.parameters import check_parameters
from headwater.models.latent_factors import LatentFactors

SHARED = (
    "n_components", "tol", "max_iter", "random_state", "warm_start", "verbose", "verbose_interval", "algorithm", "half_life",
    "warm_up", "n_threads", "parts", "start_weight",
)  # fmt: skip


class FactorEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, StreamingEstimator):
    """Base of the latent factor models."""

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **{name: CONSTRAINTS[name] for name in SHARED},
        "half_life": CONSTRAINTS["half_life"][:2],  # it keeps no rows by which it could find one itself
        "components_init": ["array-like", None],
    }
    _traits = replace(
        StreamingEstimator._traits,
        scores_by_learning=False,  # an E-step that draws scores what it has drawn
        scored_share=1.0 / 32.0,
        least_components=2,
        given_start=("components_init",),
    )

    @property
    @abstractmethod
    def _describer(self) -> FactorDescriber:
        """What says what was learned."""

    def _check_parameters(self) -> None:
        check_parameters(self)

    @property
    def _n_labels(self) -> int:
        """One row is enough: factors are not made of rows."""
        return 1

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    @property
    def _model(self) -> LatentFactors:
        check_is_fitted(self)
        model = self._learner.model
        assert isinstance(model, LatentFactors)
        return model

    def _belief(self) -> tuple[Any, Any, float]:
        return self._read().belief

    @learns_at_once
    def fit_transform(self, X: Rows, y: Values = None, sample_weight: Values = None) -> Array:
        """Learn from the rows and return the weights of the factors in each.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row.

        Returns
        -------
        weights : ndarray of shape (n_samples, n_components)
            What `transform` returns.
        """
        return self.fit(X, y, sample_weight).transform(X)

    @abstractmethod
    def transform(self, X: Rows) -> Array:
        """Return the weights of the factors in each row."""

    @reads
    def transform_one(self, x: Row) -> Array:
        """Return the weights of the factors in one row, under the parameters of the last refresh.

        Parameters
        ----------
        x : array-like of shape (n_features,) or mapping
            The row.

        Returns
        -------
        weights : ndarray of shape (n_components,)
            Its weights.
        """
        row = self._one(x)
        return self._learner.model.posterior(self._quick_parameters(row.shape[1]), Batch(row), 1)[0]

    @property
    @reads
    def acceptance_rate_(self) -> float:
        """Share of Metropolis proposals that were accepted, as it is by now; NaN for other samplers."""
        _, statistics, _ = self._belief()
        return float(statistics.accepted[0]) if self._learner.plan.inference.sampler == "metropolis" else np.nan

    def _checked_number(self, n_samples: object) -> int:
        check_is_fitted(self)
        if not isinstance(n_samples, numbers.Integral) or n_samples < 1:
            raise ValueError(f"Invalid value for 'n_samples': {n_samples!r}. The sampling requires at least one sample.")
        return int(n_samples)

    # How it looks
