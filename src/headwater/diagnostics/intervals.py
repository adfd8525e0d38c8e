"""Credible intervals of a mixture of Gaussians, from its belief."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, gammainccinv, stdtrit

from headwater.core.statistics import Array
from headwater.diagnostics.description import (
    MOST_COMPONENTS,
    MOST_VALUES,
    short_name,
    wide_table_html,
    wide_table_text,
)
from headwater.diagnostics.observed_information import NUMBERS, POSITIVE, SHARES, Widening, stretched
from headwater.families.gaussian import Gaussian
from headwater.families.gaussian_records import GaussianBelief

MOST_DIGITS = 12  # of an end of an interval


@dataclass(frozen=True)
class CredibleIntervals:
    """Central intervals of the belief, lower and upper end last: weights (K, 2), means and variances (K, d, 2)."""

    level: float
    weights: Array
    means: Array
    variances: Array
    columns: tuple[str, ...] = ()  # names of the columns

    def __str__(self) -> str:
        return wide_table_text(*self._table())

    def _repr_html_(self) -> str:
        return wide_table_html(*self._table())

    def _table(self) -> tuple[str, list[str], list[list[str]], list[str]]:
        """Return a title, the header and a row for each component, and a line each for what is not shown."""
        k, width = self.means.shape[:2]
        names = [short_name(name) for name in (self.columns or [f"x{at}" for at in range(width)])[:MOST_VALUES]]
        rows = [
            [
                str(one),
                interval_text(*self.weights[one]),
                ", ".join(f"{name} {interval_text(*ends)}" for name, ends in zip(names, self.means[one], strict=False)),
            ]
            for one in range(min(k, MOST_COMPONENTS))
        ]
        hidden = {"components": k - len(rows), "columns": width - len(names)}
        more = " and ".join(f"{number:,} more {what}" for what, number in hidden.items() if number)
        rest = [*([f"and {more}"] if more else []), "intervals of the variances: .variances"]
        return f"Central intervals that hold with probability {self.level:g}", ["component", "weight", "means"], rows, rest


def interval_text(low: float, high: float) -> str:
    """Return both ends, with as many digits as tell them apart."""
    width, size = abs(high - low), max(abs(low), abs(high))
    # Two digits of the width; it may be zero, as that of the weight of a single component is.
    digits = 3 if not width > 0.0 else min(max(int(np.ceil(np.log10(size / width))) + 2, 3), MOST_DIGITS)
    return f"{low:.{digits}g} to {high:.{digits}g}"


def credible_intervals(
    family: Gaussian,
    shares: tuple[Array, Array],
    belief: GaussianBelief,
    level: float,
    columns: Sequence[str] = (),
    wider: Widening | None = None,
) -> CredibleIntervals:
    """Return central intervals of the marginals: Beta for weights, Student's t for means, inverse Gamma for variances.

    `shares` are both parameters (K,) of the Beta of each weight. `wider` has the factors of weights, and of means and variances
    (K, 2 d), by which intervals are wider than those of the belief.
    """
    # One component has all the weight, of which the Beta distribution knows nothing.
    own, others = shares
    among = np.column_stack([own, np.where(others > 0.0, others, np.nan)])
    weights = betaincinv(among[:, :1], among[:, 1:], tails(level))
    scale, dof, _ = _marginals(family, belief)
    variances = 0.5 * scale[..., None] / gammainccinv(0.5 * dof[..., None], tails(level))
    means = mean_intervals(family, belief, level)
    if wider is not None:
        width = means.shape[1]
        weights = stretched(weights, betaincinv(*among.T, 0.5), wider.weights, SHARES)
        means = stretched(means, belief.means, wider.values[:, :width], NUMBERS)
        variances = stretched(variances, 0.5 * scale / gammainccinv(0.5 * dof, 0.5), wider.values[:, width:], POSITIVE)
    return CredibleIntervals(level, np.nan_to_num(weights, nan=1.0), means, variances, tuple(map(str, columns)))


def tails(level: float) -> Array:
    """Return the probabilities below both ends of a central interval."""
    return np.array([0.5 - 0.5 * level, 0.5 + 0.5 * level])


def mean_intervals(
    family: Gaussian, belief: GaussianBelief, level: float, columns: slice | NDArray[np.int64] = slice(None)
) -> Array:
    """Return central intervals (K, d, 2) of the means, or of some columns of them."""
    scale, dof, precision = (part[:, columns, None] for part in _marginals(family, belief))
    reach = np.sqrt(np.maximum(scale, 0.0) / (precision * dof)) * stdtrit(dof, tails(level))
    return np.asarray(belief.means[:, columns, None] + reach)


def _marginals(family: Gaussian, belief: GaussianBelief) -> tuple[Array, Array, Array]:
    """Scale, degrees of freedom and precision of the mean (K, d), of each column alone."""
    k, width = belief.means.shape
    scale, dof, precision = belief.scale, belief.dof.reshape(k, -1), belief.mean_precision.reshape(k, -1)
    if family.kind.matrix:
        scale, dof = np.diagonal(scale, axis1=-2, axis2=-1), dof - width + 1.0
    elif family.spherical:
        scale, dof = scale.reshape(k, -1) * width, dof * width
    shape = (k, width)
    return np.broadcast_to(scale, shape), np.broadcast_to(dof, shape), np.broadcast_to(precision, shape)
