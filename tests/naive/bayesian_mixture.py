"""Variational Bayes of a mixture of Gaussians, one pass, as the equations have it (Bishop 2006, 10.2; Blei and Jordan 2006)."""

import numpy as np
from scipy.special import digamma


def expected_log_weights(model, law):
    concentration = model.weight_concentration_
    if law == "dirichlet_distribution":
        return digamma(concentration) - digamma(concentration.sum())
    found, left = [], 0.0
    for a, b in zip(*concentration, strict=True):
        found.append(digamma(a) - digamma(a + b) + left)
        left += digamma(b) - digamma(a + b)
    return np.array(found)


def log_density(x, mean, covariance, dof, kappa, kind):
    """E[log N(x | mu, precision)] up to a constant that all components share where they share a covariance."""
    d, gap = len(x), x - mean
    if kind in ("full", "tied"):
        log_det = -np.linalg.slogdet(covariance)[1]
        spread = 0.0 if kind == "tied" else sum(digamma((dof - i) / 2.0) for i in range(d)) - d * np.log(dof / 2.0)
        return 0.5 * (log_det + spread - d / kappa - gap @ np.linalg.solve(covariance, gap))
    variances = np.broadcast_to(covariance, d)
    shape = 0.5 * dof * (d if kind == "spherical" else 1)
    return 0.5 * (-np.log(variances).sum() + d * (digamma(shape) - np.log(shape)) - d / kappa - (gap**2 / variances).sum())


def next_belief(model, X, kind, law):
    """Counts, rows behind means, means and covariances after one more pass over the rows."""
    k = len(model.means_)
    m0, kappa0 = model.mean_prior_, model.mean_precision_prior_
    scale0, nu0 = model.covariance_prior_, model.degrees_of_freedom_prior_
    share = np.empty((len(X), k))
    log_weights = expected_log_weights(model, law)
    for c in range(k):
        covariance = model.covariances_ if kind == "tied" else model.covariances_[c]
        dof = model.degrees_of_freedom_ if kind == "tied" else model.degrees_of_freedom_[c]
        for i, x in enumerate(X):
            share[i, c] = log_weights[c] + log_density(x, model.means_[c], covariance, dof, model.mean_precision_[c], kind)
    share = np.exp(share - share.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    counts = share.sum(axis=0)
    kappa, means = kappa0 + counts, (kappa0 * m0 + share.T @ X) / (kappa0 + counts)[:, None]
    scatters = np.array(
        [
            (share[:, c, None] * (X - means[c])).T @ (X - means[c]) + kappa0 * np.outer(means[c] - m0, means[c] - m0)
            for c in range(k)
        ]
    )
    if kind == "tied":
        covariances = (k * scale0 + scatters.sum(axis=0)) / (k * nu0 + len(X))
    elif kind == "full":
        covariances = (scale0 + scatters) / (nu0 + counts)[:, None, None]
    else:
        variances = np.diagonal(scatters, axis1=1, axis2=2)
        if kind == "diag":
            covariances = (scale0 + variances) / (nu0 + counts)[:, None]
        else:
            covariances = (scale0 + variances.mean(axis=1)) / (nu0 + counts)
    return {"counts": counts, "mean_precision_": kappa, "means_": means, "covariances_": covariances}
