"""Laws of single entries that are counts, or yes and no, under each of K components."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, gammaln, pdtr, pdtrc

from headwater.core.statistics import Array
from headwater.families.entry_law import EntryLaw, OrderedEntries
from headwater.families.entry_mixture import entry_log_density, entry_moments

MOST_HALVINGS = 1100  # of a search among whole numbers; 54 are enough for all that are told apart


class CountEntries(OrderedEntries):
    """Laws of counts: whole numbers from 0. Abstract."""

    @property
    def _reach(self) -> Array:
        """A count (e, K) that is exceeded very rarely."""
        return np.asarray(np.ceil(self.mean + 10.0 * np.sqrt(self.variance) + 10.0))

    def quantile(self, probability: Array) -> Array:
        reach = self._reach
        wanted = np.broadcast_to(np.asarray(probability)[..., None] if np.ndim(probability) else probability, reach.shape)
        return least_whole(self._below_each, wanted, reach)

    def _below_each(self, values: Array) -> Array:
        """Probability (e, K) of no more than values (e, K)."""
        return np.column_stack([self.below(values[:, k])[:, k] for k in range(values.shape[1])])

    def mixture_quantile(self, weights: Array, probability: float) -> Array:
        def below(values: Array) -> Array:
            return np.asarray((weights * self.below(values)).sum(axis=1))

        return least_whole(below, np.full(len(weights), probability), self._reach.max(axis=1))

    def mixture_shares(self, weights: Array, values: Array) -> Array:
        return EntryLaw.mixture_shares(self, weights, values)


def least_whole(below: Callable[[Array], Array], wanted: Array, reach: Array) -> Array:
    """Return the least whole numbers whose `below` is no less than wanted, by halves; `reach` guesses what is enough."""
    high, low = reach.copy(), np.full_like(reach, -1.0)
    for _ in range(MOST_HALVINGS):
        short = (below(high) < wanted) & (high < 1e300)
        if not short.any():
            break
        low, high = np.where(short, high, low), np.where(short, 2.0 * high, high)
    for _ in range(MOST_HALVINGS):
        middle = np.floor(0.5 * (low + high))
        going = (high - low > 1.0) & (middle > low) & (middle < high)
        if not going.any():
            break
        enough = below(middle) >= wanted
        high, low = np.where(going & enough, middle, high), np.where(going & ~enough, middle, low)
    return high


@dataclass(frozen=True)
class PoissonEntries(CountEntries):
    """Poisson laws with these rates (e, K) in the time of the row."""

    rates: Array

    @property
    def mean(self) -> Array:
        return self.rates

    @property
    def variance(self) -> Array:
        return self.rates

    @property
    def peak(self) -> Array:
        return np.floor(self.rates)

    def select(self, entries: NDArray[np.int64] | NDArray[np.bool_]) -> Self:
        return replace(self, rates=self.rates[entries])

    def log_density(self, values: Array) -> Array:
        return np.asarray(values[:, None] * np.log(self.rates) - self.rates - gammaln(values + 1.0)[:, None])

    def below(self, values: Array) -> Array:
        return np.asarray(pdtr(np.floor(values)[:, None], self.rates))

    def above(self, values: Array) -> Array:
        least = np.ceil(values)[:, None]
        return np.asarray(np.where(least > 0.0, pdtrc(np.maximum(least - 1.0, 0.0), self.rates), 1.0))

    def log_beyond(self, values: Array) -> tuple[Array, Array]:
        """Terms beyond a value fall at least as fast as the first two: what a geometric series sums to, where sums vanish."""
        x, logs = values[:, None], self.log_density(values)
        with np.errstate(divide="ignore"):
            sums = np.log(self.below(values)), np.log(self.above(values))
            falls = x / self.rates, self.rates / (x + 1.0)
            bounds = [logs - np.log1p(-np.minimum(fall, 0.999)) for fall in falls]
        low, high = (np.where(total > -500.0, total, bound) for total, bound in zip(sums, bounds, strict=True))
        return low, high

    def ascend(self, values: Array, shares: Array) -> Array:
        logs = (shares * np.log(self.rates)).sum(axis=1) / shares.sum(axis=1)
        return np.floor(np.exp(logs))


@dataclass(frozen=True)
class NegativeBinomialEntries(CountEntries):
    """Counts in some time (e, 1) whose rates have Gamma beliefs of this shape and rate (e, K)."""

    shape: Array
    rate: Array
    time: Array

    @property
    def mean(self) -> Array:
        return np.asarray(self.shape * self.time / self.rate)

    @property
    def variance(self) -> Array:
        return np.asarray(self.mean * (1.0 + self.time / self.rate))

    @property
    def peak(self) -> Array:
        return np.asarray(np.floor(np.maximum(self.shape - 1.0, 0.0) * self.time / self.rate))

    def select(self, entries: NDArray[np.int64] | NDArray[np.bool_]) -> Self:
        return replace(self, shape=self.shape[entries], rate=self.rate[entries], time=self.time[entries])

    def log_density(self, values: Array) -> Array:
        x, share = values[:, None], self.time / (self.rate + self.time)
        counts = gammaln(self.shape + x) - gammaln(self.shape) - gammaln(x + 1.0)
        return np.asarray(counts + self.shape * np.log1p(-share) + x * np.log(share))

    def below(self, values: Array) -> Array:
        return np.asarray(betainc(self.shape, np.floor(values)[:, None] + 1.0, self.rate / (self.rate + self.time)))

    def above(self, values: Array) -> Array:
        least = np.ceil(values)[:, None]
        chance = betainc(np.maximum(least, 1.0), self.shape, self.time / (self.rate + self.time))
        return np.asarray(np.where(least > 0.0, chance, 1.0))

    def log_beyond(self, values: Array) -> tuple[Array, Array]:
        with np.errstate(divide="ignore"):
            return np.log(self.below(values)), np.log(self.above(values))

    def ascend(self, values: Array, shares: Array) -> Array:
        """The best of the value, its neighbours and the peaks of the components."""
        best, height = values, (shares * self.log_density(values)).sum(axis=1)
        for other in (values - 1.0, values + 1.0, *self.peak.T):
            tried = np.maximum(other, 0.0)
            found = (shares * self.log_density(tried)).sum(axis=1)
            best, height = np.where(found > height, tried, best), np.maximum(found, height)
        return np.asarray(best)


@dataclass(frozen=True)
class FlagEntries(EntryLaw):
    """Yes (1) and no (0), with these log-probabilities (e, K). The mean is the probability of yes."""

    log_ones: Array
    log_zeros: Array

    @property
    def mean(self) -> Array:
        return np.asarray(np.exp(self.log_ones))

    @property
    def variance(self) -> Array:
        return np.asarray(np.exp(self.log_ones + self.log_zeros))

    @property
    def peak(self) -> Array:
        return (self.log_ones > self.log_zeros).astype(float)

    def select(self, entries: NDArray[np.int64] | NDArray[np.bool_]) -> Self:
        return replace(self, log_ones=self.log_ones[entries], log_zeros=self.log_zeros[entries])

    def log_density(self, values: Array) -> Array:
        return np.asarray(np.where(values[:, None] >= 0.5, self.log_ones, self.log_zeros))

    def bounds(self, values: Array) -> tuple[Array, Array]:
        zeros, yes = np.exp(self.log_zeros), values[:, None] >= 0.5
        return np.where(yes, zeros, 0.0), np.where(yes, 1.0, zeros)

    def log_tail(self, values: Array) -> Array:
        return _likelier_is_usual(self.log_density(values))

    def ascend(self, values: Array, shares: Array) -> Array:
        return ((shares * (self.log_ones - self.log_zeros)).sum(axis=1) > 0.0).astype(float)

    def draw(self, components: NDArray[np.int64], uniforms: Array) -> Array:
        zeros = np.exp(self.log_zeros)[np.arange(len(components)), components]
        return (uniforms > zeros).astype(float)

    def mixture_moments(self, weights: Array) -> tuple[Array, Array]:
        return entry_moments(self, weights)

    def mixture_log_tail(self, weights: Array, values: Array) -> Array:
        return _likelier_is_usual(entry_log_density(self, weights, values))

    def mixture_quantile(self, weights: Array, probability: float) -> Array:
        return ((weights * np.exp(self.log_zeros)).sum(axis=1) < probability).astype(float)


def _likelier_is_usual(logs: Array) -> Array:
    """The tail of one of two values: its probability, or 1 if the other is no likelier."""
    return np.asarray(np.where(logs >= np.log(0.5), 0.0, logs))
