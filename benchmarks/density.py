"""The log-density of a mixture of Gaussians, in plain code: all contenders are scored by it, and none of them uses it."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from benchmarks.data import Array, Truth


def log_density(mixture: Truth, rows: Array) -> Array:
    """Return log p of every row under weights (K,), means (K, d) and covariances (K, d, d)."""
    columns = []
    for weight, mean, covariance in zip(mixture.weights, mixture.means, mixture.covariances, strict=True):
        factor = np.linalg.cholesky(covariance)
        away = solve_triangular(factor, (rows - mean).T, lower=True)
        scale = 2.0 * np.log(np.diagonal(factor)).sum() + mean.size * np.log(2.0 * np.pi)
        columns.append(np.log(weight) - 0.5 * (scale + np.square(away).sum(axis=0)))
    return logsumexp(columns, axis=0)


def mean_score(mixture: Truth, rows: Array) -> float:
    """Nats a row."""
    return float(log_density(mixture, rows).mean())


def mixture_of(weights: Array, means: Array, covariances: Array) -> Truth:
    """Parameters as a library has them; variances of columns become matrices."""
    covariances = np.asarray(covariances, dtype=float)
    if covariances.ndim == 2:
        covariances = covariances[:, :, None] * np.eye(covariances.shape[1])
    return Truth(np.asarray(weights, dtype=float), np.asarray(means, dtype=float), covariances)
