"""What a model of spectra answers: weights, parts and scores of frames, and the spectra themselves."""

from __future__ import annotations

from typing import Literal, cast

import numpy as np

from headwater.core.batch import Batch
from headwater.core.statistics import Array
from headwater.core.validation import check_rows, one_line
from headwater.core.values import Row, Rows, Values
from headwater.estimators.calls import answers_at_once, answers_by_chunk, answers_by_score, reads
from headwater.estimators.factor_model import FactorEstimator
from headwater.estimators.seeds import rng_of
from headwater.models.spectra import Spectra
from headwater.models.spectra_records import SpectraParameters

Weights = Literal["mean", "map", "ml"]


class SpectraAnswers(FactorEstimator):
    """The questions about frames that only read, and what was learned of them."""

    # Answers

    @answers_by_chunk
    def transform(self, X: Rows, inference: Weights = "mean") -> Array:
        """Return the weights of the components in each frame.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The frames.
        inference : {'mean', 'map', 'ml'}, default='mean'
            The posterior mean of the weights, by draws that depend on the frame alone; their mode; or their maximum likelihood
            estimate, which ignores the prior and comes nearest to the frame.

        Returns
        -------
        weights : ndarray of shape (n_samples, n_components)
            The weights.
        """
        batch = self._rows(X)
        return self._weights(batch, inference) * self._units(self._read().parameters)

    @reads
    def transform_one(self, x: Row) -> Array:
        """Return the weights of the components in one frame, under the parameters of the last refresh.

        Parameters
        ----------
        x : array-like of shape (n_features,) or mapping
            The frame.

        Returns
        -------
        weights : ndarray of shape (n_components,)
            Its expected weights.
        """
        weights = np.asarray(super().transform_one(x))
        return weights * self._units(self._quick_parameters(self.n_features_in_))

    @reads
    def inverse_transform(self, X: Rows) -> Array:
        """Return the mean powers of frames with these weights.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            The weights.

        Returns
        -------
        powers : ndarray of shape (n_samples, n_features)
            Their product with the components.
        """
        components = self.components_
        weights = check_powers(check_rows(X, owner=type(self).__name__), "X", type(self).__name__)
        if weights.shape[1] != len(components):
            raise ValueError(f"X must have a weight for each of the {len(components)} components, got {weights.shape[1]}")
        return weights @ components

    @answers_by_chunk
    def separate(self, X: Rows, inference: Weights = "mean") -> Array:
        """Return the power that each component has in each bin of each frame, by Wiener's filter.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The frames.
        inference : {'mean', 'map', 'ml'}, default='mean'
            Which weights to use, as in `transform`.

        Returns
        -------
        parts : ndarray of shape (n_components, n_samples, n_features)
            The parts, which sum to X. Divided by X they are the masks to filter a complex spectrogram with. A bin that never
            had power before is shared evenly.

        Examples
        --------
        >>> import numpy as np
        >>> from headwater import ItakuraSaitoNMF
        >>> X = np.random.default_rng(0).exponential(size=(300, 8))
        >>> model = ItakuraSaitoNMF(2, random_state=0).partial_fit(X)
        >>> parts = model.separate(X)
        >>> parts.shape, bool(np.allclose(parts.sum(axis=0), X))
        ((2, 300, 8), True)
        """
        batch = self._rows(X)
        weights, powers = self._weights(batch, inference), self._read().parameters.powers
        parts = weights.T[:, :, None] * powers[:, None, :]
        parts[:, :, ~powers.any(axis=0)] = 1.0
        parts *= batch.X / np.maximum(parts.sum(axis=0), 1e-300)
        return parts

    @answers_by_chunk
    def score_samples(self, X: Rows) -> Array:
        """Return the log-density of each frame, its weights integrated out.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The frames.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            The logarithm of an unbiased estimate of the density, by importance sampling about the mode of the weights; on
            average it is a little low, the more so the more components there are. The draws depend on the frame alone, so
            that the same frame always gets the same score.
        """
        batch = self._rows(X)
        return self._model.log_likelihood(self._read().parameters, batch, self._threads)

    @answers_by_score
    def score(self, X: Rows, y: Values = None) -> float:
        """Return the mean log-density of the frames.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The frames.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        score : float
            Mean of `score_samples`.
        """
        return float(self.score_samples(X).mean())

    @answers_at_once
    def divergence(self, X: Rows) -> float:
        """Return the mean Itakura-Saito divergence of a bin from its reconstruction, at the likeliest weights.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The frames. Bins without power, whose divergence is infinite, are left out, and so are those that never had any in
            what was learned.

        Returns
        -------
        divergence : float
            Mean of x / v - log(x / v) - 1; about 0.58 if the components are true and known.
        """
        batch, powers = self._rows(X), self._read().parameters.powers
        v = np.maximum(self._weights(batch, "ml") @ powers, 1e-300)
        ratio = batch.X * powers.any(axis=0) / v
        held = ratio > 0.0
        return float((ratio - np.log(ratio, where=held, out=np.zeros_like(ratio)) - 1.0)[held].mean()) if held.any() else 0.0

    @reads
    def sample(self, n_samples: int = 1) -> tuple[Array, Array]:
        """Draw frames from the model.

        Parameters
        ----------
        n_samples : int, default=1
            Number of frames.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            The frames.
        weights : ndarray of shape (n_samples, n_components)
            The weights they were drawn with.
        """
        n_samples = self._checked_number(n_samples)
        model = cast(Spectra, self._model)
        parameters = self._read().parameters
        X, weights = model.sample(parameters, n_samples, rng_of(self))
        return X, weights * self._units(parameters)

    def _weights(self, batch: Batch, inference: str) -> Array:
        """Weights in units in which their scale is 1."""
        model = cast(Spectra, self._model)
        parameters = self._read().parameters
        if inference == "mean":
            return model.posterior(parameters, batch, self._threads)
        if inference not in ("map", "ml"):
            raise ValueError(f"inference must be 'mean', 'map' or 'ml', got {one_line(inference)}")
        return model.mode(parameters, batch, inference == "ml", self._threads)

    def _units(self, parameters: SpectraParameters) -> Array:
        """Scales of the weights as the user sees them."""
        scale = self._runtime.made_with["weight_scale"]
        return np.array(parameters.scales) if isinstance(scale, str) else np.full(len(parameters.scales), float(scale))

    # What was learned

    @property
    @reads
    def components_(self) -> Array:
        """The spectra."""
        parameters = self._read().parameters
        return parameters.powers / self._units(parameters)[:, None]

    @property
    @reads
    def weight_scale_(self) -> Array:
        """Scale of the inverse Gamma prior of the weights of each component."""
        return self._units(self._read().parameters)

    @property
    @reads
    def weight_shape_(self) -> float:
        """Shape of the inverse Gamma prior of the weights."""
        return float(self._read().parameters.shape[0])


def check_powers(rows: Array, name: str, owner: str) -> Array:
    """Refuse rows with negative values."""
    if rows.min() < 0.0:
        where = int(np.argwhere(rows < 0.0)[0][0])
        raise ValueError(f"Negative values in data passed to {owner}: {name} must hold powers (first in row {where})")
    return rows
