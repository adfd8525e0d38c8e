"""Checks of the records of chains from files: each function says what is wrong with one, or returns ""."""

from __future__ import annotations

import numpy as np

from headwater.core.statistics import HEAVIEST, Array
from headwater.families.soundness import (
    IMPOSSIBLE,
    NO_PARAMETERS,
    NO_PRIOR,
    SLACK,
    are_no_shares,
    exceeds,
    find_count_problem,
    has_negative,
)
from headwater.models.chain_records import TINY, Carry, ChainParameters, ChainPrior, ChainStatistics

LONGEST = 1e12  # size of the logarithm of the share of old statistics


def find_carry_problem(record: Carry) -> str:
    """States of open sequences are shares, and statistics given each state have their mean."""
    if are_no_shares(*record.filters.values()) or exceeds(
        LONGEST, record.left, *(left for _, _, left in record.apart.values())
    ):
        return NO_PARAMETERS
    apart = record.apart.items()
    return IMPOSSIBLE if any(_is_no_mean(record.filters.get(number), *parts[:2]) for number, parts in apart) else ""


def find_prior_problem(record: ChainPrior) -> str:
    """Dirichlet parameters are not negative, and there is somewhere to begin, and to go."""
    if has_negative(record.start, record.steps, record.start - record.start_shift, record.steps - record.steps_shift):
        return NO_PRIOR
    if record.start.sum() <= 0.0 or record.steps.sum(axis=1).min() <= 0.0:
        return NO_PRIOR
    return NO_PRIOR if exceeds(HEAVIEST, record.start, record.steps) else ""


def find_parameters_problem(record: ChainParameters) -> str:
    """Probabilities are shares."""
    return NO_PARAMETERS if are_no_shares(record.start, record.transitions) else ""


def find_statistics_problem(record: ChainStatistics) -> str:
    """Counts are not negative."""
    return find_count_problem(record.start, record.steps)


def _is_no_mean(states: Array | None, given: Array, mean: Array) -> bool:
    """Whether statistics given each state have changed their mean over the states of a sequence (kernels/chain_sweep.py)."""
    return states is None or bool(np.any(np.abs(states @ given - mean) > SLACK * (states @ np.abs(given)) + TINY))
