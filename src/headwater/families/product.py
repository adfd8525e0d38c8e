"""A product of families: each block of columns has its own family, and blocks are independent given the component.

log p(x | k) is the sum over blocks of log p_b(x_b | k), so all is done block by block: densities and divergences add,
and priors, statistics and parameters are tuples of those of the blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from headwater.core.algorithms import StreamReadout
from headwater.core.batch import Batch
from headwater.core.gapped_rows import GappedRows
from headwater.core.statistics import Array, Statistics
from headwater.core.values import Index, Matrix, Values
from headwater.families.capabilities import AnswersGaps
from headwater.families.category_tables import CategoryTables
from headwater.families.components import ComponentStatistics, sum_rows
from headwater.families.conditional_law import ConditionalLaw, Mask
from headwater.families.family import AnyFamily, Family
from headwater.families.geometry import RowGeometry
from headwater.families.product_law import ProductLaw
from headwater.families.row_profile import PROFILE_WIDTH, padded, profile_of_categories, profile_of_values
from headwater.families.soundness import find_count_problem
from headwater.families.wide_law import WideLaw

Value = TypeVar("Value")


@dataclass(frozen=True)
class Block:
    """A family over some columns, with a name."""

    name: str
    family: AnyFamily
    columns: tuple[int, ...]

    @cached_property
    def _places(self) -> Index | slice:
        """The columns, as a slice where they are side by side: that is copied faster."""
        first, beyond = min(self.columns), max(self.columns) + 1
        return slice(first, beyond) if self.columns == tuple(range(first, beyond)) else np.array(self.columns)

    def rows(self, X: Array) -> Matrix:
        """Return the columns of the block, as rows with gaps if some values are NaN and the family takes gaps."""
        rows = np.ascontiguousarray(X[:, self._places])
        return GappedRows.of(rows) if self.family.takes_gaps and np.isnan(rows).any() else rows


@dataclass(frozen=True)
class CutRows:
    """Rows, cut into the columns of the blocks."""

    number: int
    blocks: tuple[Matrix, ...]

    def __len__(self) -> int:
        return self.number

    def __iter__(self) -> Iterator[Matrix]:
        return iter(self.blocks)


@dataclass(frozen=True)
class ProductStatistics(ComponentStatistics):
    """Rows (K,) of each component, and the statistics of every block."""

    blocks: tuple[ComponentStatistics, ...]

    def to_arrays(self) -> dict[str, Array]:
        """Return the arrays by name, those of a block behind its number."""
        own = {"from_base": self.from_base, "count": self.count}
        return own | {
            f"{at}/{name}": array for at, block in enumerate(self.blocks) for name, array in block.to_arrays().items()
        }

    def _parts(self) -> Iterator[Array | ComponentStatistics]:
        return iter((self.from_base, self.count, *self.blocks))

    def _combine(self, function: Callable[..., Any], *others: Statistics) -> Self:
        parts = cast(tuple[ProductStatistics, ...], (self, *others))
        blocks = zip(*(part.blocks for part in parts), strict=True)
        return type(self)(
            function(*(part.from_base for part in parts)),
            function(*(part.count for part in parts)),
            tuple(first._combine(function, *rest) for first, *rest in blocks),
        )


@dataclass(frozen=True)
class ProductPrior:
    """The priors of the blocks."""

    blocks: tuple[object, ...]


@dataclass(frozen=True)
class ProductParameters:
    """The parameters of the blocks."""

    blocks: tuple[Any, ...]


@dataclass(frozen=True)
class ProductGeometry:
    """What a start needs to know of the rows: the geometry of every block, and their first views side by side."""

    blocks: tuple[RowGeometry, ...]
    scale: float = field(default=1.0)

    def views(self, rows: NDArray[np.int64]) -> tuple[Array, ...]:
        """Some rows, to be seeded on."""
        return (np.ascontiguousarray(np.hstack([one.views(rows)[0] for one in self.blocks])),)


@dataclass(frozen=True)
class Product(Family[ProductPrior, ProductStatistics, ProductParameters]):
    """The family of the blocks."""

    n_components: int
    width: int  # of rows; columns outside all blocks are ignored
    blocks: tuple[Block, ...]

    # Sizes and settings

    @property
    def readouts(self) -> frozenset[str]:
        return frozenset.intersection(*(block.family.readouts for block in self.blocks)) - {"match_moments"}

    @property
    def stream_readout(self) -> StreamReadout:
        """Means, if some block streams by them."""
        words: set[StreamReadout] = {block.family.stream_readout for block in self.blocks}
        return words.pop() if len(words) == 1 else "mean"

    @property
    def has_prior(self) -> bool:
        """Whether some block has one. Blocks without a prior are fitted by maximum likelihood: see `flatten_parts`."""
        return any(block.family.has_prior for block in self.blocks)

    @property
    def has_hidden_values(self) -> bool:
        return any(block.family.has_hidden_values for block in self.blocks)

    @property
    def has_own_moments(self) -> bool:
        return all(block.family.has_own_moments for block in self.blocks)

    @property
    def adds_up(self) -> bool:
        return all(block.family.adds_up for block in self.blocks)

    def resize(self, n_components: int) -> Self:
        blocks = tuple(replace(block, family=block.family.resize(n_components)) for block in self.blocks)
        return replace(self, n_components=n_components, blocks=blocks)

    def n_parameters(self, width: int) -> int:
        return sum(block.family.n_parameters(len(block.columns)) for block in self.blocks)

    def work(self, batch: Batch) -> float:
        return sum(float(len(batch)) * block.family.n_parameters(len(block.columns)) for block in self.blocks)

    def zeros(self, width: int) -> ProductStatistics:
        return ProductStatistics.of(
            np.zeros(self.n_components), tuple(block.family.zeros(len(block.columns)) for block in self.blocks)
        )

    # Priors

    def geometry(self, batch: Batch) -> ProductGeometry:
        return ProductGeometry(tuple(block.family.geometry(self._cut(block, batch)) for block in self.blocks))

    def prior(self, geometry: RowGeometry, batch: Batch, responsibilities: Array) -> ProductPrior:
        return ProductPrior(
            tuple(
                block.family.prior(one, self._cut(block, batch), responsibilities)
                for block, one in zip(self.blocks, geometry.blocks, strict=True)
            )
        )

    def flatten_prior(self, prior: ProductPrior) -> ProductPrior:
        return self.flatten_parts(prior)

    def flatten_parts(self, prior: ProductPrior) -> ProductPrior:
        return ProductPrior(
            tuple(
                one if block.family.has_prior else block.family.flatten_prior(one)
                for block, one in zip(self.blocks, prior.blocks, strict=True)
            )
        )

    def refine_prior(
        self, prior: ProductPrior, parameters: ProductParameters, weights: Array, geometry: RowGeometry
    ) -> ProductPrior:
        parts = zip(self.blocks, prior.blocks, parameters.blocks, geometry.blocks, strict=True)
        return ProductPrior(tuple(block.family.refine_prior(one, two, weights, three) for block, one, two, three in parts))

    def blank_prior(self, width: int) -> ProductPrior:
        return ProductPrior(tuple(block.family.blank_prior(len(block.columns)) for block in self.blocks))

    def settle(self, batch: Batch) -> Self:
        blocks = (replace(block, family=block.family.settle(self._cut(block, batch))) for block in self.blocks)
        return replace(self, blocks=tuple(blocks))

    def common_prior(self, priors: Sequence[ProductPrior]) -> ProductPrior:
        parts = zip(self.blocks, *(prior.blocks for prior in priors), strict=True)
        found = tuple(block.family.common_prior(own) for block, *own in parts)
        same = all(one is two for one, two in zip(found, priors[0].blocks, strict=True))
        return priors[0] if same else ProductPrior(found)

    def log_prior(self, prior: ProductPrior, parameters: ProductParameters) -> float:
        parts = zip(self.blocks, prior.blocks, parameters.blocks, strict=True)
        return sum(block.family.log_prior(one, two) for block, one, two in parts)

    def divergence(self, prior: ProductPrior, totals: ProductStatistics) -> float:
        parts = zip(self.blocks, prior.blocks, totals.blocks, strict=True)
        return sum(block.family.divergence(one, two) for block, one, two in parts)

    # Rows

    def prepare(self, X: Matrix) -> CutRows:
        """Return the rows cut into blocks, which densities and statistics share."""
        return X if isinstance(X, CutRows) else CutRows(len(X), tuple(block.rows(X) for block in self.blocks))

    def log_densities(self, parameters: ProductParameters, X: Array) -> Array:
        found = np.zeros((len(X), self.n_components))
        for block, one, rows in zip(self.blocks, parameters.blocks, self.prepare(X), strict=True):
            found += block.family.log_densities(one, rows)
        return found

    def conditional(self, parameters: ProductParameters, X: Array, missing: Mask) -> ConditionalLaw:
        """Return the law of missing columns under each component: that of their block."""
        laws = []
        for block, one in zip(self.blocks, parameters.blocks, strict=True):
            columns, family = np.array(block.columns), block.family
            if not isinstance(family, AnswersGaps):
                raise ValueError(f"columns that are {block.name!r} do not say what they are given the others")
            laws.append((columns, family.conditional(one, X[:, columns], missing[:, columns])))
        return ProductLaw(np.where(missing, 0.0, X), missing, self.n_components, tuple(laws))

    def profile(self, X: Matrix) -> Array:
        """Return the values of numbers, or projections of more than 16, beside a projection of all categories."""
        rows = X.values if isinstance(X, GappedRows) else np.asarray(X)
        named = [at for block in self.blocks if isinstance(block.family, CategoryTables) for at in block.columns]
        numbers = [at for block in self.blocks for at in block.columns if at not in named]
        room = PROFILE_WIDTH // 2 if named else PROFILE_WIDTH
        values = profile_of_values(rows[:, numbers])[:, : min(len(numbers), room)]
        return np.hstack([values, profile_of_categories(rows[:, named])[:, values.shape[1] :]]) if named else padded(values)

    def collect(self, parameters: ProductParameters, X: Array, responsibilities: Array) -> ProductStatistics:
        parts = zip(self.blocks, parameters.blocks, self.prepare(X), strict=True)
        blocks = tuple(block.family.collect(one, rows, responsibilities) for block, one, rows in parts)
        return ProductStatistics.of(sum_rows(responsibilities), blocks)

    def collect_seeds(self, geometry: RowGeometry, batch: Batch, responsibilities: Array) -> ProductStatistics:
        blocks = tuple(
            block.family.collect_seeds(one, self._cut(block, batch), responsibilities)
            for block, one in zip(self.blocks, geometry.blocks, strict=True)
        )
        return ProductStatistics.of(batch.row_weights @ responsibilities, blocks)

    def sample(
        self, parameters: ProductParameters, components: NDArray[np.int64], rng: np.random.Generator, *options: Values
    ) -> Array:
        rows = np.full((len(components), self.width), np.nan)
        for block, one in zip(self.blocks, parameters.blocks, strict=True):
            rows[:, block.columns] = block.family.sample(one, components, rng)
        return rows

    # A background

    def log_wide(self, law: WideLaw, X: Array) -> Array:
        found = np.zeros(len(X))
        for block in self.blocks:
            found += block.family.log_wide(law.part(block.columns), block.rows(X))
        return found

    def sample_wide(self, law: WideLaw, rows: int, rng: np.random.Generator) -> Array:
        found = np.full((rows, self.width), np.nan)
        for block in self.blocks:
            found[:, block.columns] = block.family.sample_wide(law.part(block.columns), rows, rng)
        return found

    def is_far(self, law: WideLaw, X: Array) -> NDArray[np.bool_]:
        found = np.zeros(len(X), dtype=np.bool_)
        for block in self.blocks:
            found |= block.family.is_far(law.part(block.columns), block.rows(X))
        return found

    # Readouts and components

    def readout(self, name: str, prior: ProductPrior, totals: ProductStatistics) -> ProductParameters:
        parts = zip(self.blocks, prior.blocks, totals.blocks, strict=True)
        return ProductParameters(tuple(block.family.readout(name, one, two) for block, one, two in parts))

    def select_statistics(self, statistics: ProductStatistics, order: Index) -> ProductStatistics:
        parts = zip(self.blocks, statistics.blocks, strict=True)
        blocks = tuple(block.family.select_statistics(one, order) for block, one in parts)
        return ProductStatistics(statistics.from_base, statistics.count[order], blocks)

    def select_prior(self, prior: ProductPrior, order: Index) -> ProductPrior:
        parts = zip(self.blocks, prior.blocks, strict=True)
        return ProductPrior(tuple(block.family.select_prior(one, order) for block, one in parts))

    def select_parameters(self, parameters: ProductParameters, order: Index) -> ProductParameters:
        parts = zip(self.blocks, parameters.blocks, strict=True)
        return ProductParameters(tuple(block.family.select_parameters(one, order) for block, one in parts))

    def recombine(
        self,
        statistics: ProductStatistics,
        matrix: Array,
        others: ProductStatistics | None = None,
        other_matrix: Array | None = None,
    ) -> ProductStatistics:
        count = matrix @ statistics.count
        if others is not None:
            count = count + np.asarray(other_matrix) @ others.count
        blocks = tuple(
            block.family.recombine(one, matrix, None if others is None else others.blocks[at], other_matrix)
            for at, (block, one) in enumerate(zip(self.blocks, statistics.blocks, strict=True))
        )
        return ProductStatistics(statistics.from_base, count, blocks)

    def move_to_prior(self, prior: ProductPrior, own: ProductPrior, statistics: ProductStatistics) -> ProductStatistics:
        parts = zip(self.blocks, prior.blocks, own.blocks, statistics.blocks, strict=True)
        return replace(statistics, blocks=tuple(block.family.move_to_prior(a, b, c) for block, a, b, c in parts))

    # What no rows could have made

    def observed_rows(self, statistics: ProductStatistics, whole: Array) -> Array:
        found = whole.copy()
        for block, part in zip(self.blocks, statistics.blocks, strict=True):
            columns = list(block.columns)
            found[:, columns] = block.family.observed_rows(part, whole[:, columns])
        return found

    def find_impossible(self, totals: ProductStatistics) -> NDArray[np.bool_]:
        found = np.asarray(totals.count < 0.0)
        for block, one in zip(self.blocks, totals.blocks, strict=True):
            found = found | block.family.find_impossible(one)
        return found

    def mend(self, prior: ProductPrior, totals: ProductStatistics, sound: ProductStatistics, share: float) -> ProductStatistics:
        """Return totals in which every block is repaired; a component that is invalid in one block is replaced in all."""
        mended = tuple(
            block.family.mend(one, two, three, share)
            for block, one, two, three in zip(self.blocks, prior.blocks, totals.blocks, sound.blocks, strict=True)
        )
        bad = np.zeros(self.n_components, dtype=np.bool_)
        for one, before in zip(mended, totals.blocks, strict=True):
            bad |= one.count != before.count
        if all(one is two for one, two in zip(mended, totals.blocks, strict=True)):
            return totals
        return self.recombine(replace(totals, blocks=mended), np.diag(1.0 - bad), sound, np.diag(1.0 * bad))

    def find_problem(self, record: object, width: int) -> str:
        if isinstance(record, ProductStatistics) and (problem := find_count_problem(record.count)):
            return problem
        if not isinstance(record, ProductStatistics | ProductPrior | ProductParameters):
            return ""
        problems = (
            block.family.find_problem(one, len(block.columns)) for block, one in zip(self.blocks, record.blocks, strict=True)
        )
        return next((problem for problem in problems if problem), "")

    def _cut(self, block: Block, batch: Batch) -> Batch:
        return replace(batch, X=block.rows(batch.X))
