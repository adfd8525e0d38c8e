"""Seeds of a mixture: hard assignments of rows to components, by k-means and similar methods, with weights and labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import Batch
from headwater.core.statistics import Array
from headwater.models.planes import plane_groups

INIT_PARAMS = ("kmeans", "k-means++", "random", "random_from_data")
# Words for several methods, which take turns.
TURNS = {"auto": ("kmeans", "farthest-first"), "planes": ("planes", "random-planes", "planes", "kmeans")}
FARTHEST_ROWS = 500  # farthest-first picks outliers, and a small sample has fewer of them


def seed_assignments(
    method: str, rows: Array, batch: Batch, n_components: int, rng: np.random.Generator, lloyd_steps: int, tries: int
) -> Array:
    """Return responsibilities (n, K) of a random start; `rows` are the batch's rows in the geometry to measure in.

    Labelled rows stay with their component, and a component that has labelled rows starts at their mean. For k-means, the
    best of `tries` runs is taken. For "planes" the last column of the rows is the target.
    """
    n = len(rows)
    labels = batch.labels if batch.labels.size else np.full(n, -1)
    if method == "random":
        responsibilities = rng.uniform(size=(n, n_components))
        responsibilities /= responsibilities.sum(axis=1, keepdims=True)
    elif method.endswith("planes"):
        options = (rows, batch.row_weights, labels, n_components, rng, 2 * lloyd_steps, method == "random-planes")
        groups = min((plane_groups(*options) for _ in range(tries)), key=lambda run: run[1])[0]
        responsibilities = np.eye(n_components)[groups]
    else:
        weights = batch.row_weights
        named = labels >= 0
        centres = np.full((n_components, rows.shape[1]), np.nan)
        if named.any():
            centres = group_means(rows[named], weights[named], labels[named], centres)
        if method == "random_from_data":
            empty = np.flatnonzero(np.isnan(centres[:, 0]))
            chosen = rng.choice(n, size=len(empty), replace=len(empty) > n)
            centres[empty] = rows[chosen]
            responsibilities = np.zeros((n, n_components))
            responsibilities[chosen, empty] = 1.0
        else:
            responsibilities = np.zeros((n, n_components))
            if method == "k-means++":
                _, chosen = _plus_plus(rows, weights, centres, rng)
                responsibilities[chosen[chosen >= 0], np.flatnonzero(chosen >= 0)] = 1.0
            else:
                first = _farthest if method == "farthest-first" else _plus_plus
                runs = [_lloyd(rows, weights, first(rows, weights, centres, rng)[0], labels, lloyd_steps) for _ in range(tries)]
                responsibilities[np.arange(n), min(runs, key=lambda run: run[1])[0]] = 1.0
    if labels.max(initial=-1) >= 0:
        named = labels >= 0
        responsibilities[named] = 0.0
        responsibilities[named, labels[named]] = 1.0
    return responsibilities


def named_assignments(batch: Batch, n_components: int) -> Array | None:
    """Responsibilities (n, K) of labelled rows alone, if every component has some."""
    if len(np.unique(batch.labels[batch.labels >= 0])) < n_components:
        return None
    responsibilities = np.zeros((len(batch), n_components))
    named = np.flatnonzero(batch.labels >= 0)
    responsibilities[named, batch.labels[named]] = 1.0
    return responsibilities


def _plus_plus(rows: Array, weights: Array, centres: Array, rng: np.random.Generator) -> tuple[Array, NDArray[np.int64]]:
    """Greedy k-means++: fill the centres that are NaN, each by the best of a few draws far from the other centres."""
    n, n_components = len(rows), len(centres)
    centres = centres.copy()
    chosen = np.full(n_components, -1)
    squares = np.einsum("ij,ij->i", rows, rows)
    trials = 2 + int(np.log(n_components))
    known = ~np.isnan(centres[:, 0])
    nearest = np.full(n, np.inf)
    if known.any():
        nearest = _distances(rows, squares, centres[known]).min(axis=1)
    for k in np.flatnonzero(~known):
        mass = weights if np.isinf(nearest[0]) else weights * nearest
        total = mass.sum()
        draws = 1 if np.isinf(nearest[0]) else trials
        if total > 0.0:
            candidates = np.minimum(np.searchsorted(np.cumsum(mass), rng.uniform(size=draws) * total), n - 1)
        else:  # every row already is a centre
            candidates = rng.integers(n, size=draws)
        distances = np.minimum(nearest[:, None], _distances(rows, squares, rows[candidates]))
        best = int(np.argmin(weights @ distances))
        chosen[k] = candidates[best]
        centres[k] = rows[chosen[k]]
        nearest = distances[:, best]
    return centres, chosen


def _farthest(rows: Array, weights: Array, centres: Array, rng: np.random.Generator) -> tuple[Array, NDArray[np.int64]]:
    """Farthest-first: fill the centres that are NaN, each by the row of a sample that is farthest from the other centres.

    Rows at zero carry no information and never become centres.
    """
    centres = centres.copy()
    chosen = np.full(len(centres), -1)
    telling = np.flatnonzero((weights > 0.0) & (np.einsum("ij,ij->i", rows, rows) > 0.0))
    sample = rng.permutation(telling if len(telling) else np.arange(len(rows)))[: max(FARTHEST_ROWS, 10 * len(centres))]
    squares = np.einsum("ij,ij->i", rows[sample], rows[sample])
    known = ~np.isnan(centres[:, 0])
    nearest = np.full(len(sample), np.inf)
    if known.any():
        nearest = _distances(rows[sample], squares, centres[known]).min(axis=1)
    for k in np.flatnonzero(~known):
        place = int(np.argmax(nearest)) if np.isfinite(nearest[0]) else int(rng.integers(len(sample)))
        chosen[k] = sample[place]
        centres[k] = rows[chosen[k]]
        nearest = np.minimum(nearest, _distances(rows[sample], squares, centres[k : k + 1])[:, 0])
    return centres, chosen


def _lloyd(
    rows: Array, weights: Array, centres: Array, labels: NDArray[np.int64], steps: int
) -> tuple[NDArray[np.int64], float]:
    """Lloyd's steps; return the group of each row, and the weighted squared distance to its centre."""
    squares = np.einsum("ij,ij->i", rows, rows)
    named = labels >= 0
    before = None
    for _ in range(max(steps, 1)):
        distances = _distances(rows, squares, centres)
        assigned = np.argmin(distances, axis=1)
        assigned[named] = labels[named]
        if before is not None and np.array_equal(assigned, before):
            break
        before = assigned
        centres = group_means(rows, weights, assigned, centres)
    return assigned, float(weights @ distances[np.arange(len(rows)), assigned])


def _distances(rows: Array, squares: Array, centres: Array) -> Array:
    return np.maximum(squares[:, None] - 2.0 * rows @ centres.T + np.einsum("ij,ij->i", centres, centres), 0.0)


def group_means(rows: Array, weights: Array, assigned: NDArray[np.int64], centres: Array) -> Array:
    """Weighted mean of each group; a group without rows keeps its centre."""
    n_components = len(centres)
    one_hot = np.zeros((len(rows), n_components))
    one_hot[np.arange(len(rows)), assigned] = weights
    mass = one_hot.sum(axis=0)
    sums = one_hot.T @ rows
    return np.where(mass[:, None] > 0.0, sums / np.maximum(mass, 1e-300)[:, None], centres)
