"""K Gaussians that learn from rows with gaps one by one: what their kernels are called with."""

from __future__ import annotations

import numpy as np

from headwater.core.batch import Batch
from headwater.core.gapped_rows import GappedRows
from headwater.core.statistics import Array
from headwater.families.gaussian_records import GaussianStatistics
from headwater.kernels.chain_gap_sweep import sweep_chain_columns_gaps, sweep_chain_matrix_gaps
from headwater.kernels.gaussian_gap_sweep import sweep_columns_gaps, sweep_matrix_gaps

PriorTuple = tuple[Array | float, ...]


def sweep_with_gaps(
    matrix: bool, code: int, origin: Array, prior: PriorTuple, concentration: Array, batch: Batch, steps: Array, gains: Array,
    n_eff: float, statistics: GaussianStatistics, average: GaussianStatistics | None, scores: Array,
) -> tuple[GaussianStatistics, GaussianStatistics | None, float]:  # fmt: skip
    """Learn row by row, where rows have gaps, or had some; return statistics and average, as means per row, and n_eff.

    Covariances are matrices, or columns are independent.
    """
    X = batch.X if isinstance(batch.X, GappedRows) else GappedRows(batch.X, np.zeros(batch.X.shape, dtype=bool))
    totals = statistics.with_gaps().scaled(n_eff)
    moving = totals.zeros_like() if average is None else average.with_gaps().copy()
    rows = (X.values, X.missing, batch.weights, batch.labels, origin, code, concentration, prior)
    if matrix:
        target, averages = (
            (one.count, one.first, one.second.reshape(-1, *one.second.shape[-2:]), one.observed, one.known)
            for one in (totals, moving)
        )
        n_eff = sweep_matrix_gaps(*rows, totals.second.ndim == 2, steps, gains, n_eff, *target, averages, scores)
    else:
        target, averages = ((one.count, one.first, one.second, one.observed, one.known) for one in (totals, moving))
        n_eff = sweep_columns_gaps(*rows, steps, gains, n_eff, *target, averages, scores)
    return totals.scaled(1.0 / n_eff), None if average is None else moving, n_eff


def sweep_chain_with_gaps(
    matrix: bool, tied: bool, X: Array, origin: Array, code: int, chain: tuple[Array, ...], prior: PriorTuple,
    *rest: Array | float | bool,
) -> tuple[float, Array]:  # fmt: skip
    """Learn the rows of a sequence step by step, where NaN is a gap."""
    rows = (X, np.isnan(X), origin, code, chain, prior)
    if matrix:
        return sweep_chain_matrix_gaps(*rows, tied, *rest)
    return sweep_chain_columns_gaps(*rows, *rest)
