"""Mixtures of the laws of numbers: densities, tail probabilities and exact quantiles, for weights (e, K)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp

from headwater.core.statistics import Array

if TYPE_CHECKING:
    from headwater.families.entry_law import EntryLaw, OrderedEntries

LEAST_TAIL = 1e-250  # a smaller probability is summed by its logarithms
MOST_STEPS = 200  # of a search that halves its bracket at worst; 64 are enough for any bracket of numbers of one size
PRECISION = 4e-15  # of a quantile, relative to the ends of its bracket
ALONE = 1.0 - 1e-14  # weight from which on one component is taken for the mixture


def entry_moments(law: EntryLaw, weights: Array) -> tuple[Array, Array]:
    """Return mean and variance (e,) of the mixtures."""
    means = law.mean
    mean = (weights * means).sum(axis=1)
    return mean, (weights * (law.variance + np.square(means - mean[:, None]))).sum(axis=1)


def entry_log_density(law: EntryLaw, weights: Array, values: Array) -> Array:
    """Return log-densities (e,) of values."""
    with np.errstate(divide="ignore"):
        return np.asarray(logsumexp(np.log(weights) + law.log_density(values), axis=1))


def entry_log_tail(law: OrderedEntries, weights: Array, values: Array) -> Array:
    """Return the logarithm (e,) of the two-sided tail probability: twice the smaller of those of no more and of no less."""
    below, above = (weights * law.below(values)).sum(axis=1), (weights * law.above(values)).sum(axis=1)
    tail = np.minimum(below, above)
    far = np.flatnonzero(tail < LEAST_TAIL)
    with np.errstate(divide="ignore"):
        logs = np.log(tail)
        if len(far):
            beyond = law.select(far).log_beyond(values[far])
            log_weights = np.log(weights[far])
            logs[far] = np.minimum(*(logsumexp(log_weights + side, axis=1) for side in beyond))
    return np.asarray(np.minimum(logs + np.log(2.0), 0.0))


def entry_quantile(law: OrderedEntries, weights: Array, probability: float | Array) -> Array:
    """Return the value (e,) that the mixtures do not exceed with this probability, a number or one (e,) for each.

    It lies between the quantiles of the components. It is found by Newton's method, or by bisection where Newton steps leave
    the bracket or do not halve.
    """
    ends = law.quantile(np.asarray(probability))
    ends = np.broadcast_to(ends, weights.shape)
    heaviest = weights.argmax(axis=1)
    at = np.arange(len(weights))
    values = ends[at, heaviest].copy()
    mixed = np.flatnonzero(weights[at, heaviest] < ALONE)
    possible = weights > 0.0
    low = np.where(possible, ends, np.inf).min(axis=1)
    high = np.where(possible, ends, -np.inf).max(axis=1)
    if len(mixed):
        start = np.clip((weights[mixed] * ends[mixed]).sum(axis=1), low[mixed], high[mixed])
        wanted = np.broadcast_to(np.asarray(probability, dtype=float), len(weights))[mixed]
        values[mixed] = _solve(law.select(mixed), weights[mixed], wanted, low[mixed], high[mixed], start)
    return np.asarray(values)


def _solve(law: OrderedEntries, weights: Array, probability: Array, low: Array, high: Array, start: Array) -> Array:
    values, open_ones, now, step = start.copy(), np.arange(len(start)), start, high - low
    fine = PRECISION * np.maximum(np.abs(low), np.abs(high))
    for _ in range(MOST_STEPS):
        excess = (weights * law.below(now)).sum(axis=1) - probability
        low, high = np.where(excess < 0.0, now, low), np.where(excess < 0.0, high, now)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            moved = now - excess / (weights * np.exp(law.log_density(now))).sum(axis=1)
        closing = (moved > low) & (moved < high) & (np.abs(moved - now) < 0.5 * step)
        after = np.where(closing, moved, np.where(excess == 0.0, now, 0.5 * (low + high)))
        values[open_ones], step = after, np.abs(after - now)
        going = (step > fine) & (high - low > fine)
        if not going.any():
            break
        if going.all():
            now = after
            continue
        law, weights, now, open_ones = law.select(going), weights[going], after[going], open_ones[going]
        probability = probability[going]
        low, high, fine, step = low[going], high[going], fine[going], step[going]
    return values
