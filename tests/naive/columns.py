"""Slow twins of families with independent columns: densities by scipy.stats, statistics by loops over rows."""

import numpy as np
from scipy import stats


def log_densities(density, X, parameters):
    """Return log-densities (n, K) of rows: `density(x, k, column)` for each entry that is not missing."""
    found = np.zeros((len(X), parameters))
    for row, x in enumerate(X):
        for k in range(parameters):
            found[row, k] = sum(density(value, k, column) for column, value in enumerate(x) if not np.isnan(value))
    return found


def poisson(rates, X, exposure):
    """Return the same for counts with an exposure (n,)."""
    found = [
        log_densities(
            lambda value, k, column, time=time: stats.poisson.logpmf(value, rates[k, column] * time), x[None], len(rates)
        )
        for x, time in zip(X, exposure, strict=True)
    ]
    return np.vstack(found)


def negative_binomial(shape, rate, X):
    return log_densities(
        lambda value, k, column: stats.nbinom.logpmf(value, shape[k, column], rate[k, column] / (rate[k, column] + 1.0)),
        X, len(shape),
    )  # fmt: skip


def bernoulli(probabilities, X):
    return log_densities(
        lambda value, k, column: stats.bernoulli.logpmf(value, probabilities[k, column]), X, len(probabilities)
    )


def categorical(probabilities, X):
    """`probabilities` (K, d, categories)."""
    return log_densities(lambda value, k, column: np.log(probabilities[k, column, int(value)]), X, len(probabilities))


def log_normal(means, deviations, X):
    return log_densities(
        lambda value, k, column: stats.lognorm.logpdf(value, deviations[k, column], scale=np.exp(means[k, column])),
        X,
        len(means),
    )


def gamma(shapes, rates, X):
    return log_densities(
        lambda value, k, column: stats.gamma.logpdf(value, shapes[k, column], scale=1.0 / rates[k, column]), X, len(shapes)
    )


def zero_inflated(zeros, positive, X):
    """`zeros` (K, d) are probabilities of 0, `positive(value, k, column)` the log-density of another value."""

    def density(value, k, column):
        return np.log(zeros[k, column]) if value == 0.0 else np.log1p(-zeros[k, column]) + positive(value, k, column)

    return log_densities(density, X, len(zeros))


def zero_inflated_poisson(zeros, rates, X):
    def density(value, k, column):
        chance = (1.0 - zeros[k, column]) * stats.poisson.pmf(value, rates[k, column])
        return np.log(chance + zeros[k, column] * (value == 0.0))

    return log_densities(density, X, len(zeros))


def sums(X, shares, value):
    """Return sums (K, d) of shares (n, K) times `value(x)` over the entries that are not missing."""
    found = np.zeros((shares.shape[1], X.shape[1]))
    for row, x in enumerate(X):
        for column, entry in enumerate(x):
            if not np.isnan(entry):
                found[:, column] += shares[row] * value(entry)
    return found
