"""Slow, obvious twin of conditioning: blocks of covariance matrices, one row and one component at a time."""

from __future__ import annotations

import numpy as np
from scipy import stats


def law_of(mean, covariance, row, missing, dof=None):
    """Log-density of the observed columns, and mean, scale matrix and degrees of freedom of the missing ones given them.

    With `dof`, Student's t with this scale matrix; without it a normal law.
    """
    o, m = np.flatnonzero(~missing), np.flatnonzero(missing)
    cross = covariance[np.ix_(m, o)] @ np.linalg.pinv(covariance[np.ix_(o, o)]) if len(o) else np.zeros((len(m), 0))
    away = row[o] - mean[o]
    centre = mean[m] + cross @ away
    scale = covariance[np.ix_(m, m)] - cross @ covariance[np.ix_(o, m)]
    if not len(o):
        return 0.0, centre, scale, dof
    block = covariance[np.ix_(o, o)]
    if dof is None:
        return stats.multivariate_normal(mean[o], block).logpdf(row[o]), centre, scale, None
    distance = away @ np.linalg.solve(block, away)
    logs = stats.multivariate_t(mean[o], block, dof).logpdf(row[o])
    return logs, centre, scale * (dof + distance) / (dof + len(o)), dof + len(o)


def log_density(centre, scale, dof, values):
    """Log-density of the missing columns."""
    if dof is None:
        return stats.multivariate_normal(centre, scale).logpdf(values)
    return stats.multivariate_t(centre, scale, dof).logpdf(values)


def explain_entry(weights, means, covariances, row, missing, column, dofs):
    """Tail probability, surprise, mean and the quantile function of one observed entry, given the other observed ones."""
    hidden = missing.copy()
    hidden[column] = True
    at = int(np.flatnonzero(np.flatnonzero(hidden) == column)[0])
    logs, laws = [], []
    for k in range(len(weights)):
        log, centre, scale, dof = law_of(means[k], covariances[k], row, hidden, None if dofs is None else dofs[k])
        logs.append(np.log(weights[k]) + log)
        spread = np.sqrt(scale[at, at])
        laws.append(stats.norm(centre[at], spread) if dof is None else stats.t(dof, centre[at], spread))
    shares = np.exp(logs - np.max(logs))
    shares /= shares.sum()
    below = sum(share * law.cdf(row[column]) for share, law in zip(shares, laws, strict=True))
    above = sum(share * law.sf(row[column]) for share, law in zip(shares, laws, strict=True))
    density = sum(share * law.pdf(row[column]) for share, law in zip(shares, laws, strict=True))
    mean = sum(share * law.mean() for share, law in zip(shares, laws, strict=True))

    def mixture_cdf(value):
        return sum(share * law.cdf(value) for share, law in zip(shares, laws, strict=True))

    return 2.0 * min(below, above), -np.log(density), mean, mixture_cdf
