"""Columns of positive numbers that may be zero: given the component, each is zero with a probability, else it has a density.

That is a product of two blocks over the same columns: flags that say which values are zero, and positive numbers, in which a
zero is a gap. All that a product does block by block is done so here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.core.values import Matrix, Values
from headwater.families.bernoulli import Bernoulli
from headwater.families.columns import mark_gaps
from headwater.families.conditional_law import ConditionalLaw, IndependentColumns, Mask, Places
from headwater.families.gamma_columns import GammaColumns
from headwater.families.log_normal import LogNormal
from headwater.families.positive_entries import ZeroInflatedEntries
from headwater.families.product import Block, Product, ProductParameters, ProductStatistics
from headwater.families.wide_law import WideLaw


@dataclass(frozen=True)
class ZeroBlock(Block):
    """Flags: which values are zero."""

    def rows(self, X: Array) -> Array:
        values = mark_gaps(X)
        return np.where(np.isnan(values), np.nan, values == 0.0)


@dataclass(frozen=True)
class PositiveBlock(Block):
    """Positive values; a zero is a gap."""

    def rows(self, X: Array) -> Array:
        values = mark_gaps(X)
        return np.where(values > 0.0, values, np.nan)


@dataclass(frozen=True)
class ZeroInflated(Product):
    """The family: flags of zero, and a family of positive columns."""

    @classmethod
    def of(cls, positive: LogNormal | GammaColumns, width: int) -> Self:
        """Return the family over rows of this width."""
        columns = tuple(range(width))
        flags = Bernoulli(positive.n_components, None, positive.prior_rows)
        return cls(
            positive.n_components, width, (ZeroBlock("zero", flags, columns), PositiveBlock("positive", positive, columns))
        )

    def observed_rows(self, statistics: ProductStatistics, whole: Array) -> Array:
        return self.blocks[0].family.observed_rows(statistics.blocks[0], whole)  # the second has rows that are not zero

    def sample(
        self, parameters: ProductParameters, components: NDArray[np.int64], rng: np.random.Generator, *options: Values
    ) -> Array:
        zero, rows = (
            block.family.sample(one, components, rng) for block, one in zip(self.blocks, parameters.blocks, strict=True)
        )
        return np.where(zero == 1.0, 0.0, rows)

    def log_wide(self, law: WideLaw, X: Matrix) -> Array:
        zero, positive = (block.rows(X) for block in self.blocks)
        known = (~np.isnan(zero)).sum(axis=1)
        return np.asarray(self.blocks[1].family.log_wide(law, positive) - np.log(2.0) * known)

    def sample_wide(self, law: WideLaw, rows: int, rng: np.random.Generator) -> Array:
        found = self.blocks[1].family.sample_wide(law, rows, rng)
        return np.where(rng.random(found.shape) < 0.5, 0.0, found)

    def is_far(self, law: WideLaw, X: Matrix) -> NDArray[np.bool_]:
        return self.blocks[1].family.is_far(law, self.blocks[1].rows(X))

    def conditional(self, parameters: ProductParameters, X: Matrix, missing: Mask) -> ConditionalLaw:
        """Return the law of missing columns under each component."""
        flags, own = parameters.blocks
        positive: Any = self.blocks[1].family

        def law_of(rows: Places, columns: Places) -> ZeroInflatedEntries:
            logs = flags.log_ones.T[columns], flags.log_zeros.T[columns]
            return ZeroInflatedEntries(*logs, positive.entries(own, columns))

        return IndependentColumns(np.where(missing, 0.0, mark_gaps(X)), missing, self.n_components, law_of)
