"""Rows of counts: dense or sparse rows become batches, or are refused in one sentence."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from headwater.core.batch import SparseRows
from headwater.core.chunk import values_of
from headwater.core.statistics import LARGEST_COUNT, LEAST_COUNT, Array
from headwater.core.validation import check_finite, check_row, check_rows, numeric, refuse_unreadable
from headwater.core.values import Matrix, Row, Rows

COLUMN_LIMIT = 2**31  # columns of sparse rows, whose places are 32-bit integers


def check_counts(X: Rows, name: str = "X", owner: str = "this model") -> Array | SparseRows:
    """Return rows of counts, or of other weights that are not negative: a matrix, or SparseRows if they are sparse."""
    matrix = values_of(X)
    if isinstance(matrix, SparseRows):
        return matrix
    refuse_unreadable(matrix, name)
    if hasattr(matrix, "sparse") and all(str(kind).startswith("Sparse") for kind in getattr(matrix, "dtypes", ("",))):
        matrix = matrix.sparse.to_coo()  # a pandas frame of sparse columns
    if not issparse(matrix):
        dense = check_rows(matrix, name, owner)
        _check_count_values(dense, name, owner)
        return dense
    shape: tuple[int, ...] = matrix.shape
    if len(shape) != 2:
        raise ValueError(f"{name} must have two dimensions (rows, columns), got {len(shape)}")
    if 0 in shape:
        what = "sample(s)" if shape[0] == 0 else "feature(s)"
        raise ValueError(f"{name} has 0 {what} (shape={shape}) while a minimum of 1 is required.")
    if shape[1] >= COLUMN_LIMIT:
        raise ValueError(f"{name} must have fewer than 2**31 columns, got {shape[1]}")
    if matrix.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} must hold real numbers, got {matrix.dtype}")
    if matrix.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold numbers, got {matrix.dtype}")
    _check_sparse(matrix, name)
    rows = (
        matrix if matrix.format == "csr" else matrix.astype(np.float64).tocsr()
    )  # as small integers, duplicates might overflow
    data, indices, indptr = rows.data, rows.indices, rows.indptr
    data, indices = data[: indptr[-1]], indices[: indptr[-1]]
    if not rows.has_canonical_format:
        rows = csr_array((data.astype(np.float64), indices, indptr), shape=shape, copy=True)
        rows.sum_duplicates()
        data, indices, indptr = rows.data, rows.indices, rows.indptr
    found = SparseRows(
        np.ascontiguousarray(data, dtype=np.float64),
        np.ascontiguousarray(indices, dtype=np.int32),
        np.ascontiguousarray(indptr, dtype=np.int64),
        int(shape[1]),
    )
    wrong = np.flatnonzero(~_are_counts(found.data))
    if len(wrong):
        row = int(np.searchsorted(found.indptr, wrong[0], side="right")) - 1
        _check_count_values(found[row : row + 1].copy().data, name, owner, row)
    return found


def _are_counts(rows: Array) -> NDArray[np.bool_]:
    """Which numbers are 0, or counts that are neither too small nor too large."""
    return np.asarray((rows == 0.0) | ((rows >= LEAST_COUNT) & (rows <= LARGEST_COUNT)))


def _check_count_values(rows: Array, name: str, owner: str, row: int | None = None) -> None:
    """Refuse values that are not counts; the message names the first such row."""
    sound = _are_counts(rows)
    if sound.all():
        return
    check_finite(rows, name, row)
    where = int(np.argwhere(~sound)[0][0]) if row is None else row
    if rows.min() < 0.0:
        where = int(np.argwhere(rows < 0.0)[0][0]) if row is None else row
        raise ValueError(f"Negative values in data passed to {owner}: {name} must hold counts (first in row {where})")
    if rows.max() <= LARGEST_COUNT:
        raise ValueError(
            f"{name} contains a count of {rows[~sound].flat[0]:.3g} (first in row {where}), but none below {LEAST_COUNT:g} "
            f"other than 0 is allowed"
        )
    raise ValueError(
        f"{name} contains a count of {rows.max():.3g} (first in row {where}), but no more than {LARGEST_COUNT:g} is allowed"
    )


def _check_sparse(X: Matrix, name: str) -> None:
    """Refuse a sparse matrix whose parts do not fit together: converting it could read anywhere."""
    shape, kind = X.shape, X.format
    if kind == "coo":
        within = all(
            len(places) == len(X.data) and (not len(places) or (places.min() >= 0 and places.max() < size))
            for places, size in zip(X.coords, shape, strict=True)
        )
        if not within:
            raise ValueError(f"{name} is a damaged sparse matrix: it names rows or columns that it does not have")
    elif kind in ("csr", "csc", "bsr"):
        major, minor = (shape[1], shape[0]) if kind == "csc" else shape
        if kind == "bsr":
            major, minor = major // X.blocksize[0], minor // X.blocksize[1]
        indices, indptr = X.indices, X.indptr
        if (
            len(indptr) != major + 1
            or indptr[0] != 0
            or np.any(np.diff(indptr) < 0)
            or indptr[-1] > min(len(indices), len(X.data))
        ):
            raise ValueError(f"{name} is a damaged sparse matrix: its pointers do not rise from 0 to the number of values")
        indices = indices[: indptr[-1]]
        if indices.size and (indices.min() < 0 or indices.max() >= minor):
            raise ValueError(f"{name} is a damaged sparse matrix: it names rows or columns that it does not have")


def check_count_row(x: Row, names: Sequence[str] | None, width: int | None, owner: str) -> Array | SparseRows:
    """Return one row of counts: an array, a sparse row, or a mapping from column names to counts."""
    if issparse(x):
        rows = check_counts(x, "the row", owner)
        if len(rows) != 1 or (width is not None and rows.shape[1] != width):
            raise ValueError(f"the row must be one row of {width or 'any number of'} columns, got shape {rows.shape}")
        return rows
    row = check_row(x, names, width)
    _check_count_values(row, "the row", owner)
    return row


def check_count_items(
    x: Mapping[Hashable, object], places: Mapping[Hashable, int], owner: str, width: int | None = None
) -> SparseRows:
    """Return one row of counts from a mapping of column names; missing columns are 0."""
    unknown = [name for name in x if name not in places]
    if unknown:
        raise ValueError(
            f"the row has columns that this model does not know: {unknown[:5]}{' ...' if len(unknown) > 5 else ''}"
        )
    values = np.asarray(numeric(list(x.values()), "the row"), dtype=np.float64).reshape(-1) if x else np.empty(0)
    if len(values) != len(x):
        raise ValueError("the row must have one number for each of its columns")
    _check_count_values(values, "the row", owner, 0)
    columns = np.array([places[name] for name in x], dtype=np.int32)
    order = np.argsort(columns)
    return SparseRows(values[order], columns[order], np.array([0, len(values)]), len(places) if width is None else width)
