"""Checks of Gaussian records from files: each function says what is wrong with one, or returns ""."""

from __future__ import annotations

import numpy as np

from headwater.core.statistics import HEAVIEST, LARGEST
from headwater.families.gaussian_records import (
    GappedStatistics,
    GaussianParameters,
    GaussianPrior,
    GaussianStatistics,
    MomentStatistics,
    RoundedPrior,
    masses,
)
from headwater.families.soundness import (
    INDEFINITE,
    LEAST_SQUARE,
    MOST_DRIFTED,
    MOST_ROWS,
    NO_MASSES,
    NO_PARAMETERS,
    NO_PRIOR,
    SLACK,
    TOLERANCE,
    TOO_MANY,
    exceeds,
    find_count_problem,
    has_indefinite,
    has_negative,
    is_no_power,
)


def find_statistics_problem(record: GaussianStatistics, kind: str) -> str:
    """Counts and variances are not negative, unless masses differ, as moment matching makes them."""
    if isinstance(record, MomentStatistics):
        return TOO_MANY if exceeds(MOST_DRIFTED, record.count, record.mean_count, record.dof_count) else ""
    problem = find_count_problem(record.count)
    if problem:
        return problem
    if isinstance(record, GappedStatistics):
        for mass in (record.observed, record.known):
            if has_negative(mass, record.count[:, None] - mass):
                return NO_MASSES
    first, second = record.first, record.second
    means = first / np.maximum(masses(record, kind)[0], TOLERANCE)  # without rows there are only rounding errors
    if kind == "tied":
        return INDEFINITE if has_indefinite(second - first.T @ means, np.abs(second).max()) else ""
    # Statistics that move between components leave rounding errors of the size of the largest.
    largest = np.maximum(np.abs(second).max(axis=0), LEAST_SQUARE)
    if second.ndim == 3:
        return INDEFINITE if has_indefinite(second - first[:, :, None] * means[:, None, :], largest.max()) else ""
    return INDEFINITE if np.any(second - first * means < -TOLERANCE * largest) else ""


def find_prior_problem(record: GaussianPrior) -> str:
    """Prior counts and variances are not negative, and within limits."""
    scale = record.scale
    unsound = has_indefinite(scale, np.abs(scale).max()) if scale.ndim == 2 else has_negative(scale)
    unsound = unsound or record.mean_precision < 0.0 or record.floor < 0.0 or bool(np.any(record.units <= 0.0))
    if isinstance(record, RoundedPrior):
        unsound = unsound or bool(np.any(record.steps < 0.0)) or exceeds(LARGEST, record.steps)
    unsound = unsound or exceeds(HEAVIEST, record.mean_precision, record.dof) or exceeds(LARGEST**2, record.floor)
    return NO_PRIOR if unsound or exceeds(LARGEST, record.origin) else ""


def find_parameters_problem(record: GaussianParameters, matrix: bool) -> str:
    """Factors of precisions have a positive diagonal, tails a positive stretch, and means lie among rows."""
    diagonal = np.diagonal(record.factor, axis1=-2, axis2=-1) if matrix else record.factor
    unsound = bool(np.any(diagonal <= 0.0)) or has_negative(record.stretch) or bool(np.any(record.units <= 0.0))
    unsound = unsound or is_no_power(record.power) or exceeds(MOST_ROWS, record.offset) or exceeds(LARGEST, record.origin)
    means = record.means * record.units if record.units.size else record.means
    if unsound or exceeds(4.0 * LARGEST, means):
        return NO_PARAMETERS
    factor = record.factor if matrix and record.factor.ndim == 3 else record.factor[None] if matrix else None
    shift = record.factor * record.means if factor is None else (factor @ record.means[:, :, None])[..., 0]
    size = np.abs(shift) if factor is None else (np.abs(factor) @ np.abs(record.means)[:, :, None])[..., 0]
    return NO_PARAMETERS if np.any(np.abs(record.shift - shift) > SLACK * size) else ""
