"""Parameters to start from that the user gave: weights_init, means_init, precisions_init, probabilities_init, coef_init."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headwater.core.batch import Batch, join_batches
from headwater.core.statistics import Array
from headwater.core.validation import n_dimensions, refuse_unreadable
from headwater.core.values import Values
from headwater.estimators.pseudo_rows import (
    clamp_to_labels,
    count_rows,
    fill_means,
    gaussian_rows,
    nearest,
    regression_rows,
)
from headwater.families.gaussian import Gaussian
from headwater.families.multinomial import Multinomial
from headwater.families.regression import Regression
from headwater.models.mixture_records import MixtureParameters


@dataclass(frozen=True)
class GivenParameters:
    """Replaces what a start found by the parameters that the user gave."""

    family: Gaussian
    weights: Array | None
    means: Array | None
    factor: Array | None

    @property
    def locates(self) -> bool:
        """Whether the means are given."""
        return self.means is not None

    @property
    def in_prior(self) -> bool:
        """All components share one prior."""
        return False

    def seed(self, batch: Batch) -> tuple[Batch, Array]:
        """Return the means beside the rows, each of which belongs to the nearest."""
        assert self.means is not None
        return seed_at_means(self.means, batch)

    def pseudo_rows(self, parameters: MixtureParameters, batch: Batch) -> tuple[Array, Array]:
        """Return rows with the moments of the components."""
        return gaussian_rows(self.family, parameters.components)

    def __call__(self, found: MixtureParameters) -> MixtureParameters:
        """Return the start's parameters with the given ones in their place."""
        log_weights = found.log_weights if self.weights is None else np.log(np.maximum(self.weights, 1e-300))
        return MixtureParameters(log_weights, self.family.with_means_and_factor(found.components, self.means, self.factor))


def given_parameters(
    family: Gaussian, width: int, weights_init: Values, means_init: Values, precisions_init: Values
) -> GivenParameters | None:
    """Check what was given, in the words scikit-learn uses; None if nothing was."""
    if weights_init is None and means_init is None and precisions_init is None:
        return None
    k = family.n_components
    weights, means, factor = given_weights(weights_init, k), None, None
    if means_init is not None:
        means = check_array(means_init, (k, width), "means")
    if precisions_init is not None:
        factor = _precision_factor(family, width, precisions_init)
    return GivenParameters(family, weights, means, factor)


def seed_at_means(means: Array, batch: Batch) -> tuple[Batch, Array]:
    """Return the means and the rows as one batch, and shares by which each row belongs to the nearest mean."""
    k = len(means)
    shares = clamp_to_labels(nearest(batch.X, means), batch)
    rows = join_batches([Batch(means, np.ones(k)), Batch(batch.X, batch.row_weights)])
    return rows, np.vstack([np.eye(k), shares])


def given_weights(weights_init: Values, n_components: int) -> Array | None:
    """Check weights that were given; None if none were."""
    if weights_init is None:
        return None
    weights = check_array(weights_init, (n_components,), "weights")
    if weights.min() < 0.0 or weights.max() > 1.0:
        # scikit-learn's sentence, which takes the largest for the smallest, and what it means to say.
        raise ValueError(
            f"The parameter 'weights' should be in the range [0, 1], but got max value {weights.min():.5f}, min value "
            f"{weights.max():.5f}: they run from {weights.min():.5f} to {weights.max():.5f}"
        )
    if not np.isclose(weights.sum(), 1.0):
        raise ValueError(f"The parameter 'weights' should be normalized, but got sum(weights) = {weights.sum():.5f}")
    return weights


def _precision_factor(family: Gaussian, width: int, precisions_init: Values) -> Array:
    """Lower triangular factors with precision = factor' factor, or square roots."""
    k = family.n_components
    shape = {"full": (k, width, width), "tied": (width, width), "diag": (k, width), "spherical": (k,)}
    name = f"{family.covariance_type} precision"
    precisions = check_array(precisions_init, shape[family.covariance_type], name)
    if not family.kind.matrix:
        if np.any(precisions <= 0.0):
            raise ValueError(f"'{name}' should be positive")
        return np.sqrt(precisions)
    symmetric = np.allclose(precisions, np.swapaxes(precisions, -1, -2))
    if not symmetric or np.linalg.eigvalsh(precisions).min() <= 0.0:
        raise ValueError(f"'{name}' should be symmetric, positive-definite")
    flipped = np.linalg.cholesky(precisions[..., ::-1, ::-1])  # Cholesky from the last column backwards
    return np.swapaxes(flipped[..., ::-1, ::-1], -1, -2)


