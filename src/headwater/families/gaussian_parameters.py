"""Parameters of K Gaussians for the kernels, and in the form that users see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.families.gaussian_records import GaussianParameters, GaussianPrior
from headwater.families.triangles import invert_triangles

if TYPE_CHECKING:
    from headwater.families.gaussian import Gaussian


def blank_parameters(origin: Array, n_components: int, factor_shape: tuple[int, ...]) -> GaussianParameters:
    """Return parameters that a kernel has yet to fill."""
    factor = np.zeros(factor_shape)
    means, shift = np.zeros((2, n_components, len(origin)))
    offset, power, stretch = np.zeros((3, n_components))
    return GaussianParameters(origin, means, factor, shift, offset, power, stretch)


def make_parameters(matrix: bool, origin: Array, centred: Array, factor: Array) -> GaussianParameters:
    """Return parameters with these means about the origin, and factors that may be the same for all columns."""
    k, width = centred.shape
    # A copy: a broadcast array is read-only, and a kernel would be compiled again for it.
    factor = np.array(factor if matrix else np.broadcast_to(factor, (k, width)), order="C")
    if matrix:
        shift = np.einsum("...ij,kj->ki" if factor.ndim == 2 else "kij,kj->ki", factor, centred)
        log_diagonal = np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
    else:
        shift = factor * centred
        log_diagonal = np.log(factor).sum(axis=1)
    offset = np.broadcast_to(log_diagonal - 0.5 * width * np.log(2.0 * np.pi), (k,)).copy()
    return GaussianParameters(origin, centred, factor, shift, offset, np.zeros(k), np.ones(k))


def covariance_matrices(parameters: GaussianParameters) -> Array:
    """Return covariances from factors that are matrices."""
    root = invert_triangles(parameters.factor)
    return np.asarray(root @ np.swapaxes(root, -1, -2))


def sample_rows(matrix: bool, parameters: GaussianParameters, components: NDArray[np.int64], rng: np.random.Generator) -> Array:
    """Draw one row from each of the listed components."""
    k = len(parameters.means)
    noise = rng.standard_normal((len(components), parameters.means.shape[1]))
    if matrix:
        root = invert_triangles(parameters.factor)
        root = np.broadcast_to(root, (k, *root.shape[-2:]))
        for one in range(k):
            rows = components == one
            noise[rows] = noise[rows] @ root[one].T
    else:
        noise /= parameters.factor[components]
    return np.asarray(noise + parameters.means[components] + parameters.origin)


class SingularCovariance(np.linalg.LinAlgError):
    """Covariances that have no density; a `ValueError`, as scikit-learn raises it."""


def refuse_singular(pivots: int, prior: GaussianPrior) -> None:
    """Refuse covariances that a readout without any prior had to lift."""
    if pivots and prior.mean_precision == 0.0 and prior.floor == 0.0:
        raise SingularCovariance(
            "Fitting the mixture model failed because some components have ill-defined empirical covariance (for "
            "instance caused by singleton or collapsed samples). Try to decrease the number of components, increase "
            "reg_covar, or scale the input data."
        )


def column_variances(family: Gaussian, parameters: GaussianParameters) -> Array:
    """Return the variance (K, d) of each number in each component."""
    means, covariances = family.means(parameters), family.covariances(parameters)
    if family.covariance_type == "full":
        return np.diagonal(covariances, axis1=1, axis2=2)
    if family.covariance_type == "tied":
        return np.broadcast_to(np.diagonal(covariances), means.shape)
    return np.broadcast_to(covariances if covariances.ndim == 2 else covariances[:, None], means.shape)
