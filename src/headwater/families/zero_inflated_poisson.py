"""K components of independent counts with more zeros than a Poisson law has: visits of people of whom some never come.

Given the component, a count is zero for good with a probability, else Poisson. Which zeros are for good is hidden: the E-step
says how probable it is, so a readout is one step of EM. Priors are Beta and Gamma, each a guess of the warm-up worth
`prior_rows` rows, and modes and means agree as in `poisson.py` and `bernoulli.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, digamma, gammaln

from headwater.core.batch import Batch
from headwater.core.statistics import Array
from headwater.core.values import Matrix, Values
from headwater.families.columns import PRIOR_ROWS, column_means, fill_gaps, mark_gaps
from headwater.families.components import ComponentStatistics
from headwater.families.conditional_law import Places
from headwater.families.geometry import RowGeometry
from headwater.families.poisson import LEAST_RATE, draw_counts
from headwater.families.skewed_columns import SkewedColumns
from headwater.families.soundness import NO_PARAMETERS, are_no_logs
from headwater.families.wide_law import WideLaw, log_counts, sample_counts
from headwater.families.zero_inflated_entries import ZeroInflatedPoissonEntries

ZERO_SHARE = 0.5  # of the zeros of the warm-up, which the prior takes to be for good
LEAST_GUESS = 0.01  # least prior probability of such a zero, and of the other case
LEAST_PROBABILITY = 1e-12


@dataclass(frozen=True)
class ZeroInflatedPoissonStatistics(ComponentStatistics):
    """Rows (K,) of each component; rows (K, d) that have the column, those expected not to be zero for good, and events."""

    seen: Array
    active: Array
    events: Array


@dataclass(frozen=True)
class ZeroInflatedPoissonPrior:
    """Parameters (K, d) of the Beta prior of zeros for good, and of the Gamma prior of rates."""

    zeros: Array
    others: Array
    shape: Array
    rate: Array


@dataclass(frozen=True)
class ZeroInflatedPoissonParameters:
    """Logarithms (K, d) of the probability of a zero for good and of the other case, rates, their logarithms; or expectations.

    With "predictive" `mass` is the shape of the belief about a rate, under which counts are negative binomial; else it is 0.
    """

    log_zeros: Array
    log_others: Array
    rates: Array
    log_rates: Array
    mass: Array


@dataclass(frozen=True)
class ZeroInflatedPoisson(
    SkewedColumns[ZeroInflatedPoissonPrior, ZeroInflatedPoissonStatistics, ZeroInflatedPoissonParameters]
):
    """The family."""

    n_components: int
    prior_rows: float = PRIOR_ROWS

    statistics = ZeroInflatedPoissonStatistics
    positive: ClassVar = {
        ZeroInflatedPoissonPrior: ("zeros", "others", "shape", "rate"),
        ZeroInflatedPoissonParameters: ("rates",),
    }
    filler = 0.0

    def find_problem(self, record: object, width: int) -> str:
        if isinstance(record, ZeroInflatedPoissonParameters) and are_no_logs(
            np.stack([record.log_zeros, record.log_others], -1)
        ):
            return NO_PARAMETERS
        return super().find_problem(record, width)

    @property
    def has_hidden_values(self) -> bool:
        return True

    def seed_view(self, X: Matrix) -> Array:
        return np.sqrt(fill_gaps(X))

    def prior(self, geometry: RowGeometry, batch: Batch, responsibilities: Array) -> ZeroInflatedPoissonPrior:
        values = mark_gaps(batch.X)
        empty = column_means(batch, np.where(np.isnan(values), np.nan, values == 0.0))
        zeros = np.clip(ZERO_SHARE * empty, LEAST_GUESS, 1.0 - LEAST_GUESS)
        rates = np.maximum(column_means(batch, values) / (1.0 - zeros), LEAST_RATE)
        rows = self.prior_rows
        shapes = np.maximum(rows * rates, LEAST_RATE)
        return ZeroInflatedPoissonPrior(*self.for_all(rows * zeros, rows * (1.0 - zeros), shapes, rows))

    def log_densities(self, parameters: ZeroInflatedPoissonParameters, X: Matrix) -> Array:
        values, empty = mark_gaps(X), self.log_empty(parameters)
        found = np.zeros((len(values), self.n_components))
        for column, x in enumerate(values.T):
            known = np.where(x > 0.0, x, 1.0)[:, None]
            log_rate, mass = parameters.log_rates[:, column], parameters.mass[:, column]
            logs = known * log_rate + self._log_none(parameters)[:, column] - gammaln(known + 1.0)
            if np.any(mass > 0.0):
                logs = logs + gammaln(mass + known) - gammaln(mass)
            logs = np.where((x > 0.0)[:, None], parameters.log_others[:, column] + logs, empty[:, column])
            found += np.where(np.isnan(x)[:, None], 0.0, logs)
        return found

    def _log_none(self, parameters: ZeroInflatedPoissonParameters) -> Array:
        """Logarithm (K, d) of the probability that the Poisson law, or the negative binomial one, gives to zero.

        A belief Gamma(a, b) makes log(b / (1 + b)) of the rate what is stored as `rates`, and log(1 / (1 + b)) its logarithm.
        """
        return np.where(parameters.mass > 0.0, parameters.mass * parameters.rates, -parameters.rates)

    def log_empty(self, parameters: ZeroInflatedPoissonParameters) -> Array:
        """Return the log-probability (K, d) of zero."""
        return np.asarray(np.logaddexp(parameters.log_zeros, parameters.log_others + self._log_none(parameters)))

    def collect(
        self, parameters: ZeroInflatedPoissonParameters, X: Matrix, responsibilities: Array
    ) -> ZeroInflatedPoissonStatistics:
        values = mark_gaps(X)
        found = self.sums(responsibilities, ~np.isnan(values), values > 0.0, np.where(np.isnan(values), 0.0, values))
        chance = np.exp(parameters.log_others + self._log_none(parameters) - self.log_empty(parameters))
        return replace(found, active=found.active + chance * np.maximum(found.seen - found.active, 0.0))

    def belief(
        self, prior: ZeroInflatedPoissonPrior, totals: ZeroInflatedPoissonStatistics
    ) -> tuple[Array, Array, Array, Array]:
        """Return the parameters (K, d) of the Beta belief about zeros for good and of the Gamma belief about rates."""
        active = np.maximum(totals.active, 0.0)
        zeros = prior.zeros + np.maximum(totals.seen - active, 0.0)
        return zeros, prior.others + active, prior.shape + np.maximum(totals.events, 0.0), prior.rate + active

    def readout(
        self, name: str, prior: ZeroInflatedPoissonPrior, totals: ZeroInflatedPoissonStatistics
    ) -> ZeroInflatedPoissonParameters:
        zeros, others, shape, rate = self.belief(prior, totals)
        none = np.zeros_like(shape)
        if name == "expect_log":
            both = digamma(zeros + others)
            logs = digamma(zeros) - both, digamma(others) - both
            return ZeroInflatedPoissonParameters(*logs, shape / rate, digamma(shape) - np.log(rate), none)
        chance = np.clip(zeros / (zeros + others), LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY)
        logs = np.log(chance), np.log1p(-chance)
        if name == "predictive":
            return ZeroInflatedPoissonParameters(*logs, -np.log1p(1.0 / rate), -np.log1p(rate), shape)
        rates = np.maximum(shape / rate, LEAST_RATE)
        return ZeroInflatedPoissonParameters(*logs, rates, np.log(rates), none)

    def log_prior(self, prior: ZeroInflatedPoissonPrior, parameters: ZeroInflatedPoissonParameters) -> float:
        flags = prior.zeros * parameters.log_zeros + prior.others * parameters.log_others
        return float(np.sum(flags + prior.shape * parameters.log_rates - prior.rate * parameters.rates))

    def divergence(self, prior: ZeroInflatedPoissonPrior, totals: ZeroInflatedPoissonStatistics) -> float:
        zeros, others, shape, rate = self.belief(prior, totals)
        both = digamma(zeros + others)
        flags = (zeros - prior.zeros) * (digamma(zeros) - both) + (others - prior.others) * (digamma(others) - both)
        flags += betaln(prior.zeros, prior.others) - betaln(zeros, others)
        shapes = (shape - prior.shape) * digamma(shape) - gammaln(shape) + gammaln(prior.shape)
        return float(np.sum(flags + shapes + prior.shape * np.log(rate / prior.rate) + shape * (prior.rate / rate - 1.0)))

    def sample(
        self,
        parameters: ZeroInflatedPoissonParameters,
        components: NDArray[np.int64],
        rng: np.random.Generator,
        *options: Values,
    ) -> Array:
        zero = rng.random((len(components), parameters.rates.shape[1])) < np.exp(parameters.log_zeros)[components]
        mass, rates = parameters.mass[components], parameters.rates[components]
        if np.any(mass > 0.0):
            rates = rng.gamma(mass) * np.expm1(-rates)  # log(b / (1 + b)) is stored, and 1 / b is exp(-it) - 1
        return np.where(zero, 0.0, draw_counts(rates, rng))

    def log_wide(self, law: WideLaw, X: Matrix) -> Array:
        return log_counts(law, X)

    def sample_wide(self, law: WideLaw, rows: int, rng: np.random.Generator) -> Array:
        return sample_counts(law, rows, rng)

    def find_impossible(self, totals: ZeroInflatedPoissonStatistics) -> NDArray[np.bool_]:
        wrong = (totals.active < 0.0) | (totals.events < 0.0) | (totals.active > totals.seen * (1.0 + 1e-9) + 1e-12)
        return np.asarray((totals.count < 0.0) | wrong.any(axis=1))

    def entries(self, parameters: ZeroInflatedPoissonParameters, columns: Places) -> ZeroInflatedPoissonEntries:
        """Return the laws (e, K) of entries of these columns; with "predictive" those of the mean rates."""
        predictive = parameters.mass > 0.0
        rates = np.where(predictive, parameters.mass * np.expm1(np.where(predictive, -parameters.rates, 0.0)), parameters.rates)
        logs = parameters.log_zeros.T[columns], parameters.log_others.T[columns]
        return ZeroInflatedPoissonEntries(*logs, rates.T[columns])

    def _find_nonpositive(self, record: object) -> str:
        # With "predictive" what is stored as rates is negative.
        if isinstance(record, ZeroInflatedPoissonParameters) and record.mass.any():
            return "" if record.mass.min() > 0.0 and record.rates.max() < 0.0 else NO_PARAMETERS
        return super()._find_nonpositive(record)
