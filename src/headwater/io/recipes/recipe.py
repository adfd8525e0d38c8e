"""The contract of a recipe: how blocks of a reader become rows of a chunk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from headwater.core.chunk import Chunk
from headwater.io.blocks import Block

if TYPE_CHECKING:
    import pyarrow as pa

    from headwater.io.recipes.companions import Companions
    from headwater.io.recipes.sparse import SparseHead
    from headwater.io.recipes.tables import TableHead

    Head: TypeAlias = TableHead | SparseHead | pa.Array  # found in the first rows; for text, the first lines

ChunkMaker = Callable[[Sequence[Block], int], Chunk]  # blocks, and the place of their first row in the stream


class Recipe(Protocol):
    """How chunks are made. A recipe comes from the first rows, or from the schema of a model."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of rows that it accepts, its own first."""

    @property
    def carries_state(self) -> bool:
        """Whether a chunk depends on those before it, as with an open vocabulary."""

    @property
    def keeps_every_row(self) -> bool:
        """Whether each row that is read becomes a row of a chunk, so that rows can be skipped unread."""

    @property
    def named(self) -> bool:
        """Whether columns have names."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the columns of X."""

    @property
    def chunk_rows(self) -> int:
        """Rows of a chunk, unless the user says another number."""

    def schema(self) -> dict[str, object]:
        """Return the recipe in values that JSON can hold."""

    def filter_rows(self, block: Block) -> Block:
        """Return a block without the rows that are left out."""

    def chunk_maker(self) -> ChunkMaker:
        """Return the function that makes chunks of blocks in one pass."""


class ColumnRecipe(Recipe, Protocol):
    """A recipe for tables, whose readers ask which columns to read."""

    @property
    def companions(self) -> Companions:
        """Columns that come beside the inputs."""

    def columns_to_read(self, names: Sequence[str], place: str) -> list[str]:
        """Return the columns to read from a table with these names, or refuse it."""

    def types(self) -> dict[str, pa.DataType]:
        """Return the types to read columns by, for files that have no types of their own."""
