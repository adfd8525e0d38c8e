"""What no rows could have made: each function says what is wrong with a record that comes from outside, or nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import HEAVIEST, LARGEST, Array
from headwater.families.gaussian_records import GaussianParameters, GaussianPrior, GaussianStatistics, MomentStatistics
from headwater.families.multinomial_records import MultinomialParameters, MultinomialPrior, MultinomialStatistics
from headwater.families.regression_records import RegressionParameters, RegressionPrior
from headwater.families.table import Table
from headwater.kernels.multinomial import group_sums

TOLERANCE = 1e-8  # of what rounding may have made negative
ROUNDING = 1e-10  # and of counts a row
SLACK = 1e-6  # and of sums that are one
MOST_SHARE = 1.01
MOST_DRIFTED = 1e6  # masses a row
LEAST_SUM = 1e-300  # of probabilities, or what a readout puts in their place
MOST_COUNTS = 4.0  # a row
MOST_ROWS = 1e60  # that a stream may weigh
MOST_WORDS = 1e60  # of a row
MOST_BELIEF = 1e120  # words of all rows

NEGATIVE = "has negative counts"
INDEFINITE = "has a scatter that is not positive definite"
TOO_MANY = "counts more than there are rows"
OTHER_LENGTHS = "has lengths that are not those of its counts"
NO_PRIOR = "is no prior"
NO_PARAMETERS = "is no density"


def below_zero(*arrays: Array) -> bool:
    """Whether some number is negative by more than rounding explains."""
    return any(array.size and array.min() < -TOLERANCE * max(1.0, float(np.abs(array).max())) for array in arrays)


def no_shares(*arrays: Array) -> bool:
    """Whether some of these, along the last axis, are no probabilities: negative, all zero, or more than one in all."""
    sums = [array.sum(axis=-1) for array in arrays]
    unlikely = [total.max() > 1.0 + TOLERANCE or total.min() < LEAST_SUM for total in sums]
    return any(unlikely) or any(array.min() < 0.0 for array in arrays)


def no_logs(*arrays: Array) -> bool:
    """The same of the logarithms of probabilities."""
    return any(array.max() > 1.0 for array in arrays) or no_shares(*(np.exp(array) for array in arrays))


def indefinite(matrices: Array, sizes: Array) -> bool:
    """Whether some of these matrices, of which the lower triangle counts, have negative eigenvalues beside their sizes."""
    sizes = np.maximum(np.asarray(sizes, dtype=float), 1e-300)[..., None, None]
    try:
        np.linalg.cholesky(np.tril(matrices) / sizes + TOLERANCE * np.eye(matrices.shape[-1]))  # which reads that triangle
    except np.linalg.LinAlgError:
        return True
    return False


def unlikely_counts(*arrays: Array) -> str:
    """What is wrong with counts a row: they are not negative, and not many in all; one, but for what was mended."""
    if any(array.size and array.min() < -ROUNDING for array in arrays):
        return NEGATIVE
    return TOO_MANY if any(not array.sum() <= MOST_COUNTS for array in arrays) else ""


def beyond(most: float, *values: Array | float) -> bool:
    """Whether some number is larger than this in size, or NaN."""
    return any(np.size(value) and not np.abs(value).max() <= most for value in values)


def gaussian_statistics(record: GaussianStatistics, tied: bool) -> str:
    """Counts are not negative, and neither are variances; a belief whose masses have drifted apart is another matter."""
    if isinstance(record, MomentStatistics):
        return TOO_MANY if beyond(MOST_DRIFTED, record.count, record.mean_count, record.dof_count) else ""
    problem = unlikely_counts(record.count)
    if problem:
        return problem
    first, second = record.first, record.second
    means = first / np.maximum(record.count, TOLERANCE)[:, None]  # what has no rows has only rounding errors
    if tied:
        return INDEFINITE if indefinite(second - first.T @ means, np.abs(second).max()) else ""
    # What moves between components leaves rounding errors, which are a part of the largest.
    largest = np.abs(second).max(axis=0)
    if second.ndim == 3:
        return INDEFINITE if indefinite(second - first[:, :, None] * means[:, None, :], largest.max()) else ""
    return INDEFINITE if np.any(second - first * means < -TOLERANCE * largest) else ""


def gaussian_prior(record: GaussianPrior) -> str:
    """Rows' worth of belief are not negative, and neither are variances; none is more than a prior can say."""
    scale = record.scale
    unsound = indefinite(scale, np.abs(scale).max()) if scale.ndim == 2 else below_zero(scale)
    unsound = unsound or record.mean_precision < 0.0 or record.floor < 0.0 or bool(np.any(record.units <= 0.0))
    unsound = unsound or beyond(HEAVIEST, record.mean_precision, record.dof) or beyond(LARGEST**2, record.floor)
    return NO_PRIOR if unsound or beyond(LARGEST, record.origin) else ""


