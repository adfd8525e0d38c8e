"""K components of independent yes/no columns.

The prior of a probability is Beta. A guess g that is worth w rows makes it Beta(w g, w (1 - g)), whose mean is g; where a mode
is read out, one is added to both parameters, so that the mode is g, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, digamma

from headwater.core.algorithms import StreamReadout
from headwater.core.batch import Batch
from headwater.core.statistics import Array
from headwater.core.values import Matrix, Values
from headwater.families.columns import PRIOR_ROWS, ColumnFamily, column_means, mark_gaps, split_gaps, spread_guess
from headwater.families.components import ComponentStatistics, sum_rows
from headwater.families.conditional_law import ConditionalLaw, IndependentColumns, Mask, Places
from headwater.families.discrete_entries import FlagEntries
from headwater.families.geometry import RowGeometry
from headwater.families.soundness import NO_PARAMETERS, are_no_logs
from headwater.families.wide_law import WideLaw, count_seen

LEAST_GUESS = 0.01  # least prior probability of 1 and of 0
LEAST_PROBABILITY = 1e-12


@dataclass(frozen=True)
class BernoulliStatistics(ComponentStatistics):
    """Rows (K,) of each component; rows (K, d) that have the column, and those among them in which it is 1."""

    seen: Array
    ones: Array


@dataclass(frozen=True)
class BetaPrior:
    """Parameters (K, d) of the Beta prior of every probability."""

    ones: Array
    zeros: Array


@dataclass(frozen=True)
class BernoulliParameters:
    """Logarithms (K, d) of the probabilities of 1 and of 0, or their expectations."""

    log_ones: Array
    log_zeros: Array


@dataclass(frozen=True)
class Bernoulli(ColumnFamily[BetaPrior, BernoulliStatistics, BernoulliParameters]):
    """The family. `guess` are probabilities (a number, (d,) or (K, d)) that the prior is worth `prior_rows` rows of."""

    n_components: int
    guess: Array | float | None = None
    prior_rows: float = PRIOR_ROWS

    @property
    def readouts(self) -> frozenset[str]:
        return super().readouts | {"predictive"}

    @property
    def stream_readout(self) -> StreamReadout:
        """Means stream best: variational Bayes underrates what a component has rarely seen."""
        return "mean"

    def zeros(self, width: int) -> BernoulliStatistics:
        shape = (self.n_components, width)
        return BernoulliStatistics.of(np.zeros(self.n_components), np.zeros(shape), np.zeros(shape))

    def n_parameters(self, width: int) -> int:
        return self.n_components * width

    def prior(self, geometry: RowGeometry, batch: Batch, responsibilities: Array) -> BetaPrior:
        means = np.clip(column_means(batch, batch.X), LEAST_GUESS, 1.0 - LEAST_GUESS)
        guess = spread_guess(self.guess, means, self.n_components)
        return BetaPrior(self.prior_rows * guess, self.prior_rows * (1.0 - guess))

    def log_densities(self, parameters: BernoulliParameters, X: Matrix) -> Array:
        values, seen = split_gaps(X)
        odds = values @ (parameters.log_ones - parameters.log_zeros).T
        return np.asarray(odds + (seen @ parameters.log_zeros.T if seen.size else parameters.log_zeros.sum(axis=1)))

    def collect(self, parameters: BernoulliParameters, X: Matrix, responsibilities: Array) -> BernoulliStatistics:
        values, seen = split_gaps(X)
        count, shares = sum_rows(responsibilities), responsibilities.T
        rows = shares @ seen if seen.size else np.repeat(count[:, None], X.shape[1], axis=1)
        return BernoulliStatistics.of(count, rows, shares @ values)

    def readout(self, name: str, prior: BetaPrior, totals: BernoulliStatistics) -> BernoulliParameters:
        """The predictive density of one row is the density at the mean."""
        ones, zeros = self.belief(prior, totals)
        if name == "expect_log":
            both = digamma(ones + zeros)
            return BernoulliParameters(digamma(ones) - both, digamma(zeros) - both)
        chance = np.clip(ones / (ones + zeros), LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY)
        return BernoulliParameters(np.log(chance), np.log1p(-chance))

    def log_prior(self, prior: BetaPrior, parameters: BernoulliParameters) -> float:
        return float(np.sum(prior.ones * parameters.log_ones + prior.zeros * parameters.log_zeros))

    def divergence(self, prior: BetaPrior, totals: BernoulliStatistics) -> float:
        ones, zeros = self.belief(prior, totals)
        both = digamma(ones + zeros)
        expected = (ones - prior.ones) * (digamma(ones) - both) + (zeros - prior.zeros) * (digamma(zeros) - both)
        return float(np.sum(expected + betaln(prior.ones, prior.zeros) - betaln(ones, zeros)))

    def sample(
        self, parameters: BernoulliParameters, components: NDArray[np.int64], rng: np.random.Generator, *options: Values
    ) -> Array:
        chance = np.exp(parameters.log_ones)[components]
        return (rng.random(chance.shape) < chance).astype(float)

    def log_wide(self, law: WideLaw, X: Matrix) -> Array:
        return -np.log(2.0) * count_seen(X).sum(axis=1)

    def sample_wide(self, law: WideLaw, rows: int, rng: np.random.Generator) -> Array:
        return rng.integers(2, size=(rows, len(law.centre))).astype(float)

    def is_far(self, law: WideLaw, X: Matrix) -> NDArray[np.bool_]:
        return np.zeros(len(X), dtype=np.bool_)

    def find_impossible(self, totals: BernoulliStatistics) -> NDArray[np.bool_]:
        impossible = (totals.ones < 0.0) | (totals.ones > totals.seen * (1.0 + 1e-9) + 1e-12)
        return np.asarray((totals.count < 0.0) | impossible.any(axis=1))

    def find_problem(self, record: object, width: int) -> str:
        if isinstance(record, BernoulliParameters) and are_no_logs(np.stack([record.log_ones, record.log_zeros], axis=-1)):
            return NO_PARAMETERS
        return super().find_problem(record, width)

    def conditional(self, parameters: BernoulliParameters, X: Matrix, missing: Mask) -> ConditionalLaw:
        """Return the law of missing columns under each component: what is observed says nothing of them but the component."""

        def law_of(rows: Places, columns: Places) -> FlagEntries:
            return FlagEntries(parameters.log_ones.T[columns], parameters.log_zeros.T[columns])

        return IndependentColumns(np.where(missing, 0.0, mark_gaps(X)), missing, self.n_components, law_of)

    def with_parameters(self, given: Mapping[str, Array], found: object) -> BernoulliParameters:
        """Return the parameters of given probabilities."""
        chance = np.clip(given["probabilities"], LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY)
        return BernoulliParameters(np.log(chance), np.log1p(-chance))

    def pseudo_rows(self, parameters: BernoulliParameters) -> tuple[Array, Array]:
        """Return one row for each component, which has its probabilities."""
        return np.exp(parameters.log_ones), np.eye(self.n_components)

    def belief(self, prior: BetaPrior, totals: BernoulliStatistics) -> tuple[Array, Array]:
        """Return the parameters (K, d) of the Beta belief about every probability."""
        return prior.ones + totals.ones, prior.zeros + np.maximum(totals.seen - totals.ones, 0.0)
