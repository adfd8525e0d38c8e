"""ConditionalLaw: the distribution of the missing columns of rows under each component, given the observed ones.

A family that offers `conditional` (capabilities.py) returns one for a block of rows. Where the columns of a component are
independent, `IndependentColumns` makes it of the laws of single entries.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.families.entry_law import EntryLaw

Mask = NDArray[np.bool_]
Places = NDArray[np.int64]


class ConditionalLaw(ABC):
    """n rows of d columns under K components; entries of `rows` that are `missing` (n, d) are not used."""

    rows: Array
    missing: Mask

    @property
    @abstractmethod
    def log_marginal(self) -> Array:
        """Log-density (n, K) of the observed columns under each component; 0 for a row without any."""

    @abstractmethod
    def entries(self, rows: Places, columns: Places) -> EntryLaw:
        """Return the laws (e, K) of missing entries, each given the observed columns of its row."""

    @abstractmethod
    def covariances(self) -> Array:
        """Return the covariances (n, K, d, d) of the columns; 0 where one is observed."""

    @abstractmethod
    def draw(self, components: Places, uniforms: Array) -> Array:
        """Return rows (n, d) with gaps filled by draws from their components; `uniforms` (n, d + 1) are the random numbers."""

    @abstractmethod
    def log_density(self, of: Array) -> Array:
        """Return the log-density (n, K) of the missing columns of `of`, given the observed columns of the rows."""

    @abstractmethod
    def ascend(self, of: Array, shares: Array) -> Array:
        """Return rows whose log-density, averaged by shares (n, K), is no lower than that of `of`."""

    @abstractmethod
    def without_column(self) -> tuple[Array, EntryLaw, Places, Places]:
        """Return the distribution of each observed entry given the other observed columns.

        The log-density (e, K) of the others, the laws (e, K) of the entry given them, and the rows and columns of the entries.
        """

    @abstractmethod
    def without_pair(self) -> tuple[Array, Array, Array]:
        """Return the distribution of pairs of columns given the other observed ones, (n, K, d, d) each, for i < j.

        The log-density of the others, the log-density of the pair given them, and the logarithm of the probability that a
        pair lies as far from its centre.
        """


@dataclass(frozen=True)
class IndependentColumns(ConditionalLaw):
    """Columns that are independent in each component: missing ones are left out and do not depend on the others.

    `law_of(rows, columns)` returns the laws (e, K) of entries in these places. Columns that are `given`, such as an exposure,
    are never missing and have no law.
    """

    rows: Array
    missing: Mask
    n_components: int
    law_of: Callable[[Places, Places], EntryLaw]
    given: tuple[int, ...] = ()

    @property
    def _seen(self) -> Mask:
        """Observed entries (n, d) that have a law."""
        seen = ~self.missing & ~np.isnan(self.rows)  # what is NaN and not missing is a column that nothing is known of
        seen[:, list(self.given)] = False
        return seen

    def _observed(self) -> tuple[Places, Places, EntryLaw]:
        rows, columns = np.nonzero(self._seen)
        return rows, columns, self.law_of(rows, columns)

    def _column_logs(self, of: Array, chosen: Mask) -> Array:
        """Log-densities (n, d, K) of chosen entries; 0 elsewhere."""
        logs = np.zeros((*of.shape, self.n_components))
        rows, columns = np.nonzero(chosen)
        logs[rows, columns] = self.law_of(rows, columns).log_density(of[rows, columns])
        return logs

    @property
    def log_marginal(self) -> Array:
        return np.asarray(self._column_logs(self.rows, self._seen).sum(axis=1))

    def entries(self, rows: Places, columns: Places) -> EntryLaw:
        return self.law_of(rows, columns)

    def covariances(self) -> Array:
        n, width = self.rows.shape
        found = np.zeros((n, self.n_components, width, width))
        rows, columns = np.nonzero(self.missing)
        found[rows, :, columns, columns] = self.law_of(rows, columns).variance
        return found

    def draw(self, components: Places, uniforms: Array) -> Array:
        filled = self.rows.copy()
        rows, columns = np.nonzero(self.missing)
        filled[rows, columns] = self.law_of(rows, columns).draw(components[rows], uniforms[rows, columns])
        return filled

    def log_density(self, of: Array) -> Array:
        return np.asarray(self._column_logs(of, self.missing).sum(axis=1))

    def ascend(self, of: Array, shares: Array) -> Array:
        better = of.copy()
        rows, columns = np.nonzero(self.missing)
        better[rows, columns] = self.law_of(rows, columns).ascend(of[rows, columns], shares[rows])
        return better

    def without_column(self) -> tuple[Array, EntryLaw, Places, Places]:
        rows, columns, law = self._observed()
        logs = self._column_logs(self.rows, self._seen)
        return logs.sum(axis=1)[rows] - logs[rows, columns], law, rows, columns

    def without_pair(self) -> tuple[Array, Array, Array]:
        rows, columns, law = self._observed()
        logs = np.moveaxis(self._column_logs(self.rows, self._seen), 2, 1)
        tails = np.zeros_like(logs)
        tails[rows, :, columns] = law.log_tail(self.rows[rows, columns])
        pair, both = logs[..., :, None] + logs[..., None, :], tails[..., :, None] + tails[..., None, :]
        return logs.sum(axis=2)[..., None, None] - pair, pair, join_tails(both)


def join_tails(both: Array) -> Array:
    """Return the log-probability of a pair as far off, by the sum of the log-probabilities of two independent columns.

    Fisher: the product of two independent probabilities is less than p with probability p (1 - log p), or less if they are
    those of discrete values.
    """
    return np.asarray(np.minimum(both + np.log1p(-np.minimum(both, 0.0)), 0.0))
