"""Models of counts that also take documents: texts become counts of the words that the model knows or learns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from headwater.core.batch import SparseRows
from headwater.core.chunk import Chunk
from headwater.core.values import Matrix, Row, Rows
from headwater.estimators.base import StreamingEstimator
from headwater.estimators.calls import learns
from headwater.io.schema_fields import read_integer
from headwater.io.vocabulary import Tokenizer, WordColumns, count_words, documents_of


class DocumentReader(StreamingEstimator):
    """The part of a model of counts that reads documents, cut into words as `headwater.stream` does.

    Its words are the columns, `feature_names_in_`, and how they are cut is in `schema_`, as if a stream had been learned. A
    vocabulary that is not open has the words of the documents that were learned first. Words that are not known are left out,
    unless an open vocabulary learns them.
    """

    def _as_rows(self, X: Rows, learning: bool, anew: bool = False) -> Rows:
        if isinstance(X, Chunk | SparseRows):
            return X
        documents = documents_of(X)
        known = self.__dict__.get("schema_") if self._has_state() and not anew else None
        if documents is None:
            # The columns of a bare matrix have no words.
            if known is not None and known.get("kind") == "text" and "buckets" not in known and not hasattr(X, "columns"):
                raise ValueError(
                    f"X must hold documents, or counts whose columns have names, since this {type(self).__name__} learned the "
                    f"words of documents, got {_kind_with_article(X)} with neither"
                )
            return X
        if not self._has_state() or anew:
            return self._first_documents(documents)
        if known is None or known.get("kind") != "text":
            raise ValueError(f"X must hold counts, since this {type(self).__name__} learned counts, got documents")
        if "buckets" in known:
            columns = WordColumns(Tokenizer.of_schema(known), buckets=read_integer(known, "buckets", 1, 2**31))
            return Chunk(count_words(documents, columns), schema=known)
        names = self.feature_names_in_.tolist()
        grows = learning and self._vocabulary_is_open
        if grows and len(names) < self.n_features_in_:
            unnamed = self.n_features_in_ - len(names)
            raise ValueError(f"X must hold counts, since {unnamed} columns of this model have no name, got documents")
        columns = WordColumns(Tokenizer.of_schema(known), {name: place for place, name in enumerate(names)}, grows)
        return Chunk(count_words(documents, columns), tuple(columns.known), schema=known)

    def _first_documents(self, documents: list[str]) -> Chunk:
        """Counts of all words of documents, for a model that knows none yet."""
        columns = WordColumns(Tokenizer(), open=True)
        counts = count_words(documents, columns)
        if not columns.known:
            raise ValueError(f"X must have words, since this model knows none, got {len(documents)} documents without any")
        vocabulary = {"open": True} if self._vocabulary_is_open else {"vocabulary": list(columns.known)}
        return Chunk(counts, tuple(columns.known), schema={**columns.tokens.schema(), **vocabulary})

    def _one_document(self, text: str) -> Matrix:
        """The counts of one document, in the width of the model."""
        chunk = self._as_rows([text], learning=False)
        return self._aligned(self._checked(chunk))

    @learns
    def learn_one(self, x: Row) -> Self:
        """Learn one document, given as a text, an array of counts or a mapping from words to counts.

        Parameters
        ----------
        x : str, array-like of shape (n_features,) or mapping
            The document.

        Returns
        -------
        self : object
            The estimator.
        """
        return self._learn_one(x)

    def _learn_one(self, x: Row) -> Self:
        return self.partial_fit([x]) if isinstance(x, str) else super()._learn_one(x)

    def _places(self, names: Sequence[str] | None) -> dict[object, int]:
        """The column of each name; made once."""
        cache = self._runtime.cache if self._has_state() else None
        known = None if cache is None else cache.places
        if known is None or known[0] is not names:
            known = (names, {name: place for place, name in enumerate(() if names is None else names)})
            if cache is not None:
                cache.places = known
        return known[1]


def _kind_with_article(X: Rows) -> str:
    name = type(X).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"
