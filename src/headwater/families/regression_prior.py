"""The prior of K regressions: what the user gave, completed in the scale of the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from headwater.core.batch import Batch
from headwater.core.statistics import Array
from headwater.families.geometry import Geometry
from headwater.families.regression_gaps import input_rows
from headwater.families.regression_records import RegressionParameters, RegressionPrior

if TYPE_CHECKING:
    from headwater.families.regression import Regression


def flatten_prior(family: Regression, prior: RegressionPrior) -> RegressionPrior:
    """Return the prior whose mode is least squares; only the floor under the noise is left of it."""
    size = len(prior.mean)
    gate = family.gate.flatten_prior(prior.gate) if family.gate and prior.gate else None
    return RegressionPrior(prior.origin, np.zeros(size), np.zeros(size), 2.0 - size, 0.0, prior.floor, gate)


def settle_prior(family: Regression, geometry: Geometry, batch: Batch, responsibilities: Array) -> RegressionPrior:
    """Return the user's prior, completed: noise is the residual variance of the seeded groups."""
    origin, spread = geometry.origin, geometry.spread
    mean = np.zeros(family.size(len(origin)))
    if family.coef_prior is not None:
        mean[family.intercept :] = family.coef_prior
    rows = 0.001 if family.coef_precision_prior is None else float(family.coef_precision_prior)
    units = np.where(spread[:-1] > 0.0, spread[:-1], 1.0)
    precision = rows * np.concatenate([np.ones(int(family.intercept)), units])
    dof = 3.0 if family.degrees_of_freedom_prior is None else float(family.degrees_of_freedom_prior)
    gate = None
    if family.gate:
        gate = family.gate.prior(_of_inputs(geometry), input_rows(batch), responsibilities)
    blank = RegressionPrior(origin, mean, precision, dof, 0.0, _floor(family, spread), gate)
    noise = family.noise_variance_prior
    if noise is None:
        noise = _within(family, flatten_prior(family, blank), geometry, batch, responsibilities) + blank.floor
    return replace(blank, scale=dof * float(noise))


def refine_prior(
    family: Regression, prior: RegressionPrior, parameters: RegressionParameters, weights: Array, geometry: Geometry
) -> RegressionPrior:
    """Empirical Bayes: a prior whose mean precision is that of the components, unless the user gave it."""
    if family.gate and prior.gate and parameters.gate:
        gate = family.gate.refine_prior(prior.gate, parameters.gate, weights, _of_inputs(geometry))
        prior = replace(prior, gate=gate)
    if family.noise_variance_prior is not None:
        return prior
    noise = 1.0 / (weights @ (1.0 / family.noise_variances(parameters)))
    return replace(prior, scale=prior.dof * float(noise + _floor(family, geometry.spread)))


def _within(family: Regression, flat: RegressionPrior, geometry: Geometry, batch: Batch, responsibilities: Array) -> float:
    """Residual variance of the seeded groups, pooled; with too few rows, a part of the total variance."""
    size = len(flat.mean)
    if len(batch) < 3 * family.n_components * size:
        return float(geometry.spread[-1] / (1.0 + family.n_components) ** 2)
    totals = family.collect_seeds(geometry, batch, responsibilities)
    noise = family.noise_variances(family.readout("mode", flat, totals))
    return float(totals.count @ noise / totals.count.sum() / (1.0 - family.n_components * size / len(batch)))


def _floor(family: Regression, spread: Array) -> float:
    return float(family.noise_floor * (spread[-1] if spread[-1] > 0.0 else 1.0) + 1e-200)


def _of_inputs(geometry: Geometry) -> Geometry:
    return Geometry(geometry.origin[:-1], geometry.spread[:-1], ())
