"""Sequences of symbols: one a line, its symbols in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from headwater.core.chunk import Chunk
from headwater.io.blocks import Block
from headwater.io.options import Options
from headwater.io.read_errors import StreamError, explain_read_errors
from headwater.io.recipes.companions import refuse_roles
from headwater.io.recipes.tables import rows_per_chunk

if TYPE_CHECKING:
    import pyarrow as pa

SYMBOL_SEPARATOR = r"[\s,;]+"
EMPTY_OR_COMMENT_LINE = r"^[\s,;]*([%#].*)?$"
SYMBOL_LIMIT = 100_000  # different symbols
LINE_BYTES_GUESS = 1024  # of a line, if none was seen


@dataclass(frozen=True)
class SequenceRecipe:
    """How lines become symbols: the index of each in the list of known symbols."""

    symbols: tuple[str, ...]
    chunk_rows: int = rows_per_chunk(LINE_BYTES_GUESS)

    kinds = ("sequences", "documents")
    carries_state = False
    named = False
    names: tuple[str, ...] = ()
    keeps_every_row = False  # lines without a symbol are left out

    def schema(self) -> dict[str, object]:
        """Return the recipe in values that JSON can hold."""
        return {"kind": "sequences", "symbols": list(self.symbols)}

    def filter_rows(self, block: Block) -> Block:
        """Leave out empty lines and comments."""
        return replace(block, rows=_drop_empty_lines(block.rows))

    def chunk_maker(self) -> Callable[[Sequence[Block], int], Chunk]:
        """Return the function that makes chunks."""
        import pyarrow as pa
        import pyarrow.compute as pc

        known, schema = pa.array(self.symbols, pa.string()), self.schema()

        def make(blocks: Sequence[Block], start: int) -> Chunk:
            symbols, lengths = [], []
            for block in blocks:
                with explain_read_errors(block.name):
                    parts = _split(block.rows)
                    flat = parts.flatten()
                    places = pc.index_in(flat, value_set=known)
                    if places.null_count:
                        _refuse_unknown(flat.filter(places.is_null())[0].as_py(), block.name)
                    symbols.append(places.to_numpy(zero_copy_only=False).astype(np.int64))
                    lengths.append(pc.list_value_length(parts).to_numpy(zero_copy_only=False).astype(np.int64))
            return Chunk(np.concatenate(symbols), lengths=np.concatenate(lengths), start=start, schema=schema)

        return make


def plan_sequences(head: pa.StringArray, options: Options, place: str) -> SequenceRecipe:
    """Take the symbols that were given, or those of the first lines: numbers by size, others by the alphabet."""
    refuse_roles(options, place)
    lines = _drop_empty_lines(head)
    rows = rows_per_chunk(8 * max(64, lines.nbytes // max(1, len(lines))))
    if options.symbols is not None:
        return SequenceRecipe(options.symbols, rows)
    found = _split(lines).flatten().unique().to_pylist()
    if not found:
        raise StreamError(f"{place} has no sequences in its first lines")
    if len(found) > SYMBOL_LIMIT:
        raise StreamError(
            f"{place} has {len(found)} different symbols in its first lines, more than the {SYMBOL_LIMIT} there may be"
        )
    whole = all(symbol.isdecimal() and len(symbol) < 18 for symbol in found)
    return SequenceRecipe(tuple(sorted(found, key=int) if whole else sorted(found)), rows)


def _drop_empty_lines(lines: pa.StringArray) -> pa.StringArray:
    import pyarrow.compute as pc

    return lines.filter(pc.invert(pc.match_substring_regex(lines, EMPTY_OR_COMMENT_LINE)))


def _split(lines: pa.StringArray) -> pa.ListArray:
    import pyarrow.compute as pc

    return pc.split_pattern_regex(pc.utf8_trim(lines, characters=" \t\r\v\f,;"), pattern=SYMBOL_SEPARATOR)


def _refuse_unknown(symbol: str, place: str) -> None:
    raise StreamError(f"{place} has the symbol {symbol!r:.80}, which is not among the known ones: name all of them by symbols=")
