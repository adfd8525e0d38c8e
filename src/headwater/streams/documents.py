"""Documents: words of lines of text, or of a column of a table, counted into sparse rows."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from headwater.chunk import Chunk
from headwater.streams.blocks import Block
from headwater.streams.choosing import refuse_twice, resolved
from headwater.streams.columns import is_category, words
from headwater.streams.companions import ROLES, Companions, joined, plan_companions, refuse_absent, refuse_roles
from headwater.streams.keeping import Kept
from headwater.streams.options import Options
from headwater.streams.sentences import StreamError, reading
from headwater.streams.tables import Head, chunk_rows_of, finder, wanted

BETWEEN = r"[^\pL\pM\pN_]+"
MOST_WORDS = 10_000_000
NO_WORD, UNKNOWN = -1, -2
GUESS = 4096  # bytes of a document, where none was seen


@dataclass(frozen=True)
class Tokens:
    """How words are made of text."""

    lowercase: bool = True
    shortest: int = 1
    stop_words: frozenset[str] = frozenset()

    def kept(self, word: str) -> bool:
        """Whether a word counts."""
        return len(word) >= self.shortest and word not in self.stop_words

    def split(self, lines: Any) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
        """Return the different words in the order of their first occurrence, the word at each place, and words a line."""
        import pyarrow.compute as pc

        text = lines.fill_null("")
        parts = pc.split_pattern_regex(pc.utf8_lower(text) if self.lowercase else text, pattern=BETWEEN)
        encoded = parts.flatten().dictionary_encode()
        lengths = pc.list_value_length(parts).to_numpy(zero_copy_only=False)
        return encoded.dictionary.to_pylist(), encoded.indices.to_numpy(zero_copy_only=False), lengths.astype(np.int64)


@dataclass(frozen=True)
class Recipe:
    """How documents become rows of counts: by known words, by words as they come (`open`), or by a hash."""

    tokens: Tokens = Tokens()
    vocabulary: tuple[str, ...] = ()
    open: bool = False
    buckets: int | None = None
    text: str | None = None
    companions: Companions = Companions()
    others: tuple[str, ...] | None = None
    chunk_rows: int = chunk_rows_of(GUESS)
    kept: Kept = Kept()

    kinds = ("documents", "sequences", "tables")
    counted = True

    @property
    def remembers(self) -> bool:
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

    def schema(self) -> dict[str, Any]:
        """Return the recipe in words that JSON knows. An open vocabulary is what the model has learned, not part of it."""
        found: dict[str, Any] = {
            "kind": "text",
            "lowercase": self.tokens.lowercase,
            "shortest": self.tokens.shortest,
            "stop_words": sorted(self.tokens.stop_words),
            **self.companions.schema(),
        }
        if self.text is not None:
            found["text"] = self.text
        if self.buckets is not None:
            return {**found, "buckets": self.buckets}
        return {**found, "open": True} if self.open else {**found, "vocabulary": list(self.vocabulary)}

    def wanted(self, names: Sequence[str], place: str) -> list[str]:
        """Return the columns to read from a table."""
        if self.text is None:
            raise StreamError(f"{place} is a table: name the column that holds the documents by text=")
        return wanted([self.text], self.companions, self.others, self.kept, names, place)

    def types(self) -> dict[str, Any]:
        """Return how to read the columns of a file that has no types of its own."""
        import pyarrow as pa

        return self.kept.types() | {str(self.text): pa.string()} | self.companions.types()

    def filtered(self, block: Block) -> Block:
        """A line without a word is a document, too."""
        return block

    def maker(self) -> Callable[[Sequence[Block], int], Chunk]:
        """Return the function that makes chunks, and knows the words of all before if the vocabulary is open."""
        return _Counter(self, dict(zip(self.vocabulary, range(len(self.vocabulary)), strict=True)))


@dataclass
class _Counter:
    recipe: Recipe
    known: dict[str, int]
    names: tuple[str, ...] = ()
    schema: dict[str, Any] = field(default_factory=dict)
    left_out: int = 0

    def __post_init__(self) -> None:
        self.names, self.schema = tuple(self.known), self.recipe.schema()

    def __call__(self, blocks: Sequence[Block], start: int) -> Chunk:
        found = []
        for block in blocks:
            with reading(block.name):
                found.append(self._counted(block))
        width = self.recipe.buckets or len(self.known)
        if not width:
            raise StreamError(f"{blocks[0].name} has no words in its first {sum(map(len, blocks))} documents")
        lengths = np.concatenate([part[1] for part in found])
        counts = csr_array(
            (
                np.ones(int(lengths.sum())),
                np.concatenate([part[0] for part in found]),
                np.concatenate([[0], np.cumsum(lengths)]),
            ),
            shape=(len(lengths), width),
        )
        counts.sum_duplicates()
        if len(self.names) < len(self.known):
            self.names = tuple(self.known)
        return Chunk(
            counts, None if self.recipe.buckets else self.names, start=start, schema=self.schema,
            kept=self.recipe.kept.values(blocks), **joined([part[2] for part in found]),
        )  # fmt: skip

    def _counted(self, block: Block) -> tuple[NDArray[np.int64], NDArray[np.int64], dict[str, Any]]:
        """Return the column of each word that counts, how many there are in each document, and the companions."""
        table = hasattr(block.rows, "schema")
        lines = words(block.rows.column(self.recipe.text)) if table else block.rows
        found, places, lengths = self.recipe.tokens.split(lines)
        columns = np.array([self._column(word, block.name) for word in found], dtype=np.int64)[places]
        counts = columns >= 0
        self.left_out += int(np.count_nonzero(columns == UNKNOWN))
        documents = np.repeat(np.arange(len(lengths)), lengths)[counts]
        kept = np.bincount(documents, minlength=len(lengths))
        if not table:
            refuse_absent(self.recipe.companions, (), block.name)
        companions = self.recipe.companions.values(block, finder(block.rows)) if table else {}
        return columns[counts], kept, companions

    def _column(self, word: str, place: str) -> int:
        if not self.recipe.tokens.kept(word):
            return NO_WORD
        if self.recipe.buckets is not None:
            return zlib.crc32(word.encode()) % self.recipe.buckets
        column = self.known.get(word, UNKNOWN)
        if column < 0 and self.recipe.open:
            if len(self.known) >= MOST_WORDS:
                raise StreamError(f"{place} has more than {MOST_WORDS} different words: hash them by vocabulary=2**20")
            column = self.known[word] = len(self.known)
        return column


def plan(head: Any, options: Options, place: str) -> Recipe:
    """Say how words are made, and which are known; the head is one of lines, or of a table with a column of documents."""
    tokens = Tokens(options.lowercase, options.shortest, frozenset(options.stop_words))
    text, companions, others = None, Companions(), None
    if isinstance(head, Head):
        refuse_twice(head.names, place)
        text = resolved(options.text, head.names, place, "text")
        if text is None or not is_category(head.types.get(text)):
            raise StreamError(f"text must name a column of text, but {text!r} of {place} holds {head.types.get(text or '')}")
        roles = {role: resolved(getattr(options, role), head.names, place, role) for role in ROLES}
        companions = plan_companions(roles, head.types, head.sample, place)
        others = tuple(head.names) if options.columns is None else None
        assert head.sample is not None
        lines = words(head.sample(text))
    else:
        refuse_roles(options, place)
        lines = head
    rows = chunk_rows_of(max(64, lines.nbytes // max(1, len(lines))))
    if isinstance(options.vocabulary, int):
        return Recipe(tokens, buckets=options.vocabulary, text=text, companions=companions, others=others, chunk_rows=rows)
    if options.vocabulary == "open":
        return Recipe(tokens, open=True, text=text, companions=companions, others=others, chunk_rows=rows)
    if options.vocabulary == "first":
        vocabulary = tuple(word for word in tokens.split(lines)[0] if tokens.kept(word))
        if not vocabulary:
            raise StreamError(f"{place} has no words in its first {len(lines)} documents")
    else:
        vocabulary = tuple(options.vocabulary)
    return Recipe(tokens, vocabulary, text=text, companions=companions, others=others, chunk_rows=rows)
