"""What is calibrated: mixtures whose parameters are drawn from the very prior that the model is then given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

import headwater as hw
from headwater.core.statistics import Array


@dataclass(frozen=True)
class Drawn:
    """Parameters from the prior, rows from these, and how far each true component (K) is from each learned one (K)."""

    rows: tuple[Array, ...]
    truth: dict[str, Array]
    settings: dict[str, Any]
    start: dict[str, Any]
    distances: Callable[[Any], Array]


class Subject(Protocol):
    """A model, its prior and the number of rows; `warm_up` is "auto", or the rows that a start is found on."""

    @property
    def components(self) -> int: ...

    @property
    def n_rows(self) -> int: ...

    @property
    def warm_up(self) -> Any: ...

    @property
    def estimator(self) -> type: ...

    def draw(self, rng: np.random.Generator) -> Drawn: ...


def heaped(rng: np.random.Generator, components: int, n_rows: int, concentration: float) -> tuple[Array, Any]:
    """Weights from the prior, and the component of each row."""
    weights = rng.dirichlet(np.full(components, concentration))
    return weights, rng.choice(components, size=n_rows, p=weights)


def wishart_factors(rng: np.random.Generator, dof: Array, scale: Array) -> Array:
    """Lower factors A of precisions A A' ~ Wishart(dof, scale^-1), by Bartlett's decomposition."""
    width = scale.shape[-1]
    lower = np.tril(rng.standard_normal(scale.shape), -1)
    places = np.arange(width)
    lower[..., places, places] = np.sqrt(rng.chisquare(dof[..., None] - places))
    return np.linalg.cholesky(np.linalg.inv(scale)) @ lower


@dataclass(frozen=True)
class Gaussians:
    """Means are N(0, covariance / mean_precision): the smaller mean_precision, the further apart."""

    components: int = 3
    covariance_type: str = "full"
    mean_precision: float = 0.01
    n_rows: int = 150
    warm_up: Any = 75
    columns: int = 2
    dof: float = 10.0
    concentration: float = 5.0

    @property
    def estimator(self) -> type:
        return hw.GaussianMixture

    @property
    def full(self) -> bool:
        return self.covariance_type == "full"

    def draw(self, rng: np.random.Generator) -> Drawn:
        weights, of = heaped(rng, self.components, self.n_rows, self.concentration)
        scale = self.dof * np.eye(self.columns)
        if self.full:
            lower = wishart_factors(rng, np.full(self.components, self.dof), np.tile(scale, (self.components, 1, 1)))
            precisions = lower @ np.swapaxes(lower, 1, 2)
        else:
            columns = rng.gamma(0.5 * self.dof, 2.0 / self.dof, size=(self.components, self.columns))
            precisions = columns[:, :, None] * np.eye(self.columns)
        covariances = np.linalg.inv(precisions)
        factor = np.linalg.cholesky(covariances)
        noise = rng.standard_normal((self.components, self.columns)) / np.sqrt(self.mean_precision)
        means = np.einsum("kij,kj->ki", factor, noise)
        rows = means[of] + np.einsum("nij,nj->ni", factor[of], rng.standard_normal((self.n_rows, self.columns)))
        variances = np.diagonal(covariances, axis1=1, axis2=2)
        prior = {
            "covariance_type": self.covariance_type, "weight_concentration_prior": self.concentration,
            "mean_prior": np.zeros(self.columns), "mean_precision_prior": self.mean_precision,
            "degrees_of_freedom_prior": self.dof, "covariance_prior": scale if self.full else np.diag(scale),
        }  # fmt: skip
        given = precisions if self.full else np.diagonal(precisions, axis1=1, axis2=2)
        start = {"weights_init": weights, "means_init": means, "precisions_init": given}
        truth = {"weights": weights[:, None], "means": means, "variances": variances}
        return Drawn((rows,), truth, prior, start, lambda model: gaussian_distances(means, covariances, model))


def gaussian_distances(means: Array, covariances: Array, model: Any) -> Array:
    """Jeffreys' divergence of Gaussians, true ones and learned ones."""
    learned = model.covariances_
    if learned.ndim == 2:
        learned = learned[:, :, None] * np.eye(learned.shape[1])
    gap = means[:, None] - model.means_
    inverse, inverses = np.linalg.inv(covariances), np.linalg.inv(learned)
    along = np.einsum("abi,aij,abj->ab", gap, inverse, gap) + np.einsum("abi,bij,abj->ab", gap, inverses, gap)
    shapes = np.einsum("aij,bji->ab", inverse, learned) + np.einsum("bij,aji->ab", inverses, covariances)
    return np.asarray(0.5 * (along + shapes))


