"""Slow, obvious twins for rows with gaps: marginals and conditionals of every row, from covariances and not from precisions.

Beliefs are those of `naive.gaussian`, about the origin of the coordinates.
"""

from __future__ import annotations

import numpy as np
from scipy import special, stats

from naive import gaussian


def log_densities(name, kind, believed, floor, X):
    """Return (n, K): log-densities of the observed (not NaN) values of every row, under the named readout."""
    n_components, width = believed.means.shape
    out = np.zeros((len(X), n_components))
    plugged = gaussian.covariances(name, kind, believed, floor)
    for i, x in enumerate(X):
        o = ~np.isnan(x)
        for k in range(n_components if o.any() else 0):
            kappa, mean, nu, v = believed.kappa[k], believed.means[k], believed.nu[k], believed.scale[k]
            if name in ("mode", "mean"):
                out[i, k] = stats.multivariate_normal(mean[o], plugged[k][np.ix_(o, o)]).logpdf(x[o])
            elif name == "predictive":
                out[i, k] = _predictive(kind, kappa, mean, nu, v, x, o)
            elif kind in ("full", "tied"):
                # the integral of exp E[log-density of the completed row] over the missing values
                m = ~o
                precision = nu * np.linalg.inv(v)
                expected = sum(special.psi((nu + 1 - q) / 2) for q in range(1, width + 1))
                expected += width * np.log(2) - np.linalg.slogdet(v)[1]
                marginal = np.linalg.inv(np.linalg.inv(precision)[np.ix_(o, o)])
                distance = (x - mean)[o] @ marginal @ (x - mean)[o]
                within = np.linalg.slogdet(precision[np.ix_(m, m)])[1] if m.any() else 0.0
                out[i, k] = 0.5 * (expected - o.sum() * np.log(2 * np.pi) - width / kappa - distance - within)
            else:  # columns are independent, and missing ones are left out
                shape = nu / 2 * (width if kind == "spherical" else 1)
                rate = np.broadcast_to(v, width) / 2 * (width if kind == "spherical" else 1)
                logs = special.psi(shape) - np.log(rate) - np.log(2 * np.pi) - 1 / kappa - shape / rate * (x - mean) ** 2
                out[i, k] = 0.5 * logs[o].sum()
    return out


def _predictive(kind, kappa, mean, nu, v, x, o):
    grow, width = (kappa + 1) / kappa, len(mean)
    if kind == "diag":
        return stats.t(nu, mean[o], np.sqrt(grow * v / nu)[o]).logpdf(x[o]).sum()
    df = nu * width if kind == "spherical" else nu - width + 1
    scale = grow * v / nu * np.eye(width) if kind == "spherical" else grow * v / df
    return stats.multivariate_t(mean[o], scale[np.ix_(o, o)], df=df).logpdf(x[o])


def completed(x, mean, covariance):
    """A row with its gaps filled by the conditional mean, and the conditional covariance, zero where it was observed."""
    o, m = ~np.isnan(x), np.isnan(x)
    gain = covariance[np.ix_(m, o)] @ np.linalg.inv(covariance[np.ix_(o, o)])
    row, left = x.copy(), np.zeros_like(covariance)
    row[m] = mean[m] + gain @ (x - mean)[o]
    left[np.ix_(m, m)] = covariance[np.ix_(m, m)] - gain @ covariance[np.ix_(o, m)]
    return row, left


def totals(kind, X, resp, means, covariances, weights=None):
    """Count, first and second moments of completed rows about zero, and the masses `observed` and `known`.

    Rows without a value add nothing. With diagonal and spherical covariance only observed values count.
    """
    resp = resp if weights is None else resp * weights[:, None]
    n_components, width = means.shape
    count, first = np.zeros(n_components), np.zeros((n_components, width))
    dense, observed, known = np.zeros((n_components, width, width)), np.zeros_like(first), np.zeros_like(first)
    for x, shares in zip(X, resp, strict=True):
        o = ~np.isnan(x)
        for k in range(n_components if o.any() else 0):
            count[k] += shares[k]
            observed[k] += shares[k] * o
            if kind in ("diag", "spherical"):
                row, left, part = np.where(o, x, 0.0), np.zeros((width, width)), 1.0 - o
            else:
                row, left = completed(x, means[k], covariances[k])
                part = np.diag(left) / np.diag(covariances[k])
            known[k] += shares[k] * (1.0 - part)
            first[k] += shares[k] * row
            dense[k] += shares[k] * (np.outer(row, row) + left)
    second = {"full": dense, "tied": dense.sum(axis=0)}.get(kind, np.diagonal(dense, axis1=1, axis2=2))
    return count, first, second, observed, known
