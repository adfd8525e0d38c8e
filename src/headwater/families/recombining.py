"""Statistics of K components as those of others: what moves between parts of a mixture come down to."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array

APART = 3.0  # times that a covariance may differ, in any direction, from what kept rows say alone, beside chance
FEWEST = 0.7  # root of columns by rows, from which on rows say nothing more about directions


def recombined_arrays(
    statistics: Any, matrix: Array, others: Any = None, other_matrix: Array | None = None, shared: tuple[str, ...] = ()
) -> Any:
    """Return matrix @ statistics + other_matrix @ others over the components, which are the first axis of every array.

    A row of a matrix is a component to be, a column one that is there: so components are merged, split, emptied or replaced.
    What all components share stays that of the first.
    """
    arrays = dict(statistics.to_arrays())
    for name, array in arrays.items():
        if name == "from_base" or name in shared:
            continue
        arrays[name] = np.tensordot(matrix, array, axes=1)
        if others is not None:
            arrays[name] += np.tensordot(np.asarray(other_matrix), getattr(others, name), axes=1)
    return type(statistics)(**arrays)


def supported(totals: Array, known: Array, rows: Array) -> NDArray[np.bool_]:
    """Return which counts (K,) are such as the kept rows of each component, which are known, can stand for."""
    least, most = 0.5 * known, 2.0 * known
    chance = 4.0 * known / np.sqrt(np.maximum(rows, 1.0))
    return np.asarray((totals > np.maximum(least - chance, 0.0)) & (totals < most + chance))


def near(matrices: Array, known: Array, rows: Array) -> NDArray[np.bool_]:
    """Return which symmetric matrices (K, d, d) are positive, and in no direction far from what so many kept rows (K,) say.

    Diagonals (K, d) stand for matrices. How far is chance depends on the rows: eigenvalues of a sample spread by
    ((1 + q) / (1 - q))^2 with q^2 = d / rows (Marchenko and Pastur 1967).
    """
    width = matrices.shape[1]
    spread = np.minimum(np.sqrt(width / np.maximum(rows, 1.0)), FEWEST)
    bound = APART * ((1.0 + spread) / (1.0 - spread)) ** 2
    diagonal = matrices.ndim == 2
    axes = tuple(range(1, matrices.ndim))
    variances = known if diagonal else np.diagonal(known, axis1=1, axis2=2)
    finite = np.isfinite(matrices).all(axis=axes) & np.isfinite(known).all(axis=axes)
    good: NDArray[np.bool_] = np.asarray(finite & (variances > 0.0).all(axis=1))
    at = np.flatnonzero(good)
    if diagonal:
        ratios = matrices[at] / known[at]
    else:
        units = np.sqrt(variances[at])
        units = units[:, :, None] * units[:, None, :]
        values, vectors = np.linalg.eigh(known[at] / units)
        sound = values[:, 0] > 0.0
        good[at[~sound]] = False
        at, white = at[sound], (vectors / np.sqrt(np.maximum(values, 1e-300))[:, None, :])[sound]
        ratios = np.linalg.eigvalsh(np.swapaxes(white, 1, 2) @ (matrices[at] / units[sound]) @ white)
    good[at] = (ratios.min(axis=1, initial=np.inf) > 1.0 / bound[at]) & (ratios.max(axis=1, initial=0.0) < bound[at])
    return good
