"""Geometry of the rows of a Gaussian start: centre, spread, and the units that distances are measured in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import Batch
from headwater.core.gapped_rows import GappedRows, Mask
from headwater.core.statistics import Array

MOST_DONORS = 400  # rows that gaps are filled from; distances to each are computed
ROWS_EACH = 32  # of a component, below which a start in many columns misses some (benchmarks/start_costs.py)
LEAST_DONORS = 50  # complete rows that are enough

# What `Family.geometry` returns: `views` and `scale`, by which rows are seeded, and what the prior of that family needs.
RowGeometry: TypeAlias = Any


@dataclass(frozen=True)
class Geometry:
    """Centre and spread of the rows, and the rows in the units that distances are measured in: standardised, and whitened."""

    origin: Array
    spread: Array
    coordinates: tuple[Array, ...]
    scale: float = 1.0  # unit of a row's log-density, in nats

    def views(self, rows: NDArray[np.int64]) -> tuple[Array, ...]:
        """Some rows, in each kind of units."""
        return tuple(one[rows] for one in self.coordinates)

    @classmethod
    def of(cls, batch: Batch, matrix: bool) -> Geometry:
        weights = batch.row_weights
        total = weights.sum()
        if isinstance(batch.X, GappedRows):
            seen = np.maximum(weights @ ~batch.X.missing, 1e-300)
            origin = weights @ batch.X.filled(0.0) / seen
            centred = np.where(batch.X.missing, 0.0, batch.X.values - origin)
            spread = weights @ centred**2 / seen
        else:
            origin = weights @ batch.X / total
            centred = batch.X - origin
            spread = weights @ centred**2 / total
        # A column whose spread is rounding error of its size is constant.
        spread[spread <= (4e-16 * np.abs(origin)) ** 2] = 0.0
        scaled = centred / np.sqrt(np.where(spread > 0.0, spread, 1.0))
        if isinstance(batch.X, GappedRows):
            scaled = fill_from_neighbours(scaled, batch.X.missing)
        views = [scaled]
        width = len(origin)
        if matrix and width > 1 and len(batch) > 2 * width:
            values, vectors = np.linalg.eigh((scaled * weights[:, None]).T @ scaled / total)
            values = np.maximum(values, 1e-6 * max(values[-1], 1e-300))
            views.append(scaled @ (vectors / np.sqrt(values)))
        return cls(origin, spread, tuple(views))


def fill_from_neighbours(scaled: Array, missing: Mask) -> Array:
    """Return standardised rows with gaps filled from a row that is near in the observed columns, for seeding.

    The mean of a column would lie between the groups. Donors are complete rows if there are some, else those with few gaps.
    """
    gaps = np.count_nonzero(missing, axis=1)
    donors = np.argsort(gaps, kind="stable")[:MOST_DONORS]
    complete = donors[gaps[donors] == 0]
    donors = complete if len(complete) >= LEAST_DONORS else donors
    filled, known = scaled.copy(), scaled[donors]
    lacking = np.flatnonzero(gaps)
    for rows in np.array_split(lacking, len(lacking) // 4096 + 1):
        far = ~missing[rows] @ (known**2).T - 2.0 * scaled[rows] @ known.T
        far[rows[:, None] == donors] = np.inf
        filled[rows] = np.where(missing[rows], known[far.argmin(axis=1)], scaled[rows])
    return filled


def within_spread(matrix: bool, batch: Batch, responsibilities: Array, spread: Array) -> Array:
    """Covariance (or variances) about the means of the seeded groups, pooled.

    With too few rows, groups are taken to have equal volume, each with its part of the spread.
    """
    n, width = batch.X.shape
    n_components = responsibilities.shape[1]
    if n < 3 * n_components:
        part = spread * n_components ** (-2.0 / width)
        return np.diag(part) if matrix else part
    weighted = responsibilities * batch.row_weights[:, None]
    if isinstance(batch.X, GappedRows):
        return _within_gapped(matrix, batch.X, weighted)
    mass = weighted.sum(axis=0)
    means = weighted.T @ batch.X / np.maximum(mass, 1e-300)[:, None]
    rows = weighted.sum(axis=1)
    centred = batch.X - (responsibilities / np.maximum(responsibilities.sum(axis=1, keepdims=True), 1e-300)) @ means
    total = max(float(rows.sum()), 1e-300) * (1.0 - n_components / n)
    return (centred * rows[:, None]).T @ centred / total if matrix else rows @ centred**2 / total


def _within_gapped(matrix: bool, X: GappedRows, weighted: Array) -> Array:
    """The same for rows with gaps: variances are those of the observed values, and gaps add nothing to covariances."""
    rows, n_components = weighted.sum(axis=1), weighted.shape[1]
    seen = weighted.T @ ~X.missing
    means = weighted.T @ X.filled(0.0) / np.maximum(seen, 1e-300)
    share = weighted / np.maximum(rows, 1e-300)[:, None]
    centred = np.where(X.missing, 0.0, X.values - share @ means)
    left = 1.0 - n_components / len(X)
    variances = rows @ centred**2 / np.maximum(seen.sum(axis=0) * left, 1e-300)
    if not matrix:
        return np.asarray(variances)
    found = (centred * rows[:, None]).T @ centred / max(float(rows.sum()) * left, 1e-300)
    np.fill_diagonal(found, np.maximum(variances, np.diagonal(found)))
    return np.asarray(found)