@dataclass(frozen=True)
class Counts:
    """Rows of `length` counts in so many columns: the more counts, the plainer the component of a row."""

    components: int = 3
    n_rows: int = 300
    length: int = 40
    warm_up: Any = 100
    columns: int = 6
    concentration: float = 5.0
    spread: float = 1.0

    @property
    def estimator(self) -> type:
        return hw.MultinomialMixture

    def draw(self, rng: np.random.Generator) -> Drawn:
        weights, of = heaped(rng, self.components, self.n_rows, self.concentration)
        probabilities = rng.dirichlet(np.full(self.columns, self.spread), size=self.components)
        rows = rng.multinomial(self.length, probabilities[of]).astype(float)
        prior = {
            "weight_concentration_prior": self.concentration,
            "probability_concentration_prior": np.full(self.columns, self.spread),
        }  # fmt: skip
        start = {"weights_init": weights, "probabilities_init": probabilities}
        truth = {"weights": weights[:, None], "probabilities": probabilities}
        return Drawn((rows,), truth, prior, start, lambda model: count_distances(probabilities, model))


def count_distances(probabilities: Array, model: Any) -> Array:
    """Squared Hellinger distance of probabilities, true ones and learned ones."""
    return np.asarray(1.0 - np.sqrt(probabilities) @ np.sqrt(model.probabilities_).T)


@dataclass(frozen=True)
class Lines:
    """Regressions through the origin, whose coefficients are N(0, noise / coef_precision) for inputs of unit mean square."""

    components: int = 2
    n_rows: int = 300
    warm_up: Any = 100
    columns: int = 2
    coef_precision: float = 0.1
    dof: float = 10.0
    concentration: float = 5.0

    @property
    def estimator(self) -> type:
        return hw.RegressionMixture

    def draw(self, rng: np.random.Generator) -> Drawn:
        weights, of = heaped(rng, self.components, self.n_rows, self.concentration)
        inputs = rng.standard_normal((self.n_rows, self.columns))
        # The model measures coefficients in units of the inputs, as it finds them in the rows that it starts on.
        inputs /= np.sqrt(np.mean(inputs**2, axis=0))
        noise = 1.0 / rng.gamma(0.5 * self.dof, 2.0 / self.dof, size=self.components)
        coef = rng.standard_normal((self.components, self.columns)) * np.sqrt(noise / self.coef_precision)[:, None]
        target = (inputs * coef[of]).sum(axis=1) + np.sqrt(noise[of]) * rng.standard_normal(self.n_rows)
        prior = {
            "fit_intercept": False, "weight_concentration_prior": self.concentration,
            "coef_prior": np.zeros(self.columns), "coef_precision_prior": self.coef_precision,
            "degrees_of_freedom_prior": self.dof, "noise_variance_prior": 1.0,
        }  # fmt: skip
        truth = {"weights": weights[:, None], "coefficients": coef}
        start = {"weights_init": weights, "coef_init": coef}
        return Drawn((inputs, target), truth, prior, start, lambda model: line_distances(coef, noise, model))


def line_distances(coef: Array, noise: Array, model: Any) -> Array:
    """Jeffreys' divergence of targets, true ones and learned ones, for inputs of unit mean square."""
    learned = model.noise_variance_
    squares = ((coef[:, None] - model.coef_) ** 2).sum(axis=2)
    apart = squares * (1.0 / noise[:, None] + 1.0 / learned)
    return np.asarray(0.5 * (apart + noise[:, None] / learned + learned / noise[:, None]))
