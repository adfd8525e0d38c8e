"""K Gaussians and rows that were measured with errors: which kernel they go to, and a start from what the errors leave."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from headwater.core.batch import Batch
from headwater.core.noisy_rows import NoisyRows
from headwater.core.statistics import Array
from headwater.families.gaussian_gaps import (
    Answers,
    answer_empty,
    column_constants,
    cut_batch,
    run_kernel,
)
from headwater.families.gaussian_records import GappedStatistics, GaussianParameters, GaussianStatistics, covariance_matrices
from headwater.families.noise_removal import remove_noise
from headwater.kernels.gaussian_noise import estep_columns_noise, estep_matrix_noise

if TYPE_CHECKING:
    from headwater.families.gaussian import Gaussian

NO_PREDICTIVE = "rows with measurement errors have no predictive density: a Student-t and an error add to no known law"
LOG_2_PI = float(np.log(2.0 * np.pi))


def estep_with_noise(
    family: Gaussian,
    parameters: GaussianParameters,
    log_weights: Array,
    batch: Batch,
    totals: GaussianStatistics | None,
    answers: Answers,
    n_threads: int | None,
) -> tuple[float, GaussianStatistics | None]:
    """E-step of rows with measurement errors. Rows without a value say nothing."""
    if (parameters.power > 0.0).any():
        raise ValueError(NO_PREDICTIVE)
    if totals is not None:
        totals = totals.with_gaps()
    X: NoisyRows = batch.X
    kernel = _kernel_of(family, parameters, log_weights, X.noise.ndim == 3)
    empty = X.is_empty
    if not empty.any():
        return run_kernel(family, kernel, batch, totals, answers, n_threads), totals
    lost, told = np.flatnonzero(empty), np.flatnonzero(~empty)
    score = answer_empty(log_weights, cut_batch(batch, lost, X[lost]), lost, answers)
    if len(told):
        room = answers.part(told)
        score += run_kernel(family, kernel, cut_batch(batch, told, X[told]), totals, room, n_threads)
        answers.put(told, room)
    return score, totals


def _kernel_of(family: Gaussian, parameters: GaussianParameters, log_weights: Array, correlated: bool) -> Callable[..., float]:
    """The kernel for the kind of covariance and of noise, with all but the rows and the room for answers."""
    k, width = parameters.means.shape
    extra, column_extra = np.zeros(k), np.zeros((k, width))
    none, no_cube = np.empty((0, 0)), np.empty((0, 0, 0))
    if family.kind.matrix:
        try:
            sigma = np.ascontiguousarray(covariance_matrices(parameters).reshape(-1, width, width))
        except np.linalg.LinAlgError:  # a trial of a search may be invalid, and then scores NaN
            sigma = np.full((parameters.factor.size // width**2, width, width), np.nan)
        log_factor = np.log(np.diagonal(parameters.factor.reshape(-1, width, width), axis1=1, axis2=2)).sum(axis=1)
        extra = parameters.offset - (log_factor - 0.5 * width * LOG_2_PI)
    else:
        sigma = parameters.factor**-2.0
        column_extra = column_constants(parameters) - np.log(parameters.factor) + 0.5 * LOG_2_PI
        if correlated:
            sigma = np.ascontiguousarray(sigma[:, :, None] * np.eye(width))
    matrix, fixed = sigma.ndim == 3, (parameters.origin, parameters.means, sigma, log_weights, extra, column_extra)

    def kernel(batch: Batch, start: int, stop: int, answers: Answers, part: GappedStatistics | None) -> float:
        X = batch.X
        moments = (np.empty(0), none, no_cube if matrix else none, none, none)
        room = (answers.scores, answers.responsibilities, answers.given)
        if part is not None:
            second = part.second
            if matrix:
                second = second.reshape(-1, width, width) if family.kind.matrix else second[:, None]
            moments = (part.count, part.first, second, part.observed, part.known)
        if not matrix:
            return float(
                estep_columns_noise(
                    X.values, X.missing, X.noise, start, stop, batch.weights, batch.labels, *fixed, *room, *moments
                )
            )
        noise = (none, X.noise) if X.noise.ndim == 3 else (X.noise, no_cube)
        return float(
            estep_matrix_noise(
                X.values, X.missing, *noise, start, stop, batch.weights, batch.labels, *fixed, not family.kind.matrix, *room,
                *moments,
            )
        )  # fmt: skip

    return kernel


def take_noise_off(family: Gaussian, batch: Batch, responsibilities: Array, totals: GaussianStatistics) -> GaussianStatistics:
    """Return statistics of seeded groups without what the errors of their rows added to the second moments."""
    X: NoisyRows = batch.X
    shares = responsibilities * np.where(X.is_empty, 0.0, batch.row_weights)[:, None]
    assert isinstance(totals, GappedStatistics)
    width = X.shape[1]
    if not family.kind.matrix:
        mass = np.maximum(totals.observed, 1e-300)
        scatter = np.maximum(totals.second - totals.first**2 / mass, 0.0)
        for k, share in enumerate(shares.T):
            left = remove_noise(False, X, share, scatter[k] / mass[k]) * mass[k]
            totals.second[k] += left - scatter[k]
        return totals
    second = totals.second.reshape(-1, width, width)
    mass = np.maximum(totals.count, 1e-300)
    outer = totals.first[:, :, None] * totals.first[:, None] / mass[:, None, None]
    if len(second) == 1:
        scatter, rows, mass = _whole(second[0]) - outer.sum(axis=0), shares.sum(axis=1), mass.sum(keepdims=True)
        second[0] += np.tril(remove_noise(True, X, rows, scatter / mass[0]) * mass[0] - scatter)
        return totals
    for k, share in enumerate(shares.T):
        if totals.count[k] > 0.0:
            scatter = _whole(second[k]) - outer[k]
            second[k] += np.tril(remove_noise(True, X, share, scatter / mass[k]) * mass[k] - scatter)
    return totals


def _whole(lower: Array) -> Array:
    """A symmetric matrix of its lower triangle."""
    return lower + np.tril(lower, -1).T
