"""Slow twins of linear regressions of several targets: one row at a time, in the coordinates of the rows."""

import numpy as np
from scipy import stats


def log_densities(coef, intercept, covariance, inputs, targets):
    """Return log-densities (n, K); coefficients are (K, d, p)."""
    found = np.empty((len(inputs), len(coef)))
    for row, (x, y) in enumerate(zip(inputs, targets, strict=True)):
        for k in range(len(coef)):
            found[row, k] = stats.multivariate_normal.logpdf(y, intercept[k] + coef[k] @ x, covariance[k])
    return found


def least_squares(inputs, targets, shares):
    """Return coefficients, intercepts and covariances of weighted least squares, a component at a time."""
    slopes, levels, covariances = [], [], []
    design = np.column_stack([np.ones(len(inputs)), inputs])
    for weights in shares.T:
        normal, right = np.zeros((design.shape[1],) * 2), np.zeros((design.shape[1], targets.shape[1]))
        for z, y, weight in zip(design, targets, weights, strict=True):
            normal += weight * np.outer(z, z)
            right += weight * np.outer(z, y)
        found = np.linalg.solve(normal, right)
        away = targets - design @ found
        slopes.append(found[1:].T)
        levels.append(found[0])
        covariances.append(sum(w * np.outer(r, r) for w, r in zip(weights, away, strict=True)) / weights.sum())
    return np.array(slopes), np.array(levels), np.array(covariances)


def lagged(rows, lengths, order):
    """Return rows (n, (order + 1) d) of lags, the newest first, and the row; NaN where a sequence begins."""
    found, at = [], 0
    for length in lengths:
        for t in range(length):
            if t < order:
                found.append(np.full(rows.shape[1] * (order + 1), np.nan))
            else:
                parts = [rows[at + t - lag] for lag in range(1, order + 1)]
                found.append(np.concatenate([*parts, rows[at + t]]))
        at += length
    return np.array(found)
