"""Rows that come with measurement errors: `noise=` of fit, partial_fit and score_samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from headwater.core.algorithms import ALGORITHMS
from headwater.core.chunk import COMPANIONS, Chunk
from headwater.core.gapped_rows import GappedRows
from headwater.core.noisy_rows import NoisyRows
from headwater.core.statistics import LARGEST, Array
from headwater.core.validation import check_finite, numeric
from headwater.core.values import Matrix, Rows, Values
from headwater.estimators.calls import answers_by_chunk, learns_at_once, learns_by_chunk
from headwater.estimators.mixture import MixtureEstimator
from headwater.estimators.traits import Taken

SYMMETRY = 1e-8  # of the largest variance of a row, by which its covariance may differ from its transpose
INDEFINITE = -1e-8  # of the largest variance: a lower eigenvalue is no rounding error


@dataclass(frozen=True, eq=False)
class MeasuredChunk(Chunk):
    """Rows that are taken with their noise, as it was given."""

    lost = tuple(name for name in COMPANIONS if name != "noise")


def with_noise(X: Rows, noise: Values) -> Rows:
    """Return rows with their noise; as they are, if they have none."""
    if noise is None:
        return X
    return MeasuredChunk(**{**(vars(X) if isinstance(X, Chunk) else {"X": X}), "noise": noise})


def check_noise(noise: Values, rows: Array | GappedRows) -> Array:
    """Return variances (n, d) or covariances (n, d, d) of the errors of rows, or refuse them in one sentence."""
    found, (n, width) = numeric(noise, "noise", gaps=True), rows.shape
    if found.shape not in ((n, width), (n, width, width)):
        raise ValueError(
            f"noise must have shape {(n, width)}, variances, or {(n, width, width)}, covariances, as the rows have, got "
            f"{found.shape}"
        )
    missing = rows.missing if isinstance(rows, GappedRows) else np.zeros((n, width), dtype=bool)
    gone = missing if found.ndim == 2 else missing[:, :, None] | missing[:, None]
    found = np.where(gone, 0.0, found.astype(np.float64))  # where there is no value, its error says nothing
    if (lost := np.isnan(found).reshape(n, -1).any(axis=1)).any():
        raise ValueError(f"noise must say how uncertain each value is that is there, got NaN (row {int(np.argmax(lost))})")
    check_finite(found.reshape(n, -1), "noise")
    variances = found if found.ndim == 2 else np.diagonal(found, axis1=1, axis2=2)
    if variances.min() < 0.0:
        row = int(np.argmin(variances.min(axis=1)))
        raise ValueError(f"noise must hold variances, got {variances.min():g} (row {row}): they are squares of errors")
    if variances.max() > LARGEST:
        raise ValueError(f"noise contains a variance of {variances.max():.3g}, and squares of more than {LARGEST:g} overflow")
    if found.ndim == 3:
        _check_covariances(found, variances)
        found = 0.5 * (found + np.swapaxes(found, 1, 2))
    return np.ascontiguousarray(found)


def _check_covariances(found: Array, variances: Array) -> None:
    largest = np.maximum(variances.max(axis=1), 1e-300)
    apart = np.abs(found - np.swapaxes(found, 1, 2)).max(axis=(1, 2)) / largest
    if apart.max() > SYMMETRY:
        raise ValueError(f"noise must hold symmetric covariances, got one that is not (row {int(apart.argmax())})")
    least = np.linalg.eigvalsh(found)[:, 0] / largest
    if least.min() < INDEFINITE:
        raise ValueError(f"noise must hold covariances, got a matrix with a negative eigenvalue (row {int(least.argmin())})")


def add_noise(X: Taken, rows: Matrix) -> Matrix:
    """Return the checked rows of X with their noise, if they have any."""
    return NoisyRows.of_errors(rows, check_noise(X.noise, rows)) if isinstance(X, MeasuredChunk) else rows


class MeasuredRows(MixtureEstimator):
    """Base of the mixtures whose rows may have measurement errors."""

    covariance_type: str

    @learns_at_once
    def fit(
        self, X: Rows, y: Values = None, sample_weight: Values = None, *, labels: Values = None, noise: Values = None
    ) -> Self:
        """Learn from all rows at hand, forgetting what was learned before (unless `warm_start`).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows: an array, or a pandas or polars frame of numbers.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts; 0 is as good as absent.
        labels : array-like of shape (n_samples,), optional
            The component of each row where it is known, -1 where not.
        noise : array-like of shape (n_samples, n_features) or (n_samples, n_features, n_features), optional
            Variances of the measurement errors of the values, or covariances of those of each row. The model is then that of
            the values without their errors (extreme deconvolution). Quasi-Bayes, moment matching and components with
            factors take none.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit(self._measured(X, noise), sample_weight, labels)

    @learns_by_chunk
    def partial_fit(
        self, X: Rows, y: Values = None, sample_weight: Values = None, *, labels: Values = None, noise: Values = None
    ) -> Self:
        """Learn a chunk of a stream, of any size; the answer does not depend on how the stream was cut.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts; 0 is as good as absent.
        labels : array-like of shape (n_samples,), optional
            The component of each row where it is known, -1 where not.
        noise : array-like of shape (n_samples, n_features) or (n_samples, n_features, n_features), optional
            Variances of the measurement errors of the values, or covariances of those of each row (see `fit`). Rows of a
            chunk without noise are exact.

        Returns
        -------
        self : object
            The estimator, a chunk wiser.
        """
        self._learn_chunk(self._measured(X, noise), sample_weight, labels)
        return self

    @learns_by_chunk
    def update(self, X: Rows, sample_weight: Values = None, *, labels: Values = None, noise: Values = None) -> Array:
        """Score each row as the model was before learning it, and learn it, in one E-step.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row; a row of weight 0 is scored, but not learned.
        labels : array-like of shape (n_samples,), optional
            The component of each row where it is known, -1 where not; a labelled row scores its joint log-density.
        noise : array-like of shape (n_samples, n_features) or (n_samples, n_features, n_features), optional
            Variances of the measurement errors of the values, or covariances of those of each row (see `fit`).

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Log-density of each row before it was learned; NaN for the first eight.
        """
        return self._update(self._measured(X, noise), sample_weight, labels)

    @answers_by_chunk
    def score_samples(self, X: Rows, *, noise: Values = None) -> Array:
        """Return the log-density of each row; with `noise`, of what would be measured with such errors.

        A chunk of a stream has its own.
        """
        noise = X.noise if noise is None and isinstance(X, Chunk) else noise
        batch = self._rows(self._measured(X, noise))
        return self._in_precision(X, self._model.log_likelihood(self._row_parameters(), batch, self._threads))

    def _measured(self, X: Rows, noise: Values) -> Rows:
        if noise is not None:
            refuse_noise(self)
        return with_noise(X, noise)

    def _check_stored(self, X: Matrix, width: int) -> None:
        super()._check_stored(X, width)
        if isinstance(X, NoisyRows):
            refuse_noise(self)
            check_noise(X.noise, X)


def refuse_noise(model: Any) -> None:
    """Refuse measurement errors where the model cannot take them off."""
    algorithm = ALGORITHMS[model.algorithm]() if model.algorithm in ALGORITHMS else model.algorithm
    if model.covariance_type == "factor":
        raise ValueError("noise must be None with covariance_type='factor', whose loadings are learned from exact rows")
    if getattr(algorithm, "readout", "") in ("predictive", "match_moments"):
        raise ValueError(
            f"noise must be None for algorithm {algorithm.word!r}, whose densities have tails that errors do not add to: learn "
            f"by 'auto', 'em', 'vb', 'online-em' or 'online-vb'"
        )
