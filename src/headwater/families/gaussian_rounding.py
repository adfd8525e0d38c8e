"""Rounded columns of K Gaussians: no covariance is less than that of the rounding error.

What is observed is x = u + e with the variance D = step^2 / 12 of e in each column. If u has covariance S, x has C = S + D, so
C - D is positive semi-definite: that is all that rounding says, since the noise is the same in every row. The likelihood of C,
and a conjugate prior times it, is -(n / 2)(log |C| + trace(C^-1 V / n)) with V and n as the readout has them. Its maximum under
that condition has the eigenvectors of V / n in units of D^1/2, and eigenvalues of at least 1. Columns without a step keep
their covariance V_bb and what the others depend on them by; only what is left of the others given them is lifted:
C_aa = V_aa / n + lift(V_a|b / n) - V_a|b / n.

For variational Bayes the same V maximises the free energy over Wishart beliefs whose mean precision is at most D^-1.
So totals are lifted before they are read out, and nothing that is learned changes: sums of rows stay sums of rows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headwater.core.statistics import Array
from headwater.families.gaussian_belief import belief, inverses
from headwater.families.gaussian_records import GaussianPrior, GaussianStatistics, RoundedPrior, masses
from headwater.kernels.mixture import TINY


def is_rounded(prior: GaussianPrior) -> bool:
    """Whether some column has a step."""
    return isinstance(prior, RoundedPrior) and bool(prior.steps.any())


def lift_totals(
    kind: str, prior: GaussianPrior, totals: GaussianStatistics, name: str, mode_shift: float
) -> GaussianStatistics:
    """Return totals whose readout has no covariance below that of rounding; as they are, if none is or no column has a step.

    `kind` is that of the covariance, `name` that of the readout.
    """
    if not isinstance(prior, RoundedPrior) or not prior.steps.any():
        return totals
    rows = _divisors(kind, prior, totals, name, mode_shift)
    scale = belief(kind, prior, totals).scale
    if kind == "spherical":
        lack = rows[:, 0] * prior.variances.max() - scale
        return totals if (lack <= 0.0).all() else replace(totals, second=totals.second + np.maximum(lack, 0.0)[:, None])
    if kind == "diag":
        lack = rows * prior.variances - scale
        return totals if (lack <= 0.0).all() else replace(totals, second=totals.second + np.maximum(lack, 0.0))
    raised = lift_matrices(scale, rows[:, 0] if kind == "full" else rows[:1, 0], prior)
    return totals if raised is None else replace(totals, second=totals.second + np.tril(raised))


def lift_matrices(scale: Array, rows: Array, prior: RoundedPrior) -> Array | None:
    """Return what has to be added to scales (K, d, d), or to one (d, d), which are divided by so many rows; None if nothing."""
    rounded = np.flatnonzero(prior.steps)
    others = np.flatnonzero(prior.steps == 0.0)
    matrices = scale if scale.ndim == 3 else scale[None]
    left = matrices[:, rounded[:, None], rounded]
    if len(others):
        across = matrices[:, rounded[:, None], others]
        left = left - across @ inverses(matrices[:, others[:, None], others]) @ np.swapaxes(across, 1, 2)
    # In units of the rounding error of so many rows, what is left has eigenvalues that should be 1 at least.
    units = np.sqrt(rows[:, None] * prior.variances[rounded])
    left = left / units[:, :, None] / units[:, None]
    sound = np.asarray(np.isfinite(left).all(axis=(1, 2)))  # trials of a search may be no statistics
    values, vectors = np.linalg.eigh(np.where(sound[:, None, None], left, np.eye(len(rounded))))
    lack = np.maximum(1.0 - values, 0.0)
    if not lack.any():
        return None
    raised = np.zeros_like(matrices)
    missing = (vectors * lack[:, None]) @ np.swapaxes(vectors, 1, 2) * units[:, :, None] * units[:, None]
    raised[:, rounded[:, None], rounded] = missing
    return raised if scale.ndim == 3 else raised[0]


def _divisors(kind: str, prior: RoundedPrior, totals: GaussianStatistics, name: str, mode_shift: float) -> Array:
    """What the scale of the belief is divided by to make the covariance of a readout: (K, 1), or (K, d) with own masses."""
    count = masses(totals, kind)[1]
    if kind == "tied":
        count = np.broadcast_to(count.sum(axis=0), count.shape)
    if name == "mode":
        return np.maximum(count + (prior.dof - mode_shift), 1.0 if prior.mean_precision > 0.0 else TINY)
    return count + prior.dof
