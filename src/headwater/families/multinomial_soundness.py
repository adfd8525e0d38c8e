"""Checks of records of counts from files: each function says what is wrong with one, or returns ""."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headwater.families.multinomial_records import MultinomialParameters, MultinomialPrior, MultinomialStatistics
from headwater.families.soundness import (
    MOST_BELIEF,
    MOST_WORDS,
    NEGATIVE,
    NO_PARAMETERS,
    NO_PRIOR,
    OTHER_LENGTHS,
    ROUNDING,
    SLACK,
    TOO_MANY,
    exceeds,
    find_count_problem,
    has_negative,
)
from headwater.families.table import Table
from headwater.kernels.multinomial import group_sums


def find_statistics_problem(record: MultinomialStatistics, groups: NDArray[np.int32]) -> str:
    """Counts are not negative, and lengths are their sums; parts of an average may be negative."""
    parts = [record.table] if isinstance(record.table, Table) else [record.table.table, record.table.rest]
    if any(exceeds(MOST_WORDS, part.stored()[1] * part.factor) for part in parts):
        return TOO_MANY
    words, rows = record.table.held()
    if has_negative(record.length, rows):
        return NEGATIVE
    sums = np.zeros_like(record.length)
    group_sums(words, rows, groups, sums)
    if np.abs(sums - record.length).max() > SLACK * max(np.abs(rows).max(initial=0.0), float(np.abs(record.length).max())):
        return OTHER_LENGTHS
    return TOO_MANY if exceeds(MOST_WORDS, record.length) else find_count_problem(record.count)


def find_length_problem(record: MultinomialStatistics) -> str:
    """A component without rows has no words: both have the same responsibilities. This does not hold for drawn topics.

    Statistics that move between components leave rounding errors of the size of the longest.
    """
    most = MOST_WORDS * np.maximum(record.count, 0.0) + ROUNDING * record.length.max(initial=0.0) + 1e-100
    return TOO_MANY if np.any(record.length > most) else ""


def find_prior_problem(record: MultinomialPrior, width: int) -> str:
    """Every column has a positive parameter."""
    sizes = record.sizes
    whole = np.array_equal(sizes, np.round(sizes)) and sizes.min() > 0.0 and sizes.sum() == width
    positive = record.beta.min() > 0.0 and record.totals.min() > 0.0 and not has_negative(record.shift, record.shift_totals)
    sound = whole and positive and np.all(record.shift <= record.beta) and not exceeds(MOST_WORDS, record.beta, record.totals)
    return "" if sound else NO_PRIOR


def find_parameters_problem(record: MultinomialParameters) -> str:
    """Counts that they are read out of are not negative."""
    if not np.isfinite(record.norm).all() or exceeds(MOST_BELIEF, record.norm):
        return NO_PARAMETERS
    return NEGATIVE if has_negative(record.table.stored()[1] * record.table.factor) else ""
