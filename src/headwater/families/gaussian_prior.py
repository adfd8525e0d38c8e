"""The prior of K Gaussians: what the user gave, checked, and completed in the scale of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING

import numpy as np

from headwater.core.batch import Batch
from headwater.core.noisy_rows import NoisyRows
from headwater.core.statistics import Array
from headwater.families.column_steps import settle_steps
from headwater.families.gaussian_belief import inverses
from headwater.families.gaussian_records import GaussianParameters, GaussianPrior, GaussianStatistics, RoundedPrior
from headwater.families.geometry import Geometry, within_spread
from headwater.families.noise_removal import remove_noise

if TYPE_CHECKING:
    from headwater.families.gaussian import Gaussian

MEAN_ROWS = 0.01  # rows that the prior mean counts as: too few to pull a component
LEAST_SPREAD = 1e-6  # of a column's variance, below which no prior covariance is


def check_hyperparameters(family: Gaussian, width: int) -> None:
    """Refuse hyperparameters that are not a valid prior for rows of this width."""
    lowest = width - 1 if family.kind.matrix else 0
    if prior_dof(family, width) <= lowest:
        raise ValueError(
            f"degrees_of_freedom_prior must be greater than {lowest} for {width} columns, got {prior_dof(family, width):g}"
        )
    if family.covariance_prior is not None:
        _given_scale(family, width)


def flat_prior(family: Gaussian, origin: Array) -> GaussianPrior:
    """The prior whose mode is maximum likelihood; only the floor `reg_covar` is left of it."""
    width = len(origin)
    scale = np.zeros((width, width) if family.kind.matrix else width)
    shift = float(family.kind.mode_shift(family.n_components, width))
    return GaussianPrior(origin, np.zeros(width), 0.0, shift, scale, float(family.reg_covar))


def given_prior(family: Gaussian, prior: GaussianPrior) -> GaussianPrior:
    """Return the prior with only the parts that the user gave: without the others its mode is maximum likelihood."""
    flat = family.flat_prior(prior.origin)
    if family.mean_precision_prior is not None:
        flat = replace(flat, mean=prior.mean, mean_precision=prior.mean_precision)
    if family.degrees_of_freedom_prior is not None:
        flat = replace(flat, dof=prior.dof)
    return flat if family.covariance_prior is None else replace(flat, scale=prior.scale)


def settle_prior(family: Gaussian, geometry: Geometry, batch: Batch, responsibilities: Array) -> GaussianPrior:
    """The user's prior, completed by the covariance within the seeded groups, counted as d + 2 rows."""
    origin, spread = geometry.origin, geometry.spread
    within = within_spread(family.kind.matrix, batch, responsibilities, spread)
    if isinstance(batch.X, NoisyRows):
        within = remove_noise(family.kind.matrix, batch.X, responsibilities.sum(axis=1) * batch.row_weights, within)
    width = len(origin)
    check_hyperparameters(family, width)
    dof = prior_dof(family, width)
    scale = _scale(family, within, spread) if family.covariance_prior is None else _given_scale(family, width)
    mean = np.zeros(width) if family.mean_prior is None else family.mean_prior - origin
    precision = MEAN_ROWS if family.mean_precision_prior is None else float(family.mean_precision_prior)
    prior = GaussianPrior(origin, mean, precision, dof, scale, 0.0)
    steps = settle_steps(family.resolution, batch.X)
    return prior if steps is None else with_steps(prior, steps)


def with_steps(prior: GaussianPrior, steps: Array) -> RoundedPrior:
    """Return the prior of columns that are rounded to these steps."""
    known = {part.name: getattr(prior, part.name) for part in fields(GaussianPrior)}
    return RoundedPrior(**known, steps=steps)


def coarsest_prior(priors: Sequence[GaussianPrior]) -> GaussianPrior:
    """Return the first prior with the coarser of the steps that models have found for each column."""
    first = priors[0]
    if not isinstance(first, RoundedPrior):
        return first
    units = first.units if first.units.size else 1.0
    steps = first.steps
    for other in priors[1:]:
        assert isinstance(other, RoundedPrior)
        steps = np.maximum(steps, other.steps * (other.units if other.units.size else 1.0) / units)
    return first if np.array_equal(steps, first.steps) else replace(first, steps=steps)


def refine_prior(
    family: Gaussian, prior: GaussianPrior, parameters: GaussianParameters, weights: Array, geometry: Geometry
) -> GaussianPrior:
    """Empirical Bayes: a prior whose mean precision is that of the components, unless the user gave it.

    Thin components then are not blurred by the wide ones, as they would be by the pooled covariance.
    """
    if family.covariance_prior is not None:
        return prior
    factor = parameters.factor
    if family.covariance_type == "tied":
        covariance = inverses(factor.T @ factor)
    elif family.kind.matrix:
        covariance = inverses(np.einsum("k,kij,kil->jl", weights, factor, factor))
    else:
        covariance = 1.0 / (weights @ factor**2)
    return replace(prior, scale=_scale(family, covariance, geometry.spread))


def proper_prior(
    family: Gaussian, prior: GaussianPrior, totals: GaussianStatistics, others: GaussianStatistics
) -> GaussianPrior:
    """Return a prior under which both totals make valid beliefs.

    A flat prior does not, so a millionth of the spread, counted as one row, takes its place.
    """
    if np.any(prior.scale):
        return prior
    count = totals.count.sum() + others.count.sum()
    second = (totals.second + others.second).reshape(-1, *prior.scale.shape).sum(axis=0)
    spread = (np.diag(second) if family.kind.matrix else second) / count
    prior = replace(prior, mean_precision=prior.mean_precision or 1.0, dof=prior_dof(family, len(spread)))
    return replace(prior, scale=_scale(family, prior.scale, np.maximum(spread, 0.0)))


def _scale(family: Gaussian, covariance: Array | float, spread: Array) -> Array:
    """Prior scale that makes this the covariance; a part of the spread, or `reg_covar`, keeps it positive."""
    floor = np.where(spread > 0.0, LEAST_SPREAD * spread, family.reg_covar) + 1e-200
    scale = (covariance + (np.diag(floor) if family.kind.matrix else floor)) * prior_dof(family, len(spread))
    return np.full(len(spread), scale.mean()) if family.spherical else scale


def prior_dof(family: Gaussian, width: int) -> float:
    """Degrees of freedom of the prior."""
    if family.degrees_of_freedom_prior is not None:
        return float(family.degrees_of_freedom_prior)
    return float(width + 2 if family.kind.matrix else 3)


def _given_scale(family: Gaussian, width: int) -> Array:
    """Check the scale that the user gave, and return it in the shape of the kind of covariance."""
    try:
        given = np.asarray(family.covariance_prior, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"covariance_prior must hold numbers: {error}") from error
    wanted = {"diag": (width,), "spherical": ()}.get(family.covariance_type, (width, width))
    if given.shape != wanted:
        raise ValueError(
            f"covariance_prior must have shape {wanted} for covariance_type {family.covariance_type!r}, got {given.shape}"
        )
    if wanted == (width, width):
        if not np.allclose(given, given.T) or np.linalg.eigvalsh(given).min() <= 0.0:
            raise ValueError(f"covariance_prior must be symmetric and positive definite, got {given.tolist()}")
    elif np.any(given <= 0.0):
        raise ValueError(f"covariance_prior must be positive, got {given.min():g}")
    return np.full(width, float(given)) if wanted == () else given.copy()
