"""Statistics of K components as those of others: what moves between parts of a mixture come down to."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwater.statistics import Array

APART = 3.0  # times that a covariance may differ, in any direction, from what kept rows say alone


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


def near(matrices: Array, known: Array) -> NDArray[np.bool_]:
    """Return which symmetric matrices (K, d, d) are positive, and not far from others that are: in no direction by a factor."""
    variances = np.diagonal(known, axis1=1, axis2=2)
    finite = np.isfinite(matrices).all(axis=(1, 2)) & np.isfinite(known).all(axis=(1, 2))
    good: NDArray[np.bool_] = np.asarray(finite & (variances > 0.0).all(axis=1))
    for k in np.flatnonzero(good):
        units = np.sqrt(variances[k])
        values, vectors = np.linalg.eigh(known[k] / units / units[:, None])
        if values[0] <= 0.0:
            good[k] = False
            continue
        white = vectors / np.sqrt(values)
        ratios = np.linalg.eigvalsh(white.T @ (matrices[k] / units / units[:, None]) @ white)
        good[k] = ratios[0] > 1.0 / APART and ratios[-1] < APART
    return good
