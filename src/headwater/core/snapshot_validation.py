"""Complex snapshots of sensors, and angles: they are checked, or refused in one sentence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from headwater.core.chunk import values_of
from headwater.core.statistics import LARGEST, Array
from headwater.core.validation import check_finite, check_row_shape, check_shape, numeric, refuse_unreadable, row_values
from headwater.core.values import AnyArray, Row, Rows, Values


def check_snapshots(X: Rows, name: str = "X", owner: str = "this model") -> NDArray[np.complex128]:
    """Return X as a C-ordered matrix of complex snapshots, with NaN in either part where a sensor is missing."""
    X = values_of(X)
    if issparse(X):
        raise TypeError(f"{name} is a sparse matrix, but {owner} needs dense snapshots, NaN where a sensor is missing")
    array = to_complex(X, name)
    check_shape(array, name)
    if array.shape[1] == 1:
        raise ValueError(f"{name} must have a column for each sensor, and at least 2 of them, got 1 feature(s)")
    return _check_snapshot_values(array, name)


def check_snapshot(x: Row, names: Sequence[str] | None, width: int | None) -> NDArray[np.complex128]:
    """Return one snapshot, an array or a mapping from names of sensors to values, as a matrix with one row."""
    row = to_complex(row_values(x, names, width), "the row")
    check_row_shape(row, width)
    if row.size == 1:
        raise ValueError("the row must have at least 2 sensors, got 1")
    return _check_snapshot_values(row.reshape(1, -1), "the row")


def _check_snapshot_values(array: AnyArray, name: str) -> NDArray[np.complex128]:
    """Return the snapshots, or refuse infinity and values that are too large."""
    rows = np.ascontiguousarray(array, dtype=np.complex128)
    parts = rows.view(np.float64)
    if np.fmin.reduce(parts, axis=None) >= -LARGEST and np.fmax.reduce(parts, axis=None) <= LARGEST:
        return rows
    check_finite(np.nan_to_num(parts, nan=0.0, posinf=np.inf, neginf=-np.inf), name)
    return rows


def to_complex(values: Values, name: str) -> AnyArray:
    """Return an array of complex numbers; real ones are refused, since narrow-band snapshots are complex."""
    refuse_unreadable(values, name)
    try:
        array = values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)
        if array.dtype.kind == "O":
            array = array.astype(np.complex128)
    except OverflowError as error:
        raise ValueError(f"{name} contains a whole number too large for float64: rescale it") from error
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name} cannot be read as an array of complex numbers: {' '.join(str(error).split())}") from error
    if array.dtype.kind in "fiub":
        raise ValueError(
            f"{name} must hold complex snapshots, got {array.dtype}: of real signals take one frequency of a short-time "
            f"Fourier transform, or the analytic signal (scipy.signal.hilbert)"
        )
    if array.dtype.kind != "c":
        raise ValueError(f"{name} must hold complex numbers, got {array.dtype}")
    return array


def check_angles(angles: Values) -> Array:
    """Return the angles to search: the first and the last, or a grid."""
    if angles is None:
        return np.array([-np.pi, np.pi])
    found = np.asarray(numeric(angles, "angles"), dtype=np.float64)
    if found.ndim != 1 or found.size < 2:
        raise ValueError(f"angles must be the first and the last, or a grid of at least three, got shape {found.shape}")
    check_finite(found, "angles")
    if np.any(np.diff(found) <= 0.0):
        raise ValueError("angles must rise from each to the next")
    return found
