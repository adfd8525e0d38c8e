"""Divergences of densities by sampling: for families without a closed form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headwater.core.statistics import Array

if TYPE_CHECKING:
    from headwater.families.family import Family
    from headwater.families.family_core import Params, Prior, Stats

DIVERGENCE_ROWS = 256  # drawn from each component: a standard error of a tenth where densities are a nat apart
MOST_NATS = 1e6  # a row, in place of an infinite divergence


def sampled_divergences(family: Family[Prior, Stats, Params], ones: Params, others: Params) -> Array:
    """Return KL(p_k || q_j) + KL(q_j || p_k), in nats a row (K, K), of the components of two sets of parameters.

    Draws are the same for the same parameters. For two equal densities the result is exactly 0.
    """
    return np.asarray(np.maximum(_excess(family, ones, others) + _excess(family, others, ones).T, 0.0))


def _excess(family: Family[Prior, Stats, Params], own: Params, others: Params) -> Array:
    """KL(p_k || q_j) (K, K) by rows that are drawn from each p_k."""
    k = family.n_components
    components = np.repeat(np.arange(k), DIVERGENCE_ROWS)
    rows = family.sample(own, components, np.random.default_rng(0))
    expected = family.log_densities(own, rows)[np.arange(len(rows)), components]
    apart = np.clip(expected[:, None] - family.log_densities(others, rows), -MOST_NATS, MOST_NATS)
    return np.asarray(apart.reshape(k, DIVERGENCE_ROWS, k).mean(axis=1))
