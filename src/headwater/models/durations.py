"""Laws of how many rows a state lasts: a table of probabilities, or a negative binomial law, up to a longest duration."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from headwater.core.statistics import Array

CATEGORICAL, NEGATIVE_BINOMIAL = "categorical", "negative-binomial"
LAWS = (NEGATIVE_BINOMIAL, CATEGORICAL)
SIZE_BOUNDS = (-4.0, 8.0)  # of the logarithm of the size: from nearly logarithmic to nearly Poisson
GRID = np.linspace(-1.0, 1.0, 7)
CUT_SHARE = 0.1  # of the peak: a law that falls off so late would go on, by a few percent of the stays or more
MEANS, SIZES, ZOOMS = 3.0, 7.0, 26  # how far a grid reaches at first, and how often it is halved


def geometric(stays: Array, longest: int) -> Array:
    """Return the law (K, D) of durations in states that are left with the same probability at every row."""
    logs = np.arange(longest) * np.log(np.clip(stays, 0.01, 1.0 - 1.0 / longest))[:, None]
    return np.exp(logs - logsumexp(logs, axis=1, keepdims=True))


def find_cut(durations: Array) -> NDArray[np.bool_]:
    """Return of which laws (K, D) the longest duration still has a good part of the probability of the likeliest one."""
    return np.asarray(durations[:, -1] > CUT_SHARE * durations.max(axis=1))


def read_durations(law: str, counts: Array, prior: float) -> Array:
    """Return the law (K, D) that durations (K, D) were counted under; `prior` are stays of all durations, seen before."""
    counts = np.maximum(counts, 0.0)
    if law == CATEGORICAL:
        counts = counts + prior / counts.shape[1]
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))
    return np.array([_fit(row) if row.sum() > 0.0 else np.full(len(row), 1.0 / len(row)) for row in counts])


def log_prior(law: str, durations: Array, prior: float) -> float:
    """Return what the prior adds to the log-likelihood, up to a constant."""
    return float(prior * np.log(durations).mean(axis=1).sum()) if law == CATEGORICAL else 0.0


def negative_binomial(log_mean: Array, log_size: Array, longest: int) -> Array:
    """Return logarithms (..., D) of laws of 1 + a negative binomial number, cut off at the longest duration.

    The mean and the size are those before the cut.
    """
    extra, log_size = np.arange(longest), np.asarray(log_size)[..., None]
    size, log_odds = np.exp(log_size), np.asarray(log_mean)[..., None] - log_size
    logs = gammaln(extra + size) - gammaln(extra + 1.0) - extra * np.logaddexp(0.0, -log_odds)
    return np.asarray(logs - logsumexp(logs, axis=-1, keepdims=True))


def _fit(counts: Array) -> Array:
    """Return the most likely negative binomial law (D,) of counted durations: on a grid that closes in on the best point."""
    longest = len(counts)
    shares = counts / counts.sum()
    log_mean, log_size, around = np.log(max(float(shares @ np.arange(longest)), 1e-6)), 1.0, GRID
    for _ in range(ZOOMS):
        means = np.clip(log_mean + around * MEANS, -14.0, 14.0)[:, None]
        sizes = np.clip(log_size + around * SIZES, *SIZE_BOUNDS)
        loss = negative_binomial(means + 0.0 * sizes, sizes + 0.0 * means, longest) @ shares
        row, column = np.unravel_index(int(loss.argmax()), loss.shape)
        log_mean, log_size, around = float(means[row, 0]), float(sizes[column]), 0.5 * around
    return np.exp(negative_binomial(np.array(log_mean), np.array(log_size), longest))
