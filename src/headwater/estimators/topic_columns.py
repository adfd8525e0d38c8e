"""The columns of a topic model: words that documents are counted by, which may become more."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Self

import numpy as np

from headwater.core.batch import SparseRows, drop_zeros
from headwater.core.count_validation import check_count_items, check_count_row, check_counts
from headwater.core.learner import Learner
from headwater.core.validation import check_width
from headwater.core.values import Matrix, Row
from headwater.estimators.calls import learns
from headwater.estimators.documents import DocumentReader
from headwater.estimators.factor_model import FactorEstimator
from headwater.estimators.traits import Taken
from headwater.models.topics import TopicParameters

if TYPE_CHECKING:
    from headwater.core.state import State


class TopicColumns(DocumentReader, FactorEstimator):
    """Documents in, as texts or counts; with an open vocabulary new words get new columns on the right."""

    vocabulary: Literal["fixed", "open"]

    def _checked(self, X: Taken) -> Matrix:
        rows = check_counts(X, owner=type(self).__name__)
        return rows.without_zeros() if isinstance(rows, SparseRows) else drop_zeros(rows)

    def _checked_one(self, x: Row, names: Sequence[str] | None, width: int | None) -> Matrix:
        if isinstance(x, str):
            return self._one_document(x)
        if isinstance(x, Mapping) and (names is not None or self.vocabulary == "open"):
            if width is None and not x:
                raise ValueError("the row must have at least one word, since this model knows none, got none")
            if width is not None and (names is None or len(names) < width):
                unnamed = width - (0 if names is None else len(names))
                raise ValueError(f"the row must be an array, since {unnamed} columns of this model have no name")
            places, new = self._places(names), {}
            if self.vocabulary == "open":
                unknown = [name for name in x if name not in places]
                new = {name: place for place, name in enumerate(unknown, start=len(places))}
            found = check_count_items(x, ChainMap(new, places), type(self).__name__, len(places) + len(new))
            return found.without_zeros()
        row = check_count_row(x, names, None if self.vocabulary == "open" else width, type(self).__name__)
        rows = row.without_zeros() if isinstance(row, SparseRows) else drop_zeros(row)
        return rows if width is None else self._aligned(rows)

    def _aligned(self, rows: SparseRows) -> SparseRows:
        if self.vocabulary == "open":
            return rows if rows.width >= self.n_features_in_ else rows.widened(self.n_features_in_)
        check_width(rows, self.n_features_in_, type(self).__name__)
        return rows

    def _note_columns(self, X: Taken, reset: bool) -> None:
        if reset or self.vocabulary == "fixed":
            super()._note_columns(X, reset)
            return
        names, known = getattr(X, "columns", None), getattr(self, "feature_names_in_", None)
        if names is not None and known is not None:
            common = min(len(names), len(known))
            if list(names)[:common] != list(known)[:common]:
                raise ValueError("the columns of an open vocabulary must begin with those known, in their order; got others")

    def _note_learned(self, X: Taken, anew: bool) -> None:
        self.n_features_in_ = self._runtime.learner.width
        names = getattr(X, "columns", None)
        if self._vocabulary_is_open and names is not None and len(names) > len(getattr(self, "feature_names_in_", names)):
            self.feature_names_in_ = np.asarray(names, dtype=object)

    @learns
    def learn_one(self, x: Row) -> Self:
        """Learn one document, given as a text, an array of counts or a mapping from words to counts.

        Parameters
        ----------
        x : str, array-like of shape (n_features,) or mapping
            The document; with an open vocabulary it may have words that were never seen.

        Returns
        -------
        self : object
            The estimator.
        """
        return self._learn_one(x)

    def _learn_one(self, x: Row) -> Self:
        known = getattr(self, "feature_names_in_", None)
        super()._learn_one(x)
        self.n_features_in_ = self._runtime.learner.width
        if isinstance(x, Mapping) and known is not None and len(known) < self.n_features_in_:
            places = self._places(known)
            names = np.empty(self.n_features_in_, dtype=object)
            names[: len(known)] = known
            names[len(known) :] = [name for name in x if name not in places]
            grown = {**places, **{name: place for place, name in enumerate(names[len(known) :], start=len(known))}}
            self.feature_names_in_, self._runtime.cache.places = names, (names, grown)
        return self

    def _seen_by(self, width: int) -> TopicParameters:
        if width <= self.n_features_in_:
            return self._read().parameters
        return self._reader.parameters_at(width)

    def _quick_parameters(self, width: int) -> TopicParameters:
        return self._seen_by(width) if width > self.n_features_in_ else super()._quick_parameters(width)

    def _resumed(self, learner: Learner) -> State | None:
        """The state that a `fit` goes on from; an open vocabulary may have grown since."""
        if self.vocabulary == "open" and learner.width > self.n_features_in_:
            return self._runtime.with_learner(learner, {}).state
        return super()._resumed(learner)

    @property
    def _vocabulary_is_open(self) -> bool:
        return self.vocabulary == "open"

    def _widened(self, width: int) -> Self:
        """A copy that knows more columns."""
        wide, runtime = copy(self), self._runtime
        wide._runtime = runtime.with_learner(replace(self._learner, width=width), runtime.made_with)
        wide.n_features_in_ = width
        return wide
