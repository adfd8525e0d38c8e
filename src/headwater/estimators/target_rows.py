"""Rows of inputs with a target as the last column: how they are checked, and made of what the user gave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from sklearn.utils.validation import check_is_fitted, column_or_1d

from headwater.core.batch import Batch
from headwater.core.chunk import refuse_lost
from headwater.core.gapped_rows import GappedRows
from headwater.core.learner import Learner
from headwater.core.statistics import LARGEST, Array
from headwater.core.validation import check_row, check_rows, check_target, check_width, n_dimensions
from headwater.core.values import Matrix, Row, Rows, Values
from headwater.estimators.mixture import MixtureEstimator
from headwater.estimators.traits import Taken
from headwater.families.regression_gaps import NO_GATE


@dataclass(frozen=True)
class Pair:
    """Inputs and their target, not looked at yet."""

    X: Rows
    y: Values


class TargetRows(MixtureEstimator):
    """The part of a mixture with a target that takes rows in."""

    _traits = replace(MixtureEstimator._traits, target_columns=1)

    def _chunk(self, X: Rows, y: Values = None) -> Pair:
        return Pair(X, y)

    def _take(
        self, X: Taken, sample_weight: Values, labels: Values, reset: bool, going_on: bool | None = None
    ) -> tuple[Batch, Learner]:
        refuse_lost(X.X)
        return super()._take(X, sample_weight, labels, reset, going_on)

    def _checked(self, chunk: Taken) -> Array | GappedRows:
        owner = type(self).__name__
        inputs = self._checked_inputs(chunk.X)
        y: Matrix = chunk.y
        if getattr(y, "ndim", 1) == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        target = check_target(y, len(inputs), owner, gaps=self._takes_gaps)
        if isinstance(inputs, GappedRows):
            return GappedRows.of(np.column_stack([inputs.values, target]))
        rows = np.column_stack([inputs, target])
        return GappedRows.of(rows) if self._takes_gaps and np.isnan(target).any() else rows

    def _checked_inputs(self, X: Rows) -> Array | GappedRows:
        """Return rows of inputs, or refuse them; some may be missing where the model knows how inputs are spread."""
        inputs = check_rows(X, owner=type(self).__name__, gaps=self._traits.takes_gaps)
        if isinstance(inputs, GappedRows) and not self._takes_gaps:
            row = int(np.argmax(inputs.missing.any(axis=1)))
            raise ValueError(f"X contains NaN (first in row {row}): {NO_GATE}")
        return inputs

    def _checked_one(self, x: Row, names: Sequence[str] | None, width: int | None) -> Array | GappedRows:
        if not isinstance(x, Pair):
            return check_row(x, names, width)
        if self._takes_gaps:
            return self._checked_gapped_one(x, names, width)
        inputs, y = check_row(x.X, names, width), x.y
        row = np.empty((1, inputs.shape[1] + 1))
        row[:, :-1] = inputs
        if not isinstance(y, float) or not -LARGEST <= y <= LARGEST:
            y = check_target(y if y is None or n_dimensions(y) else [y], 1, type(self).__name__)[0]
        row[0, -1] = y
        return row

    def _checked_gapped_one(self, x: Pair, names: Sequence[str] | None, width: int | None) -> Array | GappedRows:
        inputs = check_row(x.X, names, width, gaps=True)
        values, y = inputs.values if isinstance(inputs, GappedRows) else inputs, x.y
        target = check_target([np.nan if y is None else y], 1, type(self).__name__, gaps=True)
        rows = np.column_stack([values, target])
        return GappedRows.of(rows) if np.isnan(rows).any() else rows

    def _aligned(self, rows: Matrix) -> Matrix:
        if rows.shape[1] - 1 != self.n_features_in_:
            check_width(np.empty((0, rows.shape[1] - 1)), self.n_features_in_, type(self).__name__)
        return rows

    def _check_stored(self, X: Matrix, width: int) -> None:
        gapped = isinstance(X, GappedRows)
        values = X.values if gapped else X
        checked = self._checked(Pair(values[:, :-1], values[:, -1]))
        if isinstance(checked, GappedRows) and not gapped:
            raise ValueError("it holds rows with missing values as if they had none")

    def _note_columns(self, chunk: Taken, reset: bool) -> None:
        super()._note_columns(chunk.X if isinstance(chunk, Pair) else chunk, reset)

    def _inputs(self, X: Rows) -> Array | GappedRows:
        """Return rows of inputs alone."""
        check_is_fitted(self)
        inputs = self._checked_inputs(X)
        check_width(inputs, self.n_features_in_, type(self).__name__)
        self._note_columns(X, reset=False)
        return inputs
