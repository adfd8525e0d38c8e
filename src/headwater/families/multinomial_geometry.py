"""Geometry of count rows: the Hellinger distance, in principal directions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import Batch, SparseRows
from headwater.core.statistics import Array
from headwater.core.values import Matrix
from headwater.kernels.multinomial import columns_times, rows_times

FEW_COLUMNS = 64
DIRECTION_ROWS = 4000
ROUNDS = 5  # three were measurably worse on text


def row_lengths(X: Matrix) -> Array:
    """Return the sum of the counts of each row, dense or sparse."""
    if not isinstance(X, SparseRows):
        return X.sum(axis=1)
    held = X.copy()
    owners = np.repeat(np.arange(len(X)), np.diff(held.indptr))
    return np.asarray(np.bincount(owners, held.data, minlength=len(X)), dtype=np.float64)


@dataclass(frozen=True)
class Geometry:
    """Rows of counts, and the unit of a row's log-probability: a nat for every ten counts."""

    batch: Batch
    n_components: int
    scale: float

    @classmethod
    def of(cls, batch: Batch, n_components: int) -> Geometry:
        return cls(batch, n_components, max(1.0, 0.1 * float(batch.row_weights @ row_lengths(batch.X)) / batch.size))

    def views(self, rows: NDArray[np.int64]) -> tuple[Array, ...]:
        """Some rows as unit vectors whose distance is Hellinger's: with frequent columns unchanged, and damped.

        Others help to find the directions in which rows differ.
        """
        others = np.setdiff1d(np.arange(len(self.batch)), rows)[: max(0, DIRECTION_ROWS - len(rows))]
        X: Matrix = self.batch[np.concatenate([rows, others])].X
        if isinstance(X, SparseRows):
            words, local = np.unique(X.indices, return_inverse=True)  # columns without counts do not matter
            X = replace(X, indices=local.astype(np.int32), width=max(len(words), 1))
            counted = np.bincount(X.indices[X.data > 0.0], minlength=X.width)
            lengths = np.maximum(np.add.reduceat(np.append(X.data, 0.0), X.indptr[:-1]) * (np.diff(X.indptr) > 0), 1e-300)
            roots = replace(X, data=np.sqrt(X.data / np.repeat(lengths, np.diff(X.indptr))))
        else:
            counted = (X > 0.0).sum(axis=0)
            roots = np.sqrt(X / np.maximum(X.sum(axis=1), 1e-300)[:, None])
        rare = np.log((1.0 + len(X)) / (1.0 + counted)) + 0.1
        toned = replace(roots, data=roots.data * rare[X.indices]) if isinstance(X, SparseRows) else roots * rare
        return tuple(_unit(_project_rows(part, self.n_components)[: len(rows)]) for part in (roots, toned))


def _project_rows(rows: Array | SparseRows, n_components: int) -> Array:
    """Rows in the few directions of largest norm (randomised range finder); all of them, if they are few."""
    n, width = rows.shape
    size = min(2 * n_components + 10, 120)
    if width <= max(FEW_COLUMNS, 2 * size):
        return _times(rows, np.eye(width))
    if n <= 2 * size:
        values, vectors = np.linalg.eigh(_times(rows, _times(rows, np.eye(n), transposed=True)))
        return np.ascontiguousarray(vectors * np.sqrt(np.maximum(values, 0.0)))
    basis = np.random.default_rng(0).standard_normal((n, size))
    for _ in range(ROUNDS):
        basis = _orthonormal(_times(rows, _times(rows, basis, transposed=True)))
    image = _times(rows, basis, transposed=True)
    values, vectors = np.linalg.eigh(image.T @ image)
    return np.ascontiguousarray(basis @ (vectors * np.sqrt(np.maximum(values, 0.0))))


def _times(rows: Array | SparseRows, matrix: Array, transposed: bool = False) -> Array:
    """The product of rows, or of their transpose, and a matrix."""
    if not isinstance(rows, SparseRows):
        return (rows.T if transposed else rows) @ matrix
    out = np.zeros((rows.width if transposed else len(rows), matrix.shape[1]))
    product = columns_times if transposed else rows_times
    product(rows.indptr, rows.indices, rows.data, matrix, out)
    return out


def _orthonormal(basis: Array) -> Array:
    """An orthonormal basis of the same span, by the small Gram matrix, which is much faster than QR."""
    for _ in range(2):  # the second time corrects the rounding of the first
        values, vectors = np.linalg.eigh(basis.T @ basis)
        basis = basis @ (vectors / np.sqrt(np.maximum(values, 1e-14 * max(values[-1], 1e-300))))
    return np.ascontiguousarray(basis)


def _unit(rows: Array) -> Array:
    return rows / np.maximum(np.sqrt(np.einsum("ij,ij->i", rows, rows)), 1e-12)[:, None]
