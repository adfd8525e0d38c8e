"""Health checks of rounded columns: components that are thinner than the values are rounded have densities that say nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headwater.core.gapped_rows import Mask
from headwater.core.statistics import Array
from headwater.core.values import Matrix
from headwater.diagnostics.health import Finding, component_phrase
from headwater.families.column_steps import find_steps

ROW_LIMIT = 8192  # rows that are looked at
NAMED = 3  # columns in one sentence


def rounding_findings(rows: Matrix, variances: Array, alive: Mask, names: Sequence[str]) -> list[Finding]:
    """Return which columns are rounded more coarsely than some component is wide, by rows that the model has seen.

    `variances` (K, d) are those of each column given the others, and `alive` (K,) says which components count. The proposal
    is the parameter `resolution`.
    """
    steps = find_steps(rows[:ROW_LIMIT])
    thin = (variances < steps**2 / 12.0) & alive[:, None]
    columns = [int(j) for j in np.flatnonzero(thin.any(axis=0))]
    if not columns:
        return []
    which = tuple(int(k) for k in np.flatnonzero(thin.any(axis=1)))
    told = ", ".join(f"{names[j]} (to {steps[j]:.3g})" for j in columns[:NAMED]) + (", ..." if len(columns) > NAMED else "")
    several = len(which) > 1
    sentence = (
        f"Values are rounded in {told}, and {component_phrase('component', list(which)).lower()} {'are' if several else 'is'} "
        f"thinner than that: {'their densities say' if several else 'its density says'} nothing of the rows. Set "
        f"resolution='auto'."
    )
    return [Finding("rounded", which, sentence, True, {"columns": float(len(columns)), "step": float(steps[columns].max())})]
