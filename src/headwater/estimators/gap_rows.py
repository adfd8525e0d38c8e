"""Check rows with gaps, and return them as an array with NaN where a value is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from headwater.core.chunk import values_of
from headwater.core.gapped_rows import GappedRows
from headwater.core.statistics import Array
from headwater.core.validation import check_rows
from headwater.core.values import Rows

if TYPE_CHECKING:
    from headwater.estimators.estimator_core import EstimatorCore


def check_gap_rows(model: EstimatorCore, X: Rows) -> Array:
    """Return rows as the model knows its columns, a float64 array with NaN for what is missing, or refuse them."""
    check_is_fitted(model)
    values = values_of(X)
    if issparse(values):
        raise TypeError(
            f"X is a sparse matrix, in which gaps and zeros look alike, but {type(model).__name__} needs dense rows: "
            f"pass X.toarray()"
        )
    rows = read_gaps(values, type(model).__name__)
    model._note_columns(X, reset=False)
    return np.array(model._aligned(rows))  # a copy, since answers are computed later


def read_gaps(X: Rows, owner: str) -> Array:
    """Return rows as float64 with NaN for NaN, None, pandas.NA and null, or refuse them."""
    rows = check_rows(X, owner=owner, gaps=True)
    return rows.values if isinstance(rows, GappedRows) else np.asarray(rows)
