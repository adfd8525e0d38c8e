"""K components of independent log-normal columns: positive numbers whose logarithms are normal, such as amounts and incomes.

The prior of a column is Normal-Gamma: the mean and the variance of the logarithms in the warm-up, worth `prior_rows` rows. A
mode is that of the mean and of the logarithm of the precision, so that modes and means agree: the variance is (prior sum + sum
of squares) / (prior rows + rows).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from headwater.core.batch import Batch
from headwater.core.statistics import Array
from headwater.core.values import Matrix, Values
from headwater.families.columns import PRIOR_ROWS, column_means
from headwater.families.components import ComponentStatistics
from headwater.families.conditional_law import Places
from headwater.families.geometry import RowGeometry
from headwater.families.positive_entries import LogNormalEntries
from headwater.families.skewed_columns import PositiveColumns, log_values

LEAST_VARIANCE = 1e-8  # of the logarithms in the warm-up; with less the column says nothing of how values spread
UNKNOWN_VARIANCE = 1.0  # which is the guess then: a factor of e
LOG_TWO_PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True)
class LogNormalStatistics(ComponentStatistics):
    """Rows (K,) of each component; rows (K, d) that have the column, and the sums of its logarithms and of their squares."""

    seen: Array
    logs: Array
    squares: Array


@dataclass(frozen=True)
class LogNormalPrior:
    """Rows (K, d) that the prior of each column is worth; mean and variance of their logarithms."""

    rows: Array
    mean: Array
    variance: Array


@dataclass(frozen=True)
class LogNormalBelief:
    """A Normal-Gamma belief (K, d): the rows behind it, the mean of the logarithms and the sum of their squares about it."""

    rows: Array
    mean: Array
    spread: Array


@dataclass(frozen=True)
class LogNormalParameters:
    """Means (K, d) and precisions of the logarithms, or what is expected of them.

    With q the squared distance from the mean, the log-density of a logarithm is offset - precision q / 2 where `power` is 0.
    With "predictive" it is Student's, offset - (power + 1/2) log(1 + precision q / (2 power)).
    """

    means: Array
    precisions: Array
    offset: Array
    power: Array


@dataclass(frozen=True)
class LogNormal(PositiveColumns[LogNormalPrior, LogNormalStatistics, LogNormalParameters]):
    """The family."""

    n_components: int
    prior_rows: float = PRIOR_ROWS

    statistics = LogNormalStatistics
    positive: ClassVar = {LogNormalPrior: ("rows", "variance"), LogNormalParameters: ("precisions",)}

    def prior(self, geometry: RowGeometry, batch: Batch, responsibilities: Array) -> LogNormalPrior:
        logs = log_values(batch.X)
        mean = column_means(batch, logs)
        variance = column_means(batch, np.square(logs - mean))
        variance = np.where(variance > LEAST_VARIANCE, variance, UNKNOWN_VARIANCE)
        return LogNormalPrior(*self.for_all(self.prior_rows, mean, variance))

    def log_densities(self, parameters: LogNormalParameters, X: Matrix) -> Array:
        logs = log_values(X)
        found = np.zeros((len(logs), self.n_components))
        for column, y in enumerate(logs.T):
            away = np.square(y[:, None] - parameters.means[:, column])
            precision, power = parameters.precisions[:, column], parameters.power[:, column]
            heavy = power > 0.0
            bent = np.where(heavy, (power + 0.5) * np.log1p(precision * away / (2.0 * np.where(heavy, power, 1.0))), 0.0)
            terms = parameters.offset[:, column] - np.where(heavy, bent, 0.5 * precision * away) - y[:, None]
            found += np.where(np.isnan(y)[:, None], 0.0, terms)
        return found

    def collect(self, parameters: LogNormalParameters, X: Matrix, responsibilities: Array) -> LogNormalStatistics:
        logs = log_values(X)
        seen = ~np.isnan(logs)
        logs = np.where(seen, logs, 0.0)
        return self.sums(responsibilities, seen, logs, np.square(logs))

    def belief(self, prior: LogNormalPrior, totals: LogNormalStatistics) -> LogNormalBelief:
        """Return the belief that prior and totals make."""
        rows = prior.rows + np.maximum(totals.seen, 0.0)
        mean = (prior.rows * prior.mean + totals.logs) / rows
        # Sums about the prior mean lose fewer digits than those about 0.
        squares = totals.squares - 2.0 * prior.mean * totals.logs + np.square(prior.mean) * totals.seen
        spread = np.maximum(squares - rows * np.square(mean - prior.mean), 0.0) + prior.rows * prior.variance
        return LogNormalBelief(rows, mean, spread)

    def readout(self, name: str, prior: LogNormalPrior, totals: LogNormalStatistics) -> LogNormalParameters:
        belief = self.belief(prior, totals)
        precisions, power = belief.rows / belief.spread, np.zeros_like(belief.rows)
        offset = 0.5 * (np.log(precisions) - LOG_TWO_PI)
        if name == "expect_log":
            half = 0.5 * belief.rows
            offset = 0.5 * (digamma(half) - np.log(0.5 * belief.spread) - LOG_TWO_PI - 1.0 / belief.rows)
        if name == "predictive":
            power = 0.5 * belief.rows
            precisions = precisions * belief.rows / (belief.rows + 1.0)
            offset = gammaln(power + 0.5) - gammaln(power) + 0.5 * (np.log(precisions) - np.log(2.0 * np.pi * power))
        return LogNormalParameters(belief.mean, precisions, offset, power)

    def log_prior(self, prior: LogNormalPrior, parameters: LogNormalParameters) -> float:
        away = prior.variance + np.square(parameters.means - prior.mean)
        return float(np.sum(0.5 * prior.rows * (np.log(parameters.precisions) - parameters.precisions * away)))

    def divergence(self, prior: LogNormalPrior, totals: LogNormalStatistics) -> float:
        belief = self.belief(prior, totals)
        before, after = 0.5 * prior.rows, 0.5 * belief.rows
        rate, own = 0.5 * prior.rows * prior.variance, 0.5 * belief.spread
        gammas = (after - before) * digamma(after) - gammaln(after) + gammaln(before)
        gammas += before * np.log(own / rate) + after * (rate / own - 1.0)
        share = prior.rows / belief.rows
        away = prior.rows * (after / own) * np.square(belief.mean - prior.mean)
        return float(np.sum(gammas + 0.5 * (share - 1.0 - np.log(share) + away)))

    def sample(
        self, parameters: LogNormalParameters, components: NDArray[np.int64], rng: np.random.Generator, *options: Values
    ) -> Array:
        means, deviations = parameters.means[components], 1.0 / np.sqrt(parameters.precisions[components])
        power = parameters.power[components]
        away = rng.normal(size=means.shape) * deviations
        if np.any(power > 0.0):  # Student's t is a normal law of unknown scale
            away /= np.sqrt(rng.gamma(power, 1.0 / power))
        return np.exp(np.clip(means + away, -690.0, 345.0))

    def find_impossible(self, totals: LogNormalStatistics) -> NDArray[np.bool_]:
        seen = np.maximum(totals.seen, 1e-300)
        least = np.square(totals.logs) / seen * (1.0 - 1e-9) - 1e-9 * (1.0 + totals.seen)
        wrong = (totals.seen < 0.0) | (totals.squares < 0.0) | (totals.squares < np.where(totals.seen > 0.0, least, 0.0))
        return np.asarray((totals.count < 0.0) | wrong.any(axis=1))

    def entries(self, parameters: LogNormalParameters, columns: Places) -> LogNormalEntries:
        """Return the laws (e, K) of entries of these columns; with "predictive" the normal ones of that scale."""
        return LogNormalEntries(parameters.means.T[columns], 1.0 / np.sqrt(parameters.precisions.T[columns]))
