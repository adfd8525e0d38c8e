"""Columns that go from a table to the output as they are, beside what is read for the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from headwater.chunk import Chunk
from headwater.cli.failures import usage
from headwater.streams.blocks import Block
from headwater.streams.tables import Recipe


@dataclass(frozen=True, eq=False)
class KeptChunk(Chunk):
    """A chunk with columns that nobody learns from."""

    kept: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Keeping(Recipe):
    """A recipe that reads some more columns, whatever they hold."""

    keep: tuple[str, ...] = ()

    def wanted(self, names: Sequence[str], place: str) -> list[str]:
        """Return the columns to read, or refuse a table that lacks one."""
        lost = [name for name in self.keep if name not in names]
        if lost:
            raise ValueError(f"{place} lacks the column {lost[0]!r} to keep; it has {', '.join(map(repr, names[:10]))}")
        return list(dict.fromkeys([*super().wanted(names, place), *self.keep]))

    def types(self) -> dict[str, Any]:
        """Return how to read columns that have no types; those that are kept are read as they are written."""
        import pyarrow

        return {**{name: pyarrow.string() for name in self.keep}, **super().types()}

    def filtered(self, block: Block) -> Block:
        """Leave out rows that lack something, where a kept column may."""
        if self.missing != "drop" or isinstance(block.rows, np.ndarray):
            return super().filtered(block)
        import pyarrow.compute as pc

        seen = super().wanted(block.rows.schema.names, block.name)
        numbered = block.rows.append_column("", np.arange(len(block)))
        rest = super().filtered(Block(numbered.select([*seen, ""]), block.name, block.first))
        return Block(pc.take(block.rows, rest.rows.column("")), block.name, block.first)

    def maker(self) -> Any:
        """Return the function that makes chunks."""
        make = super().maker()

        def keep(blocks: Sequence[Block], start: int) -> KeptChunk:
            chunk = make(blocks, start)
            given = {one.name: getattr(chunk, one.name) for one in fields(Chunk)}
            return KeptChunk(**given, kept={name: _joined(blocks, name) for name in self.keep})

        return keep


def _joined(blocks: Sequence[Block], name: str) -> Any:
    import pyarrow

    if isinstance(blocks[0].rows, np.ndarray):
        return np.concatenate([block.rows[:, int(name[1:])] for block in blocks])
    return pyarrow.chunked_array([block.rows.column(name) for block in blocks]).combine_chunks()


def keep_columns(stream: Any, names: Sequence[str]) -> None:
    """Let the chunks of a stream have these columns of its table as well."""
    if not names:
        return
    recipe = stream._recipe
    if not isinstance(recipe, Recipe):
        raise usage("--keep takes columns of tables, and this is none")
    stream.__dict__["_recipe"] = Keeping(**{one.name: getattr(recipe, one.name) for one in fields(Recipe)}, keep=tuple(names))
