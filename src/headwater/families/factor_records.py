"""Records of mixtures of factor analysers: statistics, prior and parameters of K components with q factors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headwater.core.statistics import Array
from headwater.families.components import ComponentStatistics
from headwater.families.soundness import SLACK


@dataclass(frozen=True)
class FactorStatistics(ComponentStatistics):
    """Sums over rows x, about the origin, and of their expected factors z at the reference.

    Of x (K, d), of the squares of its columns (K, d), of x z' (K, d, q), of z (K, q) and of z z' (K, q, q): these are the
    sufficient statistics of x and z together, so they add up, and a model of d columns holds d (q + 2) numbers a component
    where second moments would take d (d + 1) / 2.
    """

    first: Array
    square: Array
    cross: Array
    factor_first: Array
    factor_second: Array


@dataclass(frozen=True)
class FactorPrior:
    """Of all components: origin (d,), prior mean about it (d,) and its rows, degrees of freedom and scale (d,) of the noise.

    No noise is less than the floor. Loadings have a flat prior.
    """

    origin: Array
    mean: Array
    mean_precision: float
    dof: float
    scale: Array
    floor: float


@dataclass(frozen=True)
class RoundedFactorPrior(FactorPrior):
    """The prior of components whose columns are rounded to `steps` (d,), 0 where they are not: no noise is less than theirs."""

    steps: Array


@dataclass(frozen=True)
class FactorParameters:
    """Means about the origin (K, d), loadings (K, d, q) and variances of the noise (K, d), and what densities need of them.

    With M = I + loadings' noise^-1 loadings = L L', `whiten` (K, q, d) is L^-1 loadings' noise^-1, `unwhiten` (K, q, q) the
    inverse of L', and `offset` (K,) the logarithm of the density at the mean.
    """

    origin: Array
    means: Array
    loadings: Array
    noise: Array
    whiten: Array
    unwhiten: Array
    offset: Array


def make_parameters(origin: Array, means: Array, loadings: Array, noise: Array) -> FactorParameters:
    """Return parameters with what densities need of them: Woodbury's identity, so that no matrix is d x d."""
    width, factors = loadings.shape[1:]
    scaled = loadings / noise[:, :, None]
    lower = np.linalg.cholesky(np.eye(factors) + np.einsum("kdq,kdr->kqr", loadings, scaled))
    inverse = np.linalg.inv(lower)
    log_determinant = np.log(noise).sum(axis=1) + 2.0 * np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
    offset = -0.5 * (width * np.log(2.0 * np.pi) + log_determinant)
    whiten = np.einsum("kqr,kdr->kqd", inverse, scaled)
    return FactorParameters(origin, means, loadings, noise, whiten, np.swapaxes(inverse, 1, 2).copy(), offset)


def is_whitening(parameters: FactorParameters) -> bool:
    """Whether what densities need can belong to the loadings and the noise of parameters that were read.

    I + B B' with B = loadings' noise^-1/2 has no eigenvalue below 1, so that neither L^-1 nor L^-1 B is longer than 1.
    """
    most = np.sqrt(parameters.whiten.shape[1]) * (1.0 + SLACK)
    lengths = (
        np.sqrt(np.einsum("kqd,kd->k", parameters.whiten**2, parameters.noise)),
        np.linalg.norm(parameters.unwhiten, axis=(1, 2)),
    )
    pivots = np.diagonal(parameters.unwhiten, axis1=1, axis2=2)
    if not (np.max(lengths) <= most and pivots.min() > 0.0):
        return False
    determinant = np.log(parameters.noise).sum(axis=1) - 2.0 * np.log(pivots).sum(axis=1)
    offset = -0.5 * (parameters.means.shape[1] * np.log(2.0 * np.pi) + determinant)
    return bool(np.all(np.abs(parameters.offset - offset) <= SLACK * (1.0 + np.abs(offset))))


def with_steps(prior: FactorPrior, steps: Array | None) -> FactorPrior:
    """Return the prior of columns that are rounded to these steps; as it is, if there are none."""
    if steps is None:
        return prior
    return RoundedFactorPrior(
        prior.origin, prior.mean, prior.mean_precision, prior.dof, prior.scale, prior.floor, np.array(steps)
    )
