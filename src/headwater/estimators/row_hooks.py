"""Hooks for the rows of an estimator, each with a default that a subclass may override."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from headwater.core.batch import Batch, SparseRows, without_empty
from headwater.core.chunk import Chunk
from headwater.core.gapped_rows import GappedRows
from headwater.core.learner import Learner
from headwater.core.statistics import LIGHTEST
from headwater.core.validation import check_names, check_row, check_rows, check_width
from headwater.core.values import Matrix, Row, Rows, Values
from headwater.estimators.traits import Taken, Traits


def refuse_gaps(learner: Learner) -> None:
    """Refuse to learn from rows with gaps by an algorithm that cannot."""
    if learner.algorithm.projection is not None:
        raise ValueError(
            f"algorithm {learner.algorithm.word!r} learns from complete rows, got rows with missing values: drop them, or "
            f"learn by 'auto', 'online-em', 'online-vb' or 'quasi-bayes'"
        )
    problem = getattr(getattr(learner.model, "family", None), "no_predictive_with_gaps", "")
    if problem and learner.algorithm.readout == "predictive":
        raise ValueError(problem)


def telling_rows(batch: Batch, least: int = 1) -> tuple[Batch, NDArray[np.int64]]:
    """Return the rows that have a value, and their places if others have none; fewer than `least` are refused."""
    found, places = without_empty(batch)
    if len(found) < least <= len(batch):
        raise ValueError("X must have at least one row with a value, got missing values only")
    return found, places


def refuse_batch_algorithm(learner: Learner) -> None:
    """Refuse to stream by an algorithm that needs all rows at once."""
    if not learner.algorithm.online:
        raise ValueError(
            f"algorithm {learner.algorithm.word!r} needs all rows at once: call fit, or stream with its online twin "
            f"{learner.algorithm.twin!r}"
        )


def refuse_no_weight(weight: float, batch: Batch) -> None:
    """Refuse to count rows for so little that they would not be there."""
    if weight * batch.size < LIGHTEST:
        raise ValueError(f"weight must leave the rows a weight of at least {LIGHTEST:g}, got {weight:g} of {batch.size:g}")


ACCEPT = "accept"  # the word of the parameter `missing`


class RowHooks(BaseEstimator, ABC):
    """How rows are taken, checked and named."""

    _traits: ClassVar[Traits] = Traits()

    n_features_in_: int

    def _chunk(self, X: Rows, y: Values = None) -> Taken:
        """Return what is learned from: the rows, with their target if the model has one."""
        return X

    def _as_rows(self, X: Rows, learning: bool, anew: bool = False) -> Rows:
        """Return what is given as rows: counts of words, if X holds documents; `anew`, of a model that forgets all it knows."""
        return X

    @property
    def _takes_gaps(self) -> bool:
        """Whether values may be missing."""
        return self._traits.takes_gaps and getattr(self, "missing", ACCEPT) == ACCEPT

    def _checked(self, X: Taken) -> Matrix:
        """Return the rows of a chunk, or refuse them in one sentence."""
        return check_rows(X, owner=type(self).__name__, gaps=self._takes_gaps)

    def _checked_one(self, x: Row, names: Sequence[str] | None, width: int | None) -> Matrix:
        """Return one row as a chunk, or refuse it."""
        return check_row(x, names, width, self._takes_gaps)

    def _aligned(self, rows: Matrix) -> Matrix:
        """Return the rows in the width of the model, or refuse them."""
        check_width(rows, self.n_features_in_, type(self).__name__)
        return rows

    def _note_columns(self, X: Taken, reset: bool) -> None:
        """Take note of the number and names of the columns, or refuse others than those known."""
        note_schema(self, X, reset)
        if not isinstance(X, Chunk) or X.columns is None:
            validate_data(self, X.X if isinstance(X, Chunk) else X, skip_check_array=True, reset=reset)
        elif reset:
            validate_data(self, X.X, skip_check_array=True, reset=True)
            self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        else:
            check_names(X.columns, getattr(self, "feature_names_in_", None), type(self).__name__)

    def _note_learned(self, X: Taken, anew: bool) -> None:
        """Take note of rows that were learned: new columns, and their type; `anew`, if they are the first."""

    def _in_doubles(self) -> Self:
        """Return the model with learned attributes that are not rounded to the type of its rows."""
        return self

    def _row_numbers(self, X: Taken) -> list[str]:
        """Names of columns that number the rows, where a model should not learn them."""
        return []

    def _find_kinds(self, X: Rows) -> Any:
        """Decide what the columns of a table are, by its first rows, and return the schema; None if rows are numbers."""
        return None

    def _note_categories(self, X: Rows) -> None:
        """Take note of the categories that a chunk of a table has, without learning it."""

    def _features_of(self, width: int) -> int:
        """Number of features of a model whose rows have this width."""
        return width - self._traits.target_columns

    def _width_with(self, features: int) -> int:
        """Width of the rows of a model that has so many features."""
        return features + self._traits.target_columns

    def _check_merge(self, other: Self) -> None:
        """Refuse to be merged with another model of this class, where more than parameters must agree."""

    def _share_columns(self, other: Self) -> None:
        """Take over the columns of another model, if the learner depends on them."""

    def _aligned_models(self, models: Sequence[Self]) -> list[Self]:
        """Return models that are to be merged, of which this is the first, in one width and with one numbering of symbols."""
        width = max(model.n_features_in_ for model in models)
        if not all(model._vocabulary_is_open for model in models):
            return list(models)
        return [model if model.n_features_in_ == width else model._widened(width) for model in models]

    def _keep_start(self) -> None:
        """Keep beside the parameters what learning anew begins with, where that is something that was learned."""

    def _check_stored(self, X: Matrix, width: int) -> None:
        """Refuse rows of a model file that this model could not have been given."""
        if isinstance(X, SparseRows):
            self._checked(csr_array((X.data, X.indices, X.indptr), shape=X.shape))
        elif self._traits.takes_gaps:  # whatever `missing` is now
            gapped = isinstance(X, GappedRows)
            check_rows(X.values if gapped else X, gaps=gapped)
        elif isinstance(X, GappedRows):
            raise ValueError(f"{type(self).__name__} takes no rows with gaps")
        elif not np.allclose(self._checked(X), X, rtol=1e-9, atol=0.0, equal_nan=True):
            raise ValueError("it holds rows that are not as this model keeps them")

    def _check_kept(self) -> None:
        """Refuse what a model file keeps beside the state, if this model could not have kept it."""

    def _patience(self, rows: int) -> tuple[int, float]:
        """Most passes of a `fit`, and the gain per row below which it ends."""
        return self.max_iter, self.tol

    @property
    def _vocabulary_is_open(self) -> bool:
        """Whether chunks may become wider."""
        return False

    def _widened(self, width: int) -> Self:
        """Return a copy that knows more columns; the model itself, if its chunks never become wider."""
        return self


def note_schema(model: RowHooks, X: Rows, reset: bool) -> None:
    """Take note of how the rows were made of what was read, if they came from a stream."""
    if reset:
        model.__dict__.pop("schema_", None)
        if isinstance(X, Chunk) and X.schema is not None:
            model.schema_ = X.schema
