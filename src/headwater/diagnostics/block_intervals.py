"""Credible intervals of what the columns of a table have: means of numbers, rates of counts, probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import betaincinv, gammaincinv

from headwater.core.statistics import Array
from headwater.diagnostics.intervals import mean_intervals
from headwater.families.bernoulli import Bernoulli
from headwater.families.category_tables import CategoryTables
from headwater.families.gaussian import Gaussian
from headwater.families.poisson import Poisson


def block_intervals(family: Any, prior: Any, totals: Any, level: float) -> Array | None:
    """Return the ends (K, numbers, 2) of central intervals of the belief about a block of columns, or None if it has none.

    Of categories there is a number for each that is known, column by column.
    """
    ends = np.array([0.5 * (1.0 - level), 0.5 * (1.0 + level)])
    if isinstance(family, Gaussian):
        return mean_intervals(family, family.belief(prior, totals), level)
    if isinstance(family, Poisson):
        shape, rate = (part[..., None] for part in family.belief(prior, totals))
        return np.asarray(gammaincinv(shape, ends) / rate)
    if isinstance(family, Bernoulli):
        ones, zeros = (part[..., None] for part in family.belief(prior, totals))
        return np.asarray(betaincinv(ones, zeros, ends))
    if isinstance(family, CategoryTables):
        cells = family.belief(prior, totals)[..., None]
        rest = cells.sum(axis=2, keepdims=True) - cells
        sizes = enumerate(family.levels)
        return np.concatenate([betaincinv(cells[:, at, :n], rest[:, at, :n], ends) for at, n in sizes], axis=1)
    return None
