"""From joint log-densities to responsibilities, in NumPy: what kernels/mixture.py does for families that have a kernel."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.kernels.mixture import LOWEST

FEW_COLUMNS = 7


def posterior(joint: Array, labels: NDArray[np.int64]) -> Array:
    """Turn joint log-densities (n, K) into responsibilities, in place; return the score (n,) of each row.

    A row with a label, which is not -1, belongs to that component and scores its joint log-density.
    """
    if not joint.size:
        return np.zeros(len(joint))
    named = np.flatnonzero(labels >= 0)
    own = np.maximum(joint[named, labels[named]], LOWEST)
    joint[named] = -np.inf
    joint[named, labels[named]] = own
    np.maximum(joint, LOWEST, out=joint)  # a row that is impossible in every component has a finite score
    peak = _reduce(np.maximum, joint)
    joint -= peak[:, None]
    np.exp(joint, out=joint)
    sums = _reduce(np.add, joint)
    joint /= sums[:, None]
    return np.asarray(peak + np.log(sums))


def _reduce(function: np.ufunc, joint: Array) -> Array:
    """The largest number of each row, or the sum: column by column where they are few, which takes a fifth of the time.

    NumPy adds up to seven numbers one by one, too, so the sums are the same to the last bit.
    """
    if joint.shape[1] > FEW_COLUMNS:
        return np.asarray(function.reduce(joint, axis=1))
    found = joint[:, 0].copy()
    for column in joint.T[1:]:
        function(found, column, out=found)
    return found
