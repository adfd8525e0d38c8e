"""Slow twins of mixtures before a background: one row at a time, with the densities of scipy.stats."""

import numpy as np
from scipy import stats


def log_cauchy(x, centre, spread, width):
    """Return the log-density of the observed values of a row under Cauchy's law, `width` spreads wide."""
    seen = ~np.isnan(x)
    if not seen.any():
        return 0.0
    return stats.multivariate_t.logpdf(x[seen], centre[seen], np.diag((width * spread[seen]) ** 2), df=1)


def log_count(x, scale):
    """Return the log-probability of a count under the law with P(count >= x) = scale / (scale + x)."""
    return np.log(scale / (scale + x) - scale / (scale + x + 1.0))


def estep(log_densities, log_wide, weights, share):
    """Responsibilities (n, K), those of the background (n,), and scores (n,) of rows with these log-densities."""
    shares, outside, scores = np.zeros(log_densities.shape), np.zeros(len(log_wide)), np.zeros(len(log_wide))
    for row, (densities, wide) in enumerate(zip(log_densities, log_wide, strict=True)):
        parts = [(1.0 - share) * weight * np.exp(one) for weight, one in zip(weights, densities, strict=True)]
        total = sum(parts) + share * np.exp(wide)
        shares[row], outside[row], scores[row] = np.array(parts) / total, share * np.exp(wide) / total, np.log(total)
    return shares, outside, scores


def quantile(values, weights, part):
    """Return the least value at or below which lies this share of the weights."""
    order = np.argsort(values)
    running = 0.0
    for at in order:
        running += weights[at]
        if running >= part * np.sum(weights) * (1.0 - 1e-12):
            return values[at]
    return values[order[-1]]
