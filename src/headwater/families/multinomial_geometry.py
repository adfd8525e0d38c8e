"""How count rows lie to one another: the Hellinger distance, in the directions in which they differ most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags_array

from headwater.state import Batch, SparseRows
from headwater.statistics import Array

FEW_COLUMNS = 64
DIRECTION_ROWS = 4000


@dataclass(frozen=True)
class Geometry:
    """Rows of counts, and what a row's log-probability is measured in: a nat for every ten counts."""

    batch: Batch
    n_components: int
    scale: float

    @classmethod
    def of(cls, batch: Batch, n_components: int) -> Geometry:
        X = batch.X
        if isinstance(X, SparseRows):
            held = X.copy()
            lengths = np.bincount(np.repeat(np.arange(len(X)), np.diff(held.indptr)), held.data, minlength=len(X))
        else:
            lengths = X.sum(axis=1)
        return cls(batch, n_components, max(1.0, 0.1 * float(batch.row_weights @ lengths) / batch.size))

    def views(self, rows: NDArray[np.int64]) -> tuple[Array, ...]:
        """Some rows as unit vectors whose distance is Hellinger's: frequent columns as they are, and toned down.

        Others help to find the directions in which rows differ.
        """
        others = np.setdiff1d(np.arange(len(self.batch)), rows)[: max(0, DIRECTION_ROWS - len(rows))]
        X: Any = self.batch[np.concatenate([rows, others])].X
        sparse = isinstance(X, SparseRows)
        if sparse:
            X = csr_matrix((X.data, X.indices, X.indptr), shape=X.shape)
        lengths = np.maximum(np.asarray(X.sum(axis=1)).ravel(), 1e-300)
        present = X.getnnz(axis=0) if sparse else (X > 0.0).sum(axis=0)
        roots = diags_array(1.0 / np.sqrt(lengths)) @ X.sqrt() if sparse else np.sqrt(X / lengths[:, None])
        rare = np.log((1.0 + X.shape[0]) / (1.0 + present)) + 0.1
        toned = roots @ diags_array(rare) if sparse else roots * rare
        return tuple(_unit(_reduced(part, self.n_components)[: len(rows)]) for part in (roots, toned))


def _reduced(rows: Any, n_components: int) -> Array:
    """Rows in the few directions of largest norm (randomised range finder); all of them, if they are few."""
    n, width = rows.shape
    size = min(2 * n_components + 10, 120)
    if width <= max(FEW_COLUMNS, 2 * size):
        return np.asarray(rows.todense() if hasattr(rows, "todense") else rows)
    if n <= 2 * size:
        inner = rows @ rows.T
        values, vectors = np.linalg.eigh(np.asarray(inner.todense() if hasattr(inner, "todense") else inner))
        return np.ascontiguousarray(vectors * np.sqrt(np.maximum(values, 0.0)))
    rng = np.random.default_rng(0)
    basis = rng.standard_normal((n, size))
    for _ in range(3):
        basis = _orthonormal(rows @ (rows.T @ basis))
    image = rows.T @ basis
    values, vectors = np.linalg.eigh(image.T @ image)
    return np.ascontiguousarray(basis @ (vectors * np.sqrt(np.maximum(values, 0.0))))


def _orthonormal(basis: Array) -> Array:
    """The same span, its directions at right angles: by the small matrix of their products, which is much faster than QR."""
    for _ in range(2):  # the second time makes up for what the first lost to rounding
        values, vectors = np.linalg.eigh(basis.T @ basis)
        basis = basis @ (vectors / np.sqrt(np.maximum(values, 1e-14 * max(values[-1], 1e-300))))
    return basis


def _unit(rows: Array) -> Array:
    return rows / np.maximum(np.sqrt(np.einsum("ij,ij->i", rows, rows)), 1e-12)[:, None]
