"""Covariances of rows without those of their measurement errors, to start from."""

from __future__ import annotations

import numpy as np

from headwater.core.noisy_rows import NoisyRows
from headwater.core.statistics import Array

LEAST_LEFT = 0.1  # of the variance of a group that a start leaves to the rows when it takes the errors off
ROUNDING = 1e-12  # of the largest variance: less is no spread
MOST_ERRORS = 1e3  # times the variance of a column, so that products of larger errors do not hide other columns


def remove_noise(matrix: bool, X: NoisyRows, weighted: Array, covariance: Array) -> Array:
    """Return a covariance (or variances) of rows without that of their errors, which `weighted` (n,) rows have on average.

    What is left is at least a tenth, in every direction: errors that were said to be larger than the rows spread are not.
    """
    rows = np.maximum(weighted, 0.0)
    seen = np.maximum(rows @ ~X.missing, 1e-300)
    variances = rows @ X.variances / seen
    if not matrix:
        return np.maximum(covariance - variances, LEAST_LEFT * covariance)
    mean = np.diag(variances)
    if X.noise.ndim == 3:
        mean = np.einsum("n,nij->ij", rows, X.noise) / np.sqrt(seen[:, None]) / np.sqrt(seen)
    return _take_off(covariance, mean)


def _take_off(covariance: Array, noise: Array) -> Array:
    """The difference of two covariances, but no less than a part of the first in any direction.

    Columns are compared in units of their own. Directions in which rows hardly spread, as where all are equal, get what is
    rounding beside the spread and the errors.
    """
    spread, errors = np.diagonal(covariance), np.diagonal(noise)
    spreads = spread > 0.0
    least = np.maximum(np.where(spreads, spread, ROUNDING * errors), 1e-300)
    units = np.sqrt(least)
    correlations = np.where(spreads[:, None] & spreads, covariance, 0.0) / units[:, None] / units
    np.fill_diagonal(correlations, 1.0)
    values, vectors = np.linalg.eigh(correlations)
    root = vectors * np.sqrt(np.maximum(values, ROUNDING * values[-1]))
    inverse = np.linalg.inv(root)
    believed = np.sqrt(np.minimum(errors, MOST_ERRORS * least) / np.maximum(errors, 1e-300)) / units
    share, axes = np.linalg.eigh(inverse @ (noise * believed[:, None] * believed) @ inverse.T)
    axes = units[:, None] * (root @ axes)
    return np.asarray((axes * np.maximum(1.0 - share, LEAST_LEFT)) @ axes.T)
