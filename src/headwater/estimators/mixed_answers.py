"""What a mixture of a table has learned: parameters of its columns by their names, and what describers and intervals need."""

from __future__ import annotations

from typing import Any, cast

from headwater.estimators.column_kinds import CATEGORICAL
from headwater.estimators.mixed_attributes import MixedAttributes
from headwater.estimators.rounded_columns import known_prior
from headwater.estimators.skewed_columns import value_names
from headwater.estimators.table_mixture import BeliefBlock, TableMixture
from headwater.families.family import AnyFamily
from headwater.families.product import Product, ProductPrior


class MixedAnswers(MixedAttributes, TableMixture):
    """Base of `MixedMixture`: its attributes. Abstract."""

    @property
    def _column_family(self) -> AnyFamily:
        return self._component_family

    @property
    def _column_parameters(self) -> Any:
        return self._components

    @property
    def _column_prior(self) -> ProductPrior:
        return cast(ProductPrior, known_prior(self))

    def _belief_blocks(self, prior: Any, totals: Any) -> list[BeliefBlock]:
        blocks = cast(Product, self._component_family).blocks
        return [(block.family, *parts) for block, *parts in zip(blocks, prior.blocks, totals.blocks, strict=True)]

    def _block_value_names(self) -> list[list[str]]:
        blocks = [block.name for block in cast(Product, self._component_family).blocks]
        names = [self._names_of(kind) for kind in blocks]
        return [
            self._category_names(one) if kind == CATEGORICAL else value_names(kind, one)
            for kind, one in zip(blocks, names, strict=True)
        ]
