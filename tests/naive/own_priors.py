"""Slow, obvious twin of priors per component: Bayesian online EM with Normal-Wishart beliefs, row by row."""

from __future__ import annotations

import numpy as np
from scipy import stats


def learn(X, alpha, means, precisions, dofs, scales):
    """Return weights, means and covariances after the rows; every belief begins at the prior of its component."""
    alpha, means, precisions, dofs, scales = (np.array(one, dtype=float) for one in (alpha, means, precisions, dofs, scales))
    for x in X:
        logs = [
            np.log(alpha[k] / alpha.sum()) + stats.multivariate_normal(means[k], scales[k] / dofs[k]).logpdf(x)
            for k in range(len(alpha))
        ]
        shares = np.exp(logs - np.logaddexp.reduce(logs))
        for k, share in enumerate(shares):
            away = x - means[k]
            scales[k] += share * precisions[k] / (precisions[k] + share) * np.outer(away, away)
            means[k] += share / (precisions[k] + share) * away
            alpha[k] += share
            precisions[k] += share
            dofs[k] += share
    return alpha / alpha.sum(), means, scales / dofs[:, None, None]
