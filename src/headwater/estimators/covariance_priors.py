"""hmmlearn's priors of means and covariances, as those of Gaussians: numbers that give the same mode."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from headwater.core.statistics import Array
from headwater.core.validation import numeric
from headwater.core.values import Values

Hyperparameters: TypeAlias = tuple[Array | None, float | None, float | None, Array | None]


def gaussian_hyperparameters(
    kind: str, width: int, means: tuple[Values, float], covars: tuple[Values, Values]
) -> Hyperparameters:
    """Return mean, its precision, degrees of freedom and scale, by the prior and the weight of `means` and of `covars`.

    hmmlearn takes the mode of covariances, where the mode of Gaussians here is that of precisions: degrees of freedom are
    shifted by the difference. Covariances that are matrices have an inverse Wishart law of scale `covars_prior` and degrees of
    freedom `covars_weight`, variances an inverse Gamma law of shape `covars_prior` and scale `covars_weight`.
    """
    mean = _spread(means[0], width, "means_prior") if means[1] > 0.0 else None
    precision = float(means[1]) if means[1] > 0.0 else None
    if kind in ("full", "tied"):
        weight = _number(covars[1], "covars_weight", -(width + 3.0))
        dof = None if weight is None else weight + 2.0 * width + 2.0
        return mean, precision, dof, _matrix(covars[0], width)
    shape, scale = _number(covars[0], "covars_prior", -2.0), None
    if covars[1] is not None:
        scale = 2.0 * _spread(covars[1], width, "covars_weight")
        if scale.min() <= 0.0:
            raise ValueError(f"covars_weight must be positive for covariance_type {kind!r}, got {0.5 * scale.min():g}")
    if kind == "diag":
        return mean, precision, None if shape is None else 2.0 * shape + 4.0, scale
    if scale is not None and np.ptp(scale) > 0.0:
        raise ValueError("covars_weight must be one number for covariance_type 'spherical', got several")
    scale = None if scale is None else np.asarray(scale[0] / width)
    return mean, precision, None if shape is None else (2.0 * shape + 4.0) / width, scale


def _spread(value: Values, width: int, name: str) -> Array:
    """A number for each column."""
    given = np.asarray(numeric(value, name), dtype=float)
    if given.shape not in ((), (width,)) or not np.isfinite(given).all():
        raise ValueError(f"{name} must be a number, or one for each of the {width} columns, got shape {given.shape}")
    return np.full(width, given)


def _number(value: Values, name: str, lowest: float) -> float | None:
    if value is None:
        return None
    given = np.asarray(numeric(value, name), dtype=float)
    if given.shape != () or not given > lowest:
        raise ValueError(f"{name} must be a number greater than {lowest:g}, got {value!r}")
    return float(given)


def _matrix(value: Values, width: int) -> Array | None:
    if value is None:
        return None
    given = np.asarray(numeric(value, "covars_prior"), dtype=float)
    if given.shape != (width, width):
        raise ValueError(f"covars_prior must have shape {(width, width)} where covariances are matrices, got {given.shape}")
    if not np.allclose(given, given.T) or np.linalg.eigvalsh(given).min() <= 0.0:
        raise ValueError("covars_prior must be symmetric and positive definite")
    return given
