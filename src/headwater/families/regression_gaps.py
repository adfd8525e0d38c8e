"""Regressions whose inputs have Gaussians of their own, and rows of which inputs or targets are missing.

A component is a density of inputs x and target y: the gate N(x) times the regression of y on x. Its logarithm is a constant
less half a sum of squares |M z + c|^2 of z = (x, y): the whitened inputs, the residual in units of the noise, and, in the
variational E-step, the leverage. So it is that of a Gaussian over z, and gaps are integrated out as in `gaussian_gaps.py`. The
predictive density is a product of two Student-t's, and has no such form.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headwater.core.batch import Batch
from headwater.core.gapped_rows import GappedRows
from headwater.core.statistics import Array
from headwater.families.gaussian import Gaussian
from headwater.families.gaussian_records import GaussianParameters, GaussianStatistics
from headwater.families.regression_records import RegressionParameters

NO_CLOSED_FORM = (
    "the predictive density of a regression has no closed form where inputs or targets are missing: leave out the rows that "
    "lack a value, or use another algorithm than quasi-Bayes"
)
NO_GATE = "missing inputs are integrated out under the density of the inputs, which a model with gating='input' alone has"


def joint_parameters(parameters: RegressionParameters, intercept: bool) -> GaussianParameters:
    """Return the Gaussians over inputs and target that gates and regressions make."""
    gate = parameters.gate
    if gate is None:
        raise ValueError(NO_GATE)
    if (parameters.power > 0.0).any():
        raise ValueError(NO_CLOSED_FORM)
    k, width = len(parameters.offset), len(parameters.origin)
    inputs = np.concatenate([gate.factor, np.zeros((k, width - 1, 1))], axis=2)
    rows = parameters.factor if parameters.leverage.any() else parameters.factor[:, -1:]
    matrix = np.concatenate([inputs, rows[:, :, int(intercept) :]], axis=1)
    levels = rows[:, :, 0] if intercept else np.zeros(rows.shape[:2])
    constant = np.concatenate([-gate.shift, levels], axis=1)
    # With the columns in reverse order, QR gives a lower triangular factor, and squares nothing.
    turned, upper = np.linalg.qr(matrix[:, :, ::-1])
    signs = np.where(np.diagonal(upper, axis1=1, axis2=2) < 0.0, -1.0, 1.0)
    upper, turned = upper * signs[:, :, None], turned * signs[:, None, :]
    factor = np.ascontiguousarray(upper[:, ::-1, ::-1])
    along = (np.swapaxes(turned, 1, 2) @ constant[:, :, None])[:, :, 0]
    least = np.square(constant - (turned @ along[:, :, None])[:, :, 0]).sum(axis=1)
    shift = np.ascontiguousarray(-along[:, ::-1])
    means = np.linalg.solve(factor, shift[:, :, None])[:, :, 0]
    offset = parameters.offset + gate.offset - 0.5 * least
    return GaussianParameters(parameters.origin, means, factor, shift, offset, np.zeros(k), np.ones(k))


def estep_regression_gaps(
    moments: Gaussian,
    gate: Gaussian | None,
    parameters: RegressionParameters,
    intercept: bool,
    log_weights: Array,
    batch: Batch,
    totals: GaussianStatistics | None,
    scores: Array,
    responsibilities: Array,
    given: bool,
    n_threads: int | None,
) -> tuple[float, GaussianStatistics | None]:
    """E-step of rows with gaps; `scores` are those of targets given the inputs that are there, 0 where the target is not."""
    joint = joint_parameters(parameters, intercept)
    score, totals = moments.estep(joint, log_weights, batch, totals, scores, responsibilities, given, n_threads)
    if scores.size and not given:
        assert gate is not None and parameters.gate is not None
        of_inputs = np.empty(len(batch))
        gate.estep(parameters.gate, log_weights, input_rows(batch), scores=of_inputs, n_threads=n_threads)
        scores -= of_inputs
        if isinstance(batch.X, GappedRows):
            scores[batch.X.missing[:, -1]] = 0.0
    return score, totals


def input_rows(batch: Batch) -> Batch:
    """Return the inputs of rows alone."""
    X = batch.X
    if isinstance(X, GappedRows):
        return replace(batch, X=X.columns(slice(None, -1)))
    return replace(batch, X=np.ascontiguousarray(X[:, :-1]))


def predict_gaps(parameters: RegressionParameters, intercept: bool, X: GappedRows) -> tuple[Array, Array]:
    """Return mean and variance (n, K) of the target under each component, given the inputs that are there."""
    joint = joint_parameters(parameters, intercept)
    rows = np.column_stack([X.values, np.full(len(X), np.nan)])
    law = Gaussian(len(joint.offset)).conditional(joint, rows, np.isnan(rows))
    places = np.arange(len(X))
    entries = law.entries(places, np.full(len(X), X.shape[1]))
    return np.asarray(entries.mean), np.asarray(entries.variance)
