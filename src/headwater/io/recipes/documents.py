"""Documents: words of lines of text, or of a column of a table, counted into sparse rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headwater.core.chunk import Chunk
from headwater.core.values import AnyArray
from headwater.io.blocks import Block
from headwater.io.options import Options
from headwater.io.read_errors import StreamError, explain_read_errors
from headwater.io.recipes.arrow_columns import is_category, to_text
from headwater.io.recipes.column_choice import refuse_duplicate_names, resolve_column
from headwater.io.recipes.companions import (
    ROLES,
    Companions,
    KeptColumns,
    concatenate_companions,
    plan_companions,
    refuse_absent,
    refuse_roles,
)
from headwater.io.recipes.tables import TableHead, column_finder, columns_to_read, rows_per_chunk
from headwater.io.vocabulary import Tokenizer, WordColumns, count_matrix

if TYPE_CHECKING:
    import pyarrow as pa

ROW_BYTES_GUESS = 4096  # bytes of a document, if none was seen


@dataclass(frozen=True)
class DocumentRecipe:
    """How documents become rows of counts: by known words, by words as they come (`open`), or by a hash."""

    tokens: Tokenizer = Tokenizer()
    vocabulary: tuple[str, ...] = ()
    open: bool = False
    buckets: int | None = None
    text: str | None = None
    companions: Companions = Companions()
    others: tuple[str, ...] | None = None
    chunk_rows: int = rows_per_chunk(ROW_BYTES_GUESS)
    kept: KeptColumns = KeptColumns()

    kinds = ("documents", "sequences", "tables")
    keeps_every_row = True

    @property
    def carries_state(self) -> bool:
        """Whether a chunk depends on those before it."""
        return self.open

    @property
    def named(self) -> bool:
        """Whether columns are words."""
        return self.buckets is None

    @property
    def names(self) -> tuple[str, ...]:
        """The words that are known before the first document."""
        return self.vocabulary

    def schema(self) -> dict[str, object]:
        """Return the recipe in values that JSON can hold. An open vocabulary is what the model has learned, not part of it."""
        found = {**self.tokens.schema(), **self.companions.schema()}
        if self.text is not None:
            found["text"] = self.text
        if self.buckets is not None:
            return {**found, "buckets": self.buckets}
        return {**found, "open": True} if self.open else {**found, "vocabulary": list(self.vocabulary)}

    def columns_to_read(self, names: Sequence[str], place: str) -> list[str]:
        """Return the columns to read from a table."""
        if self.text is None:
            raise StreamError(f"{place} is a table: name the column that holds the documents by text=")
        return columns_to_read([self.text], self.companions, self.others, self.kept, names, place)

    def types(self) -> dict[str, pa.DataType]:
        """Return how to read the columns of a file that has no types of its own."""
        import pyarrow as pa

        return self.kept.types() | {str(self.text): pa.string()} | self.companions.types()

    def filter_rows(self, block: Block) -> Block:
        """Return the block as it is: a line without words is a document, too."""
        return block

    def chunk_maker(self) -> Callable[[Sequence[Block], int], Chunk]:
        """Return the function that makes chunks; with an open vocabulary it keeps the words of earlier chunks."""
        known = dict(zip(self.vocabulary, range(len(self.vocabulary)), strict=True))
        return _DocumentCounter(self, WordColumns(self.tokens, known, self.open, self.buckets))


@dataclass
class _DocumentCounter:
    recipe: DocumentRecipe
    columns: WordColumns
    names: tuple[str, ...] = ()
    schema: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.names, self.schema = tuple(self.columns.known), self.recipe.schema()

    @property
    def left_out(self) -> int:
        """The number of words that have no column."""
        return self.columns.left_out

    def __call__(self, blocks: Sequence[Block], start: int) -> Chunk:
        found = []
        for block in blocks:
            with explain_read_errors(block.name):
                found.append(self._count(block))
        if not self.columns.width:
            raise StreamError(f"{blocks[0].name} has no words in its first {sum(map(len, blocks))} documents")
        places, lengths = (np.concatenate([part[at] for part in found]) for at in (0, 1))
        counts = count_matrix(places, lengths, self.columns.width)
        if len(self.names) < len(self.columns.known):
            self.names = tuple(self.columns.known)
        return Chunk(
            counts, None if self.recipe.buckets else self.names, start=start, schema=self.schema,
            kept=self.recipe.kept.values(blocks), **concatenate_companions([part[2] for part in found]),
        )  # fmt: skip

    def _count(self, block: Block) -> tuple[NDArray[np.int64], NDArray[np.int64], dict[str, AnyArray]]:
        """Return the column of each counted word, the number of counted words in each document, and the companions."""
        table = hasattr(block.rows, "schema")
        places, lengths = self.columns.find(to_text(block.rows.column(self.recipe.text)) if table else block.rows)
        if not table:
            refuse_absent(self.recipe.companions, (), block.name)
        companions = self.recipe.companions.values(block, column_finder(block.rows)) if table else {}
        return places, lengths, companions


def plan_documents(head: TableHead | pa.StringArray, options: Options, place: str) -> DocumentRecipe:
    """Return the recipe of documents, with known words; the head is one of lines, or of a table with a column of documents."""
    tokens = Tokenizer(options.lowercase, options.shortest, frozenset(options.stop_words))
    text, companions, others = None, Companions(), None
    if isinstance(head, TableHead):
        refuse_duplicate_names(head.names, place)
        text = resolve_column(options.text, head.names, place, "text")
        if text is None or not is_category(head.types.get(text)):
            raise StreamError(f"text must name a column of text, but {text!r} of {place} holds {head.types.get(text or '')}")
        roles = {role: resolve_column(getattr(options, role), head.names, place, role) for role in ROLES}
        companions = plan_companions(roles, head.types, head.sample, place)
        others = tuple(head.names) if options.columns is None else None
        assert head.sample is not None
        lines = to_text(head.sample(text))
    else:
        refuse_roles(options, place)
        lines = head
    rows = rows_per_chunk(max(64, lines.nbytes // max(1, len(lines))))
    if isinstance(options.vocabulary, int):
        return DocumentRecipe(
            tokens, buckets=options.vocabulary, text=text, companions=companions, others=others, chunk_rows=rows
        )
    if options.vocabulary == "open":
        return DocumentRecipe(tokens, open=True, text=text, companions=companions, others=others, chunk_rows=rows)
    if options.vocabulary == "first":
        vocabulary = tuple(word for word in tokens.split(lines)[0] if tokens.keeps(word))
        if not vocabulary:
            raise StreamError(f"{place} has no words in its first {len(lines)} documents")
    else:
        vocabulary = tuple(options.vocabulary)
    return DocumentRecipe(tokens, vocabulary, text=text, companions=companions, others=others, chunk_rows=rows)
