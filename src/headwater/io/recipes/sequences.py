"""Sequences of symbols: one a line, its symbols in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headwater.core.chunk import Chunk
from headwater.io.blocks import Block
from headwater.io.options import Options
from headwater.io.read_errors import StreamError, reading
from headwater.io.recipes.companions import refuse_roles
from headwater.io.recipes.tables import chunk_rows_of

BETWEEN = r"[\s,;]+"
NOTHING = r"^[\s,;]*([%#].*)?$"
MOST_SYMBOLS = 100_000
GUESS = 1024


@dataclass(frozen=True)
class Recipe:
    """How lines become symbols: the place of each in a list of those that are known."""

    symbols: tuple[str, ...]
    chunk_rows: int = chunk_rows_of(GUESS)

    kinds = ("sequences", "documents")
    remembers = False
    named = False
    names: tuple[str, ...] = ()
    counted = False  # lines without a symbol are left out

    def schema(self) -> dict[str, Any]:
        """Return the recipe in words that JSON knows."""
        return {"kind": "sequences", "symbols": list(self.symbols)}

    def filtered(self, block: Block) -> Block:
        """Leave out empty lines and comments."""
        return replace(block, rows=_spoken(block.rows))

    def maker(self) -> Callable[[Sequence[Block], int], Chunk]:
        """Return the function that makes chunks."""
        import pyarrow as pa
        import pyarrow.compute as pc

        known, schema = pa.array(self.symbols, pa.string()), self.schema()

        def make(blocks: Sequence[Block], start: int) -> Chunk:
            symbols, lengths = [], []
            for block in blocks:
                with reading(block.name):
                    parts = _split(block.rows)
                    flat = parts.flatten()
                    places = pc.index_in(flat, value_set=known)
                    if places.null_count:
                        _refuse_unknown(flat.filter(places.is_null())[0].as_py(), block.name)
                    symbols.append(places.to_numpy(zero_copy_only=False).astype(np.int64))
                    lengths.append(pc.list_value_length(parts).to_numpy(zero_copy_only=False).astype(np.int64))
            return Chunk(np.concatenate(symbols), lengths=np.concatenate(lengths), start=start, schema=schema)

        return make


def plan(head: Any, options: Options, place: str) -> Recipe:
    """Take the symbols that were given, or those of the first lines: numbers by size, others by the alphabet."""
    refuse_roles(options, place)
    lines = _spoken(head)
    rows = chunk_rows_of(8 * max(64, lines.nbytes // max(1, len(lines))))
    if options.symbols is not None:
        return Recipe(options.symbols, rows)
    found = _split(lines).flatten().unique().to_pylist()
    if not found:
        raise StreamError(f"{place} has no sequences in its first lines")
    if len(found) > MOST_SYMBOLS:
        raise StreamError(
            f"{place} has {len(found)} different symbols in its first lines, more than the {MOST_SYMBOLS} there may be"
        )
    whole = all(symbol.isdecimal() and len(symbol) < 18 for symbol in found)
    return Recipe(tuple(sorted(found, key=int) if whole else sorted(found)), rows)


def _spoken(lines: Any) -> Any:
    import pyarrow.compute as pc

    return lines.filter(pc.invert(pc.match_substring_regex(lines, NOTHING)))


def _split(lines: Any) -> Any:
    import pyarrow.compute as pc

    return pc.split_pattern_regex(pc.utf8_trim(lines, characters=" \t\r\v\f,;"), pattern=BETWEEN)


def _refuse_unknown(symbol: str, place: str) -> None:
    raise StreamError(f"{place} has the symbol {symbol!r:.80}, which is not among the known ones: name all of them by symbols=")
