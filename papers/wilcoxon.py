"""Wilcoxon's signed-rank test as an arrow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import wilcoxon

SIGNIFICANT = 0.05


def arrow(scores: Sequence[float], others: Sequence[float]) -> str:
    """Up where `scores` are better than `others` by Wilcoxon's signed-rank test, down where worse, else nothing."""
    differences = np.subtract(scores, others)
    differences = differences[np.isfinite(differences) & (differences != 0.0)]
    if len(differences) < 6:  # which can never be significant
        return ""
    method = "exact" if len(np.unique(np.abs(differences))) == len(differences) else "asymptotic"
    if wilcoxon(differences, method=method).pvalue >= SIGNIFICANT:
        return ""
    return "↑" if np.median(differences) > 0.0 else "↓"
