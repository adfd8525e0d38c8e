"""Slow twins of the Student family: densities by scipy.stats, hidden precisions by quadrature, statistics row by row."""

import numpy as np
from scipy import integrate, stats


def log_density(x, mean, scale, dof):
    """Return the log-density of the observed values of a row."""
    seen = ~np.isnan(x)
    return stats.multivariate_t.logpdf(x[seen], mean[seen], scale[np.ix_(seen, seen)], df=dof) if seen.any() else 0.0


def expect(x, mean, scale, dof, value):
    """Return the mean of value(u, moments of the completed row) given the observed values, by quadrature over log u.

    The factor u of the precision has the prior Gamma(dof / 2, dof / 2).
    """
    seen = ~np.isnan(x)
    inverse = np.linalg.inv(scale[np.ix_(seen, seen)])
    distance = (x[seen] - mean[seen]) @ inverse @ (x[seen] - mean[seen])

    def weight(log_u):
        u = np.exp(log_u)
        return np.exp(0.5 * dof * np.log(u) - 0.5 * dof * (u - 1.0) + 0.5 * seen.sum() * np.log(u) - 0.5 * u * distance + shift)

    peak = np.log((dof + seen.sum()) / (dof + distance))
    shift = 0.0
    shift = -np.log(weight(peak))
    options = {"points": [peak], "limit": 200, "epsabs": 1e-13, "epsrel": 1e-12}
    mass = integrate.quad(weight, peak - 30.0, peak + 6.0, **options)[0]
    return integrate.quad(lambda t: weight(t) * value(np.exp(t)), peak - 30.0, peak + 6.0, **options)[0] / mass


def statistics(X, shares, means, scales, dofs):
    """Count, mass, first, second (full) and tails of rows with these responsibilities (n, K)."""
    k, width = means.shape
    count, mass, first, second, tails = np.zeros(k), np.zeros(k), np.zeros((k, width)), np.zeros((k, width, width)), np.zeros(k)
    for x, share in zip(X, shares, strict=True):
        seen = ~np.isnan(x)
        if not seen.any():
            continue
        for c in range(k):
            u = expect(x, means[c], scales[c], dofs[c], lambda u: u)
            log_u = expect(x, means[c], scales[c], dofs[c], np.log)
            cross = scales[c][np.ix_(~seen, seen)] @ np.linalg.inv(scales[c][np.ix_(seen, seen)])
            full, unknown = x.copy(), np.zeros((width, width))
            full[~seen] = means[c][~seen] + cross @ (x[seen] - means[c][seen])
            unknown[np.ix_(~seen, ~seen)] = scales[c][np.ix_(~seen, ~seen)] - cross @ scales[c][np.ix_(seen, ~seen)]
            count[c] += share[c]
            mass[c] += share[c] * u
            first[c] += share[c] * u * full
            second[c] += share[c] * (u * np.outer(full, full) + unknown)
            tails[c] += share[c] * (log_u - u)
    return count, mass, first, second, tails
