"""Words of documents: how text is split into words, the column of each word, and counts by document."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from headwater.core.values import Matrix, Rows
from headwater.io.schema_fields import Schema, read_flag, read_integer, read_texts

if TYPE_CHECKING:
    import pyarrow as pa

WORD_SEPARATOR = r"[^\pL\pM\pN_]+"
VOCABULARY_LIMIT = 10_000_000  # different words
WORD_LETTERS_LIMIT = 10**6  # limit for the least length of a word in a schema
EXCLUDED_WORD, UNKNOWN_WORD = -1, -2  # in place of a column
DOCUMENTS_PER_BLOCK = 1024  # documents that are split into words at a time


@dataclass(frozen=True)
class Tokenizer:
    """How words are made of text."""

    lowercase: bool = True
    shortest: int = 1
    stop_words: frozenset[str] = frozenset()

    @classmethod
    def of_schema(cls, schema: Schema) -> Tokenizer:
        """Return the tokenizer that a schema describes, or refuse it."""
        stop_words = frozenset(read_texts(schema, "stop_words", VOCABULARY_LIMIT) or ())
        return cls(read_flag(schema, "lowercase", True), read_integer(schema, "shortest", 1, WORD_LETTERS_LIMIT, 1), stop_words)

    def schema(self) -> dict[str, object]:
        """Return the same in values that JSON can hold."""
        stop_words = sorted(self.stop_words)
        return {"kind": "text", "lowercase": self.lowercase, "shortest": self.shortest, "stop_words": stop_words}

    def keeps(self, word: str) -> bool:
        """Whether a word counts."""
        return len(word) >= self.shortest and word not in self.stop_words

    def split(self, lines: pa.StringArray) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
        """Return the different words in the order of their first occurrence, the word at each place, and words a line."""
        import pyarrow.compute as pc

        text = lines.fill_null("")
        parts = pc.split_pattern_regex(pc.utf8_lower(text) if self.lowercase else text, pattern=WORD_SEPARATOR)
        encoded = parts.flatten().dictionary_encode()
        lengths = pc.list_value_length(parts).to_numpy(zero_copy_only=False)
        return encoded.dictionary.to_pylist(), encoded.indices.to_numpy(zero_copy_only=False), lengths.astype(np.int64)


@dataclass
class WordColumns:
    """The column of each word. New words get the next column if the vocabulary is `open`; with `buckets`, a hash chooses.

    `left_out` counts the words that have no column.
    """

    tokens: Tokenizer
    known: dict[str, int] = field(default_factory=dict)
    open: bool = False
    buckets: int | None = None
    left_out: int = 0

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.buckets or len(self.known)

    def find(self, lines: pa.StringArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the column of each counted word, and the number of counted words in each line."""
        different, places, lengths = self.tokens.split(lines)
        columns = np.array([self._column(word) for word in different], dtype=np.int64)[places]
        counts = columns >= 0
        self.left_out += int(np.count_nonzero(columns == UNKNOWN_WORD))
        documents = np.repeat(np.arange(len(lengths)), lengths)[counts]
        return columns[counts], np.bincount(documents, minlength=len(lengths))

    def _column(self, word: str) -> int:
        if not self.tokens.keeps(word):
            return EXCLUDED_WORD
        if self.buckets is not None:
            return zlib.crc32(word.encode()) % self.buckets
        column = self.known.get(word, UNKNOWN_WORD)
        if column < 0 and self.open:
            if len(self.known) >= VOCABULARY_LIMIT:
                raise ValueError(f"there are more than {VOCABULARY_LIMIT} different words: hash them by vocabulary=2**20")
            column = self.known[word] = len(self.known)
        return column


def count_matrix(columns: NDArray[np.int64], lengths: NDArray[np.int64], width: int) -> csr_array:
    """Return the counts of words in each document, given the column of each word and how many each document has."""
    counts = csr_array((np.ones(len(columns)), columns, np.concatenate([[0], np.cumsum(lengths)])), shape=(len(lengths), width))
    counts.sum_duplicates()
    return counts


def count_words(documents: list[str], columns: WordColumns) -> csr_array:
    """Return the counts of words in documents; columns that are open get the words that they do not know."""
    import pyarrow as pa

    found = [
        columns.find(pa.array(documents[at : at + DOCUMENTS_PER_BLOCK], pa.string()))
        for at in range(0, len(documents), DOCUMENTS_PER_BLOCK)
    ]
    places, lengths = (np.concatenate([part[at] for part in found]) for at in (0, 1))
    return count_matrix(places, lengths, columns.width)


def documents_of(X: object, name: str = "X") -> list[str] | None:
    """Return a list of texts if X is a list, an array or a series of texts; None if it holds none. Mixtures are refused."""
    if isinstance(X, str | bytes):
        raise ValueError(f"{name} must be a list of documents, got one {type(X).__name__}, {X[:40]!r}: put it into a list")
    items = _list_items(X)
    if items is None:
        return None
    if not items:
        raise ValueError(f"{name} has 0 sample(s) (shape=(0,)) while a minimum of 1 is required.")
    if not any(isinstance(item, str) for item in items):
        for at, item in enumerate(items):
            if isinstance(item, list | tuple) and any(isinstance(word, str) for word in item):
                raise ValueError(
                    f"{name} must hold rows of numbers, or documents, each of them a text, but document {at} is a "
                    f"{type(item).__name__} of words: join them, ' '.join(words)"
                )
        return None
    for at, item in enumerate(items):
        if not isinstance(item, str):
            kind = "bytes, which have to be decoded"
            if not isinstance(item, bytes):
                kind = f"{' '.join(repr(item).split()):.40} ({type(item).__name__})"
            raise ValueError(f"{name} must hold documents alone, each of them a text, but document {at} is {kind}")
        try:
            item.encode()
        except UnicodeError:
            raise ValueError(f"{name} must hold texts, but document {at} has characters that are none: {item!r:.40}") from None
    return items


def _list_items(X: Rows) -> list[Any] | None:
    """The items of a one-dimensional container, unless they are numbers."""
    if isinstance(X, list | tuple):
        return list(X)
    if isinstance(X, np.ndarray):
        return list(X.tolist()) if X.ndim == 1 and X.dtype.kind in "OUST" else None
    if type(X).__name__ in ("Series", "Index", "Array", "ChunkedArray", "StringArray", "LargeStringArray", "DictionaryArray"):
        kind = str(getattr(X, "dtype", getattr(X, "type", ""))).lower()
        if any(word in kind for word in ("object", "str", "categor", "dictionary", "utf8", "enum")):
            series: Matrix = X
            return list(series.to_pylist() if hasattr(series, "to_pylist") else series.to_list())
    return None
