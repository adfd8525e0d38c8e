"""States of a chain given the rows up to a few rows later, and given the rows before."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from headwater.core.batch import Batch
from headwater.core.statistics import Array
from headwater.models.chain_records import ChainParameters
from headwater.models.chain_smoothing import Smoother, by_group

STRETCH = 2**14  # rows that look ahead at once


def smooth_lagged(model: Smoother, parameters: ChainParameters, batch: Batch, lag: int, n_threads: int | None = None) -> Array:
    """Return the states (n, K) of each row, given the rows of its sequence up to `lag` rows later; all in logarithms."""
    order, edges, _ = by_group(batch.sequences, len(batch))
    X = batch.X if order is None else batch.X[order]
    filtered, _ = _filter(model, parameters, X, edges, n_threads)
    found = np.empty_like(filtered)
    with np.errstate(divide="ignore"):
        now = np.log(filtered)
    for begin, end in pairwise(edges.tolist()):
        for start in range(begin, end, STRETCH):
            stop = min(start + STRETCH, end)
            rows = slice(start, min(stop + lag, end))
            logs = model.log_densities_of(parameters, X[rows])
            later = model.passages.look_ahead(parameters, logs, lag)
            joint = now[start:stop] + later[: stop - start]
            found[start:stop] = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    if order is not None:
        found[order] = found.copy()
    return found


def states_before(model: Smoother, parameters: ChainParameters, batch: Batch, n_threads: int | None = None) -> Array:
    """Return the states (n, K) of each row, given the rows of its sequence before it."""
    order, edges, _ = by_group(batch.sequences, len(batch))
    X = batch.X if order is None else batch.X[order]
    _, ahead = _filter(model, parameters, X, edges, n_threads)
    if order is not None:
        ahead[order] = ahead.copy()
    return ahead / ahead.sum(axis=1, keepdims=True)


def _filter(
    model: Smoother, parameters: ChainParameters, X: Array, edges: NDArray[np.int64], n_threads: int | None
) -> tuple[Array, Array]:
    number = len(edges) - 1
    filters = np.zeros((number, model.n_components))
    found = model.filtered(parameters, X, edges, np.zeros(number, dtype=bool), filters, n_threads)
    return found.shares, found.ahead
