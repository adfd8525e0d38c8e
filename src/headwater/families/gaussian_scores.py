"""Gradients of the log-densities of Gaussians, by means and variances in units of each component's spread.

Of full and tied covariances there are two sets of parameters: means and covariances, or, where these are too many, means and
standard deviations, with correlations that are taken as known.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.families.parameter_scores import ParameterScores, own_places


def gaussian_scores(
    kind: str, means: Array, covariances: Array, mean_precision: float, dof: float, X: Array, correlations: bool = True
) -> ParameterScores:
    """Return the gradients at rows (n, d): d means, then what `kind` has of variances and covariances.

    `means` (K, d) and `covariances` are in the shapes of scikit-learn, `mean_precision` and `dof` those of the prior.
    """
    if kind in ("full", "tied"):
        matrices = np.broadcast_to(covariances, (*means.shape, means.shape[1]))
        return _matrix_scores(kind, means, matrices, mean_precision, dof, X, correlations)
    return _column_scores(kind, means, covariances, mean_precision, dof, X)


def n_scored(kind: str, width: int, correlations: bool = True) -> int:
    """Return how many parameters of a component there are."""
    if kind in ("full", "tied"):
        return width + (width * (width + 1) // 2 if correlations else width)
    return width + (width if kind == "diag" else 1)


def _column_scores(kind: str, means: Array, variances: Array, mean_precision: float, dof: float, X: Array) -> ParameterScores:
    k, width = means.shape
    spread = np.sqrt(np.broadcast_to(variances if variances.ndim == 2 else variances[:, None], means.shape))
    single = kind == "spherical"
    p = n_scored(kind, width)
    # The prior counts as dof / 2 squares for a column; for a spherical component, of all its columns.
    information = np.concatenate([np.full(width, mean_precision), np.full(p - width, 0.5 * dof * (width if single else 1))])

    def component(one: int) -> tuple[Array, Array]:
        deviations = (X - means[one]) / spread[one]
        turn = 0.5 * (deviations**2 - 1.0)  # of the logarithm of the variance
        return np.hstack([deviations, turn.sum(axis=1, keepdims=True) if single else turn]), np.diag(information)

    return ParameterScores(
        component, own_places(k, p), _reported(width, p, np.zeros(width, int) if single else np.arange(width))
    )


def _matrix_scores(
    kind: str, means: Array, covariances: Array, mean_precision: float, dof: float, X: Array, correlations: bool
) -> ParameterScores:
    k, width = means.shape
    below, beside = np.tril_indices(width) if correlations else (np.arange(width), np.arange(width))
    twice = np.where(below == beside, 0.5, 1.0)  # what is off the diagonal stands there twice
    p = width + len(below)
    own_dof = dof / k if kind == "tied" else dof

    def component(one: int) -> tuple[Array, Array]:
        spread = np.sqrt(np.diagonal(covariances[one]))
        shape = covariances[one] / spread[:, None] / spread
        precision, deviations = np.linalg.inv(shape), (X - means[one]) / spread
        pull, prior = deviations @ precision, np.zeros((p, p))
        prior[:width, :width] = mean_precision * precision
        if not correlations:  # of the logarithms of the standard deviations
            prior[width:, width:] = own_dof * (np.eye(width) + precision * shape)
            return np.hstack([pull, pull * deviations - 1.0]), prior
        pairs = precision[np.ix_(below, below)] * precision[np.ix_(beside, beside)]
        crosses = precision[np.ix_(below, beside)] * precision[np.ix_(beside, below)]
        prior[width:, width:] = own_dof * (pairs + crosses) * np.outer(twice, twice)
        return np.hstack([pull, (pull[:, below] * pull[:, beside] - precision[below, beside]) * twice]), prior

    places = own_places(k, p)
    if kind == "tied":
        places[:, :width], places[:, width:] = own_places(k, width), k * width + np.arange(p - width)
    return ParameterScores(component, places, _reported(width, p, np.flatnonzero(below == beside)))


def _reported(width: int, p: int, variances: NDArray[np.int64]) -> Array:
    """Means and variances among the parameters (2 d, p)."""
    reported = np.zeros((2 * width, p))
    reported[np.arange(width), np.arange(width)] = 1.0
    reported[width + np.arange(width), width + variances] = 1.0
    return reported
