"""Columns with the types of their file, for models that know categories, flags, counts and gaps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from headwater.core.chunk import Chunk
from headwater.core.table_rows import TableRows
from headwater.io.blocks import Block
from headwater.io.read_errors import StreamError, explain_read_errors
from headwater.io.recipes.companions import Companions, KeptColumns, concatenate_companions
from headwater.io.recipes.date_parts import KINDS as DATE_KINDS
from headwater.io.recipes.date_parts import to_parts, type_of_dates
from headwater.io.recipes.tables import column_finder, columns_to_read, rows_per_chunk

if TYPE_CHECKING:
    import pyarrow as pa

    from headwater.io.recipes.recipe import ChunkMaker

NUMBER, TEXT, FLAG = "number", "text", "flag"
COLUMN_TYPES = (NUMBER, TEXT, FLAG, *DATE_KINDS)
COLUMN_BYTES = 16  # of a value, about


def refuse_missing(missing: str) -> None:
    """Refuse what cannot become of gaps in columns that are passed on as they are."""
    if missing not in ("refuse", "keep"):  # the first is the default
        raise StreamError(
            f"missing={missing!r} is for rows of numbers, and columns that are passed on as they are keep their gaps: "
            f"leave it out"
        )


@dataclass(frozen=True)
class TypedColumnsRecipe:
    """How chunks are made of typed columns. `columns` says whether a column holds numbers, text or flags, or has date parts."""

    columns: Mapping[str, str]
    companions: Companions = Companions()
    named: bool = True
    others: tuple[str, ...] | None = None  # columns that are left out, if no more than these may come
    kept: KeptColumns = field(default_factory=KeptColumns)

    carries_state = False
    keeps_every_row = True
    kinds = ("tables",)

    @property
    def names(self) -> list[str]:
        """Names of the columns of X."""
        return [label for name, kind in self.columns.items() for label in _labels(name, kind)]

    @property
    def chunk_rows(self) -> int:
        """Rows of about 4 MB."""
        return rows_per_chunk(len(self.columns) * COLUMN_BYTES)

    def schema(self) -> dict[str, object]:
        """Return the recipe in values that JSON can hold."""
        inputs = [{"name": name, "type": kind} for name, kind in self.columns.items()]
        return {"kind": "columns", "inputs": inputs, "named": self.named, **self.companions.schema()}

    def columns_to_read(self, names: Sequence[str], place: str) -> list[str]:
        """Return the columns to read from a source with these names, or refuse it."""
        return columns_to_read(list(self.columns), self.companions, self.others, self.kept, names, place)

    def types(self) -> dict[str, pa.DataType]:
        """Return how to read the columns of a file that has no types of its own."""
        import pyarrow as pa

        types = {NUMBER: pa.float64(), TEXT: pa.string(), FLAG: pa.bool_()}
        read = {name: type_of_dates(kind) if kind in DATE_KINDS else types[kind] for name, kind in self.columns.items()}
        return self.kept.types() | read | self.companions.types()

    def filter_rows(self, block: Block) -> Block:
        """Return the block as it is: gaps are kept."""
        return block

    def chunk_maker(self) -> ChunkMaker:
        """Return the function that makes chunks, each by itself."""
        names, schema = tuple(self.names), self.schema()

        def make(blocks: Sequence[Block], start: int) -> Chunk:
            import pyarrow as pa

            tables, parts = [], []
            for block in blocks:
                with explain_read_errors(block.name):
                    tables.append(pa.table(dict(self._columns(block))))
                    parts.append(self.companions.values(block, column_finder(block.rows)))
            table = pa.concat_tables(tables, promote_options="permissive")
            return Chunk(
                TableRows(table),
                names if self.named else None,
                start=start,
                schema=schema,
                kept=self.kept.values(blocks),
                **concatenate_companions(parts),
            )

        return make

    def _columns(self, block: Block) -> Iterator[tuple[str, pa.Array]]:
        import pyarrow as pa

        for name, kind in self.columns.items():
            column = _column(block, name)
            if kind in DATE_KINDS:
                parts = to_parts(column, kind, f"column {name!r} of {block.name}")
                yield from zip(_labels(name, kind), (pa.array(part, from_pandas=True) for part in parts.T), strict=True)
            else:
                yield name, column


def _labels(name: str, kind: str) -> list[str]:
    """Return the names of the columns that an input becomes."""
    return [f"{name}:{part}" for part in DATE_KINDS[kind]] if kind in DATE_KINDS else [name]


def _column(block: Block, name: str) -> pa.Array:
    import pyarrow as pa

    if isinstance(block.rows, np.ndarray):
        return pa.array(block.rows[:, int(name[1:])], from_pandas=True)
    return block.rows.column(name)


def column_type(kind: pa.DataType) -> str:
    """Return the kind of a column of this type of Arrow: numbers, flags, or text for all other types."""
    from pyarrow import types

    if types.is_boolean(kind):
        return FLAG
    return NUMBER if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) else TEXT
