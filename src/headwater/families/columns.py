"""Families whose columns are independent given the component: what Poisson, Bernoulli and categorical ones have in common.

A missing entry is NaN. It is left out, and every (component, column) has its own mass: the rows that have the column. The prior
of a column is a guess that counts as some rows.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import Batch
from headwater.core.gapped_rows import GappedRows
from headwater.core.statistics import Array
from headwater.core.values import Matrix
from headwater.families.components import ComponentStatistics
from headwater.families.family import Family

PRIOR_ROWS = 1.0  # that the guess of a prior counts as by default
NO_GAPS: NDArray[np.bool_] = np.empty((0, 0), dtype=np.bool_)

Prior = TypeVar("Prior")
Stats = TypeVar("Stats", bound=ComponentStatistics)
Params = TypeVar("Params")


class ColumnFamily(Family[Prior, Stats, Params]):
    """Base of families of independent columns, whose functions take NaN for a gap. Abstract."""

    @property
    def takes_gaps(self) -> bool:
        return True

    def seed_view(self, X: Matrix) -> Array:
        """Return rows with the mean of each column in its gaps."""
        return fill_gaps(X)

    def observed_rows(self, statistics: Stats, whole: Array) -> Array:
        seen = getattr(statistics, "seen", None)
        return whole if seen is None or seen.shape != whole.shape else np.asarray(seen)

    def log_densities_with_gaps(self, parameters: Params, X: GappedRows) -> Array:
        return self.log_densities(parameters, X.values)

    def collect_with_gaps(self, parameters: Params, X: GappedRows, responsibilities: Array) -> Stats:
        return self.collect(parameters, X.values, np.where(X.is_empty[:, None], 0.0, responsibilities))


def mark_gaps(X: Matrix) -> Array:
    """Return rows as an array in which NaN is a gap."""
    return X.values if isinstance(X, GappedRows) else X


def split_gaps(X: Matrix) -> tuple[Array, NDArray[np.bool_]]:
    """Return rows with zeros for gaps, and which entries (n, d) are observed; the rows and `NO_GAPS` if all are."""
    values = mark_gaps(X)
    gaps = np.isnan(values)
    if not gaps.any():
        return values, NO_GAPS
    return np.where(gaps, 0.0, values), ~gaps


def column_means(batch: Batch, X: Matrix) -> Array:
    """Return the weighted mean (d,) of the observed values of each column; 0 if there are none."""
    values, seen = split_gaps(X)
    weights = batch.row_weights
    mass = weights @ seen if seen.size else np.full(X.shape[1], weights.sum())
    return np.asarray(weights @ values / np.where(mass > 0.0, mass, 1.0))


def fill_gaps(X: Matrix) -> Array:
    """Return rows with gaps filled by column means, for seeding; 0 if a column has no value."""
    values, seen = split_gaps(X)
    if not seen.size:
        return values
    means = values.sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    return np.where(seen, values, means)


def spread_guess(guess: Array | float | None, default: Array, n_components: int) -> Array:
    """Return the guess (K, d) of a prior: as it was given (a number, (d,) or (K, d)), or the default (d,)."""
    chosen = default if guess is None else np.asarray(guess, dtype=float)
    return np.array(np.broadcast_to(chosen, (n_components, len(default))))
