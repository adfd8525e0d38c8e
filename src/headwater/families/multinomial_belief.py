"""Dirichlet beliefs about K multinomials: their divergence from the prior and from each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from headwater.core.statistics import Array
from headwater.families.multinomial_records import MultinomialPrior, MultinomialStatistics


def divergence(prior: MultinomialPrior, totals: MultinomialStatistics) -> float:
    """KL(belief || prior), summed over the components."""
    counts = np.asarray(totals.table)
    before = np.broadcast_to(prior.beta, counts.shape)
    after = before + counts
    sums, all_after = prior.totals, prior.totals + totals.length
    words = (gammaln(before) - gammaln(after) + counts * digamma(after)).sum()
    groups = (gammaln(all_after) - gammaln(sums) - totals.length * digamma(all_after)).sum()
    return float(words + groups)


def separation(prior: MultinomialPrior, totals: MultinomialStatistics, others: MultinomialStatistics) -> Array:
    """Symmetric divergence (K, K) of the beliefs about these components and about those."""
    (one, sums), (other, other_sums) = (_belief(prior, part) for part in (totals, others))
    return _cross_divergences(one, other) - _cross_divergences(sums, other_sums)


def contrast(
    groups: NDArray[np.int32], prior: MultinomialPrior, totals: MultinomialStatistics, others: MultinomialStatistics
) -> Array:
    """Symmetric divergence (K,) of the densities of each component here and there, in nats a row.

    The expected difference of two samples of one component is subtracted. A component without rows has divergence 0.
    """
    (one, sums), (other, other_sums) = (_belief(prior, part) for part in (totals, others))
    groups = groups if groups.size else np.zeros(len(one), dtype=np.int32)
    p, q = one / sums[groups], other / other_sums[groups]
    length = np.minimum(totals.length / np.maximum(totals.count, 1e-300), others.length / np.maximum(others.count, 1e-300))
    noise = (1.0 / sums + 1.0 / other_sums) * prior.sizes
    gap = np.zeros_like(sums)
    np.add.at(gap, groups, (p - q) * np.log(p / q))
    empty = np.minimum(totals.count, others.count) < 1.0
    return np.where(empty, 0.0, np.maximum((length * (gap - noise)).sum(axis=0), 0.0))


def _belief(prior: MultinomialPrior, totals: MultinomialStatistics) -> tuple[Array, Array]:
    """Dirichlet parameters (V, K) and their sums over groups (G, K), kept above zero."""
    return np.maximum(prior.beta + np.asarray(totals.table), 1e-12), np.maximum(prior.totals + totals.length, 1e-12)


def _cross_divergences(one: Array, other: Array) -> Array:
    """Sums over rows of (a - b) (psi(a) - psi(b)) for every column a of one and b of the other."""
    psi, other_psi = digamma(one), digamma(other)
    own, others = (one * psi).sum(axis=0), (other * other_psi).sum(axis=0)
    return own[:, None] + others - one.T @ other_psi - psi.T @ other
