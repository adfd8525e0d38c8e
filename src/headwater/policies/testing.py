"""Many tests at once: Benjamini and Hochberg's procedure within a table."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array


def benjamini_hochberg(pvalues: Array, level: float) -> NDArray[np.bool_]:
    """Return which hypotheses are rejected, so that no more than `level` of them are true on average; NaN is no test.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater.policies.testing import benjamini_hochberg
    >>> benjamini_hochberg(np.array([0.001, 0.9, 0.02, np.nan, 0.5]), level=0.05)
    array([ True, False,  True, False, False])
    """
    known = np.flatnonzero(~np.isnan(pvalues))
    order = known[np.argsort(pvalues[known], kind="stable")]
    passed = np.flatnonzero(pvalues[order] <= level * np.arange(1, len(order) + 1) / max(len(order), 1))
    rejected = np.zeros(len(pvalues), dtype=bool)
    if len(passed):
        rejected[order[: passed[-1] + 1]] = True
    return rejected
