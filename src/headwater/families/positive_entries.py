"""Laws of single entries that are positive numbers, and of those that may be zero, under each of K components."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc, gammaincc, gammaincinv, gammaln, log_ndtr, ndtr, ndtri

from headwater.core.statistics import Array
from headwater.families.entry_law import LOG_ROOT_TWO_PI, EntryLaw, OrderedEntries
from headwater.families.entry_mixture import entry_quantile

LEAST_PART = 1e-6  # of the mean, above which the mode of a density without a peak is looked for
LARGEST_LOG = 345.0


@dataclass(frozen=True)
class LogNormalEntries(OrderedEntries):
    """Log-normal laws; mean and standard deviation (e, K) of the logarithms."""

    centre: Array
    scale: Array

    @property
    def mean(self) -> Array:
        return np.asarray(np.exp(np.minimum(self.centre + 0.5 * np.square(self.scale), LARGEST_LOG)))

    @property
    def variance(self) -> Array:
        return np.asarray(np.square(self.mean) * np.expm1(np.minimum(np.square(self.scale), LARGEST_LOG)))

    @property
    def peak(self) -> Array:
        return np.asarray(np.exp(np.maximum(self.centre - np.square(self.scale), -LARGEST_LOG)))

    def select(self, entries: NDArray[np.int64] | NDArray[np.bool_]) -> Self:
        return replace(self, centre=self.centre[entries], scale=self.scale[entries])

    def log_density(self, values: Array) -> Array:
        logs = _logs(values)
        away = (logs - self.centre) / self.scale
        return np.asarray(-0.5 * np.square(away) - np.log(self.scale) - LOG_ROOT_TWO_PI - logs)

    def below(self, values: Array) -> Array:
        return np.asarray(ndtr((_logs(values) - self.centre) / self.scale))

    def above(self, values: Array) -> Array:
        return np.asarray(ndtr((self.centre - _logs(values)) / self.scale))

    def log_beyond(self, values: Array) -> tuple[Array, Array]:
        standard = (_logs(values) - self.centre) / self.scale
        return log_ndtr(standard), log_ndtr(-standard)

    def quantile(self, probability: Array) -> Array:
        away = self.scale * _column(ndtri(probability))
        return np.asarray(np.exp(np.clip(self.centre + away, -2.0 * LARGEST_LOG, LARGEST_LOG)))

    def ascend(self, values: Array, shares: Array) -> Array:
        """The logarithm of the best value is a mean of those of the components, less its variance."""
        precision = shares / np.square(self.scale)
        logs = ((precision * self.centre).sum(axis=1) - shares.sum(axis=1)) / precision.sum(axis=1)
        return np.asarray(np.exp(np.clip(logs, -LARGEST_LOG, LARGEST_LOG)))


@dataclass(frozen=True)
class GammaEntries(OrderedEntries):
    """Gamma laws with these shapes and rates (e, K)."""

    shape: Array
    rate: Array

    @property
    def mean(self) -> Array:
        return np.asarray(self.shape / self.rate)

    @property
    def variance(self) -> Array:
        return np.asarray(self.shape / np.square(self.rate))

    @property
    def peak(self) -> Array:
        """The mode; a millionth of the mean where the density has none, and rises towards 0."""
        return np.asarray(np.maximum(self.shape - 1.0, LEAST_PART * self.shape) / self.rate)

    def select(self, entries: NDArray[np.int64] | NDArray[np.bool_]) -> Self:
        return replace(self, shape=self.shape[entries], rate=self.rate[entries])

    def log_density(self, values: Array) -> Array:
        logs = _logs(values)
        offset = self.shape * np.log(self.rate) - gammaln(self.shape)
        return np.asarray(offset + (self.shape - 1.0) * logs - self.rate * np.exp(logs))

    def below(self, values: Array) -> Array:
        return np.asarray(gammainc(self.shape, self.rate * np.maximum(values, 0.0)[:, None]))

    def above(self, values: Array) -> Array:
        return np.asarray(gammaincc(self.shape, self.rate * np.maximum(values, 0.0)[:, None]))

    def log_beyond(self, values: Array) -> tuple[Array, Array]:
        """Where a tail vanishes, the first term of its series, or of its continued fraction, stands for it."""
        x = self.rate * np.exp(_logs(values))
        with np.errstate(divide="ignore"):
            sums = np.log(self.below(values)), np.log(self.above(values))
            first = self.shape * np.log(x) - x - gammaln(self.shape + 1.0)
            last = (self.shape - 1.0) * np.log(x) - x - gammaln(self.shape)
        low, high = (np.where(total > -500.0, total, term) for total, term in zip(sums, (first, last), strict=True))
        return low, high

    def quantile(self, probability: Array) -> Array:
        return np.asarray(np.maximum(gammaincinv(self.shape, _column(probability)) / self.rate, 1e-300))

    def ascend(self, values: Array, shares: Array) -> Array:
        """The best value has the shapes and the rates of the components, averaged."""
        best = (shares * (self.shape - 1.0)).sum(axis=1) / (shares * self.rate).sum(axis=1)
        least = LEAST_PART * (shares * self.mean).sum(axis=1) / shares.sum(axis=1)
        return np.asarray(np.maximum(best, np.minimum(least, values)))


@dataclass(frozen=True)
class ZeroInflatedEntries(EntryLaw):
    """Zero with a probability (e, K), else a positive number by a law of its own.

    A density is compared with a probability nowhere: the mode is zero where that is the likelier of the two cases.
    """

    log_zeros: Array
    log_others: Array
    positive: OrderedEntries

    @property
    def mean(self) -> Array:
        return np.asarray(np.exp(self.log_others) * self.positive.mean)

    @property
    def variance(self) -> Array:
        mean, share = self.positive.mean, np.exp(self.log_others)
        return np.asarray(share * (self.positive.variance + (1.0 - share) * np.square(mean)))

    @property
    def peak(self) -> Array:
        return np.asarray(np.where(self.log_zeros >= self.log_others, 0.0, self.positive.peak))

    def select(self, entries: NDArray[np.int64] | NDArray[np.bool_]) -> Self:
        return replace(
            self,
            log_zeros=self.log_zeros[entries],
            log_others=self.log_others[entries],
            positive=self.positive.select(entries),
        )

    def log_density(self, values: Array) -> Array:
        """Log-probability of zero, or log-density of another value."""
        zero = (values == 0.0)[:, None]
        others = self.positive.log_density(np.where(values > 0.0, values, 1.0))
        return np.asarray(np.where(zero, self.log_zeros, self.log_others + others))

    def bounds(self, values: Array) -> tuple[Array, Array]:
        zeros, others = np.exp(self.log_zeros), np.exp(self.log_others)
        less, upto = self.positive.bounds(np.where(values > 0.0, values, 1.0))
        zero = (values == 0.0)[:, None]
        return np.where(zero, 0.0, zeros + others * less), np.where(zero, zeros, zeros + others * upto)

    def log_tail(self, values: Array) -> Array:
        """Of zero, as of a flag; of others, that of their own law, in their part of the rows."""
        zero = (values == 0.0)[:, None]
        tails = self.positive.log_tail(np.where(values > 0.0, values, 1.0)) + self.log_others
        usual = np.where(self.log_zeros >= np.log(0.5), 0.0, self.log_zeros)
        return np.asarray(np.where(zero, usual, tails))

    def ascend(self, values: Array, shares: Array) -> Array:
        zero = (shares * (self.log_zeros - self.log_others)).sum(axis=1) >= 0.0
        return np.asarray(np.where(zero, 0.0, self.positive.ascend(np.where(values > 0.0, values, 1.0), shares)))

    def draw(self, components: NDArray[np.int64], uniforms: Array) -> Array:
        at = np.arange(len(components))
        zeros = np.exp(self.log_zeros)[at, components]
        rest = np.clip((uniforms - zeros) / np.maximum(1.0 - zeros, 1e-300), 1e-16, 1.0 - 1e-16)
        return np.where(uniforms < zeros, 0.0, self.positive.draw(components, rest))

    def mixture_moments(self, weights: Array) -> tuple[Array, Array]:
        means = self.mean
        mean = (weights * means).sum(axis=1)
        return mean, (weights * (self.variance + np.square(means - mean[:, None]))).sum(axis=1)

    def _split(self, weights: Array) -> tuple[Array, Array]:
        """Probability (e,) of zero, and the weights (e, K) of the components among the others."""
        zeros = (weights * np.exp(self.log_zeros)).sum(axis=1)
        others = weights * np.exp(self.log_others)
        return zeros, others / np.maximum(others.sum(axis=1, keepdims=True), 1e-300)

    def mixture_log_tail(self, weights: Array, values: Array) -> Array:
        zeros, others = self._split(weights)
        with np.errstate(divide="ignore"):
            usual = np.where(zeros >= 0.5, 0.0, np.log(zeros))
            tails = self.positive.mixture_log_tail(others, np.where(values > 0.0, values, 1.0)) + np.log1p(-zeros)
        return np.asarray(np.where(values == 0.0, usual, tails))

    def mixture_quantile(self, weights: Array, probability: float) -> Array:
        zeros, others = self._split(weights)
        found = np.zeros(len(weights))
        rest = np.clip((probability - zeros) / np.maximum(1.0 - zeros, 1e-300), 0.0, 1.0 - 1e-15)
        at = np.flatnonzero(rest > 0.0)
        if len(at):
            found[at] = entry_quantile(self.positive.select(at), others[at], rest[at])
        return found


def _logs(values: Array) -> Array:
    """Logarithms (e, 1) of values; of those that are not positive, of the least positive number."""
    return np.asarray(np.log(np.maximum(values, 1e-300))[:, None])


def _column(values: Array) -> Array:
    return np.asarray(values)[..., None] if np.ndim(values) else np.asarray(values)
