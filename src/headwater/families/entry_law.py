"""Distributions of single entries under each of K components, given the component and the known columns.

Every array is (e, K): e entries, K components; or of a shape that broadcasts to it. Values are (e,). `OrderedEntries` are
numbers, `CategoryEntries` (category_entries.py) are codes, whose order says nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, log_ndtr, logsumexp, ndtr, ndtri, stdtr, stdtrit

from headwater.core.statistics import Array
from headwater.families.entry_mixture import entry_log_density, entry_log_tail, entry_moments, entry_quantile

FARTHEST = 1e150  # standard deviations; the square of more would overflow
LOG_ROOT_TWO_PI = 0.5 * float(np.log(2.0 * np.pi))


class EntryLaw(ABC):
    """The law of each of e entries under each component, and of mixtures of the components with weights (e, K)."""

    @property
    @abstractmethod
    def mean(self) -> Array:
        """Means (e, K); of a category the most probable code."""

    @property
    @abstractmethod
    def variance(self) -> Array:
        """Variances (e, K); of a category those of the indicators of its codes, summed."""

    @property
    def peak(self) -> Array:
        """Most probable values (e, K); by default the means."""
        return self.mean

    @abstractmethod
    def select(self, entries: NDArray[np.int64] | NDArray[np.bool_]) -> Self:
        """Return the laws of some of the entries."""

    @abstractmethod
    def log_density(self, values: Array) -> Array:
        """Return log-densities (e, K), or log-probabilities."""

    @abstractmethod
    def bounds(self, values: Array) -> tuple[Array, Array]:
        """Return the probability (e, K) of less than the value, and of up to the value; of categories by their codes."""

    @abstractmethod
    def log_tail(self, values: Array) -> Array:
        """Return the logarithm (e, K) of the probability of what is at least as far off as the value, in each component."""

    @abstractmethod
    def ascend(self, values: Array, shares: Array) -> Array:
        """Return values (e,) whose log-density, averaged by shares (e, K), is no lower: a step to a mode of the mixture."""

    @abstractmethod
    def draw(self, components: NDArray[np.int64], uniforms: Array) -> Array:
        """Return a value (e,) of each entry under one component (e,), by one uniform number (e,) each."""

    @abstractmethod
    def mixture_moments(self, weights: Array) -> tuple[Array, Array]:
        """Return mean and variance (e,) of the mixtures."""

    @abstractmethod
    def mixture_log_tail(self, weights: Array, values: Array) -> Array:
        """Return the logarithm (e,) of the probability of what is at least as far off as the value, in the mixture."""

    @abstractmethod
    def mixture_quantile(self, weights: Array, probability: float) -> Array:
        """Return the value (e,) that the mixtures do not exceed with this probability; NaN where values have no order."""

    def mixture_shares(self, weights: Array, values: Array) -> Array:
        """Return the probability (e, c) of each of c values, if the entry takes no others, by Bayes' rule."""
        logs = [entry_log_density(self, weights, np.full(len(weights), value)) for value in values]
        shares = np.column_stack(logs)
        shares = np.exp(shares - shares.max(axis=1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))


class OrderedEntries(EntryLaw):
    """Laws of numbers."""

    @abstractmethod
    def below(self, values: Array) -> Array:
        """Return the probability (e, K) of values up to this one."""

    @abstractmethod
    def above(self, values: Array) -> Array:
        """Return the probability (e, K) of at least the value."""

    @abstractmethod
    def log_beyond(self, values: Array) -> tuple[Array, Array]:
        """Return the logarithms of `below` and of `above`, however small."""

    @abstractmethod
    def quantile(self, probability: Array) -> Array:
        """Return the value (e, K) that is not exceeded with this probability, (e,) or a number."""

    def bounds(self, values: Array) -> tuple[Array, Array]:
        upto = self.below(values)
        return np.minimum(1.0 - self.above(values), upto), upto

    def log_tail(self, values: Array) -> Array:
        return np.asarray(np.minimum(np.log(2.0) + np.minimum(*self.log_beyond(values)), 0.0))

    def draw(self, components: NDArray[np.int64], uniforms: Array) -> Array:
        found = self.quantile(uniforms)
        return np.asarray(np.broadcast_to(found, (len(components), found.shape[1]))[np.arange(len(components)), components])

    def mixture_moments(self, weights: Array) -> tuple[Array, Array]:
        return entry_moments(self, weights)

    def mixture_log_tail(self, weights: Array, values: Array) -> Array:
        return entry_log_tail(self, weights, values)

    def mixture_quantile(self, weights: Array, probability: float) -> Array:
        return entry_quantile(self, weights, probability)

    def mixture_shares(self, weights: Array, values: Array) -> Array:
        """Share out the density in each component: so one in which the entry hardly varies counts no more than its weight."""
        logs = np.stack([self.log_density(np.full(len(weights), value)) for value in values], axis=2)
        shares = np.exp(logs - logsumexp(logs, axis=2, keepdims=True))
        return np.asarray(np.einsum("ek,ekc->ec", weights, shares))


