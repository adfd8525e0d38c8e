"""Chains in which a state comes back of which rounding had left nothing: they are filtered and smoothed in logarithms.

Where every transition exists, nothing is lost: what a state with less than 1e-308 hands on is nothing beside what the others
do. Where some do not, a state may be reached from itself alone. Then the filter is made again in logarithms, and if that is
another, it is the one that holds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.models.chain_records import ChainParameters

LEAST_TRANSITION = 1e-250  # a transition that is rarer does not make up for a state that was lost
LEAST_SHARE = 1e-290  # of which products are still right
AGREE = 1e-12  # filters that differ by less are one


class LogFilter(NamedTuple):
    """Logarithms of the filter of each row, of the states before it, of the filters before its sequences, of transitions."""

    filtered: Array
    ahead: Array
    before: Array
    steps: Array


class Filtered(NamedTuple):
    """States (n, K) of each row given the rows so far, and given those before it, its log-score; and the same in logarithms.

    There are `logs` only where they must be used.
    """

    shares: Array
    ahead: Array
    scores: Array
    logs: LogFilter | None


def may_lose(parameters: ChainParameters, shares: Array, ahead: Array) -> bool:
    """Whether some state may have lost its probability to rounding, and get it from nowhere else."""
    if parameters.transitions.min() >= LEAST_TRANSITION:
        return False
    return bool(((shares < LEAST_SHARE) & (ahead > 0.0)).any())


def run_in_logs(
    run: Callable[..., None],
    start: Array,
    steps: Array,
    logs: Array,
    edges: NDArray[np.int64],
    known: NDArray[np.bool_],
    filters: Array,
    found: Filtered,
) -> Filtered:
    """Return what was found, or what a kernel finds in logarithms with these passages if a state comes back."""
    with np.errstate(divide="ignore"):
        log_start, log_steps = np.log(start), np.log(steps)
        before = np.where(known[:, None], np.log(filters), -np.inf)
    filtered, ahead, scores = np.empty_like(logs), np.empty_like(logs), np.empty(len(logs))
    run(np.ascontiguousarray(logs), edges, before, log_start, log_steps, filtered, ahead, scores)
    shares = np.exp(filtered)
    if np.abs(shares - found.shares).max() <= AGREE:
        return found
    return Filtered(shares, np.exp(ahead), scores, LogFilter(filtered, ahead, before, log_steps))
