"""k-means by exchanges: centres go where they are missing from where there are too many, many at a time.

Lloyd's steps keep each centre near where it began. With many groups some begin with two centres and others with none, and in
many columns rows of one group lie hardly nearer to each other than to others, so that drawing seeds far apart helps little.
An exchange merges two centres and splits a third group across its longest direction, where that lowers the sum of squares.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import Batch
from headwater.core.statistics import Array
from headwater.kernels.groups import add_groups, part_groups, turn_directions
from headwater.kernels.parallel import run_tasks
from headwater.models.seeding import group_means

Narrow: TypeAlias = NDArray[np.float32]
Labels: TypeAlias = NDArray[np.int64]

FIRST_STEPS, ROUNDS, STEPS_BETWEEN = 4, 9, 2  # Lloyd's steps before exchanges, rounds of these, and steps after each round
FEW_ROWS_EACH, FIRST_ROUNDS = 16, 5  # rows of a group in the first of these rounds
FEW_EXCHANGES = 0.01  # of the centres, in a round after which there are no more
TURNS_TO_LONGEST = 4  # steps of the power method by which the longest direction of a group is found
WORTH = 1.1  # times what a merger costs that a split must gain: both are estimates
PAIRS_EACH = 4  # mergers that are looked at, for each centre
BLOCK_NUMBERS = 2**22  # distances at a time


def exchange_assignments(
    rows: Array, batch: Batch, n_components: int, rng: np.random.Generator, n_threads: int | None = None
) -> Array:
    """Return responsibilities (n, K), ones and zeros; `rows` are the batch's rows in the geometry to measure in."""
    n = len(rows)
    labels = batch.labels if batch.labels.size else np.full(n, -1)
    centres = np.full((n_components, rows.shape[1]), np.nan)
    named = labels >= 0
    if named.any():
        centres = group_means(rows[named], batch.row_weights[named], labels[named], centres)
    groups, _ = exchange_groups(rows, batch.row_weights, centres, labels, rng, n_threads)
    responsibilities = np.zeros((n, n_components))
    responsibilities[np.arange(n), groups] = 1.0
    return responsibilities


def exchange_groups(
    rows: Array, weights: Array, centres: Array, labels: Labels, rng: np.random.Generator, n_threads: int | None = None
) -> tuple[Labels, Array]:
    """Return the group of each row, and the centres. Those that are NaN begin at some rows.

    Rows with labels stay in their groups, which are neither merged nor split.
    """
    found = _Groups(np.ascontiguousarray(rows, dtype=np.float32), weights, labels, n_threads)
    empty = np.flatnonzero(np.isnan(centres[:, 0]))
    telling = np.flatnonzero(weights > 0.0)
    chosen = rng.choice(telling, size=len(empty), replace=len(empty) > len(telling))
    now = centres.copy()
    now[empty] = rows[chosen]
    fixed = np.zeros(len(centres), dtype=bool)
    fixed[np.unique(labels[labels >= 0])] = True
    few = FEW_ROWS_EACH * len(centres)
    if len(rows) >= 1.5 * few:  # most exchanges are plain on some of the rows
        some = found.part(rng.permutation(len(rows))[:few])
        now = _settle(some, now, fixed, FIRST_STEPS, FIRST_ROUNDS, rng)
        now = _settle(found, now, fixed, 1, ROUNDS - FIRST_ROUNDS, rng)
    else:
        now = _settle(found, now, fixed, FIRST_STEPS, ROUNDS, rng)
    return found.nearest(now), now


def _settle(
    found: _Groups, centres: Array, fixed: NDArray[np.bool_], steps: int, rounds: int, rng: np.random.Generator
) -> Array:
    """Lloyd's steps, and rounds of exchanges with more of them between."""
    for _ in range(steps):
        centres = found.means(found.nearest(centres), centres)
    for _ in range(rounds):
        groups = found.nearest(centres)
        centres = found.means(groups, centres)
        centres, made = _exchange(found, groups, centres, fixed, rng)
        for _ in range(STEPS_BETWEEN if made else 0):
            centres = found.means(found.nearest(centres), centres)
        if made <= FEW_EXCHANGES * len(centres):
            break
    return centres


