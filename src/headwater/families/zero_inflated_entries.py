"""Laws of single entries that are counts with more zeros than a Poisson law has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from headwater.core.statistics import Array
from headwater.families.discrete_entries import CountEntries, PoissonEntries


@dataclass(frozen=True)
class ZeroInflatedPoissonEntries(CountEntries):
    """Zero for good with a probability (e, K), else Poisson with these rates."""

    log_zeros: Array
    log_others: Array
    rates: Array

    @cached_property
    def counts(self) -> PoissonEntries:
        """The other case."""
        return PoissonEntries(self.rates)

    @property
    def mean(self) -> Array:
        return np.asarray(np.exp(self.log_others) * self.rates)

    @property
    def variance(self) -> Array:
        return np.asarray(np.exp(self.log_others) * self.rates * (1.0 + np.exp(self.log_zeros) * self.rates))

    @property
    def peak(self) -> Array:
        top = np.floor(self.rates)
        at_top = np.log(np.maximum(self.rates, 1e-300)) * top - self.rates - gammaln(top + 1.0) + self.log_others
        return np.where(at_top > self._log_empty, top, 0.0)

    @property
    def _log_empty(self) -> Array:
        return np.logaddexp(self.log_zeros, self.log_others - self.rates)

    def select(self, entries: NDArray[np.int64] | NDArray[np.bool_]) -> Self:
        return replace(self, log_zeros=self.log_zeros[entries], log_others=self.log_others[entries], rates=self.rates[entries])

    def log_density(self, values: Array) -> Array:
        others = self.log_others + self.counts.log_density(values)
        return np.asarray(np.where((values == 0.0)[:, None], self._log_empty, others))

    def below(self, values: Array) -> Array:
        found = np.exp(self.log_zeros) + np.exp(self.log_others) * self.counts.below(values)
        return np.where((values < 0.0)[:, None], 0.0, found)

    def above(self, values: Array) -> Array:
        return np.where((values <= 0.0)[:, None], 1.0, np.exp(self.log_others) * self.counts.above(values))

    def log_beyond(self, values: Array) -> tuple[Array, Array]:
        low, high = self.counts.log_beyond(values)
        low = np.where((values < 0.0)[:, None], -np.inf, np.logaddexp(self.log_zeros, self.log_others + low))
        return low, np.where((values <= 0.0)[:, None], 0.0, self.log_others + high)

    def ascend(self, values: Array, shares: Array) -> Array:
        """The better of zero and of the best value of the other case."""
        other = np.maximum(self.counts.ascend(values, shares), 1.0)
        heights = [(shares * self.log_density(tried)).sum(axis=1) for tried in (np.zeros_like(values), other, values)]
        return np.choose(np.argmax(heights, axis=0), [np.zeros_like(values), other, values])
