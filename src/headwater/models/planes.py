"""Seeds of regressions: groups of rows whose last column is a linear function of the others, found by k-planes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array

SUBSETS = 200  # planes through a few rows each that seeds are chosen from
SAMPLE = 400  # rows that choose
WIDEST = 30  # rows; a plane through more is practically never of one component
RIDGE = 1e-6
ROUNDING = 1e-12  # of the squares, which hides a ridge where some rows are far larger than others


def plane_groups(
    rows: Array,
    weights: Array,
    labels: NDArray[np.int64],
    n_components: int,
    rng: np.random.Generator,
    steps: int,
    chance: bool,
) -> tuple[NDArray[np.int64], float]:
    """Return the group of each row, and the weighted squared distance to its plane.

    Groups begin with planes through as few rows as possible, each chosen to be near rows that the planes before are far from;
    or, with `chance`, with a random partition of the rows, which is better if few rows of a plane are of one component.
    Then planes and groups are updated in turn, as in k-means. Labelled rows stay in their group.
    """
    design, target = rows[:, :-1], rows[:, -1]
    named = labels >= 0
    if chance or design.shape[1] > WIDEST:
        groups = np.where(named, labels, rng.integers(n_components, size=len(rows)))
        planes = _fit_groups(design, target, weights, groups, np.zeros((n_components, design.shape[1])))
    else:
        planes = np.full((n_components, design.shape[1]), np.nan)
        planes = _fit_groups(design[named], target[named], weights[named], labels[named], planes)
        planes = _choose_planes(design, target, weights, planes, rng)
    before = None
    for _ in range(max(steps, 1)):
        squares = (target[:, None] - design @ planes.T) ** 2
        groups = np.argmin(squares, axis=1)
        groups[named] = labels[named]
        if before is not None and np.array_equal(groups, before):
            break
        before = groups
        planes = _fit_groups(design, target, weights, groups, planes)
    return groups, float(weights @ squares[np.arange(len(rows)), groups])


def _choose_planes(design: Array, target: Array, weights: Array, planes: Array, rng: np.random.Generator) -> Array:
    """Fill the planes that are NaN, each by the one of many candidates with the least remaining error on a sample."""
    n, size = design.shape
    subsets = rng.integers(n, size=(SUBSETS, size))
    through = design[subsets]
    squares = np.swapaxes(through, 1, 2) @ through
    ridges = np.maximum(RIDGE, ROUNDING * np.trace(squares, axis1=1, axis2=2) / size)
    squares += ridges[:, None, None] * np.eye(size)
    candidates = np.linalg.solve(squares, np.swapaxes(through, 1, 2) @ target[subsets][..., None])[..., 0]
    sample = rng.permutation(n)[:SAMPLE]
    distances = np.abs(target[sample, None] - design[sample] @ candidates.T)
    planes = planes.copy()
    known = ~np.isnan(planes[:, 0])
    nearest = np.full(len(sample), np.inf)
    if known.any():
        nearest = np.abs(target[sample, None] - design[sample] @ planes[known].T).min(axis=1)
    for k in np.flatnonzero(~known):
        # The first is near many rows, whatever its distance from the others.
        left = np.minimum(nearest[:, None], distances) if np.isfinite(nearest[0]) else np.sqrt(distances)
        best = int(np.argmin(weights[sample] @ left))
        planes[k] = candidates[best]
        nearest = np.minimum(nearest, distances[:, best])
    return planes


def _fit_groups(design: Array, target: Array, weights: Array, groups: NDArray[np.int64], planes: Array) -> Array:
    """Least squares of each group; a group without rows keeps its plane."""
    planes = planes.copy()
    for k in np.unique(groups):
        own = groups == k
        weighted = (design[own] * weights[own, None]).T
        squares = weighted @ design[own]
        squares[np.diag_indices_from(squares)] += RIDGE * (weights[own].sum() + np.trace(squares) / len(squares))
        planes[k] = np.linalg.solve(squares, weighted @ target[own])
    return planes
