"""Checks of regression records from files: each function says what is wrong with one, or returns ""."""

from __future__ import annotations

import numpy as np

from headwater.core.statistics import HEAVIEST, LARGEST, Array
from headwater.families.regression_records import RegressionParameters, RegressionPrior
from headwater.families.soundness import (
    BEYOND,
    FARTHEST,
    MOST_ROWS,
    NO_PARAMETERS,
    NO_PRIOR,
    SLACK,
    exceeds,
    has_negative,
    is_no_power,
)

TINY = 1e-300


def find_prior_problem(record: RegressionPrior) -> str:
    """Precisions and scales are not negative."""
    unsound = has_negative(record.precision) or record.scale < 0.0 or record.floor < 0.0
    unsound = unsound or exceeds(HEAVIEST, record.dof) or exceeds(LARGEST, record.origin) or exceeds(LARGEST**2, record.floor)
    return NO_PRIOR if unsound else ""


def find_parameters_problem(record: RegressionParameters) -> str:
    """Noise is positive, and so are tails; the factor has the coefficients, in units of the noise."""
    precision = record.factor[:, -1, -1:]
    unsound = bool(np.any(precision <= 0.0)) or is_no_power(record.power) or exceeds(MOST_ROWS, record.offset)
    if unsound or exceeds(LARGEST, record.origin):
        return NO_PARAMETERS
    with np.errstate(over="ignore", invalid="ignore"):
        coef = record.coef * precision
        differs = ~(np.abs(coef + record.factor[:, -1, :-1]) <= SLACK * np.abs(coef) + TINY)
    return NO_PARAMETERS if differs.any() else ""


def find_mismatch(record: RegressionParameters, products: Array) -> str:
    """Residuals of the rows that have these products of design and target have squares, in units of the noise."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.einsum("ki,kij,kj->k", record.factor[:, -1], products, record.factor[:, -1])
    return BEYOND if exceeds(FARTHEST, squares) else ""
