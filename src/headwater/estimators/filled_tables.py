"""Tables whose gaps are filled, in the kind of container that they came in: categories stay categories, flags stay flags."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.core.values import AnyArray, Rows
from headwater.estimators.filled_containers import as_text, as_whole
from headwater.estimators.table_schema import TableSchema

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


def fill_table(X: Rows, missing: NDArray[np.bool_], filled: Array, schema: TableSchema) -> object:
    """Return X with what `filled`, rows of numbers and codes, says where `missing` is true.

    Arrays of objects or numbers and data frames (pandas, polars, Arrow) come back as they are; what is anything else, such as
    lists and chunks, as an array.
    """
    pandas, polars, arrow = (sys.modules.get(name) for name in ("pandas", "polars", "pyarrow"))
    words = schema.words(filled)
    if pandas is not None and isinstance(X, pandas.DataFrame):
        result = X.copy()
        for column, gaps in _gap_columns(missing):
            result.isetitem(column, _fill_pandas(X.iloc[:, column], gaps, words[column][gaps]))
        return result
    if polars is not None and isinstance(X, polars.DataFrame):
        result = X.clone()
        for column, gaps in _gap_columns(missing):
            result = result.with_columns(_fill_polars(X.to_series(column), gaps, words[column][gaps]))
        return result
    if arrow is not None and isinstance(X, arrow.Table | arrow.RecordBatch):
        result = X
        for column, gaps in _gap_columns(missing):
            new = _fill_arrow(X.column(column), gaps, words[column][gaps])
            result = result.set_column(column, X.schema.field(column).with_type(new.type), new)
        return result
    if isinstance(X, np.ndarray) and X.dtype.kind in "fiubO":
        result = np.array(X)
        for column, gaps in _gap_columns(missing):
            result[gaps, column] = words[column][gaps].astype(result.dtype)
        return result
    return schema.table(filled)


def _gap_columns(missing: NDArray[np.bool_]) -> list[tuple[int, NDArray[np.bool_]]]:
    return [(int(column), missing[:, column]) for column in np.flatnonzero(missing.any(axis=0))]


def _fill_pandas(old: pd.Series, gaps: NDArray[np.bool_], values: AnyArray) -> pd.Series:
    """A column of pandas; a type for categories gets those that it lacks, if they were learned elsewhere."""
    if hasattr(old.dtype, "categories"):
        new = [value for value in dict.fromkeys(values.tolist()) if value not in old.cat.categories]
        old = old.cat.add_categories(new) if new else old
    kind = getattr(old.dtype, "numpy_dtype", old.dtype)
    array = old.array.copy()
    if old.dtype.type is str:
        array[gaps] = as_text(values)
    else:
        array[gaps] = _suited(values, kind) if isinstance(kind, np.dtype) else values.tolist()
    return type(old)(array, index=old.index, name=old.name, dtype=old.dtype)


def _fill_polars(old: pl.Series, gaps: NDArray[np.bool_], values: AnyArray) -> pl.Series:
    """A column of polars; one of nulls takes the type of what is filled in, an Enum gets the categories that it lacks."""
    kind = old.dtype
    if kind.is_integer():
        values = as_whole(values.astype(float), np.dtype(str(kind).lower()))
    new = type(old)(values=values.tolist())
    if kind.is_(type(old)(values=[None]).dtype):  # nulls only
        return old.cast(new.dtype).scatter(np.flatnonzero(gaps), new).alias(old.name)
    if hasattr(kind, "categories") and not str(kind).startswith("Categorical"):
        enum: Any = type(kind)
        known = kind.categories.to_list()
        kind = enum([*known, *(value for value in dict.fromkeys(values.tolist()) if value not in known)])
        old = old.cast(kind)
    text = new.cast(kind) if not kind.is_nested() else new
    if str(kind).startswith("Categorical"):  # whose values are those of one pool
        return old.cast(new.dtype).scatter(np.flatnonzero(gaps), new).cast(kind).alias(old.name)
    return old.clone().scatter(np.flatnonzero(gaps), text).alias(old.name)


def _fill_arrow(old: pa.Array, gaps: NDArray[np.bool_], values: AnyArray) -> pa.Array:
    import pyarrow as pa
    from pyarrow import compute, types

    whole = old.combine_chunks() if hasattr(old, "combine_chunks") else old
    kind = whole.type
    plain = whole.dictionary_decode() if types.is_dictionary(kind) else whole
    if types.is_integer(plain.type):
        values = as_whole(values.astype(float), np.dtype(plain.type.to_pandas_dtype()))
    told = pa.array(values.tolist())
    if types.is_null(plain.type):
        plain = plain.cast(told.type)
    new = compute.replace_with_mask(plain, pa.array(gaps), told.cast(plain.type, safe=False))
    return new.dictionary_encode().cast(kind) if types.is_dictionary(kind) else new


def _suited(values: AnyArray, kind: np.dtype) -> AnyArray:
    """Values of a column in a type of NumPy."""
    if kind.kind in "iu":
        return as_whole(values.astype(float), kind)
    return values.astype(kind)
