"""Covariances of the states of a chain, in the shapes that users give and see."""

from __future__ import annotations

import numpy as np

from headwater.core.statistics import Array
from headwater.core.validation import numeric
from headwater.estimators.chains import check_numbers, precision_factor

KINDS = ("full", "tied", "diag", "spherical")


def compact_covariances(value: object, k: int, kind: str) -> Array:
    """Covariances in the shape of their kind, from that or from one matrix for each state."""
    if kind not in KINDS:
        raise ValueError(f"covariance_type must be one of {', '.join(map(repr, KINDS))}, got {kind!r}")
    covars = np.array(numeric(value, "covars_"), dtype=float)
    if kind == "spherical" and covars.shape[:1] == (k,) and covars.size == k:
        covars = covars.reshape(k)
    elif kind == "spherical" and covars.ndim == 2 and covars.size:
        covars = _shrink(covars, covars[:, 0], covars[:, :1], "the same in all columns", kind)
    elif kind != "full" and covars.ndim == 3 and covars.shape[0] == k and covars.shape[1] == covars.shape[2] > 0:
        diagonals = np.diagonal(covars, axis1=1, axis2=2)
        if kind == "tied":
            covars = _shrink(covars, covars[0], covars[0], "the same for all states", kind)
        elif kind == "diag":
            covars = _shrink(covars, diagonals, diagonals[:, :, None] * np.eye(covars.shape[1]), "diagonal", kind)
        else:
            spheres = diagonals[:, :1, None] * np.eye(covars.shape[1])
            covars = _shrink(covars, diagonals[:, 0], spheres, "multiples of the identity", kind)
    covars = check_numbers(covars, {"full": (k, -1, -1), "tied": (-1, -1), "diag": (k, -1), "spherical": (k,)}[kind], "covars_")
    if kind in ("full", "tied"):
        symmetric = covars.shape[-1] == covars.shape[-2] and np.allclose(covars, np.swapaxes(covars, -1, -2))
        if not symmetric or np.linalg.eigvalsh(covars).min() <= 0.0:
            raise ValueError(f"covars_ must be symmetric and positive definite for covariance_type {kind!r}")
    elif covars.min() <= 0.0:
        raise ValueError(f"covars_ must be positive, got {covars.min():g}")
    return covars


def _shrink(covars: Array, compact: Array, like: Array, wanted: str, kind: str) -> Array:
    """Covariances in the smaller shape of their kind, if nothing is lost by it."""
    if not np.allclose(covars, like, rtol=1e-6, atol=1e-12 * np.abs(covars).max()):
        raise ValueError(f"covars_ must be {wanted} for covariance_type {kind!r}, got others")
    return np.array(compact)


def factor_of(covars: Array, kind: str) -> Array:
    """Inverse Cholesky factors, or inverse deviations where covariances are no matrices."""
    return precision_factor(covars) if kind in ("full", "tied") else np.asarray(covars**-0.5)
