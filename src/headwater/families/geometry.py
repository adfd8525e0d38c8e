"""The lie of the rows that a Gaussian start is made from: centre, spread, and the units that distances are measured in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import Batch
from headwater.core.statistics import Array

# What `Family.geometry` returns: `views` and `scale`, by which rows are seeded, and what the prior of that family needs.
RowGeometry: TypeAlias = Any


@dataclass(frozen=True)
class Geometry:
    """Centre and spread of the rows, and the rows in the units that distances are measured in: standardised, and whitened."""

    origin: Array
    spread: Array
    coordinates: tuple[Array, ...]
    scale: float = 1.0  # what a row's log-density is measured in: nats

    def views(self, rows: NDArray[np.int64]) -> tuple[Array, ...]:
        """Some rows, in each kind of units."""
        return tuple(one[rows] for one in self.coordinates)

    @classmethod
    def of(cls, batch: Batch, matrix: bool) -> Geometry:
        weights = batch.row_weights
        total = weights.sum()
        origin = weights @ batch.X / total
        centred = batch.X - origin
        spread = weights @ centred**2 / total
        # A column whose spread is rounding error of its size is constant.
        spread[spread <= (4e-16 * np.abs(origin)) ** 2] = 0.0
        scaled = centred / np.sqrt(np.where(spread > 0.0, spread, 1.0))
        views = [scaled]
        width = len(origin)
        if matrix and width > 1 and len(batch) > 2 * width:
            values, vectors = np.linalg.eigh((scaled * weights[:, None]).T @ scaled / total)
            values = np.maximum(values, 1e-6 * max(values[-1], 1e-300))
            views.append(scaled @ (vectors / np.sqrt(values)))
        return cls(origin, spread, tuple(views))


def within_spread(matrix: bool, batch: Batch, responsibilities: Array, spread: Array) -> Array:
    """Covariance (or variances) about the means of the seeded groups, pooled.

    Too few rows to tell are taken to be cut into groups of equal volume, each of which has its part of the spread.
    """
    n, width = batch.X.shape
    n_components = responsibilities.shape[1]
    if n < 3 * n_components:
        part = spread * n_components ** (-2.0 / width)
        return np.diag(part) if matrix else part
    weighted = responsibilities * batch.row_weights[:, None]
    mass = weighted.sum(axis=0)
    means = weighted.T @ batch.X / np.maximum(mass, 1e-300)[:, None]
    rows = weighted.sum(axis=1)
    centred = batch.X - (responsibilities / np.maximum(responsibilities.sum(axis=1, keepdims=True), 1e-300)) @ means
    total = max(float(rows.sum()), 1e-300) * (1.0 - n_components / n)
    return (centred * rows[:, None]).T @ centred / total if matrix else rows @ centred**2 / total
