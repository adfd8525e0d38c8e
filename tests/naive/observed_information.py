"""Slow, obvious twin of observed information: finite differences of log-densities, and one row at a time."""

from __future__ import annotations

import numpy as np
from scipy import stats
from scipy.special import logsumexp

STEP = 1e-5


def differences(function, at):
    """Central differences (n, p) of a function that returns n numbers."""
    found = []
    for place in range(len(at)):
        up, down = at.copy(), at.copy()
        up[place] += STEP
        down[place] -= STEP
        found.append((function(up) - function(down)) / (2.0 * STEP))
    return np.stack(found, axis=1)


def normal(X, mean, covariance):
    return stats.multivariate_normal(mean, covariance).logpdf(X)


def gaussian_of(kind, mean, covariance, theta, correlations=True):
    """Mean and covariance at parameters in units of the component's spread; those of zero are the given ones."""
    d = len(mean)
    spread = np.sqrt(np.diag(covariance))
    moved, rest = mean + spread * theta[:d], theta[d:]
    if kind in ("full", "tied") and correlations:
        shift = np.zeros((d, d))
        shift[np.tril_indices(d)] = rest
        shift = shift + np.tril(shift, -1).T
        return moved, covariance + shift * np.outer(spread, spread)
    if kind in ("full", "tied"):
        return moved, covariance * np.outer(np.exp(rest), np.exp(rest))
    return moved, np.diag(np.diag(covariance) * np.exp(rest))


def mixture_log_density(X, log_odds, components):
    """Log-density (n,) of a mixture with weights proportional to exp(log_odds)."""
    logs = np.stack([normal(X, *one) for one in components], axis=1) + log_odds - logsumexp(log_odds)
    return logsumexp(logs, axis=1)


def shared_softmax(theta):
    """Logarithms of probabilities that sum to one."""
    return theta - logsumexp(theta)


def observed_information(X, weights, components):
    """Sum of outer products of the gradients of a full mixture's log-density by log-weights and all parameters."""
    k, d = len(weights), X.shape[1]
    p = d + d * (d + 1) // 2

    def log_density(theta):
        own = theta[k:].reshape(k, p)
        moved = [gaussian_of("full", *one, part) for one, part in zip(components, own, strict=True)]
        return mixture_log_density(X, np.log(weights) + theta[:k], moved)

    gradients = differences(log_density, np.zeros(k + k * p))
    total = np.zeros((k + k * p,) * 2)
    for row in gradients:
        total += np.outer(row, row)
    return total
