"""How much wider than a mean-field belief an interval must be, since nobody knows which component a row is of.

A mean-field belief is as narrow as if the component of each row were known. Rows with known components would tell of the
parameters of component k what c_k c_k' sums up to, where c_k(x) is the gradient of its log-density. A row as it is tells s s'
with s = (r_1 c_1, ..., r_K c_K), the gradient of the mixture's log-density; what is missing between the two is the variance of
the complete gradient given the row (Louis, 1982). The inverse of the observed information, which is the sum of the second and
of what the prior knows, is the covariance of the parameters.

That holds for an estimate at the optimum of all rows. Where what a row was counted as is never corrected, and steps are 1/n, an
error fades only like n to minus the share of the complete information that is seen, rho, in each of its directions. After
a start on n0 of n rows the variance is that of the optimum times

    (n0/n)^(2 rho - 1) + rho^2 (1 - (n0/n)^(2 rho - 1)) / (2 rho - 1)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit, logit

from headwater.core.statistics import Array
from headwater.families.parameter_scores import ParameterScores
from headwater.kernels.parallel import one_blas_thread

MOST_PARAMETERS = 1000  # whose covariance is computed as a whole: a second, and 100 MB
ROWS_PER_PARAMETER = 10  # of the rows by which it is computed; more change intervals by less than 5 %
LEAST_ROWS = 5000
MOST_GRADIENTS = 2**31  # numbers that are computed where components are taken one by one: some seconds
FEWEST_ROWS = 500
LEAST_INFORMATION = 1e-9  # of what complete rows would have


@dataclass(frozen=True)
class InformedRows:
    """Rows with weights (n,) and shares (n, K) of the components; `count` is the number of rows that they stand for.

    `begun` is the share n0/n of the rows that a stream began with whose steps are 1/n; 1 for an estimate that is the optimum.
    """

    row_weights: Array
    shares: Array
    count: float
    begun: float = 1.0


@dataclass(frozen=True)
class Widening:
    """Times that intervals are wider than those of the belief: of weights (K,), and of what is reported (K, m)."""

    weights: Array
    values: Array


def rows_wanted(n_parameters: int) -> int:
    """Return how many rows are enough to compute the information about so many parameters by."""
    enough = max(LEAST_ROWS, ROWS_PER_PARAMETER * min(n_parameters, MOST_PARAMETERS))
    return min(enough, max(MOST_GRADIENTS // max(n_parameters, 1), FEWEST_ROWS))


def widening(rows: InformedRows, weights: Array, prior_rows: float, scores: ParameterScores) -> Widening:
    """Return by how much intervals are too narrow; at least 1 each.

    `prior_rows` is what the prior of the weights counts as. Where parameters are too many, components are taken one by one,
    and where those of one are too many, each alone.
    """
    n_all = len(weights) + int(scores.places.max()) + 1
    with one_blas_thread():
        if n_all <= MOST_PARAMETERS:
            return _joint(rows, weights, prior_rows, scores)
        return _one_by_one(rows, weights, scores)


def _joint(rows: InformedRows, weights: Array, prior_rows: float, scores: ParameterScores) -> Widening:
    k, size = len(weights), len(weights) + int(scores.places.max()) + 1
    each = rows.row_weights * (rows.count / max(rows.row_weights.sum(), 1e-300))
    seen_rows, complete = np.zeros((len(each), size)), np.zeros((size, size))
    seen_rows[:, :k] = rows.shares - weights
    prior = np.zeros((size, size))
    spread = np.diag(weights) - np.outer(weights, weights)
    complete[:k, :k] = rows.count * spread
    # The weights of all components sum to one, so that one direction is known.
    prior[:k, :k] = prior_rows * spread + (max(rows.count, 1.0) if abs(weights.sum() - 1.0) < 1e-9 else 0.0)
    for one, own in enumerate(k + scores.places):
        gradient, information = scores.component(one)
        pulled = rows.shares[:, [one]] * gradient
        seen_rows[:, own] += pulled
        complete[np.ix_(own, own)] += (each[:, None] * pulled).T @ gradient
        prior[np.ix_(own, own)] += information
    seen = (each[:, None] * seen_rows).T @ seen_rows
    covariances = [_inverse(part + prior, complete + prior) for part in (seen, complete)]
    covariances[0] = _of_recursion(covariances[0], complete + prior, rows.begun)
    ratios = [np.einsum("ij,jk,ik->i", spread, part[:k, :k], spread) for part in covariances]
    values = [_reported(part[k:, k:], scores) for part in covariances]
    return Widening(_ratio(*ratios), _ratio(*values))


def _reported(covariance: Array, scores: ParameterScores) -> Array:
    own = covariance[scores.places[:, :, None], scores.places[:, None]]
    reported = np.broadcast_to(scores.reported, (len(own), *scores.reported.shape[-2:]))
    return np.einsum("kmi,kij,kmj->km", reported, own, reported, optimize=True)


def _one_by_one(rows: InformedRows, weights: Array, scores: ParameterScores) -> Widening:
    """The widening of each component beside others that are taken as known."""
    each = rows.row_weights * (rows.count / max(rows.row_weights.sum(), 1e-300))
    found = []
    for one in range(len(weights)):
        share, (gradient, prior) = rows.shares[:, one], scores.component(one)
        reported = scores.reported if scores.reported.ndim == 2 else scores.reported[one]
        parts = [_product(gradient, each * part) for part in (share**2, share)]
        if gradient.shape[1] > MOST_PARAMETERS:
            lone = np.diagonal(prior) + 1e-300
            ends = [reported**2 @ (1.0 / (part + lone)) for part in parts]
        else:
            inverses = [_inverse(part + prior, parts[1] + prior) for part in parts]
            inverses[0] = _of_recursion(inverses[0], parts[1] + prior, rows.begun)
            ends = [np.einsum("mi,ij,mj->m", reported, part, reported, optimize=True) for part in inverses]
        found.append(_ratio(*ends))
    seen = np.einsum("n,nk->k", each, (rows.shares - weights) ** 2)
    complete = rows.count * weights * (1.0 - weights)
    return Widening(_ratio(1.0 / np.maximum(seen, 1e-300), 1.0 / np.maximum(complete, 1e-300)), np.array(found))


def _product(gradient: Array, each: Array) -> Array:
    """Second moments (p, p) of gradients; only their diagonal (p,) if these are too many."""
    if gradient.shape[1] > MOST_PARAMETERS:
        return np.asarray(each @ gradient**2)
    return np.asarray((each[:, None] * gradient).T @ gradient)


def _inverse(information: Array, complete: Array) -> Array:
    """The inverse of an information, in units of the complete one, of which a little is always there."""
    units = np.sqrt(np.maximum(np.diagonal(complete), 1e-300))
    scaled = information / units[:, None] / units
    scaled[np.diag_indices_from(scaled)] += LEAST_INFORMATION
    try:
        inverse = cho_solve(cho_factor(scaled, lower=True), np.eye(len(scaled)))
    except np.linalg.LinAlgError:  # rounding has left it indefinite
        values, vectors = np.linalg.eigh(scaled)
        inverse = (vectors / np.maximum(values, LEAST_INFORMATION)) @ vectors.T
    return np.asarray(inverse / units[:, None] / units)


def _of_recursion(covariance: Array, complete: Array, begun: float) -> Array:
    """Return the covariance of an estimate whose steps were 1/n, from that of the optimum."""
    if begun >= 1.0:
        return covariance
    units = np.sqrt(np.maximum(np.diagonal(complete), 1e-300))
    scaled = complete / units[:, None] / units
    values, vectors = np.linalg.eigh(scaled)
    root = (vectors * np.sqrt(np.maximum(values, LEAST_INFORMATION))) @ vectors.T
    inflated, directions = np.linalg.eigh(root @ (covariance * units[:, None] * units) @ root)  # 1/rho
    share = np.clip(1.0 / np.maximum(inflated, 1e-300), LEAST_INFORMATION, 1.0)
    middle = np.linalg.solve(root, directions) / units[:, None]
    return np.asarray((middle * (inflated * recursion_factor(share, begun))) @ middle.T)


def recursion_factor(share: Array, begun: float) -> Array:
    """Return the variance after steps 1/n beside that of the optimum, by the share of the information that is seen."""
    power = 2.0 * share - 1.0
    near = np.abs(power) < 1e-6
    left = begun**power
    return np.asarray(left + share**2 * np.where(near, -np.log(begun), (1.0 - left) / np.where(near, 1.0, power)))


def _ratio(seen: Array, complete: Array) -> Array:
    with np.errstate(all="ignore"):
        found = np.sqrt(seen / complete)
    return np.where(np.isfinite(found), np.maximum(found, 1.0), 1.0)


# Quantiles that are so many times as far from the median, on the scale where the belief is most symmetric.

Scale = tuple[Callable[[Array], Array], Callable[[Array], Array]]
NUMBERS: Scale = (np.asarray, np.asarray)
POSITIVE: Scale = (np.log, np.exp)
SHARES: Scale = (logit, expit)


def stretched(ends: Array, median: Array, factors: Array, scale: Scale) -> Array:
    """Return ends (..., 2) that are `factors` (...) times as far from the median (...) on a scale."""
    there, back = scale
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        middle = there(median)[..., None]
        found = back(middle + factors[..., None] * (there(ends) - middle))
    return np.where(np.isfinite(found) & (factors[..., None] > 1.0), found, ends)
