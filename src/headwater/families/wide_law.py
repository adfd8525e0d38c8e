"""Wide laws: what is known of rows that belong to no component, a broken sensor's or another table's. They are not learned.

Numbers have Cauchy's law about the medians of the warm-up rows, some spreads wide: its tails are so heavy that a row is never
too far out. Counts have a law with the tail of 1 / x^2; flags and categories are all as probable. Gaps are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from headwater.core.batch import Batch
from headwater.core.gapped_rows import GappedRows
from headwater.core.statistics import Array
from headwater.core.values import Matrix

MIDDLE = (0.05, 0.5, 0.95)  # parts of the rows that tell where the middle is: a twentieth may be broken on either side
WIDTH = 2.0  # half the range of the middle, in which the law is measured
FAR, FAR_EACH = (
    16.0,
    2.0,
)  # squared distance, in halves of the middle's range, from which on a row is no seed; and for each column
LARGEST_DRAW = 1e15  # spreads


@dataclass(frozen=True)
class WideLaw:
    """Where the columns lie: the centre and the spread (d,) of each, of what the rows of the warm-up say."""

    centre: Array
    spread: Array

    def part(self, columns: tuple[int, ...]) -> WideLaw:
        """Return the law of some of the columns."""
        return WideLaw(self.centre[list(columns)], self.spread[list(columns)])


def find_middle(batch: Batch, X: Matrix) -> WideLaw:
    """Return the median of each column and half the range of its middle, by rows that count as often as they weigh."""
    values, weights = _entries(X), batch.row_weights
    centre, spread = np.zeros(values.shape[1]), np.ones(values.shape[1])
    for at, column in enumerate(values.T):
        there = ~np.isnan(column) & (weights > 0.0)
        if not there.any():
            continue
        order = np.argsort(column[there], kind="stable")
        ranked, running = column[there][order], np.cumsum(weights[there][order])
        places = np.searchsorted(running, np.multiply(MIDDLE, running[-1]) * (1.0 - 1e-12))
        low, centre[at], high = ranked[np.minimum(places, len(ranked) - 1)]
        spread[at] = 0.5 * (high - low)
        if not spread[at] > 4e-16 * np.abs(centre[at]):  # most values are alike
            spread[at] = 0.5 * (ranked[-1] - ranked[0])
        if not spread[at] > 4e-16 * np.abs(centre[at]):
            spread[at] = max(abs(centre[at]), 1.0)
    return WideLaw(centre, spread)


def squared_distance(law: WideLaw, X: Matrix) -> tuple[Array, Array]:
    """Return the squared distance (n,) of rows from the centre, in spreads, and how many columns of each are there."""
    values = _entries(X)
    away = (values - law.centre) / law.spread
    gaps = np.isnan(away)
    return np.square(np.where(gaps, 0.0, np.clip(away, -1e150, 1e150))).sum(axis=1), (~gaps).sum(axis=1).astype(float)


def is_far(law: WideLaw, X: Matrix) -> NDArray[np.bool_]:
    """Return which rows (n,) lie so far out that no start is made of them."""
    distance, columns = squared_distance(law, X)
    return np.asarray(distance > FAR + FAR_EACH * columns)


def log_cauchy(law: WideLaw, X: Matrix) -> Array:
    """Return the log-density (n,) of Cauchy's law of what is there of each row; 0 where nothing is."""
    distance, columns = squared_distance(law, X)
    values = _entries(X)
    scale = ~np.isnan(values) @ np.log(WIDTH * law.spread)
    power = 0.5 * (1.0 + columns)
    return np.asarray(
        gammaln(power) - gammaln(0.5) - 0.5 * columns * np.log(np.pi) - scale - power * np.log1p(distance / WIDTH**2)
    )


def sample_cauchy(law: WideLaw, rows: int, rng: np.random.Generator) -> Array:
    """Draw rows of Cauchy's law."""
    normal, root = rng.normal(size=(rows, len(law.centre))), np.abs(rng.normal(size=(rows, 1)))
    away = np.clip(normal / np.maximum(root, 1e-300), -LARGEST_DRAW, LARGEST_DRAW)
    return np.asarray(law.centre + WIDTH * law.spread * away)


def log_counts(law: WideLaw, X: Matrix) -> Array:
    """Return the log-probability (n,) of counts x that are no less than x with probability c / (c + x)."""
    values, wide = _entries(X), _count_scale(law)
    logs = np.log(wide) - np.log(wide + values) - np.log(wide + values + 1.0)
    return np.asarray(np.where(np.isnan(values), 0.0, logs).sum(axis=1))


def sample_counts(law: WideLaw, rows: int, rng: np.random.Generator) -> Array:
    """Draw counts: the largest x with c / (c + x) no less than a uniform number."""
    wide = _count_scale(law)
    return np.floor(np.minimum(wide * (1.0 / rng.uniform(1e-15, 1.0, size=(rows, len(wide))) - 1.0), LARGEST_DRAW))


def _count_scale(law: WideLaw) -> Array:
    return np.maximum(law.centre, 0.0) + WIDTH * law.spread + 1.0


def count_seen(X: Matrix) -> Array:
    """Return which entries (n, d) are there, as numbers."""
    return (~X.missing if isinstance(X, GappedRows) else ~np.isnan(X)).astype(float)


def _entries(X: Matrix) -> Array:
    """Rows as an array in which NaN is a gap."""
    return X.values if isinstance(X, GappedRows) else X


def log_positive(law: WideLaw, X: Matrix) -> Array:
    """Return the log-density (n,) of positive numbers that are greater than x with probability c / (c + x)."""
    values, wide = _entries(X), _count_scale(law) - 1.0
    logs = np.log(wide) - 2.0 * np.log(wide + values)
    return np.asarray(np.where(np.isnan(values), 0.0, logs).sum(axis=1))


def sample_positive(law: WideLaw, rows: int, rng: np.random.Generator) -> Array:
    """Draw positive numbers of that law."""
    wide = _count_scale(law) - 1.0
    chance = rng.uniform(1e-15, 1.0, size=(rows, len(wide)))
    return np.asarray(np.clip(wide * (1.0 / chance - 1.0), 1e-300, LARGEST_DRAW * wide))
