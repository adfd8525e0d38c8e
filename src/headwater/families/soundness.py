"""Checks of records from files: each function says what is wrong with one, or returns ""."""

from __future__ import annotations

import numpy as np

from headwater.core.statistics import Array

TOLERANCE = 1e-8  # by which rounding may have made a number negative
ROUNDING = 1e-10  # and of counts a row
LEAST_SQUARE = 1e-200  # a row, below which products with weights may have become zero, which looks like a negative variance
SLACK = 1e-6  # by which a sum may differ from one
LEAST_POWER = 0.5 * (1.0 - SLACK)
MOST_SHARE = 1.01
MOST_DRIFTED = 1e6  # masses a row
LEAST_SUM = 1e-300  # of probabilities, or what a readout puts in their place
MOST_COUNTS = 4.0  # a row
MOST_ROWS = 1e60  # that a stream may weigh
MOST_WORDS = 1e60  # of a row
MOST_BELIEF = 1e120  # words of all rows
FARTHEST = 1e235  # of a score: that of rows which lie as far apart as rows can

NEGATIVE = "has negative counts"
INDEFINITE = "has a scatter that is not positive definite"
TOO_MANY = "counts more than there are rows"
OTHER_LENGTHS = "has lengths that are not those of its counts"
NO_MASSES = "has columns that were seen more often than their rows"
NO_PRIOR = "is not a valid prior"
NO_PARAMETERS = "is not a valid density"
IMPOSSIBLE = "has statistics that no rows could have made"
BEYOND = "expects rows that are beyond all that its statistics say"


def has_negative(*arrays: Array) -> bool:
    """Whether some number is negative by more than rounding explains."""
    return any(array.size and array.min() < -TOLERANCE * max(1.0, float(np.abs(array).max())) for array in arrays)


def is_no_power(powers: Array) -> bool:
    """Whether these are no powers of Student's density, which are one half or more; those of Gaussians are all 0."""
    student = (powers >= LEAST_POWER) & (powers <= MOST_ROWS)
    return bool(powers.any() and not student.all())


def are_no_shares(*arrays: Array) -> bool:
    """Whether some of these, along the last axis, are not probabilities: negative, all zero, or with a sum above one."""
    sums = [array.sum(axis=-1) for array in arrays]
    unlikely = [total.max() > 1.0 + TOLERANCE or total.min() < LEAST_SUM for total in sums]
    return any(unlikely) or any(array.min() < 0.0 for array in arrays)


def are_no_logs(*arrays: Array) -> bool:
    """The same of the logarithms of probabilities."""
    return any(array.max() > 1.0 for array in arrays) or are_no_shares(*(np.exp(array) for array in arrays))


def has_indefinite(matrices: Array, sizes: Array) -> bool:
    """Whether some of these matrices (lower triangles) have negative eigenvalues, relative to their sizes."""
    sizes = np.maximum(np.asarray(sizes, dtype=float), LEAST_SQUARE)[..., None, None]
    try:
        np.linalg.cholesky(np.tril(matrices) / sizes + TOLERANCE * np.eye(matrices.shape[-1]))  # which reads that triangle
    except np.linalg.LinAlgError:
        return True
    return False


def find_count_problem(*arrays: Array) -> str:
    """What is wrong with counts a row: they must not be negative, and must sum to one, or less after a repair."""
    if any(array.size and array.min() < -ROUNDING for array in arrays):
        return NEGATIVE
    return TOO_MANY if any(not array.sum() <= MOST_COUNTS for array in arrays) else ""


def exceeds(most: float, *values: Array | float) -> bool:
    """Whether some number is larger than this in size, or NaN."""
    return any(np.size(value) and not np.abs(value).max() <= most for value in values)
