"""Families whose columns are independent given the component: what Poisson, Bernoulli and categorical ones have in common.

A missing entry is NaN. It is left out, and every (component, column) has a mass of its own: the rows that have the column.
The prior of a column is a guess that is worth some rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import Batch
from headwater.core.statistics import Array

PRIOR_ROWS = 1.0  # that the guess of a prior is worth where nothing is said
NO_GAPS: NDArray[np.bool_] = np.empty((0, 0), dtype=np.bool_)


def split_gaps(X: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return rows with zeros for gaps, and which entries (n, d) are observed; the rows and `NO_GAPS` if all are."""
    gaps = np.isnan(X)
    if not gaps.any():
        return X, NO_GAPS
    return np.where(gaps, 0.0, X), ~gaps


def column_means(batch: Batch, X: Array) -> Array:
    """Return the weighted mean (d,) of what is observed in each column; 0 where nothing is."""
    values, seen = split_gaps(X)
    weights = batch.row_weights
    mass = weights @ seen if seen.size else np.full(X.shape[1], weights.sum())
    return np.asarray(weights @ values / np.where(mass > 0.0, mass, 1.0))


def fill_gaps(X: Array) -> Array:
    """Return rows with the mean of its column in every gap, to be seeded on; 0 where a column has nothing."""
    values, seen = split_gaps(X)
    if not seen.size:
        return X
    means = values.sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    return np.where(seen, values, means)


def spread_guess(guess: Array | float | None, default: Array, n_components: int) -> Array:
    """Return the guess (K, d) of a prior: as it was given (a number, (d,) or (K, d)), or the default (d,)."""
    chosen = default if guess is None else np.asarray(guess, dtype=float)
    return np.array(np.broadcast_to(chosen, (n_components, len(default))))
