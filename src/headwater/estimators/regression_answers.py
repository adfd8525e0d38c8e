"""What a mixture of regressions answers: predictions, samples of targets, coefficients, and the belief about them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from headwater.core.statistics import Array
from headwater.core.values import Row, Rows
from headwater.diagnostics.component_description import Limits
from headwater.estimators.calls import answers_at_once, answers_by_chunk, reads
from headwater.estimators.seeds import rng_of
from headwater.estimators.target_mixture import TargetMixture
from headwater.families.regression import Regression
from headwater.families.regression_records import RegressionBelief


class RegressionAnswers(TargetMixture):
    """The questions about regressions that only read, and what was learned of them."""

    # Answers

    @answers_by_chunk
    def predict(self, X: Rows, return_std: bool = False) -> Any:
        """Return the expected target of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The inputs.
        return_std : bool, default=False
            Whether to return the standard deviation of the target, too: that of the noise and between the components.

        Returns
        -------
        y_mean : ndarray of shape (n_samples,)
            Mean of the components' predictions, by their probabilities at these inputs.
        y_std : ndarray of shape (n_samples,)
            Standard deviation of the target, if asked for.
        """
        shares = self.predict_proba(X)
        means, variances = self._family.target_moments(self._read().parameters.components, self._inputs(X))
        mean = (shares * means).sum(axis=1)
        if not return_std:
            return mean
        within = (shares * variances).sum(axis=1)
        return mean, np.sqrt(within + (shares * (means - mean[:, None]) ** 2).sum(axis=1))

    @answers_by_chunk
    def predict_component_means(self, X: Rows) -> Array:
        """Return the target that each component expects of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The inputs.

        Returns
        -------
        means : ndarray of shape (n_samples, n_components)
            The value of each regression.
        """
        return self._family.target_moments(self._read().parameters.components, self._inputs(X))[0]

    @reads
    def predict_one(self, x: Row) -> float:  # type: ignore[override]
        """Return the expected target of one row under the parameters of the last refresh.

        Parameters
        ----------
        x : array-like of shape (n_features,) or mapping
            The inputs.

        Returns
        -------
        y : float
            The expected target.
        """
        row = self._one(x)
        parameters, family = self._quick_parameters(row.shape[1]), self._family
        shares = family.shares(parameters.components, parameters.log_weights, row, 1)
        return float((shares * family.predictions(parameters.components, row)).sum())

    @answers_at_once
    def sample(self, X: Rows) -> tuple[Array, NDArray[np.int64]]:  # type: ignore[override]
        """Draw targets for inputs that are given.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The inputs.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            A target for each row.
        components : ndarray of shape (n_samples,)
            The component that it was drawn from.
        """
        inputs, rng = self._inputs(X), rng_of(self)
        running = np.cumsum(self.predict_proba(X), axis=1)
        components = (running < rng.random((len(inputs), 1)) * running[:, -1:]).sum(axis=1)
        return self._family.sample(self._read().parameters.components, components, rng, inputs), components

    # What was learned

    @property
    @reads
    def coef_(self) -> Array:
        """Coefficients of each regression."""
        return self._family.coefficients(self._read().parameters.components)[0]

    @property
    @reads
    def intercept_(self) -> Array:
        """Intercept of each regression; zeros without one."""
        return self._family.coefficients(self._read().parameters.components)[1]

    @property
    @reads
    def noise_variance_(self) -> Array:
        """Variance about each regression."""
        return self._family.noise_variances(self._read().parameters.components)

    @property
    @reads
    def input_means_(self) -> Array | None:
        """Means of the inputs of each component, or None if they do not gate."""
        gate = self._read().parameters.components.gate
        return None if gate is None else gate.means + gate.origin

    @property
    @reads
    def input_covariances_(self) -> Array | None:
        """Covariances of the inputs of each component, or None if they do not gate."""
        gate, family = self._read().parameters.components.gate, self._family.gate
        return None if gate is None or family is None else family.covariances(gate)

    @property
    @reads
    def degrees_of_freedom_(self) -> Array:
        """Degrees of freedom of the belief about each noise."""
        return self._component_belief().dof

    @property
    @reads
    def coef_precision_(self) -> Array:
        """Precisions of the belief about the coefficients, in units of the precision of the noise."""
        precision = self._component_belief().precision
        if not self._family.intercept:
            return precision
        cross = precision[:, 1:, 0]  # the intercept is integrated out
        return precision[:, 1:, 1:] - cross[:, :, None] * cross[:, None] / precision[:, :1, :1]

    @property
    def _family(self) -> Regression:
        family = self._model.family
        assert isinstance(family, Regression)
        return family

    def _component_belief(self) -> RegressionBelief:
        prior, statistics, count = self._proper_belief()
        return self._family.belief(prior.components, statistics.scaled(count))

    def _input_spreads(self) -> tuple[Array, float]:
        """Standard deviations of the inputs and of the target, over all rows."""
        _, moments, _ = self._proper_belief()
        count = max(float(moments.count.sum()), 1e-300)
        second = np.diagonal(moments.second, axis1=1, axis2=2).sum(axis=0) / count
        spreads = np.sqrt(np.maximum(second - (moments.first.sum(axis=0) / count) ** 2, 1e-300))
        return spreads[:-1], float(spreads[-1])

    def _coef_intervals(self, limits: Limits) -> Array:
        """Credible intervals (K, d, 2) of the coefficients: Student's t."""
        known = self._component_belief()
        inner = slice(1, None) if self._family.intercept else slice(None)
        variances = np.diagonal(np.linalg.pinv(known.precision, hermitian=True), axis1=1, axis2=2)[:, inner]
        spread = np.sqrt(np.maximum(variances, 0.0) * (known.scale / known.dof)[:, None])
        quantiles = np.stack([stdtrit(known.dof, tail) for tail in limits.tails], axis=-1)
        return np.asarray(known.means[:, inner, None] + spread[..., None] * quantiles[:, None])
