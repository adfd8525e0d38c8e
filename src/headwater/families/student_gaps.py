"""Rows with gaps under K Student's t: the observed columns are Student's t with the same degrees of freedom.

Given the factor u of its precision, a row is Gaussian, so its missing columns have a conditional mean that does not depend on
u, and the conditional covariance C / u. So the second moments of a completed row, weighted by u, gain C once for every row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import digamma, gammaln

from headwater.core.gapped_rows import GappedRows
from headwater.core.statistics import Array
from headwater.families.entry_law import FARTHEST
from headwater.families.gap_patterns import PatternGroup, find_groups
from headwater.families.student_records import StudentParameters, StudentStatistics

if TYPE_CHECKING:
    from headwater.families.student import Student


@dataclass(frozen=True)
class GappedDistances:
    """What rows with gaps say of their factors: E[u] and E[log u] (n, K), and the rows by what they lack."""

    factors: Array
    log_factors: Array
    groups: list[PatternGroup]


def log_gapped(parameters: StudentParameters, X: GappedRows, matrix: bool) -> tuple[Array, GappedDistances]:
    """Return the log-density (n, K) of what was observed of each row, 0 where nothing was, and what it says of the factors."""
    factor, means = _matrices(parameters, matrix), parameters.means
    away = np.where(X.missing, 0.0, X.values - parameters.origin - means[:, None, :])
    white = away @ np.swapaxes(factor, 1, 2)
    groups = find_groups(X.missing, factor, white, means)
    distance = np.square(np.clip(white, -FARTHEST, FARTHEST)).sum(axis=2).T
    gaps = X.gaps[:, None].astype(float)
    power, stretch = parameters.power - 0.5 * gaps, parameters.stretch
    # A gap that is integrated out takes half a power, and its part of the determinant.
    offset = parameters.offset + gammaln(power) - gammaln(parameters.power) - 0.5 * gaps * np.log(stretch / np.pi)
    for group in groups:
        offset[group.rows] -= group.log_det[group.which]
    far = np.log1p(np.minimum(stretch * distance, 1e300))
    logs = offset - power * far
    logs[X.is_empty] = 0.0
    log_rate = far - np.log(2.0 * stretch)
    return logs, GappedDistances(power * np.exp(-log_rate), digamma(power) - log_rate, groups)


def collect_gapped(
    family: Student, parameters: StudentParameters, X: GappedRows, responsibilities: Array, found: GappedDistances
) -> StudentStatistics:
    """Return total statistics of rows completed by what is expected of them; rows without a value add nothing."""
    shares = np.where(X.is_empty[:, None], 0.0, responsibilities)
    weighted = shares * found.factors
    totals, matrix = family.zeros(X.shape[1]), family.gaussian.kind.matrix
    totals.count[...], totals.mass[...] = shares.sum(axis=0), weighted.sum(axis=0)
    totals.tails[...] = np.einsum("nk,nk->k", shares, found.log_factors - found.factors)
    second = totals.second.reshape(-1, *totals.second.shape[-2:]) if matrix else totals.second
    for k in range(family.n_components):
        rows = np.where(X.missing, 0.0, X.values - parameters.origin)
        for group in found.groups:
            rows[group.rows[:, None], group.columns] = group.centre[:, k]
        totals.first[k] = weighted[:, k] @ rows
        at = k if len(second) > 1 else 0
        second[at] += np.tril((rows * weighted[:, k, None]).T @ rows) if matrix else weighted[:, k] @ rows**2
        for group in found.groups:
            _add_unknown(second[at], group, k, shares[group.rows, k], matrix)
    return totals


def _add_unknown(second: Array, group: PatternGroup, k: int, shares: Array, matrix: bool) -> None:
    """Add the conditional covariances of missing columns, once for every row."""
    n_patterns = len(group.root)
    mass = np.bincount(group.which, weights=shares, minlength=n_patterns)
    first = np.zeros(n_patterns, dtype=np.int64)
    first[group.which] = np.arange(len(group.which))
    columns, root = group.columns[first], group.root[:, k]
    unknown = mass[:, None, None] * (root @ np.swapaxes(root, 1, 2))
    if matrix:
        np.add.at(second, (columns[:, :, None], columns[:, None, :]), np.tril(unknown))
    else:
        np.add.at(second, columns, np.diagonal(unknown, axis1=1, axis2=2))


def _matrices(parameters: StudentParameters, matrix: bool) -> Array:
    """Inverse Cholesky factors (K, d, d), whatever the kind of covariance."""
    k, width = parameters.means.shape
    if matrix:
        return np.array(np.broadcast_to(parameters.factor, (k, width, width)))
    return np.asarray(parameters.factor[:, :, None] * np.eye(width))