@dataclass(frozen=True)
class NormalEntries(OrderedEntries):
    """Normal laws with these centres and standard deviations."""

    centre: Array
    scale: Array

    @property
    def mean(self) -> Array:
        return np.broadcast_to(self.centre, self._shape)

    @property
    def variance(self) -> Array:
        return np.broadcast_to(np.square(self.scale), self._shape)

    @property
    def _shape(self) -> tuple[int, ...]:
        return np.broadcast_shapes(self.centre.shape, self.scale.shape)

    def select(self, entries: NDArray[np.int64] | NDArray[np.bool_]) -> Self:
        return replace(self, centre=self.centre[entries], scale=self.scale[entries])

    def log_density(self, values: Array) -> Array:
        return np.asarray(-0.5 * np.square(self._standard(values)) - np.log(self.scale) - LOG_ROOT_TWO_PI)

    def below(self, values: Array) -> Array:
        return np.asarray(ndtr(self._standard(values)))

    def above(self, values: Array) -> Array:
        return np.asarray(ndtr(-self._standard(values)))

    def log_beyond(self, values: Array) -> tuple[Array, Array]:
        standard = self._standard(values)
        return log_ndtr(standard), log_ndtr(-standard)

    def quantile(self, probability: Array) -> Array:
        return np.asarray(self.centre + self.scale * _column(ndtri(probability)))

    def ascend(self, values: Array, shares: Array) -> Array:
        return _precision_mean(shares, self.centre, self.scale)

    def _standard(self, values: Array) -> Array:
        return np.clip((values[:, None] - self.centre) / self.scale, -FARTHEST, FARTHEST)


@dataclass(frozen=True)
class StudentEntries(OrderedEntries):
    """Student's t with these centres, scales and degrees of freedom."""

    centre: Array
    scale: Array
    dof: Array

    @property
    def mean(self) -> Array:
        return np.broadcast_to(self.centre, self._shape)

    @property
    def variance(self) -> Array:
        with np.errstate(divide="ignore"):
            stretch = np.where(self.dof > 2.0, self.dof / np.maximum(self.dof - 2.0, 0.0), np.inf)
        return np.broadcast_to(stretch * np.square(self.scale), self._shape)

    @property
    def _shape(self) -> tuple[int, ...]:
        return np.broadcast_shapes(self.centre.shape, self.scale.shape, self.dof.shape)

    def select(self, entries: NDArray[np.int64] | NDArray[np.bool_]) -> Self:
        return replace(self, centre=self.centre[entries], scale=self.scale[entries], dof=self.dof[entries])

    def log_density(self, values: Array) -> Array:
        dof, standard = self.dof, self._standard(values)
        constant = gammaln(0.5 * (dof + 1.0)) - gammaln(0.5 * dof) - 0.5 * np.log(np.pi * dof) - np.log(self.scale)
        return np.asarray(constant - 0.5 * (dof + 1.0) * np.log1p(np.square(standard) / dof))

    def below(self, values: Array) -> Array:
        return np.asarray(stdtr(self.dof, self._standard(values)))

    def above(self, values: Array) -> Array:
        return np.asarray(stdtr(self.dof, -self._standard(values)))

    def log_beyond(self, values: Array) -> tuple[Array, Array]:
        with np.errstate(divide="ignore"):
            return np.log(self.below(values)), np.log(self.above(values))

    def quantile(self, probability: Array) -> Array:
        return np.asarray(self.centre + self.scale * stdtrit(self.dof, _column(probability)))

    def ascend(self, values: Array, shares: Array) -> Array:
        # Student's t is a normal law of unknown scale: distant values count less (the EM step of that scale).
        weights = (self.dof + 1.0) / (self.dof + np.square(self._standard(values)))
        return _precision_mean(shares * weights, self.centre, self.scale)

    def _standard(self, values: Array) -> Array:
        return np.clip((values[:, None] - self.centre) / self.scale, -FARTHEST, FARTHEST)


def _precision_mean(shares: Array, centre: Array, scale: Array) -> Array:
    precision = shares / np.square(scale)
    return np.asarray((precision * centre).sum(axis=1) / precision.sum(axis=1))


def _column(values: Array) -> Array:
    """Values (e,) as (e, 1); a number as it is."""
    return np.asarray(values)[..., None] if np.ndim(values) else np.asarray(values)
