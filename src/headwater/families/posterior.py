"""From log-densities to responsibilities, for families that have no kernel for the whole E-step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.kernels.mixture import share_rows


def posterior(joint: Array, labels: NDArray[np.int64], log_weights: Array | None = None) -> Array:
    """Turn log-densities (n, K) into responsibilities, in place; return the score (n,) of each row.

    Log-weights (K,) are added if they are given. A row with a label, which is not -1, belongs to that component and scores its
    joint log-density; a row that is impossible in every component has a finite score, and equal responsibilities.
    """
    scores = np.zeros(len(joint))
    if joint.size:
        rows = np.ascontiguousarray(joint)
        share_rows(rows, np.zeros(joint.shape[1]) if log_weights is None else log_weights, labels, scores)
        if rows is not joint:
            joint[...] = rows
    return scores
