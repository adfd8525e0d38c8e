"""The family of the columns of a table: a block for each kind of column."""

from __future__ import annotations

from typing import cast

from headwater.estimators.column_kinds import BERNOULLI, CATEGORICAL, GAUSSIAN, POISSON
from headwater.estimators.skewed_columns import skewed_families
from headwater.estimators.table_schema import TableSchema
from headwater.families.bernoulli import Bernoulli
from headwater.families.category_tables import CategoryTables
from headwater.families.family import AnyFamily
from headwater.families.gaussian import Gaussian
from headwater.families.poisson import Poisson
from headwater.families.product import Block, Product


def column_product(schema: TableSchema, width: int, gaussian: Gaussian, capacity: int, prior_rows: float) -> Product:
    """Return the product over columns of these kinds: `gaussian` for all numbers together, every other column by itself."""
    k = gaussian.n_components
    families: dict[str, AnyFamily] = {
        GAUSSIAN: gaussian,
        CATEGORICAL: CategoryTables(k, capacity, schema.codebook.sizes, prior_rows),
        BERNOULLI: Bernoulli(k, None, prior_rows),
        POISSON: Poisson(k, None, None, prior_rows),
        **skewed_families(k, prior_rows, schema.kinds),
    }
    places = {kind: tuple(at for at, one in enumerate(schema.kinds) if one == kind) for kind in families}
    return Product(k, width, tuple(Block(kind, families[kind], at) for kind, at in places.items() if at))


def known_levels(family: AnyFamily) -> tuple[int, ...]:
    """Return how many categories of each categorical column a product of columns knows."""
    blocks = cast(Product, family).blocks
    return next((block.family.levels for block in blocks if isinstance(block.family, CategoryTables)), ())