def check_array(value: object, shape: tuple[int, ...], name: str) -> Array:
    """Return an array of finite numbers of this shape, or refuse it."""
    refuse_unreadable(value, f"The parameter '{name}'")
    try:
        array = np.asarray(value, dtype=float)
    except OverflowError as error:
        raise ValueError(f"The parameter '{name}' contains a whole number too large for float64") from error
    except (TypeError, ValueError) as error:
        raise ValueError(f"The parameter '{name}' should hold numbers: {error}") from error
    if array.shape != shape:
        raise ValueError(f"The parameter '{name}' should have the shape of {shape}, but got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"The parameter '{name}' should be finite, but holds NaN or infinity")
    return array


@dataclass(frozen=True)
class GivenProbabilities:
    """Replaces what a start found by the parameters that the user gave: weights_init and probabilities_init."""

    family: Multinomial
    weights: Array | None
    probabilities: Array | None

    @property
    def locates(self) -> bool:
        """Whether the probabilities are given."""
        return self.probabilities is not None

    @property
    def in_prior(self) -> bool:
        """Whether the prior has a row for each component."""
        return n_dimensions(self.family.concentration_prior) == 2

    def seed(self, batch: Batch) -> tuple[Batch, Array]:
        """Return the rows; nothing of the components is left to be found."""
        return batch, clamp_to_labels(np.full((len(batch), self.family.n_components), 1.0 / self.family.n_components), batch)

    def pseudo_rows(self, parameters: MixtureParameters, batch: Batch) -> tuple[Array, Array]:
        """Return rows of the counts that are expected."""
        assert self.probabilities is not None
        return count_rows(self.probabilities, batch)

    def __call__(self, found: MixtureParameters) -> MixtureParameters:
        """Return the start's parameters with the given ones in their place; with given components, weights are equal."""
        log_weights, components = found.log_weights, found.components
        if self.probabilities is not None:
            components = self.family.from_probabilities(self.probabilities)
            log_weights = np.full(len(self.probabilities), -np.log(len(self.probabilities)))
        if self.weights is not None:
            log_weights = np.log(np.maximum(self.weights, 1e-300))
        return MixtureParameters(log_weights, components)


def given_probabilities(
    family: Multinomial, width: int, weights_init: Values, probabilities_init: Values
) -> GivenProbabilities | None:
    """Check what was given; None if nothing was."""
    if weights_init is None and probabilities_init is None:
        return None
    weights, probabilities = given_weights(weights_init, family.n_components), None
    if probabilities_init is not None:
        probabilities = check_array(probabilities_init, (family.n_components, width), "probabilities_init")
        if probabilities.min() < 0.0 or not np.allclose(probabilities.sum(axis=1), 1.0):
            raise ValueError("The parameter 'probabilities_init' should have rows that are not negative and sum to 1")
    return GivenProbabilities(family, weights, probabilities)


@dataclass(frozen=True)
class GivenCoefficients:
    """Replaces what a start found by the parameters that the user gave: weights_init, coef_init and intercept_init."""

    family: Regression
    weights: Array | None
    coef: Array | None
    intercept: Array | None

    @property
    def locates(self) -> bool:
        """Whether the coefficients are given."""
        return self.coef is not None

    @property
    def in_prior(self) -> bool:
        """All components share one prior."""
        return False

    def seed(self, batch: Batch) -> tuple[Batch, Array]:
        """Return the rows, each of which belongs to the regression that predicts its target best."""
        assert self.coef is not None
        rows = fill_means(batch)
        X, target = rows[:, :-1], rows[:, -1:]
        level = np.zeros(len(self.coef))
        if self.intercept is not None:
            level = self.intercept
        elif self.family.intercept:  # then they go through the mean of the rows
            weights = batch.row_weights / batch.size
            level = weights @ target - self.coef @ (weights @ X)
        apart = np.abs(target - X @ self.coef.T - level)
        return batch, clamp_to_labels(np.eye(len(self.coef))[apart.argmin(axis=1)], batch)

    def pseudo_rows(self, parameters: MixtureParameters, batch: Batch) -> tuple[Array, Array]:
        """Return rows about the regressions."""
        return regression_rows(self.family, parameters.components, batch)

    def __call__(self, found: MixtureParameters) -> MixtureParameters:
        """Return the start's parameters with the given ones in their place; with given components, weights are equal."""
        log_weights, components = found.log_weights, found.components
        if self.coef is not None:
            components = self.family.with_coef(components, self.coef, self.intercept)
            log_weights = np.full(len(self.coef), -np.log(len(self.coef)))
        if self.weights is not None:
            log_weights = np.log(np.maximum(self.weights, 1e-300))
        return MixtureParameters(log_weights, components)
