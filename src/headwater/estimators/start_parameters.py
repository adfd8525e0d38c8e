"""Parameters to start from that the user gave: weights_init, means_init, precisions_init, probabilities_init, coef_init."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headwater.core.batch import Batch, join_batches
from headwater.core.learner import Learner
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
    sequence_rows,
)
from headwater.models.mixture_records import MixtureParameters

if TYPE_CHECKING:
    from headwater.families.gaussian import Gaussian
    from headwater.families.multinomial import Multinomial
    from headwater.families.regression import Regression


def refuse_no_start(learner: Learner, names: Sequence[str]) -> Learner:
    """Return a learner, or refuse a stream that is to begin with its first row and has nothing to begin at."""
    settings = learner.settings
    if learner.warm_up != 0:
        return learner
    if not settings.locates:
        ways = " and ".join(name for name in names if name != "weights_init")
        hint = f"give {ways}, or let warm_up be at least 1" if ways else "without one warm_up must be at least 1"
        raise ValueError(f"warm_up=0 begins at a start that is given: {hint}")
    if settings.given is not None:
        settings.given.alone()  # refuses a start that leaves something to be found on rows
    return learner


def check_start_weight(weight: float | None, located: bool) -> float | None:
    """Return the rows that a start counts as, or refuse them where no start is given."""
    if weight is not None and not located:
        raise ValueError(f"start_weight is of a start that says where components lie, and none is given, got {weight}")
    return None if weight is None else float(weight)


def given_factors(components_init: Values, n_components: int, width: int) -> Array | None:
    """Check factors that were given: positive numbers somewhere in every row; None if none were."""
    if components_init is None:
        return None
    factors = check_array(components_init, (n_components, width), "components_init")
    if factors.min() < 0.0 or factors.max(axis=1).min() <= 0.0:
        raise ValueError("The parameter 'components_init' should have rows that are not negative, and not zero in all columns")
    return factors


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

    def alone(self) -> MixtureParameters:
        """Return these parameters; weights that are not given are equal."""
        if self.means is None or self.factor is None:
            missing = "means_init" if self.means is None else "precisions_init"
            raise ValueError(f"warm_up=0 begins at the start alone, so {missing} must be given, got None")
        k = len(self.means)
        weights = np.full(k, 1.0 / k) if self.weights is None else self.weights
        components = self.family.from_precisions(weights @ self.means, self.means, self.factor)
        return MixtureParameters(np.log(np.maximum(weights, 1e-300)), components)

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
        if self.family.groups.size:
            return sequence_rows(self.probabilities, batch)
        return count_rows(self.probabilities, batch)

    def alone(self) -> MixtureParameters:
        """Return these parameters; weights that are not given are equal."""
        if self.probabilities is None:
            missing = "startprob_init and transmat_init" if self.family.groups.size else "probabilities_init"
            raise ValueError(f"warm_up=0 begins at the start alone, so {missing} must be given, got None")
        k = len(self.probabilities)
        weights = np.full(k, 1.0 / k) if self.weights is None else self.weights
        return MixtureParameters(np.log(np.maximum(weights, 1e-300)), self.family.from_probabilities(self.probabilities))

    def __call__(self, found: MixtureParameters) -> MixtureParameters:
        """Return the start's parameters with the given ones in their place; with given components, weights are equal."""
        if self.probabilities is not None:
            return self.alone()
        assert self.weights is not None
        return MixtureParameters(np.log(np.maximum(self.weights, 1e-300)), found.components)


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


def given_chains(
    family: Multinomial, n_symbols: int, weights_init: Values, startprob_init: Values, transmat_init: Values
) -> GivenProbabilities | None:
    """Check what was given of Markov chains; None if nothing was."""
    if weights_init is None and startprob_init is None and transmat_init is None:
        return None
    k, probabilities = family.n_components, None
    weights = given_weights(weights_init, k)
    if (startprob_init is None) != (transmat_init is None):
        given, missing = ("startprob_init", "transmat_init")[:: 1 if transmat_init is None else -1]
        raise ValueError(f"{given} must come with {missing}, which is None")
    if startprob_init is not None:
        start = check_array(startprob_init, (k, n_symbols), "startprob_init")
        steps = check_array(transmat_init, (k, n_symbols, n_symbols), "transmat_init")
        for name, part in (("startprob_init", start), ("transmat_init", steps)):
            if part.min() < 0.0 or not np.allclose(part.sum(axis=-1), 1.0):
                raise ValueError(f"The parameter '{name}' should hold probabilities that are not negative and sum to 1")
        probabilities = np.hstack([start, steps.reshape(k, -1)])
    return GivenProbabilities(family, weights, probabilities)


@dataclass(frozen=True)
class GivenCoefficients:
    """Replaces what a start found by the parameters that the user gave: weights_init, coef_init, intercept_init, noise_init."""

    family: Regression
    weights: Array | None
    coef: Array | None
    intercept: Array | None
    noise: Array | None = None

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

    def alone(self) -> MixtureParameters:
        """Return these parameters; weights that are not given are equal, and so are intercepts, 0."""
        if self.family.gate is not None:
            raise ValueError("warm_up must be at least 1 with gating='input', whose inputs no start describes, got 0")
        if self.coef is None or self.noise is None:
            missing = "coef_init" if self.coef is None else "noise_variance_init"
            raise ValueError(f"warm_up=0 begins at the start alone, so {missing} must be given, got None")
        k, inputs = self.coef.shape
        blank = self.family.blank_parameters(np.zeros(inputs + 1))
        level = np.zeros(k) if self.intercept is None and self.family.intercept else self.intercept
        return self(MixtureParameters(np.full(k, -np.log(k)), self.family.with_coef(blank, self.coef, level, self.noise)))

    def __call__(self, found: MixtureParameters) -> MixtureParameters:
        """Return the start's parameters with the given ones in their place; with given components, weights are equal."""
        log_weights, components = found.log_weights, found.components
        if self.coef is not None:
            components = self.family.with_coef(components, self.coef, self.intercept, self.noise)
            log_weights = np.full(len(self.coef), -np.log(len(self.coef)))
        if self.weights is not None:
            log_weights = np.log(np.maximum(self.weights, 1e-300))
        return MixtureParameters(log_weights, components)


def given_noise(noise_variance_init: Values, n_components: int, beside_coef: bool) -> Array | None:
    """Check noise variances that were given: one, or one for each regression; None if none were."""
    if noise_variance_init is None:
        return None
    if not beside_coef:
        raise ValueError("noise_variance_init must come with coef_init, which is None")
    shape = (n_components,) if n_dimensions(noise_variance_init) else ()
    noise = np.broadcast_to(check_array(noise_variance_init, shape, "noise_variance_init"), (n_components,))
    if noise.min() <= 0.0:
        raise ValueError(f"The parameter 'noise_variance_init' should be positive, got {noise.min():g}")
    return noise.copy()
