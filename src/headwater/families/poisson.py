"""K components of independent Poisson columns: counts of events, with the time or size in which they were counted.

The prior of a rate is Gamma. A guess g that is worth w rows makes it Gamma(w g, w), whose mean is g; where a mode is read
out, one is added to the shape, so that the mode is g, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from headwater.core.algorithms import StreamReadout
from headwater.core.batch import Batch
from headwater.core.statistics import Array
from headwater.core.values import Matrix, Values
from headwater.families.columns import PRIOR_ROWS, ColumnFamily, column_means, fill_gaps, mark_gaps, split_gaps, spread_guess
from headwater.families.components import ComponentStatistics, sum_rows
from headwater.families.conditional_law import ConditionalLaw, IndependentColumns, Mask, Places
from headwater.families.discrete_entries import NegativeBinomialEntries, PoissonEntries
from headwater.families.entry_law import EntryLaw
from headwater.families.geometry import RowGeometry
from headwater.families.soundness import NO_PARAMETERS
from headwater.families.wide_law import WideLaw, log_counts, sample_counts
from headwater.kernels.chain_count_sweep import sweep_counts
from headwater.kernels.mixture import READOUTS

LOG_FACTORIALS: Array = gammaln(np.arange(1024) + 1.0)
LEAST_RATE = 1e-12  # events a row of a component that saw none, where there is no prior
LARGE_RATE = 1e15  # events a row from which a count is as good as Gaussian


@dataclass(frozen=True)
class PoissonStatistics(ComponentStatistics):
    """Rows (K,) of each component; exposure (K, d) in which a column was observed, and its events (K, d)."""

    exposure: Array
    events: Array


@dataclass(frozen=True)
class GammaPrior:
    """Shape (K, d) and rate (K, d) of the Gamma prior of every rate."""

    shape: Array
    rate: Array


@dataclass(frozen=True)
class PoissonParameters:
    """Rates (K, d) and their logarithms, or the expectations of both."""

    rates: Array
    log_rates: Array


@dataclass(frozen=True)
class GammaBelief:
    """Shape (K, d) and rate (K, d) of the beliefs, under which a count is negative binomial."""

    shape: Array
    rate: Array


@dataclass(frozen=True)
class Poisson(ColumnFamily[GammaPrior, PoissonStatistics, PoissonParameters | GammaBelief]):
    """The family. `exposure` is the column with the time or size in which the others were counted.

    `guess` are rates (a number, (d,) or (K, d)) that the prior is worth `prior_rows` rows of; by default those of the warm-up.
    """

    n_components: int
    exposure: int | None = None
    guess: Array | float | None = None
    prior_rows: float = PRIOR_ROWS
    keeps_prior: bool = True  # in passes of EM, too

    @property
    def has_prior(self) -> bool:
        """Whether passes of EM find the mode under the prior."""
        return self.keeps_prior

    def flatten_prior(self, prior: GammaPrior) -> GammaPrior:
        """The prior whose mode is maximum likelihood: no rows at all."""
        return GammaPrior(np.full_like(prior.shape, LEAST_RATE), np.zeros_like(prior.rate))

    @property
    def readouts(self) -> frozenset[str]:
        return super().readouts | {"predictive"}

    @property
    def stream_readout(self) -> StreamReadout:
        """Means stream best: variational Bayes underrates columns in which a component has rarely seen an event."""
        return "mean"

    def zeros(self, width: int) -> PoissonStatistics:
        shape = (self.n_components, self._n_counts(width))
        return PoissonStatistics.of(np.zeros(self.n_components), np.zeros(shape), np.zeros(shape))

    def n_parameters(self, width: int) -> int:
        return self.n_components * self._n_counts(width)

    def seed_view(self, X: Matrix) -> Array:
        """Square roots of counts per unit of exposure, whose variance does not depend on the rate."""
        counts, exposure = self._split(X)
        return np.sqrt(fill_gaps(counts) / exposure)

    def prior(self, geometry: RowGeometry, batch: Batch, responsibilities: Array) -> GammaPrior:
        counts, exposure = self._split(batch.X)
        time = float(batch.row_weights @ exposure[:, 0] / batch.size)
        guess = spread_guess(self.guess, column_means(batch, counts) / time, self.n_components)
        rows = np.full_like(guess, self.prior_rows * time)
        return GammaPrior(np.maximum(rows * guess, LEAST_RATE), rows)

    def log_densities(self, parameters: PoissonParameters | GammaBelief, X: Matrix) -> Array:
        counts, exposure = self._split(X)
        counts, seen = split_gaps(counts)
        times = exposure * seen if seen.size else exposure
        if isinstance(parameters, GammaBelief):
            return _log_negative_binomial(parameters, counts, np.broadcast_to(times, counts.shape))
        found = counts @ parameters.log_rates.T
        found -= times @ parameters.rates.T if seen.size else times * parameters.rates.sum(axis=1)
        own = counts * np.log(exposure) - _log_factorials(counts) if self.exposure is not None else -_log_factorials(counts)
        found += own.sum(axis=1)[:, None]
        return np.asarray(found)

    def collect(self, parameters: PoissonParameters | GammaBelief, X: Matrix, responsibilities: Array) -> PoissonStatistics:
        counts, exposure = self._split(X)
        counts, seen = split_gaps(counts)
        if seen.size:
            times = responsibilities.T @ (exposure * seen)
        else:
            times = np.repeat(responsibilities.T @ exposure, counts.shape[1], axis=1)
        return PoissonStatistics.of(sum_rows(responsibilities), times, responsibilities.T @ counts)

    def readout(self, name: str, prior: GammaPrior, totals: PoissonStatistics) -> PoissonParameters | GammaBelief:
        shape, rate = self.belief(prior, totals)
        if name == "predictive":
            return GammaBelief(shape, rate)
        if name == "expect_log":
            return PoissonParameters(shape / rate, digamma(shape) - np.log(rate))
        rates = np.maximum(shape / np.maximum(rate, LEAST_RATE), LEAST_RATE)  # of the mode, too: see `prior`
        return PoissonParameters(rates, np.log(rates))

    def log_prior(self, prior: GammaPrior, parameters: PoissonParameters | GammaBelief) -> float:
        assert isinstance(parameters, PoissonParameters)
        return float(np.sum(prior.shape * parameters.log_rates - prior.rate * parameters.rates))

    def divergence(self, prior: GammaPrior, totals: PoissonStatistics) -> float:
        shape, rate = self.belief(prior, totals)
        shapes = (shape - prior.shape) * digamma(shape) - gammaln(shape) + gammaln(prior.shape)
        return float(np.sum(shapes + prior.shape * np.log(rate / prior.rate) + shape * (prior.rate / rate - 1.0)))

    def sample(
        self,
        parameters: PoissonParameters | GammaBelief,
        components: NDArray[np.int64],
        rng: np.random.Generator,
        *options: Values,
    ) -> Array:
        """Draw rows; an exposure is one."""
        if isinstance(parameters, GammaBelief):
            rates = rng.gamma(parameters.shape[components], 1.0 / parameters.rate[components])
        else:
            rates = parameters.rates[components]
        rows = draw_counts(rates, rng)
        return rows if self.exposure is None else np.insert(rows, self.exposure, 1.0, axis=1)

    def log_wide(self, law: WideLaw, X: Matrix) -> Array:
        return log_counts(law, X)

    def sample_wide(self, law: WideLaw, rows: int, rng: np.random.Generator) -> Array:
        return sample_counts(law, rows, rng)

    def observed_rows(self, statistics: PoissonStatistics, whole: Array) -> Array:
        return statistics.exposure if self.exposure is None else whole  # with an exposure, times are known and not rows

    def find_impossible(self, totals: PoissonStatistics) -> NDArray[np.bool_]:
        negative = (totals.exposure < 0.0) | (totals.events < 0.0)
        return np.asarray((totals.count < 0.0) | negative.any(axis=1))

    def find_problem(self, record: object, width: int) -> str:
        if isinstance(record, PoissonParameters) and not record.rates.min(initial=0.0) >= 0.0:
            return NO_PARAMETERS
        if isinstance(record, GammaBelief) and not min(record.shape.min(initial=1.0), record.rate.min(initial=1.0)) > 0.0:
            return NO_PARAMETERS
        return super().find_problem(record, width)

    def conditional(self, parameters: PoissonParameters | GammaBelief, X: Matrix, missing: Mask) -> ConditionalLaw:
        """Return the law of missing counts under each component, in the exposure of their rows."""
        _, exposure = self._split(X)
        given = () if self.exposure is None else (self.exposure,)
        place = np.delete(np.arange(X.shape[1]), given)
        count = np.full(X.shape[1], -1)
        count[place] = np.arange(len(place))

        def law_of(rows: Places, columns: Places) -> EntryLaw:
            at, time = count[columns], exposure[rows]
            if isinstance(parameters, GammaBelief):
                return NegativeBinomialEntries(parameters.shape.T[at], parameters.rate.T[at], time)
            return PoissonEntries(parameters.rates.T[at] * time)

        return IndependentColumns(np.where(missing, 0.0, mark_gaps(X)), missing, self.n_components, law_of, given)

    def _n_counts(self, width: int) -> int:
        return width if self.exposure is None else width - 1

    def _split(self, X: Matrix) -> tuple[Array, Array]:
        """Counts (n, d), and the exposure (n, 1) of each row; 1 for a row without a value."""
        rows = mark_gaps(X)
        if self.exposure is None:
            return rows, np.ones((len(rows), 1))
        exposure = rows[:, self.exposure, None]
        return np.delete(rows, self.exposure, axis=1), np.where(np.isnan(exposure), 1.0, exposure)

    def belief(self, prior: GammaPrior, totals: PoissonStatistics) -> tuple[Array, Array]:
        """Return shape and rate (K, d) of the Gamma belief about every rate."""
        return prior.shape + totals.events, prior.rate + totals.exposure

    # Chains

    def flat(self, statistics: PoissonStatistics) -> Array:
        """Return statistics as one row of numbers, the counts first."""
        return np.concatenate([statistics.count, statistics.exposure.ravel(), statistics.events.ravel()])

    def unflat(self, row: Array, width: int) -> PoissonStatistics:
        """Return the statistics that such a row holds."""
        count, tables = row[: self.n_components].copy(), row[self.n_components :].reshape(2, self.n_components, -1)
        return PoissonStatistics.of(count, *tables.copy())

    def sweep_chain(
        self, name: str, prior: GammaPrior, chain: tuple[Array, ...], X: Array, steps: Array, gains: Array, n_eff: float,
        known: bool, now: Array, given: Array, mean: Array, average: Array, scores: Array,
    ) -> tuple[float, Array]:  # fmt: skip
        """Learn the rows of a sequence one by one (see kernels/chain_count_sweep.py)."""
        counts, exposure = self._split(X)
        # Copies: a kernel would be compiled again for arrays that are read-only or in another order.
        shape, rate = (np.array(part, order="C") for part in (prior.shape, prior.rate))
        return sweep_counts(
            np.ascontiguousarray(counts), exposure[:, 0].copy(), READOUTS[name], chain, shape, rate, LEAST_RATE, steps, gains,
            n_eff, known, now, given, mean, average, scores,
        )  # fmt: skip

    def with_parameters(self, given: Mapping[str, Array], found: object) -> PoissonParameters:
        """Return the parameters of given rates."""
        rates = np.maximum(given["rates"], LEAST_RATE)
        return PoissonParameters(rates, np.log(rates))

    def pseudo_rows(self, parameters: PoissonParameters | GammaBelief) -> tuple[Array, Array]:
        """Return one row for each component, which has its rates, counted in an exposure of one."""
        assert isinstance(parameters, PoissonParameters)
        rows = parameters.rates if self.exposure is None else np.insert(parameters.rates, self.exposure, 1.0, axis=1)
        return rows, np.eye(self.n_components)


def _log_factorials(counts: Array) -> Array:
    """Logarithms of n!; those of small whole numbers are looked up, which takes a tenth of the time."""
    if counts.size and counts.max() < len(LOG_FACTORIALS):
        places = counts.astype(np.int64)
        if np.array_equal(places, counts):
            return LOG_FACTORIALS[places]
    return np.asarray(gammaln(counts + 1.0))


def _log_negative_binomial(belief: GammaBelief, counts: Array, times: Array) -> Array:
    """Log-density (n, K) of counts whose rates are integrated out; a column with exposure 0 adds nothing."""
    found = np.zeros((len(counts), len(belief.shape)))
    for column in range(counts.shape[1]):
        x, time = counts[:, column, None], times[:, column, None]
        shape, rate = belief.shape[:, column], belief.rate[:, column]
        seen = time > 0.0
        share = np.where(seen, time / (rate + time), 0.5)
        terms = gammaln(shape + x) - gammaln(shape) - gammaln(x + 1.0) + shape * np.log1p(-share) + x * np.log(share)
        found += np.where(seen, terms, 0.0)
    return found


def draw_counts(rates: Array, rng: np.random.Generator) -> Array:
    """Draw counts; large ones as rounded Gaussians, since the generator knows no whole numbers beyond 2^63."""
    large = rates > LARGE_RATE
    counts = rng.poisson(np.where(large, 0.0, rates)).astype(float)
    if large.any():
        counts[large] = np.rint(rates[large] + np.sqrt(rates[large]) * rng.normal(size=int(large.sum())))
    return counts
