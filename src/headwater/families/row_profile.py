"""Profiles: rows as a few numbers each, by which rows that were marked are compared with others, whatever a model learns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import SparseRows
from headwater.core.gapped_rows import GappedRows
from headwater.core.statistics import Array
from headwater.core.values import Matrix

PROFILE_WIDTH = 32
LARGEST = 1e249
AT_ONCE = 2**15  # names whose signs are held at a time: 8 MB
_ODD = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB], dtype=np.uint64)  # of splitmix64


class RowProfile:
    """Capability of a family: profiles of its rows."""

    def profile(self, X: Matrix) -> Array:
        """Return the profiles (n, 32) of rows; by default their values, or random projections of wider rows. NaN is unknown."""
        return profile_of_values(X.values if isinstance(X, GappedRows) else np.asarray(X))


def profile_of_values(values: Array) -> Array:
    """Return profiles of rows of numbers."""
    rows = np.clip(np.asarray(values, dtype=np.float64), -LARGEST, LARGEST)
    width = rows.shape[1]
    if width > PROFILE_WIDTH:  # of compressed values, so that no column drowns the others
        small = np.where(np.isnan(rows), 0.0, np.sign(rows) * np.log1p(np.abs(rows)))
        return small @ signs(np.arange(width))
    return padded(rows)


def padded(rows: Array) -> Array:
    """Return profiles of rows of fewer columns: the others are unknown."""
    return np.hstack([rows, np.full((len(rows), PROFILE_WIDTH - rows.shape[1]), np.nan)])


def profile_of_shares(X: Matrix) -> Array:
    """Return profiles of rows of counts: projections of the square roots of their shares."""
    if not isinstance(X, SparseRows):
        total = np.maximum(X.sum(axis=1), 1e-300)
        return np.asarray(np.sqrt(np.maximum(X, 0.0) / total[:, None]) @ signs(np.arange(X.shape[1])))
    found, lengths = np.zeros((len(X), PROFILE_WIDTH)), np.diff(X.indptr)
    held = slice(int(X.indptr[0]), int(X.indptr[-1]))
    rows, words, counts = np.repeat(np.arange(len(X)), lengths), X.indices[held], np.maximum(X.data[held], 0.0)
    total = np.maximum(np.bincount(rows, counts, len(X)), 1e-300)
    for begin in range(0, len(words), AT_ONCE):
        part = slice(begin, begin + AT_ONCE)
        roots = np.sqrt(counts[part] / total[rows[part]])
        np.add.at(found, rows[part], roots[:, None] * signs(words[part]))
    return found


def profile_of_categories(codes: Array) -> Array:
    """Return profiles of rows of categories: projections of their indicators."""
    n, width = codes.shape
    found = np.zeros((n, PROFILE_WIDTH))
    for column in range(width):
        known = np.isfinite(codes[:, column])
        found[known] += signs(codes[known, column].astype(np.int64) + (column << 32))
    return found / np.sqrt(max(width, 1))


def signs(names: NDArray[np.integer]) -> Array:
    """Return random signs (n, 32) of each name, always the same."""
    with np.errstate(over="ignore"):
        mixed = (names.astype(np.int64).astype(np.uint64) + np.uint64(1)) * _ODD[0]
        mixed = (mixed ^ (mixed >> np.uint64(30))) * _ODD[1]
        mixed = (mixed ^ (mixed >> np.uint64(27))) * _ODD[2]
    bits = (mixed[:, None] >> np.arange(20, 20 + PROFILE_WIDTH, dtype=np.uint64)) & np.uint64(1)
    return np.asarray(2.0 * bits - 1.0)
