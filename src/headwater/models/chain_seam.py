"""The recursion of a chain across its warm-up: what the statistics of its rows are, given the state of the last one.

Row by row (paper 002, and kernels/chain_sweep.py) statistics are kept given the state that a sequence is in. The rows of a
warm-up are smoothed at once; at parameters that are held, and with steps 1/n, the recursion over them ends in

    rho(x) = E[S | all rows, the last state is x] = S + (E[s of the sequence | x] - E[s of the sequence]) / n

So each open sequence is smoothed once for each state, as if it ended in it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from headwater.core.batch import Batch
from headwater.core.statistics import Array
from headwater.kernels.chains import smooth
from headwater.models.chain_records import Carry, ChainParameters, ChainStatistics

if TYPE_CHECKING:
    from headwater.models.hidden_markov import HiddenMarkov


def begin_sweep(
    model: HiddenMarkov, parameters: ChainParameters, statistics: ChainStatistics, batch: Batch, size: float
) -> Carry:
    """Return what is carried on from a warm-up: states of all open sequences, and statistics given each of them."""
    carry, apart = model.follow(parameters, batch, None), {}
    for number in carry.filters:
        rows = batch[np.flatnonzero(batch.sequences == number)] if batch.sequences.size else batch
        parts = _apart(model, parameters, statistics, rows, size)
        if parts is not None:
            apart[number] = (*parts, 0.0)
    return replace(carry, apart=apart)


def _apart(
    model: HiddenMarkov, parameters: ChainParameters, statistics: ChainStatistics, rows: Batch, size: float
) -> tuple[Array, Array] | None:
    """Return the statistics per row given each last state of a sequence (K, numbers), and their mean; None if one was lost.

    `statistics` are those of all rows of the warm-up, which weigh `size`; `rows` are those of the sequence.
    """
    k, n = model.n_components, len(rows)
    edges, known, zeros = np.array([0, n]), np.zeros(1, dtype=bool), np.zeros((1, k))
    found = model.filtered(parameters, rows.X, edges, known, zeros.copy(), None)
    last = found.shares[-1].copy()
    if found.logs is not None or not last.min() > 0.0:
        return None
    ends = []
    for state in range(k):
        shares, totals = found.shares.copy(), model.zeros(rows.X.shape[1])
        shares[-1] = np.arange(k) == state
        smooth(
            shares, found.ahead, edges, known, zeros.copy(), np.array([n]), parameters.transitions, totals.start, totals.steps
        )
        totals.steps[...] *= parameters.transitions
        ends.append(model.collected(parameters, rows.X, shares, totals))
    mean = ends[0].scaled(float(last[0]))
    for share, one in zip(last[1:], ends[1:], strict=True):
        mean = mean + one.scaled(float(share))
    given = np.array([model.flat(statistics + (one - mean).scaled(1.0 / size)) for one in ends])
    counts = k * (k + 1)
    given[:, :counts] = np.maximum(given[:, :counts], 0.0)  # what rounding leaves
    return (given, last @ given) if np.isfinite(given).all() else None