class _Groups:
    """Rows with weights and labels, to be parted."""

    def __init__(self, rows: Narrow, weights: Array, labels: Labels, n_threads: int | None = None) -> None:
        self.rows, self.weights, self.labels, self.n_threads = rows, weights, labels, n_threads
        self.named = np.flatnonzero(labels >= 0)

    def part(self, places: Labels) -> _Groups:
        """Some of the rows."""
        return _Groups(self.rows[places], self.weights[places], self.labels[places], self.n_threads)

    def nearest(self, centres: Array) -> Labels:
        """The nearest centre of each row, or the one that its label names."""
        found = np.empty(len(self.rows), dtype=np.int64)
        narrow = centres.astype(np.float32)
        norms, doubled = np.einsum("ij,ij->i", narrow, narrow), -2.0 * narrow.T
        size = max(BLOCK_NUMBERS // len(centres), 1)

        def work(at: int) -> None:
            distances = self.rows[at : at + size] @ doubled
            distances += norms
            distances.argmin(axis=1, out=found[at : at + size])

        run_tasks(work, range(0, len(found), size), self.n_threads)
        found[self.named] = self.labels[self.named]
        return found

    def mass(self, groups: Labels, number: int) -> Array:
        """The weight of each group."""
        return np.bincount(groups, self.weights, minlength=number).astype(np.float64)

    def means(self, groups: Labels, before: Array) -> Array:
        """The mean of each group; one without rows stays where it was."""
        mass, sums = self.mass(groups, len(before)), np.zeros(before.shape)
        add_groups(self.rows, self.weights, groups, sums)
        held = mass > 0.0
        return np.where(held[:, None], sums / np.where(held, mass, 1.0)[:, None], before)


def _exchange(
    found: _Groups, groups: Labels, centres: Array, fixed: NDArray[np.bool_], rng: np.random.Generator
) -> tuple[Array, int]:
    """Return centres after the exchanges that lower the sum of squares, each centre in one of them, and how many were made."""
    mass = found.mass(groups, len(centres))
    halves, gains = _split_all(found, groups, centres, rng)
    gains[fixed] = 0.0
    first, second, costs = _find_mergers(centres, mass, fixed)
    splits = iter(np.argsort(-gains, kind="stable").tolist())
    used = np.zeros(len(centres), dtype=bool)
    after, made = centres.copy(), 0
    split = next(splits, None)
    for i, j, cost in zip(first.tolist(), second.tolist(), costs.tolist(), strict=True):
        if used[i] or used[j]:
            continue
        while split is not None and (used[split] or split in (i, j)):
            split = next(splits, None)
        if split is None or gains[split] <= WORTH * cost:
            break
        used[[i, j, split]] = True
        after[i] = (mass[i] * centres[i] + mass[j] * centres[j]) / max(mass[i] + mass[j], 1e-300)
        after[split], after[j] = halves[split]
        made += 1
    return after, made


def _split_all(found: _Groups, groups: Labels, centres: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Part every group across its longest direction; return both means of each, and what the sum of squares would lose."""
    number = len(centres)
    directions = rng.standard_normal(centres.shape)
    for _ in range(TURNS_TO_LONGEST):
        turned = np.zeros(centres.shape)
        turn_directions(found.rows, found.weights, groups, centres, directions, turned)
        directions = turned / (np.sqrt(np.einsum("ij,ij->i", turned, turned))[:, None] + 1e-200)
    sides = np.empty_like(groups)
    part_groups(found.rows, groups, centres, directions, sides)
    halves = found.means(sides, np.repeat(centres, 2, axis=0)).reshape(number, 2, -1)
    mass = found.mass(sides, 2 * number).reshape(number, 2)
    apart = halves[:, 1] - halves[:, 0]
    gains = mass.prod(axis=1) / np.maximum(mass.sum(axis=1), 1e-300) * np.einsum("ij,ij->i", apart, apart)
    return halves, gains


def _find_mergers(centres: Array, mass: Array, fixed: NDArray[np.bool_]) -> tuple[Labels, Labels, Array]:
    """Pairs of centres by what the sum of squares would gain if they were one, the cheapest first."""
    norms = np.einsum("ij,ij->i", centres, centres)
    squared = np.maximum(norms[:, None] + norms - 2.0 * (centres @ centres.T), 0.0)
    free = np.flatnonzero(~fixed)
    first, second = np.triu_indices(len(free), 1)
    first, second = free[first], free[second]
    costs = mass[first] * mass[second] / np.maximum(mass[first] + mass[second], 1e-300) * squared[first, second]
    few = min(PAIRS_EACH * len(centres), len(costs))
    order = np.argpartition(costs, few - 1)[:few] if few < len(costs) else np.arange(len(costs))
    order = order[np.lexsort((order, costs[order]))]
    return first[order], second[order], costs[order]
