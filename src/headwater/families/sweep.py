"""Rows that are learned one by one, in NumPy: what kernels do for families that have one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.core.state import Batch
from headwater.core.statistics import Array
from headwater.kernels.mixture import READOUTS, weights_readout

if TYPE_CHECKING:
    from headwater.families.family import Family


def sweep_rows(
    family: Family[Any, Any, Any],
    name: str,
    prior: Any,
    concentration: Array,
    batch: Batch,
    steps: Array,
    gains: Array,
    n_eff: float,
    statistics: Any,
    average: Any,
    scores: Array,
) -> tuple[Any, Any, float]:
    """Read parameters out, take the E-step of a row, fold it, and so on. Returns statistics, average and n_eff."""
    log_weights, width = np.empty(family.n_components), batch.X.shape[1]
    for at in range(len(batch)):
        row, step = batch[at : at + 1], float(steps[at])
        totals = statistics.scaled(n_eff)
        weights_readout(READOUTS[name], concentration, totals.count, log_weights)
        parameters = family.readout(name, prior, totals)
        _, found = family.estep(parameters, log_weights, row, family.zeros(width), scores[at : at + 1], n_threads=1)
        statistics = statistics.toward(found, step, 1.0 / row.size)
        n_eff = 1.0 / ((1.0 - step) ** 2 / n_eff + step**2 / row.size)
        if average is not None:
            average = average.averaged(statistics, float(gains[at]))
    return statistics, average, n_eff
