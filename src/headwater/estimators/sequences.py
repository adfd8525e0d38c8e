"""Sequences of symbols become rows of counts here, or are refused in one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headwater.core.values import Settings

if TYPE_CHECKING:
    from headwater.estimators.base import StreamingEstimator

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from headwater.core.batch import SparseRows
from headwater.core.chunk import Chunk, values_of
from headwater.core.validation import check_finite, numeric
from headwater.core.values import Rows, Values


def check_same_symbols(X: Rows, model: StreamingEstimator) -> None:
    """Refuse a chunk of a stream that numbers its symbols in another way than the one that was learned."""
    if not isinstance(X, Chunk) or not model._has_state():
        return
    wrong = _other_symbol(X.schema, getattr(model, "schema_", None))
    if wrong is not None:
        raise ValueError(
            f"the symbols must be numbered as {type(model).__name__} learned them, got {wrong[0]!r:.40} where it has "
            f"{wrong[1]!r:.40}: read them by like=, the model"
        )


def check_merged_symbols(model: StreamingEstimator, other: object) -> None:
    """Refuse to merge models whose symbols were numbered in different ways."""
    wrong = _other_symbol(getattr(other, "schema_", None), getattr(model, "schema_", None))
    if wrong is not None:
        raise ValueError(
            f"models must have one numbering of their symbols, got {wrong[1]!r:.40} and {wrong[0]!r:.40} in one place"
        )


def _other_symbol(found: Settings | None, known: Settings | None) -> tuple[str, str] | None:
    """The first two symbols that differ and have the same number, if there are any."""
    symbols = [(schema or {}).get("symbols") or () for schema in (found, known)]
    return next(((one, other) for one, other in zip(*symbols, strict=False) if one != other), None)


def check_sequences(X: Rows, lengths: Values, name: str = "X") -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the symbols of all sequences, one after the other, and the length of each.

    `X` is a list of sequences (or a series, or anything else that yields them), a matrix with one in each row, or, with
    `lengths`, the symbols of all of them.
    """
    X = values_of(X)
    if issparse(X):
        raise ValueError(f"{name} must hold sequences of symbols, got a sparse matrix")
    if lengths is None:
        X = _list_sequences(X)
        if isinstance(X, list):
            parts = [_symbols(part, f"sequence {index} of {name}") for index, part in enumerate(X)]
            if not parts:
                raise ValueError(f"{name} has 0 sequence(s) while a minimum of 1 is required.")
            return np.concatenate(parts), np.array([len(part) for part in parts])
    array = np.asarray(_numbers(X, name))
    if lengths is None:
        if array.ndim == 0 or array.size == 0:
            raise ValueError(f"{name} has 0 sequence(s) (shape={array.shape}) while a minimum of 1 is required.")
        if array.ndim == 2 and array.shape[1] > 1:
            return _symbols(array.ravel(), name), np.full(len(array), array.shape[1])
        symbols = _symbols(array, name)
        return symbols, np.array([len(symbols)])
    symbols = _symbols(array, name)
    sizes = _symbols(lengths, "lengths")
    if not len(sizes):
        raise ValueError("lengths must name the length of at least one sequence, got none")
    if sizes.sum() != len(symbols):
        raise ValueError(f"lengths must add up to the {len(symbols)} symbols of {name}, got {sizes.sum()}")
    return symbols, sizes


def _list_sequences(X: Rows) -> object:
    """A list of sequences, if that is what this is; symbols and matrices stay as they are."""
    if isinstance(X, Iterator):
        return list(X)
    if hasattr(X, "to_list"):  # a series
        X = X.to_list()
    elif isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1:
        X = list(X)
    if not isinstance(X, list | tuple):
        return X
    return tuple(X) if len(X) and np.isscalar(X[0]) else list(X)


def _symbols(values: Values, name: str) -> NDArray[np.int64]:
    empty = hasattr(values, "__len__") and len(values) == 0
    array = np.empty(0) if empty else np.asarray(_numbers(values, name))
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got shape {array.shape}")
    if not array.size:
        return np.empty(0, dtype=np.int64)
    if array.dtype.kind == "f":
        check_finite(array, name)
        if np.any(array != np.round(array)):
            raise ValueError(f"{name} must hold whole numbers: symbols are counted from 0")
    if array.min() < 0 or array.max() >= 2**31:
        wrong = array.min() if array.min() < 0 else array.max()
        raise ValueError(f"{name} must hold whole numbers from 0 to 2**31 - 1, got {wrong}")
    return array.astype(np.int64)


def _numbers(values: object, name: str) -> object:
    try:
        return numeric(values, name)
    except ValueError:
        found = [values] if isinstance(values, str) else np.asarray(values, dtype=object).ravel()
        text = next((value for value in found if isinstance(value, str)), None)
        if text is None:
            raise
        raise ValueError(
            f"{name} must hold symbols as numbers 0, 1, ..., got the text {text!r:.40}: they are numbered by "
            f"headwater.stream(..., format='sequences')"
        ) from None


def transition_counts(symbols: NDArray[np.int64], lengths: NDArray[np.int64], n_symbols: int) -> SparseRows:
    """Count first symbols and transitions: a row for each sequence, of n_symbols + n_symbols^2 columns.

    Column s is a start with s, column n_symbols * (1 + a) + b a step from a to b.
    """
    width = n_symbols * (n_symbols + 1)
    first = np.zeros(len(symbols), dtype=bool)
    starts = np.cumsum(lengths) - lengths
    first[starts[lengths > 0]] = True
    columns = symbols.copy()
    columns[1:] += np.where(first[1:], 0, n_symbols * (1 + symbols[:-1]))
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    counts = csr_array((np.ones(len(symbols)), columns, indptr), shape=(len(lengths), width))
    counts.sum_duplicates()
    return SparseRows(counts.data, counts.indices.astype(np.int32), counts.indptr.astype(np.int64), width)
