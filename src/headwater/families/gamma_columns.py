"""K components of independent Gamma columns: positive numbers with a tail to the right, such as waiting times and claims.

Given its shape a, the rate b of a column has a Gamma belief; the shape is a number that is fitted with it, as the variance of
a prior is by empirical Bayes. The prior is worth `prior_rows` rows, whose mean and mean logarithm are those of the warm-up:

    p(a, b)  ~  b^(w a - 1) exp(a w l - w log Gamma(a) - w m b),

with m the mean and l the mean logarithm. With n rows whose sums are S and L (prior rows added) the belief about b is
Gamma(a n, S), and log a - digamma(a) = log(S/n) - L/n gives the mode. Where b is integrated out (variational Bayes, predictive
density), the shape is the best of that integral: log(a n) - digamma(a n) is added on the right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, polygamma

from headwater.core.batch import Batch
from headwater.core.statistics import Array
from headwater.core.values import Matrix, Values
from headwater.families.columns import PRIOR_ROWS, column_means, mark_gaps
from headwater.families.components import ComponentStatistics
from headwater.families.conditional_law import Places
from headwater.families.geometry import RowGeometry
from headwater.families.positive_entries import GammaEntries
from headwater.families.skewed_columns import PositiveColumns, log_values

LEAST_SHAPE, MOST_SHAPE = 1e-3, 1e8
LEAST_VALUE = 1e-300  # a smaller one is drawn as this
NEWTON_STEPS = 12  # in log a, from a start that has one digit


@dataclass(frozen=True)
class GammaStatistics(ComponentStatistics):
    """Rows (K,) of each component; rows (K, d) that have the column, and the sums of its values and of their logarithms."""

    seen: Array
    sums: Array
    logs: Array


@dataclass(frozen=True)
class GammaColumnsPrior:
    """Rows (K, d) that the prior of each column is worth, their mean and their mean logarithm."""

    rows: Array
    mean: Array
    log_mean: Array


@dataclass(frozen=True)
class GammaParameters:
    """Shapes and rates (K, d) and the logarithms of the rates, or their expectations; the log-density has offset and `power`.

    With "predictive" the power of 1 + x / sum is positive, and `rates` are 1 / sum; else it is 0.
    """

    shapes: Array
    rates: Array
    offset: Array
    power: Array


@dataclass(frozen=True)
class GammaColumns(PositiveColumns[GammaColumnsPrior, GammaStatistics, GammaParameters]):
    """The family."""

    n_components: int
    prior_rows: float = PRIOR_ROWS

    statistics = GammaStatistics
    positive: ClassVar = {GammaColumnsPrior: ("rows", "mean"), GammaParameters: ("shapes", "rates")}

    def prior(self, geometry: RowGeometry, batch: Batch, responsibilities: Array) -> GammaColumnsPrior:
        values = mark_gaps(batch.X)
        seen = ~np.isnan(values).all(axis=0)
        mean = np.where(seen, np.maximum(column_means(batch, values), LEAST_VALUE), 1.0)
        gap = np.log(mean) - np.where(seen, column_means(batch, log_values(values)), 0.0)
        least, most = float(_gap(MOST_SHAPE / 1e4)), float(_gap(LEAST_SHAPE))
        guess = np.where(gap > least, np.minimum(gap, most), _gap(1.0))  # values that are all alike say nothing of their spread
        return GammaColumnsPrior(*self.for_all(self.prior_rows, mean, np.log(mean) - guess))

    def log_densities(self, parameters: GammaParameters, X: Matrix) -> Array:
        values, logs = mark_gaps(X), log_values(X)
        found = np.zeros((len(values), self.n_components))
        for column, (x, y) in enumerate(zip(values.T, logs.T, strict=True)):
            rate, power = parameters.rates[:, column], parameters.power[:, column]
            ends = np.where(power > 0.0, power * np.log1p(rate * x[:, None]), rate * x[:, None])
            terms = parameters.offset[:, column] + (parameters.shapes[:, column] - 1.0) * y[:, None] - ends
            found += np.where(np.isnan(x)[:, None], 0.0, terms)
        return found

    def collect(self, parameters: GammaParameters, X: Matrix, responsibilities: Array) -> GammaStatistics:
        values, logs = mark_gaps(X), log_values(X)
        seen = ~np.isnan(values)
        return self.sums(responsibilities, seen, np.where(seen, values, 0.0), np.where(seen, logs, 0.0))

    def belief(self, prior: GammaColumnsPrior, totals: GammaStatistics) -> tuple[Array, Array, Array]:
        """Return rows, sums and sums of logarithms (K, d) of the belief."""
        rows = prior.rows + np.maximum(totals.seen, 0.0)
        sums = prior.rows * prior.mean + np.maximum(totals.sums, 0.0)
        return rows, sums, prior.rows * prior.log_mean + totals.logs

    def readout(self, name: str, prior: GammaColumnsPrior, totals: GammaStatistics) -> GammaParameters:
        rows, sums, logs = self.belief(prior, totals)
        shapes = solve_shape(rows, sums, logs, name in ("expect_log", "predictive"))
        power, rates, masses = np.zeros_like(shapes), shapes * rows / sums, shapes * rows
        if name == "predictive":
            offset = gammaln(shapes + masses) - gammaln(masses) - gammaln(shapes) - shapes * np.log(sums)
            return GammaParameters(shapes, 1.0 / sums, offset, shapes + masses)
        log_rates = digamma(masses) - np.log(sums) if name == "expect_log" else np.log(rates)
        return GammaParameters(shapes, rates, shapes * log_rates - gammaln(shapes), power)

    def log_prior(self, prior: GammaColumnsPrior, parameters: GammaParameters) -> float:
        shapes, rates = parameters.shapes, parameters.rates
        terms = shapes * (prior.log_mean + np.log(rates)) - gammaln(shapes) - prior.mean * rates
        return float(np.sum(prior.rows * terms))

    def divergence(self, prior: GammaColumnsPrior, totals: GammaStatistics) -> float:
        """Return KL(belief || prior) of the rates, less the log-density of the prior at the shapes, up to a constant."""
        rows, sums, logs = self.belief(prior, totals)
        shapes = solve_shape(rows, sums, logs, integrated=True)
        masses = shapes * rows
        log_rates = digamma(masses) - np.log(sums)
        entropy = masses - np.log(sums) + gammaln(masses) + (1.0 - masses) * digamma(masses)
        before = prior.rows * (shapes * prior.log_mean - gammaln(shapes)) + (prior.rows * shapes - 1.0) * log_rates
        return float(np.sum(prior.rows * prior.mean * masses / sums - before - entropy))

    def sample(
        self, parameters: GammaParameters, components: NDArray[np.int64], rng: np.random.Generator, *options: Values
    ) -> Array:
        shapes, rates, power = (part[components] for part in (parameters.shapes, parameters.rates, parameters.power))
        if np.any(power > 0.0):
            rates = rates * rng.gamma(power - shapes)
        return np.maximum(rng.gamma(shapes) / np.maximum(rates, LEAST_VALUE), LEAST_VALUE)

    def find_impossible(self, totals: GammaStatistics) -> NDArray[np.bool_]:
        seen, sums = np.maximum(totals.seen, 1e-300), np.maximum(totals.sums, 1e-300)
        most = totals.seen * np.log(sums / seen)  # of the sum of logarithms, by Jensen's inequality
        slack = 1e-9 * (1.0 + np.abs(most) + np.abs(totals.logs))
        wrong = (totals.seen < 0.0) | (totals.sums < 0.0) | ((totals.seen > 1e-9) & (totals.logs > most + slack))
        return np.asarray((totals.count < 0.0) | wrong.any(axis=1))

    def entries(self, parameters: GammaParameters, columns: Places) -> GammaEntries:
        """Return the laws (e, K) of entries of these columns; with "predictive" those of the mean parameters."""
        shapes, rates, power = (part.T[columns] for part in (parameters.shapes, parameters.rates, parameters.power))
        return GammaEntries(shapes, np.where(power > 0.0, rates * (power - shapes), rates))


def solve_shape(rows: Array, sums: Array, logs: Array, integrated: bool) -> Array:
    """Return the shapes (K, d) that fit these sums best, by Newton's method in log a (Minka 2002), within limits.

    If the rate is `integrated` out, log(a n) - digamma(a n) is added to the gap between log of mean and mean of log.
    """
    gap = np.clip(np.log(sums / rows) - logs / rows, _gap(MOST_SHAPE), _gap(LEAST_SHAPE))
    a = np.clip((3.0 - gap + np.sqrt(np.square(gap - 3.0) + 24.0 * gap)) / (12.0 * gap), LEAST_SHAPE, MOST_SHAPE)
    for _ in range(NEWTON_STEPS):
        excess, slope = _gap(a) - gap, 1.0 - a * polygamma(1, a)
        if integrated:
            excess = excess - _gap(a * rows)
            slope = slope - (1.0 - a * rows * polygamma(1, a * rows))
        step = np.clip(excess / np.minimum(slope, -1e-300), -2.0, 2.0)
        a = np.clip(a * np.exp(-step), LEAST_SHAPE, MOST_SHAPE)
    return np.asarray(a)


def _gap(shape: Array | float) -> Array:
    """log a - digamma(a), which falls from infinity to 0; by its series where both terms are large."""
    a = np.asarray(shape, dtype=float)
    far = np.maximum(a, 1e3)
    series = 0.5 / far + 1.0 / (12.0 * far**2) - 1.0 / (120.0 * far**4)
    return np.where(a > 1e3, series, np.log(np.minimum(a, 1e3)) - digamma(np.minimum(a, 1e3)))
