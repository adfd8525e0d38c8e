"""Forecasts of autoregressions whose coefficients change with the state of a chain.

Means and variances are exact: with s = [1, the last rows], the products E[s s'] given each state follow a linear recursion.
Quantiles and densities beyond the next row are those of a mixture of K^h normal laws; it is replaced by one over drawn pasts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from headwater.core.statistics import Array
from headwater.families.entry_law import NormalEntries
from headwater.models.forecasting import MarkovStates, StateForecast

DRAWN_PASTS = 4096  # of a mixture that has too many components: its probabilities are right to less than a hundredth


@dataclass(frozen=True)
class Autoregression:
    """Coefficients (K, order, d, d), intercepts (K, d) and noise covariances (K, d, d)."""

    coef: Array
    intercept: Array
    covariance: Array

    def means(self, states: NDArray[np.int64], pasts: Array) -> Array:
        """Return the mean (n, d) of the next rows in some states (n,), after pasts (n, order, d), the newest row first."""
        return np.asarray(self.intercept[states] + np.einsum("nlij,nlj->ni", self.coef[states], pasts))


@dataclass(frozen=True)
class AutoregressiveRows:
    """The next rows after `past` (order, d), the newest row first."""

    law: Autoregression
    past: Array
    states: MarkovStates
    seed: int

    def moments(self, states: StateForecast) -> tuple[Array, Array]:
        """Return mean and variance (h, d), by the recursion of the module."""
        order, d = self.past.shape
        k, size = len(self.law.intercept), 1 + order * d
        step = np.zeros((k, size, size))
        step[:, 0, 0] = 1.0
        step[:, 1 : 1 + d, 0] = self.law.intercept
        step[:, 1 : 1 + d, 1:] = np.swapaxes(self.law.coef, 1, 2).reshape(k, d, order * d)
        step[:, 1 + d :, 1 : size - d] = np.eye(size - d - 1)
        now = np.concatenate([[1.0], self.past.ravel()])
        shares, passages = self.states.laws, self.states.passages
        products = shares[0][:, None, None] * np.outer(now, now)
        mean, variance = np.empty((2, self.states.steps, d))
        for at in range(self.states.steps):
            with np.errstate(over="ignore", invalid="ignore"):
                products = step @ products @ np.swapaxes(step, 1, 2)
                products[:, 1 : 1 + d, 1 : 1 + d] += shares[at][:, None, None] * self.law.covariance
                whole = products.sum(axis=0)
            _check_growth(at, whole)
            mean[at] = whole[1 : 1 + d, 0]
            variance[at] = np.maximum(np.diagonal(whole)[1 : 1 + d] - mean[at] ** 2, 0.0)
            products = np.einsum("lk,lij->kij", passages, products)
        return mean, variance

    @cached_property
    def _drawn(self) -> tuple[NDArray[np.int64], Array]:
        """States (n, h), and the means (n, h, d) of the rows in them, after drawn pasts."""
        rng = np.random.default_rng(self.seed)
        paths = self.states.draw(DRAWN_PASTS, rng)
        return paths, self._walk(paths, rng)[0]

    def _mixture(self, step: int) -> tuple[Array, Array, NDArray[np.int64]]:
        """Weights (n,), means (n, d) and states (n,) of the normal laws that a row is a mixture of; exact for the next row."""
        if step == 0:
            states = np.arange(len(self.law.intercept))
            return self.states.laws[0], self.law.means(states, np.tile(self.past, (len(states), 1, 1))), states
        paths, means = self._drawn
        return np.full(len(paths), 1.0 / len(paths)), means[:, step], paths[:, step]

    def quantile(self, states: StateForecast, probability: float) -> Array:
        """Return the values (h, d) that are not exceeded with this probability."""
        deviations = np.sqrt(np.diagonal(self.law.covariance, axis1=1, axis2=2))
        found = np.empty((self.states.steps, self.past.shape[1]))
        for step in range(self.states.steps):
            weights, means, own = self._mixture(step)
            entries = NormalEntries(np.ascontiguousarray(means.T), np.ascontiguousarray(deviations[own].T))
            found[step] = entries.mixture_quantile(np.tile(weights, (means.shape[1], 1)), probability)
        return found

    def log_density(self, states: StateForecast, of: Array) -> Array:
        """Return the log-density (h,) of rows, each by itself."""
        precisions, logs = np.linalg.inv(self.law.covariance), np.linalg.slogdet(2.0 * np.pi * self.law.covariance)[1]
        found = np.empty(len(of))
        for step, row in enumerate(of):
            weights, means, own = self._mixture(step)
            away = row - means
            squares = np.einsum("ni,nij,nj->n", away, precisions[own], away)
            with np.errstate(divide="ignore"):
                found[step] = logsumexp(np.log(weights) - 0.5 * (squares + logs[own]))
        return found

    def draw(self, paths: NDArray[np.int64], rng: np.random.Generator) -> Array:
        """Return rows (size, h, d) for paths (size, h) of states."""
        return self._walk(paths, rng)[1]

    def _walk(self, paths: NDArray[np.int64], rng: np.random.Generator) -> tuple[Array, Array]:
        """Return means and draws (n, h, d) of rows along some paths."""
        size, steps = paths.shape
        roots = np.linalg.cholesky(self.law.covariance)
        pasts = np.tile(self.past, (size, 1, 1))
        means, rows = np.empty((2, size, steps, self.past.shape[1]))
        for step in range(steps):
            own = paths[:, step]
            with np.errstate(over="ignore", invalid="ignore"):
                means[:, step] = self.law.means(own, pasts)
            _check_growth(step, means[:, step])
            rows[:, step] = means[:, step] + np.einsum("nij,nj->ni", roots[own], rng.normal(size=rows[:, step].shape))
            pasts = np.concatenate([rows[:, step, None], pasts[:, :-1]], axis=1)
        return means, rows


def _check_growth(step: int, values: Array) -> None:
    """Refuse forecasts of series that grow until no number can hold them, or the square of one."""
    if not np.isfinite(values).all():
        raise ValueError(
            f"steps: the series grows without end under its coefficients, and no number can hold step {step + 1} or its "
            f"variance: ask for fewer steps"
        )
