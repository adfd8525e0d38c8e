"""Pseudo-rows: a few rows whose moments, or counts, are those of given components, so that a start can count as rows do.

Each function returns the rows (m, d) and shares (m, K): what part of a row of each component every one is. Columns sum to 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headwater.core.batch import Batch
from headwater.core.gapped_rows import GappedRows
from headwater.core.statistics import Array
from headwater.families.multinomial_geometry import row_lengths

if TYPE_CHECKING:
    from headwater.families.gaussian import Gaussian
    from headwater.families.gaussian_records import GaussianParameters
    from headwater.families.regression import Regression
    from headwater.families.regression_records import RegressionParameters

TELLING_ROWS = 3  # for each component; fewer do not show the inputs for which its regression holds
MOST_STEPS = 1000.0  # of a sequence that are followed one by one; the others are as these on average
CENTRE = 1.0  # weight of the centre among the sigma points, beside 1 for each column


def gaussian_rows(family: Gaussian, parameters: GaussianParameters) -> tuple[Array, Array]:
    """Sigma points: a centre and two points along each column of a root, which have mean and covariance of the component."""
    means, covariances = family.means(parameters), family.covariances(parameters)
    k, width = means.shape
    if family.kind.matrix:
        roots = np.broadcast_to(np.linalg.cholesky(covariances), (k, width, width))
    else:
        variances = np.broadcast_to(covariances[:, None] if covariances.ndim == 1 else covariances, (k, width))
        roots = np.sqrt(variances)[:, :, None] * np.eye(width)
    return _sigma_points(means, roots)


def _sigma_points(means: Array, roots: Array) -> tuple[Array, Array]:
    """Points (K (2d + 1), d) with these means and covariances root root', and their shares."""
    k, width = means.shape
    total = width + CENTRE
    steps = np.sqrt(total) * np.swapaxes(roots, 1, 2)
    points = np.concatenate([means[:, None], means[:, None] + steps, means[:, None] - steps], axis=1)
    weights = np.concatenate([[CENTRE], np.full(2 * width, 0.5)]) / total
    return points.reshape(-1, width), np.kron(np.eye(k), weights[:, None])


def count_rows(probabilities: Array, batch: Batch) -> tuple[Array, Array]:
    """One row for each component: the counts that a row of the usual length is expected to have."""
    usual = float(batch.row_weights @ row_lengths(batch.X)) / batch.size
    return probabilities * max(usual, 1.0), np.eye(len(probabilities))


def sequence_rows(probabilities: Array, batch: Batch) -> tuple[Array, Array]:
    """One row for each component: the first symbols and steps that a sequence of the usual length is expected to have."""
    k, width = probabilities.shape
    size = round((np.sqrt(4.0 * width + 1.0) - 1.0) / 2.0)
    usual = max(float(batch.row_weights @ row_lengths(batch.X)) / batch.size, 1.0)
    now, steps = probabilities[:, :size], probabilities[:, size:].reshape(k, size, size)
    visits, made = np.zeros_like(now), 0.0
    while made < min(usual - 1.0, MOST_STEPS):
        part = min(usual - 1.0 - made, 1.0)  # the usual length may be none of a sequence
        visits, now, made = visits + part * now, np.einsum("ki,kij->kj", now, steps), made + part
    visits *= (usual - 1.0) / max(made, 1.0)
    counts = (visits[:, :, None] * steps).reshape(k, -1)
    return np.hstack([probabilities[:, :size], counts]), np.eye(k)


def symbol_rows(probabilities: Array) -> tuple[Array, Array]:
    """Every symbol, as often as the components have it."""
    return np.arange(probabilities.shape[1], dtype=float)[:, None], np.ascontiguousarray(probabilities.T)


def regression_rows(family: Regression, parameters: RegressionParameters, batch: Batch) -> tuple[Array, Array]:
    """Typical inputs, or sigma points of each gate if there are enough rows, with targets on both sides of the regression."""
    k = family.n_components
    if family.gate is not None and parameters.gate is not None and len(batch) >= TELLING_ROWS * k:
        inputs, shares = gaussian_rows(family.gate, parameters.gate)
    else:
        weights, X = batch.row_weights / batch.size, fill_means(batch)[:, :-1]
        centre = weights @ X
        spread = weights @ (X - centre) ** 2
        roots = np.diag(np.sqrt(np.where(spread > 0.0, spread, 1.0)))  # of one row the scale is not known
        inputs, shares = _sigma_points(np.tile(centre, (k, 1)), np.broadcast_to(roots, (k, *roots.shape)))
    owners = shares.argmax(axis=1)
    targets = family.predictions(parameters, inputs)[np.arange(len(inputs)), owners]
    noise = np.sqrt(family.noise_variances(parameters))[owners]
    rows = np.vstack([np.column_stack([inputs, targets + sign * noise]) for sign in (1.0, -1.0)])
    return rows, np.vstack([0.5 * shares, 0.5 * shares])


def fill_means(batch: Batch) -> Array:
    """Return rows with the mean of each column in their gaps, as a first guess."""
    X = batch.X
    if not isinstance(X, GappedRows):
        return np.asarray(X)
    seen = np.maximum(batch.row_weights @ ~X.missing, 1e-300)
    return X.filled(batch.row_weights @ X.filled(0.0) / seen)


def nearest(rows: Array | GappedRows, examples: Array) -> Array:
    """Shares (n, K) of rows that belong to the nearest of K examples, each column in units of its spread over both.

    Of rows with gaps, what was observed is compared.
    """
    if isinstance(rows, GappedRows):
        spread = np.nanstd(np.vstack([rows.values, examples]), axis=0)
        units = np.where(spread > 0.0, spread, 1.0)
        there, centred = ~rows.missing, rows.filled(0.0) - np.where(rows.missing, 0.0, examples.mean(axis=0))
        scaled, centres = centred / units, (examples - examples.mean(axis=0)) / units
        distances = there @ (centres**2).T - 2.0 * scaled @ centres.T
        return np.eye(len(examples))[distances.argmin(axis=1)]
    spread = np.vstack([rows, examples]).std(axis=0)
    units = np.where(spread > 0.0, spread, 1.0)
    scaled, centres = (rows - examples.mean(axis=0)) / units, (examples - examples.mean(axis=0)) / units
    distances = (centres**2).sum(axis=1) - 2.0 * scaled @ centres.T
    return np.eye(len(examples))[distances.argmin(axis=1)]


def clamp_to_labels(shares: Array, batch: Batch) -> Array:
    """Shares in which rows that have a label are wholly of the component that it names."""
    named = np.flatnonzero(batch.labels >= 0) if batch.labels.size else np.empty(0, dtype=np.int64)
    if len(named):
        shares = shares.copy()
        shares[named] = np.eye(shares.shape[1])[batch.labels[named]]
    return shares
