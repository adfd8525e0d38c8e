"""Gradients of the log-densities of counts and flags: by logarithms of rates, by log-odds, by logarithms of probabilities."""

from __future__ import annotations

import numpy as np

from headwater.core.statistics import Array
from headwater.families.parameter_scores import ParameterScores, own_places


def poisson_scores(rates: Array, prior_events: Array, counts: Array, exposure: Array) -> ParameterScores:
    """Return the gradients of rows of counts by the logarithms of rates (K, d); priors have seen so many events (K, d)."""

    def component(one: int) -> tuple[Array, Array]:
        return counts - exposure[:, None] * rates[one], np.diag(prior_events[one])

    return ParameterScores(component, own_places(*rates.shape), np.eye(rates.shape[1]))


def bernoulli_scores(chances: Array, prior_rows: Array, flags: Array) -> ParameterScores:
    """Return the gradients of rows of flags by the log-odds of chances (K, d); priors have seen so many rows (K, d)."""

    def component(one: int) -> tuple[Array, Array]:
        return flags - chances[one], np.diag(prior_rows[one] * chances[one] * (1.0 - chances[one]))

    return ParameterScores(component, own_places(*chances.shape), np.eye(chances.shape[1]))


def multinomial_scores(probabilities: Array, prior_counts: Array, counts: Array) -> ParameterScores:
    """Return the gradients of rows of counts by the logarithms of probabilities (K, V), which are scaled to sum to one.

    Priors have seen so many counts (K,). A factor of all probabilities changes nothing, so that direction counts as known.
    """
    k, width = probabilities.shape
    spread = np.array([np.diag(one) - np.outer(one, one) for one in probabilities])
    lengths = counts.sum(axis=1, keepdims=True)
    known = max(float(counts.sum()), 1.0) / width

    def component(one: int) -> tuple[Array, Array]:
        return counts - lengths * probabilities[one], prior_counts[one] * spread[one] + known * np.outer(
            *probabilities[[one, one]]
        )

    return ParameterScores(component, own_places(k, width), spread)
