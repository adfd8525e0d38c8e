"""Slow, obvious twins of rounded Gaussians: a general optimiser over covariances with a lower bound."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
from scipy.optimize import minimize

from headwater.families.gaussian_records import GaussianPrior


def plain(prior):
    """Return the same prior without steps."""
    return GaussianPrior(**{part.name: getattr(prior, part.name) for part in fields(GaussianPrior)})


def best_covariance(kind, scatter, variances):
    """The covariance D + L L' (of a kind) with the least log |C| + trace(C^-1 S)."""
    width, noise = len(scatter), np.diag(variances)
    lower = np.tril_indices(width)

    def made(values):
        if kind == "spherical":
            return (variances.max() + values[0] ** 2) * np.eye(width)
        if kind == "diag":
            return noise + np.diag(values**2)
        root = np.zeros((width, width))
        root[lower] = values
        return noise + root @ root.T

    def cost(values):
        covariance = made(values) + 1e-12 * np.eye(width)
        return np.linalg.slogdet(covariance)[1] + np.trace(np.linalg.solve(covariance, scatter))

    root = np.linalg.cholesky(scatter)
    start = {"spherical": np.ones(1), "diag": np.sqrt(np.diag(scatter))}.get(kind, root[lower])
    ends = [minimize(cost, start * scale + 0.01, method="BFGS", options={"gtol": 1e-9}) for scale in (1.0, 0.5)]
    return made(min(ends, key=lambda end: end.fun).x)
