"""Rows with gaps as a user hands them in: checked, as an array with NaN where a value is missing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.estimators.base import StreamingEstimator

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from headwater.core.chunk import values_of
from headwater.core.statistics import LARGEST, Array
from headwater.core.validation import check_finite, check_shape, numeric, refuse_unreadable
from headwater.core.values import AnyArray, Rows


def check_gap_rows(model: StreamingEstimator, X: Rows) -> Array:
    """Return rows as the model knows its columns, a float64 array with NaN for what is missing, or refuse them."""
    check_is_fitted(model)
    values = values_of(X)
    if issparse(values):
        raise TypeError(
            f"X is a sparse matrix, in which gaps and zeros look alike, but {type(model).__name__} needs dense rows: "
            f"pass X.toarray()"
        )
    array = read_gaps(values, "X")
    check_shape(array, "X")
    model._note_columns(X, reset=False)
    rows = model._aligned(np.array(array, dtype=np.float64))
    known = np.where(np.isnan(rows), 0.0, rows)
    if np.abs(known).max() > LARGEST:
        check_finite(known, "X")
    return np.asarray(rows)


def read_gaps(values: object, name: str) -> AnyArray:
    """Return an array of numbers with NaN for NaN, None, pandas.NA and null; refuse text."""
    refuse_unreadable(values, name)
    pandas = sys.modules.get("pandas")
    if pandas is not None:
        if isinstance(values, pandas.DataFrame):
            try:
                return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
            except (TypeError, ValueError):
                return numeric(values, name)  # which says what is wrong
        array = np.asarray(values) if not hasattr(values, "to_numpy") else values
        if isinstance(array, np.ndarray) and array.dtype == object:
            known = array.copy()
            known[np.asarray(pandas.isna(array), dtype=bool)] = None
            return numeric(known, name)
    return numeric(values, name)
