"""What families of skewed columns have in common: log-normal and Gamma columns, and counts with more zeros than usual.

Statistics are three sums (K, d), parameters two numbers a column, and a readout of the predictive density is offered.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from headwater.core.algorithms import StreamReadout
from headwater.core.statistics import Array
from headwater.core.values import Matrix
from headwater.families.columns import ColumnFamily, fill_gaps, mark_gaps
from headwater.families.components import ComponentStatistics, sum_rows
from headwater.families.conditional_law import ConditionalLaw, IndependentColumns, Mask, Places
from headwater.families.entry_law import EntryLaw
from headwater.families.soundness import NO_PARAMETERS, NO_PRIOR
from headwater.families.wide_law import WideLaw, log_positive, sample_positive

Prior = TypeVar("Prior")
Stats = TypeVar("Stats", bound=ComponentStatistics)
Params = TypeVar("Params")


class SkewedColumns(ColumnFamily[Prior, Stats, Params]):
    """Base of these families. Abstract."""

    prior_rows: float
    statistics: ClassVar[type[Any]]  # three sums (K, d)
    positive: ClassVar[Mapping[type, tuple[str, ...]]]  # numbers of priors and of parameters that are positive
    filler: ClassVar[float] = 1.0  # a value that stands in place of a missing one

    @abstractmethod
    def entries(self, parameters: Params, columns: Places) -> EntryLaw:
        """Return the laws (e, K) of entries of these columns; with "predictive" those of one number for each parameter."""

    @property
    def readouts(self) -> frozenset[str]:
        return super().readouts | {"predictive"}

    @property
    def stream_readout(self) -> StreamReadout:
        """Means stream best, as for the other columns that are not Gaussian."""
        return "mean"

    def zeros(self, width: int) -> Stats:
        blank = (np.zeros((self.n_components, width)) for _ in range(3))
        found: Stats = self.statistics.of(np.zeros(self.n_components), *blank)
        return found

    def sums(self, responsibilities: Array, *values: Array | NDArray[np.bool_]) -> Stats:
        """Return the statistics of rows whose three values (n, d) are these."""
        found: Stats = self.statistics.of(sum_rows(responsibilities), *(responsibilities.T @ one for one in values))
        return found

    def n_parameters(self, width: int) -> int:
        return 2 * self.n_components * width

    def for_all(self, *guesses: Array | float) -> tuple[Array, ...]:
        """Return guesses (d,) about columns for every component, (K, d)."""
        width = max(np.size(one) for one in guesses)
        return tuple(np.array(np.broadcast_to(one, (self.n_components, width))) for one in guesses)

    def find_problem(self, record: object, width: int) -> str:
        return self._find_nonpositive(record) or super().find_problem(record, width)

    def _find_nonpositive(self, record: object) -> str:
        """Return what is wrong with a prior or parameters from a file, in which these numbers must be positive."""
        for (kind, names), sentence in zip(self.positive.items(), (NO_PRIOR, NO_PARAMETERS), strict=True):
            if isinstance(record, kind) and any(not np.min(getattr(record, name), initial=1.0) > 0.0 for name in names):
                return sentence
        return ""

    def conditional(self, parameters: Params, X: Matrix, missing: Mask) -> ConditionalLaw:
        """Return the law of missing columns under each component."""

        def law_of(rows: Places, columns: Places) -> EntryLaw:
            return self.entries(parameters, columns)

        return IndependentColumns(np.where(missing, self.filler, mark_gaps(X)), missing, self.n_components, law_of)


class PositiveColumns(SkewedColumns[Prior, Stats, Params]):
    """Base of families of positive numbers, whose logarithms count. Abstract."""

    def seed_view(self, X: Matrix) -> Array:
        return fill_gaps(log_values(X))

    def log_wide(self, law: WideLaw, X: Matrix) -> Array:
        return log_positive(law, X)

    def sample_wide(self, law: WideLaw, rows: int, rng: np.random.Generator) -> Array:
        return sample_positive(law, rows, rng)


def log_values(X: Matrix) -> Array:
    """Return the logarithms of positive values; NaN is a gap."""
    return np.asarray(np.log(mark_gaps(X)))
