"""Checks of regression records from files: each function says what is wrong with one, or returns ""."""

from __future__ import annotations

import numpy as np

from headwater.core.statistics import HEAVIEST, LARGEST
from headwater.families.regression_records import RegressionParameters, RegressionPrior
from headwater.families.soundness import MOST_ROWS, NO_PARAMETERS, NO_PRIOR, exceeds, has_negative, is_no_power


def find_prior_problem(record: RegressionPrior) -> str:
    """Precisions and scales are not negative."""
    unsound = has_negative(record.precision) or record.scale < 0.0 or record.floor < 0.0
    unsound = unsound or exceeds(HEAVIEST, record.dof) or exceeds(LARGEST, record.origin) or exceeds(LARGEST**2, record.floor)
    return NO_PRIOR if unsound else ""


def find_parameters_problem(record: RegressionParameters) -> str:
    """Noise is positive, and so are tails."""
    unsound = bool(np.any(record.factor[:, -1, -1] <= 0.0))
    unsound = unsound or is_no_power(record.power) or exceeds(MOST_ROWS, record.offset)
    return NO_PARAMETERS if unsound or exceeds(LARGEST, record.origin) else ""
