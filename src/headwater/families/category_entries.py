"""Laws of single entries that are categories, by their codes, under each of K components."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.families.entry_law import EntryLaw
from headwater.families.entry_mixture import entry_log_density

BLOCK_CELLS = 2**20  # probabilities of categories that are held at a time
TIE = 1.0 + 1e-12  # probabilities that differ by less are one


@dataclass(frozen=True)
class CategoryEntries(EntryLaw):
    """Entries of these columns (e,) of tables.

    `logs` (K, d, cells) are log-probabilities, of which column j has `levels[j]` categories; the cells after them are free, all
    alike, and the last one is that of a category that is not known.
    """

    logs: Array
    levels: tuple[int, ...]
    columns: NDArray[np.int64]

    @cached_property
    def _tables(self) -> tuple[Array, Array]:
        """The most probable code (K, d), and the variances of the indicators of the codes, summed."""
        best = np.empty(self.logs.shape[:2])
        for column, level in enumerate(self.levels):
            best[:, column] = self.logs[:, column, : max(level, 1)].argmax(axis=1)
        return best, 1.0 - np.exp(2.0 * self.logs).sum(axis=2)

    @property
    def mean(self) -> Array:
        return self._tables[0].T[self.columns]

    @property
    def variance(self) -> Array:
        return self._tables[1].T[self.columns]

    def select(self, entries: NDArray[np.int64] | NDArray[np.bool_]) -> Self:
        return replace(self, columns=self.columns[entries])

    def log_density(self, values: Array) -> Array:
        return np.ascontiguousarray(self.logs[:, self.columns, values.astype(np.int64)].T)

    def bounds(self, values: Array) -> tuple[Array, Array]:
        running = np.cumsum(np.exp(self.logs), axis=2)
        upto = running[:, self.columns, values.astype(np.int64)].T
        return np.maximum(upto - np.exp(self.log_density(values)), 0.0), upto

    def log_tail(self, values: Array) -> Array:
        k = len(self.logs)
        found = np.empty((len(values), k))
        for component, weights in enumerate(np.eye(k)):
            found[:, component] = self.mixture_log_tail(np.broadcast_to(weights, (len(values), k)), values)
        return found

    def ascend(self, values: Array, shares: Array) -> Array:
        best = values.copy()
        for places, table in self._blocks():
            best[places] = (shares[places] @ table).argmax(axis=1)
        return best

    def draw(self, components: NDArray[np.int64], uniforms: Array) -> Array:
        found = np.zeros(len(components))
        for column in np.unique(self.columns):
            level = max(self.levels[column], 1)
            bounds = np.cumsum(np.exp(self.logs[:, column, :level]), axis=1)
            for k in range(len(bounds)):
                own = np.flatnonzero((self.columns == column) & (components == k))
                drawn = np.searchsorted(bounds[k] / bounds[k, -1], uniforms[own], side="right")
                found[own] = np.minimum(drawn, level - 1)
        return found

    def mixture_moments(self, weights: Array) -> tuple[Array, Array]:
        code, variance = np.empty(len(weights)), np.empty(len(weights))
        free = self._free(weights)
        for places, table in self._blocks():
            shares = weights[places] @ np.exp(table)
            cells = self.logs.shape[2] - table.shape[1]
            code[places] = shares.argmax(axis=1)
            variance[places] = 1.0 - np.square(shares).sum(axis=1) - cells * np.square(free[places])
        return code, variance

    def mixture_log_tail(self, weights: Array, values: Array) -> Array:
        """Sum the probabilities of the categories that are no more probable than this one."""
        own, tail = np.exp(entry_log_density(self, weights, values)), np.empty(len(values))
        free = self._free(weights)
        for places, table in self._blocks():
            shares, most = weights[places] @ np.exp(table), TIE * own[places, None]
            cells = self.logs.shape[2] - table.shape[1]
            others = np.where(free[places] <= most[:, 0], cells * free[places], 0.0)
            tail[places] = np.where(shares <= most, shares, 0.0).sum(axis=1) + others
        with np.errstate(divide="ignore"):
            return np.asarray(np.minimum(np.log(np.maximum(tail, own)), 0.0))

    def mixture_quantile(self, weights: Array, probability: float) -> Array:
        return np.full(len(weights), np.nan)

    def _free(self, weights: Array) -> Array:
        """Probability (e,) of a free cell."""
        return np.asarray((weights * np.exp(self.logs[:, :, -1].T[self.columns])).sum(axis=1))

    def _blocks(self) -> Iterator[tuple[NDArray[np.int64], Array]]:
        """Yield entries of one column, some at a time, and the log-probabilities (K, level) of its categories."""
        for column in np.unique(self.columns):
            level = max(self.levels[column], 1)
            table, own = self.logs[:, column, :level], np.flatnonzero(self.columns == column)
            step = max(BLOCK_CELLS // level, 1)
            for start in range(0, len(own), step):
                yield own[start : start + step], table