def gaussian_parameters(record: GaussianParameters, matrix: bool) -> str:
    """Factors of precisions have a positive diagonal, tails a positive stretch, and means lie among rows."""
    diagonal = np.diagonal(record.factor, axis1=-2, axis2=-1) if matrix else record.factor
    unsound = bool(np.any(diagonal <= 0.0)) or below_zero(record.power, record.stretch) or bool(np.any(record.units <= 0.0))
    unsound = unsound or beyond(MOST_ROWS, record.power, record.offset) or beyond(LARGEST, record.origin)
    means = record.means * record.units if record.units.size else record.means
    if unsound or beyond(4.0 * LARGEST, means):
        return NO_PARAMETERS
    factor = record.factor if matrix and record.factor.ndim == 3 else record.factor[None] if matrix else None
    shift = record.factor * record.means if factor is None else (factor @ record.means[:, :, None])[..., 0]
    size = np.abs(shift) if factor is None else (np.abs(factor) @ np.abs(record.means)[:, :, None])[..., 0]
    return NO_PARAMETERS if np.any(np.abs(record.shift - shift) > SLACK * size) else ""


def regression_prior(record: RegressionPrior) -> str:
    """Precisions and scales are not negative."""
    unsound = below_zero(record.precision) or record.scale < 0.0 or record.floor < 0.0
    unsound = unsound or beyond(HEAVIEST, record.dof) or beyond(LARGEST, record.origin) or beyond(LARGEST**2, record.floor)
    return NO_PRIOR if unsound else ""


def regression_parameters(record: RegressionParameters) -> str:
    """Noise is positive, and so are tails."""
    unsound = bool(np.any(record.factor[:, -1, -1] <= 0.0)) or below_zero(record.power)
    unsound = unsound or beyond(MOST_ROWS, record.power, record.offset)
    return NO_PARAMETERS if unsound or beyond(LARGEST, record.origin) else ""


def multinomial_statistics(record: MultinomialStatistics, groups: NDArray[np.int32]) -> str:
    """Counts are not negative, and lengths are their sums; what an average is made of may be negative."""
    parts = [record.table] if isinstance(record.table, Table) else [record.table.table, record.table.rest]
    if any(beyond(MOST_WORDS, part.stored()[1] * part.factor) for part in parts):
        return TOO_MANY
    words, rows = record.table.held()
    if below_zero(record.length, rows):
        return NEGATIVE
    if np.any(record.length > MOST_WORDS * np.maximum(record.count, 0.0) + 1e-100):  # words of no rows
        return TOO_MANY
    sums = np.zeros_like(record.length)
    group_sums(words, rows, groups, sums)
    if np.abs(sums - record.length).max() > SLACK * max(np.abs(rows).max(initial=0.0), float(np.abs(record.length).max())):
        return OTHER_LENGTHS
    return TOO_MANY if beyond(MOST_WORDS, record.length) else unlikely_counts(record.count)


def multinomial_prior(record: MultinomialPrior, width: int) -> str:
    """Every column has a belief of more than nothing."""
    sizes = record.sizes
    whole = np.array_equal(sizes, np.round(sizes)) and sizes.min() > 0.0 and sizes.sum() == width
    positive = record.beta.min() > 0.0 and record.totals.min() > 0.0 and not below_zero(record.shift, record.shift_totals)
    sound = whole and positive and np.all(record.shift <= record.beta) and not beyond(MOST_WORDS, record.beta, record.totals)
    return "" if sound else NO_PRIOR


def multinomial_parameters(record: MultinomialParameters) -> str:
    """Counts that they are read out of are not negative."""
    if not np.isfinite(record.norm).all() or beyond(MOST_BELIEF, record.norm):
        return NO_PARAMETERS
    return NEGATIVE if below_zero(record.table.stored()[1] * record.table.factor) else ""
