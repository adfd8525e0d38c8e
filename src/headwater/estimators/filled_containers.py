"""Rows whose gaps are filled, in the kind of container that they came in: types, names and observed values stay as they are."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.core.values import AnyArray, Rows

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


def fill_container(X: Rows, missing: NDArray[np.bool_], filled: Array) -> object:
    """Return X with values of `filled` where `missing` says so; whole numbers where the type of a column holds no others.

    Arrays and data frames (pandas, polars, Arrow) come back as they are; what is anything else, such as lists, as an array.
    """
    pandas, polars, arrow = (sys.modules.get(name) for name in ("pandas", "polars", "pyarrow"))
    if pandas is not None and isinstance(X, pandas.DataFrame):
        return _fill_pandas(X, missing, filled)
    if polars is not None and isinstance(X, polars.DataFrame):
        return _fill_polars(X, missing, filled)
    if arrow is not None and isinstance(X, arrow.Table | arrow.RecordBatch):
        return _fill_arrow(X, missing, filled)
    if isinstance(X, np.ndarray) and X.dtype.kind in "fiubO":
        result = np.array(X)
        result[missing] = filled[missing].astype(result.dtype)
        return result
    return filled


def _gap_columns(missing: NDArray[np.bool_]) -> list[int]:
    return [int(column) for column in np.flatnonzero(missing.any(axis=0))]


def _fill_pandas(X: pd.DataFrame, missing: NDArray[np.bool_], filled: Array) -> pd.DataFrame:
    result = X.copy()
    for column in _gap_columns(missing):
        old, gaps = X.iloc[:, column], missing[:, column]
        values = filled[gaps, column]
        new = old.array.copy()
        if old.dtype.type is str:
            new[gaps] = as_text(values)
        else:
            kind = np.dtype(getattr(old.dtype, "numpy_dtype", old.dtype))  # of values, where the type has a mask beside them
            new[gaps] = as_whole(values, kind) if kind.kind in "biu" else values.astype(kind)
        result.isetitem(column, type(old)(new, index=old.index, name=old.name, dtype=old.dtype))
    return result


def _fill_polars(X: pl.DataFrame, missing: NDArray[np.bool_], filled: Array) -> pl.DataFrame:
    result = X.clone()
    for column in _gap_columns(missing):
        old, gaps = X.to_series(column), missing[:, column]
        values = filled[gaps, column]
        if old.dtype.is_integer() or str(old.dtype) == "Boolean":
            values = as_whole(values, np.dtype(str(old.dtype).lower().replace("boolean", "bool")))
        new = type(old)(values=values).cast(old.dtype)
        result = result.with_columns(old.clone().scatter(np.flatnonzero(gaps), new).alias(old.name))
    return result


def _fill_arrow(X: pa.Table, missing: NDArray[np.bool_], filled: Array) -> pa.Table:
    import pyarrow as pa
    from pyarrow import compute, types

    result = X
    for column in _gap_columns(missing):
        old, gaps = X.column(column), missing[:, column]
        values = filled[gaps, column]
        if types.is_boolean(old.type) or types.is_integer(old.type):
            values = as_whole(values, np.dtype(old.type.to_pandas_dtype()))
        whole = old.combine_chunks() if hasattr(old, "combine_chunks") else old
        new = compute.replace_with_mask(whole, pa.array(gaps), pa.array(values).cast(old.type, safe=False))
        result = result.set_column(column, X.schema.field(column), new)
    return result


def as_text(values: AnyArray) -> list[str]:
    """Return values for a column of text, which may hold numbers, too."""
    return [str(value) for value in values.tolist()]


def as_whole(values: Array, kind: np.dtype) -> AnyArray:
    """Return the nearest values that a type for whole numbers, or for true and false, holds."""
    if kind.kind == "b":
        return np.asarray(values >= 0.5)
    limits = np.iinfo(kind)
    rounded = np.rint(values)
    # The largest 64-bit integers are no float64, so ends are put in as integers.
    inside = np.clip(rounded, float(limits.min), np.nextafter(float(limits.max), 0.0)).astype(kind)
    return np.where(rounded >= float(limits.max), limits.max, inside).astype(kind)
