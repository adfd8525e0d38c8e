"""From joint log-densities to responsibilities, in NumPy: what kernels/mixture.py does for families that have a kernel."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.kernels.mixture import LOWEST


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
    peak = joint.max(axis=1)
    joint -= peak[:, None]
    np.exp(joint, out=joint)
    sums = joint.sum(axis=1)
    joint /= sums[:, None]
    return np.asarray(peak + np.log(sums))
