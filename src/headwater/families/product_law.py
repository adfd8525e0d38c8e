"""Missing columns of rows whose blocks of columns are independent given the component: each block has a law of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.families.conditional_law import ConditionalLaw, Mask, Places, join_tails
from headwater.families.entry_law import EntryLaw


@dataclass(frozen=True)
class JoinedEntries(EntryLaw):
    """Entries of several laws: entry e is number `place[e]` of the law `owner[e]`."""

    laws: tuple[EntryLaw, ...]
    owner: Places
    place: Places
    n_components: int

    def _parts(self) -> Iterator[tuple[Places, EntryLaw]]:
        for at, law in enumerate(self.laws):
            own = np.flatnonzero(self.owner == at)
            if len(own):
                yield own, law.select(self.place[own])

    def _gather(self, name: str) -> Array:
        found = np.empty((len(self.owner), self.n_components))
        for own, law in self._parts():
            found[own] = getattr(law, name)
        return found

    @property
    def mean(self) -> Array:
        return self._gather("mean")

    @property
    def variance(self) -> Array:
        return self._gather("variance")

    @property
    def peak(self) -> Array:
        return self._gather("peak")

    def select(self, entries: NDArray[np.int64] | NDArray[np.bool_]) -> Self:
        return replace(self, owner=self.owner[entries], place=self.place[entries])

    def log_density(self, values: Array) -> Array:
        found = np.empty((len(self.owner), self.n_components))
        for own, law in self._parts():
            found[own] = law.log_density(values[own])
        return found

    def bounds(self, values: Array) -> tuple[Array, Array]:
        found = np.empty((2, len(self.owner), self.n_components))
        for own, law in self._parts():
            found[:, own] = law.bounds(values[own])
        return found[0], found[1]

    def log_tail(self, values: Array) -> Array:
        found = np.empty((len(self.owner), self.n_components))
        for own, law in self._parts():
            found[own] = law.log_tail(values[own])
        return found

    def ascend(self, values: Array, shares: Array) -> Array:
        found = np.empty(len(self.owner))
        for own, law in self._parts():
            found[own] = law.ascend(values[own], shares[own])
        return found

    def draw(self, components: NDArray[np.int64], uniforms: Array) -> Array:
        found = np.empty(len(self.owner))
        for own, law in self._parts():
            found[own] = law.draw(components[own], uniforms[own])
        return found

    def mixture_moments(self, weights: Array) -> tuple[Array, Array]:
        mean, variance = np.empty(len(self.owner)), np.empty(len(self.owner))
        for own, law in self._parts():
            mean[own], variance[own] = law.mixture_moments(weights[own])
        return mean, variance

    def mixture_log_tail(self, weights: Array, values: Array) -> Array:
        found = np.empty(len(self.owner))
        for own, law in self._parts():
            found[own] = law.mixture_log_tail(weights[own], values[own])
        return found

    def mixture_quantile(self, weights: Array, probability: float) -> Array:
        found = np.empty(len(self.owner))
        for own, law in self._parts():
            found[own] = law.mixture_quantile(weights[own], probability)
        return found

    def mixture_shares(self, weights: Array, values: Array) -> Array:
        found = np.empty((len(self.owner), len(values)))
        for own, law in self._parts():
            found[own] = law.mixture_shares(weights[own], values)
        return found


@dataclass(frozen=True)
class ProductLaw(ConditionalLaw):
    """The laws of the blocks, each with the places of its columns. Columns that no block has are left alone."""

    rows: Array
    missing: Mask
    n_components: int
    blocks: tuple[tuple[Places, ConditionalLaw], ...]

    @cached_property
    def log_marginal(self) -> Array:
        return np.asarray(sum(law.log_marginal for _, law in self.blocks))

    def entries(self, rows: Places, columns: Places) -> EntryLaw:
        owner, local = self._homes
        which, laws, place = owner[columns], [], np.empty(len(rows), dtype=np.int64)
        for at, (_, law) in enumerate(self.blocks):
            own = np.flatnonzero(which == at)
            place[own] = np.arange(len(own))
            laws.append(law.entries(rows[own], local[columns[own]]))
        return JoinedEntries(tuple(laws), which, place, self.n_components)

    @cached_property
    def _homes(self) -> tuple[Places, Places]:
        """The block of each column (d,), and its place there; -1 for columns that no block has."""
        owner, local = np.full((2, self.rows.shape[1]), -1)
        for at, (columns, _) in enumerate(self.blocks):
            owner[columns], local[columns] = at, np.arange(len(columns))
        return owner, local

    def covariances(self) -> Array:
        n, width = self.rows.shape
        found = np.zeros((n, self.n_components, width, width))
        for columns, law in self.blocks:
            found[:, :, columns[:, None], columns] = law.covariances()
        return found

    def draw(self, components: Places, uniforms: Array) -> Array:
        filled = self.rows.copy()
        for columns, law in self.blocks:
            filled[:, columns] = law.draw(components, uniforms[:, [*columns, -1]])
        return filled

    def log_density(self, of: Array) -> Array:
        return np.asarray(sum(law.log_density(of[:, columns]) for columns, law in self.blocks))

    def ascend(self, of: Array, shares: Array) -> Array:
        better = of.copy()
        for columns, law in self.blocks:
            better[:, columns] = law.ascend(of[:, columns], shares)
        return better

    def without_column(self) -> tuple[Array, EntryLaw, Places, Places]:
        found = [law.without_column() for _, law in self.blocks]
        others = [
            own + (self.log_marginal - law.log_marginal)[rows]
            for (own, _, rows, _), (_, law) in zip(found, self.blocks, strict=True)
        ]
        sizes = [len(one[2]) for one in found]
        owner, place = np.repeat(np.arange(len(sizes)), sizes), np.concatenate([np.arange(size) for size in sizes])
        law = JoinedEntries(tuple(one[1] for one in found), owner, place, self.n_components)
        columns = [at[one[3]] for (at, _), one in zip(self.blocks, found, strict=True)]
        return np.concatenate(others), law, np.concatenate([one[2] for one in found]), np.concatenate(columns)

    def without_pair(self) -> tuple[Array, Array, Array]:
        n, width = self.rows.shape
        alone, tails = np.zeros((2, n, self.n_components, width))  # log-density and tail of a column, given its block
        for columns, law in self.blocks:
            others, entries, rows, local = law.without_column()
            alone[rows, :, columns[local]] = law.log_marginal[rows] - others
            tails[rows, :, columns[local]] = entries.log_tail(law.rows[rows, local])
        pair = alone[..., :, None] + alone[..., None, :]
        far = join_tails(tails[..., :, None] + tails[..., None, :])
        others = self.log_marginal[..., None, None] - pair
        for columns, law in self.blocks:
            inside = np.ix_(np.arange(n), np.arange(self.n_components), columns, columns)
            own, joint, tail = law.without_pair()
            others[inside] = own + (self.log_marginal - law.log_marginal)[..., None, None]
            pair[inside], far[inside] = joint, tail
        return others, pair, far
