"""What no rows could have made: each function says what is wrong with a record that comes from outside, or nothing."""

from __future__ import annotations

import numpy as np

from headwater.families.gaussian_records import GaussianParameters, GaussianPrior, GaussianStatistics, MomentStatistics
from headwater.families.multinomial_records import MultinomialParameters, MultinomialPrior, MultinomialStatistics
from headwater.families.regression_records import RegressionPrior
from headwater.families.table import Table
from headwater.statistics import Array

TOLERANCE = 1e-8  # of what rounding may have made negative

NEGATIVE = "has negative counts"
INDEFINITE = "has a scatter that is not positive definite"
NO_PRIOR = "is no prior"
NO_PARAMETERS = "is no density"


def below_zero(*arrays: Array) -> bool:
    """Whether some number is negative by more than rounding explains."""
    return any(array.size and array.min() < -TOLERANCE * max(1.0, float(np.abs(array).max())) for array in arrays)


def no_shares(*arrays: Array) -> bool:
    """Whether some of these, along the last axis, are no probabilities: negative, all zero, or more than one in all."""
    sums = [array.sum(axis=-1) for array in arrays]
    beyond = [total.max() > 1.0 + TOLERANCE or total.min() <= 0.0 for total in sums]
    return any(beyond) or any(array.min() < 0.0 for array in arrays)


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


def gaussian_statistics(record: GaussianStatistics, tied: bool) -> str:
    """Counts are not negative, and neither are variances; a belief whose masses have drifted apart is another matter."""
    if isinstance(record, MomentStatistics):
        return ""
    if below_zero(record.count):
        return NEGATIVE
    held = record.count > 1e-300
    count, first = record.count[held], record.first[held]
    means = first / count[:, None]
    if tied:
        return INDEFINITE if indefinite(record.second - first.T @ means, np.abs(record.second).max()) else ""
    second = record.second[held]
    if second.ndim == 3:
        scatter = second - first[:, :, None] * means[:, None, :]
        return INDEFINITE if len(count) and indefinite(scatter, np.abs(second).max(axis=(1, 2))) else ""
    return INDEFINITE if np.any(second - first * means < -TOLERANCE * np.abs(second)) else ""


def gaussian_prior(record: GaussianPrior) -> str:
    """Rows' worth of belief are not negative, and neither are variances."""
    scale = record.scale
    unsound = indefinite(scale, np.abs(scale).max()) if scale.ndim == 2 else below_zero(scale)
    unsound = unsound or record.mean_precision < 0.0 or record.floor < 0.0 or bool(np.any(record.units <= 0.0))
    return NO_PRIOR if unsound else ""


def gaussian_parameters(record: GaussianParameters, matrix: bool) -> str:
    """Factors of precisions have a positive diagonal, tails a positive stretch."""
    diagonal = np.diagonal(record.factor, axis1=-2, axis2=-1) if matrix else record.factor
    unsound = np.any(diagonal <= 0.0) or below_zero(record.power, record.stretch) or np.any(record.units <= 0.0)
    return NO_PARAMETERS if unsound else ""


def regression_prior(record: RegressionPrior) -> str:
    """Precisions and scales are not negative."""
    return NO_PRIOR if below_zero(record.precision) or record.scale < 0.0 or record.floor < 0.0 else ""


def multinomial_statistics(record: MultinomialStatistics) -> str:
    """Counts are not negative; what an average is made of may be."""
    rows = [record.table.stored()[1] * record.table.factor] if isinstance(record.table, Table) else []
    return NEGATIVE if below_zero(record.count, record.length, *rows) else ""


def multinomial_prior(record: MultinomialPrior, width: int) -> str:
    """Every column has a belief of more than nothing."""
    sizes = record.sizes
    whole = np.array_equal(sizes, np.round(sizes)) and sizes.min() > 0.0 and sizes.sum() == width
    positive = record.beta.min() > 0.0 and record.totals.min() > 0.0 and not below_zero(record.shift, record.shift_totals)
    return "" if whole and positive and np.all(record.shift <= record.beta) else NO_PRIOR


def multinomial_parameters(record: MultinomialParameters) -> str:
    """Counts that they are read out of are not negative."""
    return NEGATIVE if below_zero(record.table.stored()[1] * record.table.factor) else ""
