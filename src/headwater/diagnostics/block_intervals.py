"""Credible intervals of what the columns of a table have: means of numbers, rates of counts, probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import betaincinv, gammaincinv, stdtrit

from headwater.core.statistics import Array
from headwater.diagnostics.intervals import mean_intervals
from headwater.families.bernoulli import Bernoulli
from headwater.families.category_tables import CategoryTables
from headwater.families.gamma_columns import GammaColumns, solve_shape
from headwater.families.gaussian import Gaussian
from headwater.families.log_normal import LogNormal
from headwater.families.poisson import Poisson
from headwater.families.zero_inflated import ZeroInflated
from headwater.families.zero_inflated_poisson import ZeroInflatedPoisson

if TYPE_CHECKING:
    from headwater.families.family import AnyFamily


def block_intervals(family: AnyFamily, prior: Any, totals: Any, level: float) -> Array | None:
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
    if isinstance(family, LogNormal):
        known = family.belief(prior, totals)
        reach = stdtrit(known.rows[..., None], ends) * np.sqrt(known.spread)[..., None] / known.rows[..., None]
        return np.asarray(known.mean[..., None] + reach)
    if isinstance(family, GammaColumns):  # of the mean, given the shape
        rows, sums, logs = family.belief(prior, totals)
        masses = (solve_shape(rows, sums, logs, integrated=True) * rows)[..., None]
        return np.asarray(masses / rows[..., None] * (sums[..., None] / gammaincinv(masses, ends[::-1])))
    if isinstance(family, ZeroInflatedPoisson):
        zeros, others, shape, rate = (part[..., None] for part in family.belief(prior, totals))
        return np.concatenate([betaincinv(zeros, others, ends), gammaincinv(shape, ends) / rate], axis=1)
    if isinstance(family, ZeroInflated):
        parts = zip(family.blocks, prior.blocks, totals.blocks, strict=True)
        found = (block_intervals(block.family, one, two, level) for block, one, two in parts)
        return np.concatenate([ends for ends in found if ends is not None], axis=1)
    return None
