"""TableInput: models that learn from tables as they are, whose rows are held as numbers: codes of categories, NaN for gaps."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Self

import numpy as np

from headwater.core.chunk import Chunk
from headwater.core.learner import Learner
from headwater.core.statistics import Array
from headwater.core.validation import check_names, check_width
from headwater.core.values import AnyArray, Matrix, Row, Rows
from headwater.diagnostics.component_description import column_names
from headwater.estimators.base import StreamingEstimator
from headwater.estimators.codebook import NUMBER, Codebook
from headwater.estimators.column_kinds import BERNOULLI
from headwater.estimators.recode import recode_runtime
from headwater.estimators.table_schema import (
    EncodedChunk,
    TableSchema,
    one_row_columns,
    refuse_large,
    refuse_values,
    split_table,
)
from headwater.estimators.traits import Taken


class TableInput(StreamingEstimator):
    """Base of the models of tables: schema, codes, categories that are new. Abstract."""

    max_categories: int
    _schema: TableSchema

    @abstractmethod
    def _schema_of(self, names: list[str] | None, columns: list[object]) -> TableSchema:
        """Return what the columns of a first chunk are."""

    @abstractmethod
    def _known_sizes(self, learner: Learner) -> tuple[int, ...]:
        """Return the categories of each column that a learner knows."""

    # Tables as rows

    def _as_rows(self, X: Rows, learning: bool, anew: bool = False) -> Rows:
        """Return a table as rows of numbers and codes."""
        if isinstance(X, EncodedChunk):
            return X
        names, columns = split_table(X, type(self).__name__)
        chunk = self._encode(names, columns, learning, anew)
        if not isinstance(X, Chunk):
            return chunk
        return EncodedChunk(**{**vars(X), "X": chunk.X, "columns": chunk.columns})

    def _encode(self, names: list[str] | None, columns: list[object], learning: bool, anew: bool = False) -> EncodedChunk:
        first = anew or not self._has_state()
        if first:
            schema = self._known_before() or self._schema_of(names, columns)
        else:
            schema, known = self._schema, getattr(self, "feature_names_in_", None)
            if names is not None:
                check_names(names, known, type(self).__name__)
        check_width(np.empty((0, len(columns))), len(schema.kinds), type(self).__name__)
        shown = names or [f"x{at}" for at in range(len(columns))]
        schema, rows = schema.encode(columns, shown, self._capacity, learning)
        if learning:
            self._schema = schema
        return EncodedChunk(rows, columns=names)

    def _share_columns(self, other: Self) -> None:
        if "_schema" in other.__dict__:
            self._schema = other._schema

    def _known_before(self) -> TableSchema | None:
        """Return what the columns are said to be before anything is learned, as workers of a cluster are told."""
        return None if self._has_state() else self.__dict__.get("_schema")

    def _find_kinds(self, X: Rows) -> TableSchema:
        self._schema = self._schema_of(*split_table(X, type(self).__name__))
        return self._schema

    def _note_categories(self, X: Rows) -> None:
        if self._schema.codebook.columns:
            self._encode(*split_table(X, type(self).__name__), learning=True)

    def _know_schema(self, schema: TableSchema) -> None:
        """Take over the categories that a table has, which may be more than those that were learned."""
        self._schema = schema
        if self._has_state() and self._known_sizes(self._runtime.learner) != schema.codebook.sizes:
            self._runtime = self._runtime.with_learner(self._make_learner(self._runtime.learner.width), self._runtime.made_with)

    @property
    def _capacity(self) -> int:
        return int(self.max_categories)

    def _checked(self, X: Taken) -> Array:
        if isinstance(X, EncodedChunk):
            return X.X
        encoded = self._as_rows(X, learning=False)
        assert isinstance(encoded, EncodedChunk)
        return np.asarray(encoded.X)

    def _one(self, x: Row, learning: bool = False) -> Matrix:
        self._fitted()
        return self._encode(*one_row_columns(x, getattr(self, "feature_names_in_", None)), learning=False).X

    def _learner_for(self, width: int, going_on: bool, streams: bool = True) -> Learner:
        """Return the learner; another one, if there are categories that the last one did not know."""
        learner = super()._learner_for(width, going_on, streams)
        if self._has_state() and learner is self._runtime.learner and self._known_sizes(learner) != self._schema.codebook.sizes:
            return self._make_learner(width)
        return learner

    def _check_stored(self, X: Matrix, width: int) -> None:
        for place, size in zip(self._schema.codebook.columns, self._schema.codebook.sizes, strict=True):
            codes = X[:, place][~np.isnan(X[:, place])]
            if codes.size and (codes.min() < 0.0 or codes.max() >= size or np.any(codes != np.round(codes))):
                raise ValueError(f"column {place} of the rows holds codes that no category has")
        for place, kind in enumerate(self._schema.kinds):
            refuse_large(X[:, place], place)
            refuse_values(kind, X[:, place], place)

    @property
    def _column_names(self) -> list[str]:
        return [str(name) for name in column_names(self, self.n_features_in_)]

    def _decoded(self, rows: Array) -> AnyArray:
        """Return rows as tables hold them: numbers, categories and booleans as objects, or numbers alone."""
        columns = self._schema.decode(rows)
        numeric = all(one.holds == NUMBER for one in self._schema.codebook.levels) and BERNOULLI not in self._schema.kinds
        return np.column_stack([np.asarray(one, dtype=float if numeric else object) for one in columns])

    # Merging

    def _aligned_models(self, models: Sequence[Self]) -> list[Self]:
        """Return the models with one codebook, that of the first and what the others know beside it."""
        if any(model._schema.kinds != models[0]._schema.kinds for model in models):
            raise ValueError("models must have columns of the same kinds to be merged or compared")
        books = [model._schema.codebook for model in models]
        joint = Codebook.joint(books)
        if max(joint.sizes, default=0) > self._capacity:
            raise ValueError(f"the models have more than {self._capacity} categories of a column in all: raise max_categories")
        aligned = []
        for model, book in zip(models, books, strict=True):
            other = copy(model)
            other._schema = replace(model._schema, codebook=joint)
            learner = other._make_learner(model._runtime.learner.width)
            other._runtime = recode_runtime(model._runtime, learner, joint.columns, book.codes_in(joint))
            aligned.append(other)
        return aligned
