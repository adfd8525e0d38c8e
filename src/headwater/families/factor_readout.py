"""From statistics of factor analysers to parameters: a regression of columns on factors, and a start without factors."""

from __future__ import annotations

import numpy as np

from headwater.core.statistics import Array
from headwater.families.factor_records import (
    FactorParameters,
    FactorPrior,
    FactorStatistics,
    RoundedFactorPrior,
    make_parameters,
)

LEAST_SECOND = 1e-10  # of the size of the factors, which keeps their sums of squares invertible
SMALLEST_SECOND = 1e-290  # of components that have hardly a row; inverses of smaller ones overflow
LEAST_NOISE = 1e-200
LEAST_RATIO = 1e-12  # of the noise of a column to the variance that factors explain
OVERSAMPLED = 5  # columns more than factors, of the subspace iteration
ITERATIONS = 4
LEAST_SHARE = 0.05  # of a column's variance that a start leaves to the noise


def read_mode(prior: FactorPrior, totals: FactorStatistics) -> FactorParameters:
    """Return the mode: means, loadings and noise of the regression of rows on the factors and on one.

    The expected second moments of the factors need not be those of their prior. Loadings in units of their roots have the
    same likelihood, and make EM faster by an order (parameter-expanded EM: Liu, Rubin and Wu 1998).
    """
    k, _, factors = totals.cross.shape
    count = np.maximum(totals.count, 0.0)
    second = np.empty((k, factors + 1, factors + 1))
    second[:, :factors, :factors] = totals.factor_second
    second[:, :factors, factors] = second[:, factors, :factors] = totals.factor_first
    second[:, factors, factors] = count + prior.mean_precision
    cross = np.concatenate([totals.cross, (totals.first + prior.mean_precision * prior.mean)[:, :, None]], axis=2)
    coefficients = cross @ _inverses(second)
    explained = np.einsum("kdq,kdq->kd", coefficients, cross)
    rest = totals.square + prior.scale + prior.mean_precision * prior.mean**2 - explained
    loadings = coefficients[:, :, :factors] @ _roots(totals.factor_second / np.maximum(count, 1e-300)[:, None, None], count)
    # Sums of rows leave at least what the prior adds; extrapolated statistics may leave less.
    noise = np.maximum(rest, prior.scale) / np.maximum(count + prior.dof, 1e-300)[:, None]
    noise = np.maximum(noise, max(prior.floor, LEAST_NOISE) + LEAST_RATIO * np.einsum("kdq,kdq->kd", loadings, loadings))
    if isinstance(prior, RoundedFactorPrior):  # of which the noise of a column is a part, so this is the mode
        noise = np.maximum(noise, prior.steps**2 / 12.0)
    return make_parameters(prior.origin, coefficients[:, :, factors], loadings, noise)


def _inverses(matrices: Array) -> Array:
    """Inverses of sums of squares (K, q, q), none of whose directions is less than a tiny part of all."""
    values, vectors = np.linalg.eigh(matrices)
    least = np.maximum(LEAST_SECOND * np.abs(values).max(axis=1, keepdims=True), SMALLEST_SECOND)
    return np.einsum("kqr,kr,ksr->kqs", vectors, 1.0 / np.maximum(values, least), vectors)


def _roots(moments: Array, count: Array) -> Array:
    """Symmetric square roots of second moments (K, q, q); of a component without rows the identity."""
    values, vectors = np.linalg.eigh(moments)
    roots = np.einsum("kqr,kr,ksr->kqs", vectors, np.sqrt(np.maximum(values, 0.0)), vectors)
    return np.where((count > 0.0)[:, None, None], roots, np.eye(moments.shape[1]))


def seed_parameters(prior: FactorPrior, X: Array, weighted: Array, n_factors: int) -> FactorParameters:
    """Return parameters of groups of rows: principal directions of each, with its columns scaled.

    A group of too few rows gets the directions of all rows about the means of their groups.
    """
    k, width = weighted.shape[1], X.shape[1]
    centred = X - prior.origin
    mass = weighted.sum(axis=0)
    means = weighted.T @ centred / np.maximum(mass, 1e-300)[:, None]
    floor = max(prior.floor, LEAST_NOISE)
    total = mass.sum()
    pooled = np.zeros(width)
    variances = np.empty((k, width))
    for one in range(k):
        squares = weighted[:, one] @ (centred - means[one]) ** 2
        pooled += squares
        variances[one] = squares / max(mass[one], 1e-300)
    pooled = np.maximum(pooled / max(total, 1e-300), floor)
    assigned = weighted.argmax(axis=1)
    whole = _principal((centred - means[assigned]) / np.sqrt(pooled), weighted.sum(axis=1), n_factors)
    loadings, noise = np.empty((k, width, n_factors)), np.empty((k, width))
    for one in range(k):
        own = np.flatnonzero(weighted[:, one] > 0.0)
        few = len(own) < 2 * (n_factors + 1)
        units = np.sqrt(pooled if few else np.maximum(variances[one], LEAST_SHARE * pooled))
        found = whole if few else _principal((centred[own] - means[one]) / units, weighted[own, one], n_factors)
        share = np.minimum(np.einsum("dq,dq->d", found, found), 1.0 - LEAST_SHARE)
        loadings[one], noise[one] = found * units[:, None], np.maximum((1.0 - share) * units**2, floor)
    return make_parameters(prior.origin, means, loadings, noise)


def _principal(rows: Array, weights: Array, n_factors: int) -> Array:
    """Loadings (d, q) of rows whose columns have variance one: principal directions less the mean of the other eigenvalues."""
    width, mass = rows.shape[1], max(float(weights.sum()), 1e-300)
    columns = min(n_factors + OVERSAMPLED, width)
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(width, columns)))[0]
    for _ in range(ITERATIONS):
        basis = np.linalg.qr(rows.T @ (weights[:, None] * (rows @ basis)))[0]
    inside = rows @ basis
    values, vectors = np.linalg.eigh(inside.T @ (weights[:, None] * inside) / mass)
    order = np.argsort(-values)[:n_factors]
    everything = float(np.einsum("n,nd,nd->", weights, rows, rows)) / mass
    rest = max(everything - float(values[order].sum()), 0.0) / max(width - len(order), 1)
    found = basis @ vectors[:, order] * np.sqrt(np.maximum(values[order] - rest, 1e-3 * max(rest, 1e-12)))
    return np.pad(found, ((0, 0), (0, n_factors - found.shape[1])))
