"""Moments of K Gaussians: about another origin, and with masses that may differ."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headwater.core.statistics import Array
from headwater.families.gaussian_records import GappedStatistics, GaussianStatistics, MomentStatistics, masses

ROUNDED = 1e-13  # of a sum, relative to the terms that cancel in it


def split_masses(statistics: GaussianStatistics, kind: str) -> MomentStatistics:
    """Return statistics in the form that moment matching keeps; with diagonal covariance every column has its own masses.

    The columns of a sphere have one mass there: those that lacked values are scaled up to it.
    """
    if isinstance(statistics, MomentStatistics):
        return statistics
    if isinstance(statistics, GappedStatistics) and kind == "spherical":
        times = statistics.count[:, None] / np.maximum(statistics.observed, 1e-300)
        first, second = statistics.first * times, statistics.second * times
        statistics = GaussianStatistics(statistics.from_base, statistics.count, first, second)
    columns = (len(statistics.count), statistics.first.shape[1] if kind == "diag" else 1)
    mean_count, dof_count = (np.array(np.broadcast_to(mass, columns)) for mass in masses(statistics, kind))
    return MomentStatistics(
        statistics.from_base, statistics.count, statistics.first, statistics.second, mean_count, dof_count
    )  # fmt: skip


def rebase_moments(covariance_type: str, statistics: GaussianStatistics, shift: Array) -> GaussianStatistics:
    """Return statistics about an origin that lies at -shift of theirs, so that a row x is x + shift now."""
    first, mass, matrix = statistics.first, masses(statistics, covariance_type)[0], covariance_type in ("full", "tied")
    if matrix:
        cross = first[:, :, None] * shift + shift[:, None] * first[:, None, :] + mass[:, :, None] * np.outer(shift, shift)
        cross = np.tril(cross.sum(axis=0) if covariance_type == "tied" else cross)
    else:
        cross = 2.0 * first * shift + mass * shift**2
    second = _raise_above_rounding(statistics.second + cross, statistics.second, matrix)
    return replace(statistics, first=first + mass * shift, second=second)


def _raise_above_rounding(second: Array, before: Array, matrix: bool) -> Array:
    """Second moments about another origin, none of them less than the rounding error of the moments before.

    A component far from its origin has no accurate variance about a near one: its sign would be arbitrary.
    """
    if not matrix:
        return np.where(before > 0.0, np.maximum(second, ROUNDED * before), second)  # a difference may be negative
    now, then = (np.diagonal(one, axis1=-2, axis2=-1) for one in (second, before))
    raised = np.where(then > 0.0, np.maximum(ROUNDED * then - now, 0.0), 0.0)
    return second + raised[..., None] * np.eye(second.shape[-1]) if raised.any() else second
