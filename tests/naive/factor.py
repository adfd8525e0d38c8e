"""Slow twins of factor analysers: rows one by one, and matrices as in the papers."""

import numpy as np


def naive_collect(family, parameters, X, responsibilities):
    """Statistics by posterior means and covariances of the factors, with inverses of d x d matrices."""
    found = family.zeros(X.shape[1])
    covariances = family.covariances(parameters)
    for k in range(family.n_components):
        loadings, mean = parameters.loadings[k], parameters.means[k]
        gain = loadings.T @ np.linalg.inv(covariances[k])
        rest = np.eye(family.n_factors) - gain @ loadings
        for x, share in zip(X - parameters.origin, responsibilities[:, k], strict=True):
            z = gain @ (x - mean)
            found.count[k] += share
            found.first[k] += share * x
            found.square[k] += share * x**2
            found.cross[k] += share * np.outer(x, z)
            found.factor_first[k] += share * z
            found.factor_second[k] += share * (np.outer(z, z) + rest)
    return found


def naive_mode(prior, totals):
    """Means and covariances: each column's regression by itself, and factors of any covariance."""
    k, width, factors = totals.cross.shape
    means, covariances = np.empty((k, width)), np.empty((k, width, width))
    for one in range(k):
        z = totals.factor_second[one]
        first = totals.factor_first[one]
        second = np.block([[z, first[:, None]], [first[None], np.array([[totals.count[one] + prior.mean_precision]])]])
        loadings, noise = np.empty((width, factors)), np.empty(width)
        for column in range(width):
            target = np.append(totals.cross[one, column], totals.first[one, column] + prior.mean_precision * prior.mean[column])
            coefficients = np.linalg.solve(second, target)
            loadings[column], means[one, column] = coefficients[:-1], coefficients[-1]
            rest = totals.square[one, column] - coefficients @ target
            rest += prior.scale[column] + prior.mean_precision * prior.mean[column] ** 2
            noise[column] = max(rest / (totals.count[one] + prior.dof), prior.floor)
        covariances[one] = loadings @ (z / totals.count[one]) @ loadings.T + np.diag(noise)
    return means + prior.origin, covariances
