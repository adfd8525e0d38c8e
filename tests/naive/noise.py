"""Slow, obvious twins for rows with measurement errors: row by row, by inverses of whole covariances."""

from __future__ import annotations

import numpy as np
from scipy import stats


def log_densities(means, covariances, X, noise):
    """(n, K): the log-density of what was observed (not NaN) of every row, with the covariance of its errors added."""
    out = np.zeros((len(X), len(means)))
    for i, x in enumerate(X):
        o = ~np.isnan(x)
        for k, mean in enumerate(means):
            if o.any():
                out[i, k] = stats.multivariate_normal(mean[o], (covariances[k] + noise[i])[np.ix_(o, o)]).logpdf(x[o])
    return out


def expected(x, mean, covariance, noise):
    """Mean and covariance of the true row, given what was observed of it: b and B of Bovy, Hogg and Roweis 2011."""
    o = ~np.isnan(x)
    gain = covariance[:, o] @ np.linalg.inv((covariance + noise)[np.ix_(o, o)])
    return mean + gain @ (x - mean)[o], covariance - gain @ covariance[o]


def collect(kind, means, covariances, X, noise, shares):
    """Counts, first and second moments (full matrices, or variances), masses of what was observed and what is known."""
    k, width = means.shape
    count, first, observed, known = np.zeros(k), np.zeros((k, width)), np.zeros((k, width)), np.zeros((k, width))
    second = np.zeros((k, width, width))
    for x, error, share in zip(X, noise, shares, strict=True):
        there = ~np.isnan(x)
        for one in range(k if there.any() else 0):
            row, left = expected(x, means[one], covariances[one], error)
            counted = there if kind in ("diag", "spherical") else np.ones(width, dtype=bool)
            count[one] += share[one]
            first[one] += share[one] * row * counted
            second[one] += share[one] * (np.outer(row, row) + left) * counted * counted[:, None]
            observed[one] += share[one] * there
            known[one] += share[one] * (1 - np.diag(left) / np.diag(covariances[one]))
    if kind == "tied":
        second = second.sum(axis=0)
    return count, first, np.diagonal(second, axis1=1, axis2=2) if kind in ("diag", "spherical") else second, observed, known
