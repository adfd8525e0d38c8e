"""Slow, obvious twins of the kernels of power spectra: NumPy and SciPy, from the equations.

Spectra theta are (K, F); a row has F powers y and K weights h. Weights are inverse Gamma (a, b).
"""

from __future__ import annotations

import numpy as np
from scipy import stats


def row_score(y, theta, h):
    """Log-density of a row of exponential powers."""
    return stats.expon.logpdf(y, scale=h @ theta).sum()


def log_prior(h, a, b):
    """Log-density of h."""
    return stats.invgamma.logpdf(h, a, scale=b).sum()


def log_target(y, theta, h, a, b):
    """Log-density of log h and the row together: that of h, times the derivative of h by log h."""
    return row_score(y, theta, h) + log_prior(h, a, b) + np.log(h).sum()


def shares(theta, h):
    """(K, F): G, the share of a component in the power of a bin."""
    parts = theta * h[:, None]
    return parts / parts.sum(axis=0)


def statistic(y, theta, h):
    """(K, F): E|c_kf|^2 / h_k = (G^2 y_f + v_k (1 - G)) / h_k."""
    G, parts = shares(theta, h), theta * h[:, None]
    return (G**2 * y + parts * (1.0 - G)) / h[:, None]


def posterior_means(y, theta, a, b, points=400, width=9.0):
    """Posterior means of h, log h, its square, the statistic and the shares, by a sum over a grid (one or two components)."""
    axis = np.linspace(-width, width, points)
    h = np.exp(np.stack(np.meshgrid(*[axis] * len(theta), indexing="ij"), axis=-1).reshape(-1, len(theta)))
    v = h @ theta
    log_density = (-np.log(v) - y / v).sum(axis=1) - (a * np.log(h) + b / h).sum(axis=1)
    p = np.exp(log_density - log_density.max())
    p /= p.sum()
    G = theta * h[:, :, None] / v[:, None, :]
    s = (G**2 * y + theta * h[:, :, None] * (1.0 - G)) / h[:, :, None]
    return p @ h, p @ np.log(h), p @ np.log(h) ** 2, np.tensordot(p, s, 1), np.tensordot(p, G, 1)


def marginal_score(y, theta, a, b, points=400, width=9.0):
    """Log-density of a row with its weights integrated out, by a sum over a grid of log h (one or two components)."""
    axis = np.linspace(-width, width, points)
    h = np.exp(np.stack(np.meshgrid(*[axis] * len(theta), indexing="ij"), axis=-1).reshape(-1, len(theta)))
    v = h @ theta
    terms = (-np.log(v) - y / v).sum(axis=1) + (stats.invgamma.logpdf(h, a, scale=b) + np.log(h)).sum(axis=1)
    return np.logaddexp.reduce(terms) + len(theta) * np.log(axis[1] - axis[0])


def proposal_log_density(log_h, centre, precision, tail):
    """Log-density of the proposal about the mode."""
    return stats.multivariate_t.logpdf(log_h, centre, np.linalg.inv(precision), df=tail)


def information(theta, h, a, b, least):
    """Fisher information of a row about log h, and the curvature of the prior."""
    G = shares(theta, h)
    return G @ G.T + np.diag(np.maximum(b / h, least * a))


def map_objective(y, theta, h, a, b):
    """Return the objective of the mode in h; for a = -1 and b = 0 it is the log-likelihood."""
    return row_score(y, theta, h) - (a + 1.0) * np.log(h).sum() - (b / h).sum()


def simulate(theta, a, b, n, rng):
    """Return simulated rows and their weights."""
    h = b / rng.gamma(a, size=(n, len(theta)))
    return (h @ theta) * rng.exponential(size=(n, theta.shape[1])), h
