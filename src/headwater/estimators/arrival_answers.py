"""What a model of one source answers: scores, the signal, missing sensors, the direction and its error."""

from __future__ import annotations

import numbers

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from headwater.core.statistics import Array
from headwater.core.validation import check_finite, numeric
from headwater.core.values import Rows, Values
from headwater.estimators.base import StreamingEstimator
from headwater.estimators.calls import answers_by_chunk, answers_by_score, reads
from headwater.estimators.seeds import rng_of
from headwater.models.arrival import Arrival, ArrivalParameters, ArrivalStatistics
from headwater.models.steering import Complex, LinearSensors, powers


class ArrivalAnswers(DensityMixin, StreamingEstimator):
    """The questions about snapshots that only read, and what was learned of the source."""

    @property
    def _model(self) -> Arrival:
        check_is_fitted(self)
        model = self._learner.model
        assert isinstance(model, Arrival)
        return model

    def _believed(self) -> tuple[ArrivalStatistics, float]:
        """Statistics, and the rows they are worth."""
        _, statistics, count = self._read().belief
        assert isinstance(statistics, ArrivalStatistics)
        return statistics, count

    # Answers

    @answers_by_chunk
    def score_samples(self, X: Rows) -> Array:
        """Return the log-density of the observed sensors of each snapshot.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The snapshots, complex, NaN where a sensor is missing.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            The log-densities, 0 where all sensors are missing.
        """
        batch = self._rows(X)
        return self._model.log_likelihood(self._read().parameters, batch, self._threads)

    @answers_by_score
    def score(self, X: Rows, y: Values = None) -> float:
        """Return the mean log-density of the snapshots.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The snapshots.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        score : float
            Mean of `score_samples`.
        """
        return float(self.score_samples(X).mean())

    @answers_by_chunk
    def source(self, X: Rows) -> Complex:
        """Return the expected signal of the source in each snapshot: a beamformer that knows the noise.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The snapshots.

        Returns
        -------
        signal : ndarray of shape (n_samples,)
            The posterior mean of the signal, complex.
        """
        batch = self._rows(X)
        return np.asarray(self._model.posterior(self._read().parameters, batch, self._threads))

    @answers_by_chunk
    def impute(self, X: Rows) -> Complex:
        """Return the snapshots with missing sensors replaced by their expectation given the others.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The snapshots.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            The snapshots, complete.

        Examples
        --------
        >>> import numpy as np
        >>> from headwater import DirectionOfArrival
        >>> waves = np.exp(1j * np.arange(4)) * np.exp(1j * np.arange(50))[:, None]
        >>> model = DirectionOfArrival().fit(waves)
        >>> known = model.impute([[np.nan, np.exp(1j), np.exp(2j), np.nan]])
        >>> bool(np.allclose(known, np.exp(1j * np.arange(4)), atol=1e-5))
        True
        """
        rows = self._rows(X).X
        completed = self.source(X)[:, None] * _vector(self._read().parameters)
        return np.where(np.isnan(rows), completed, rows)

    @reads
    def spectrum(self, angles: Values) -> Array:
        """Return the power that arrives from each angle, by a beam that points there: the Bartlett spectrum.

        Parameters
        ----------
        angles : array-like of shape (n_angles,)
            The angles, in the meaning of `angle_`.

        Returns
        -------
        power : ndarray of shape (n_angles,)
            u^H S u, for the expected covariance S of complete snapshots and unit steering vectors u; it is largest at `angle_`.
        """
        statistics, _ = self._believed()
        sensors = self._model.sensors
        found = np.atleast_1d(np.asarray(numeric(angles, "angles"), dtype=np.float64))
        if found.ndim != 1 or found.size == 0:
            raise ValueError(f"angles must be a list of angles, got shape {found.shape}")
        check_finite(found, "angles")
        vectors = sensors.vectors(sensors.direction(found))
        gains = (np.abs(vectors) ** 2).sum(axis=1)
        return powers(vectors, statistics.real + 1j * statistics.imag) / gains / float(statistics.count[0])

    @reads
    def sample(self, n_samples: int = 1) -> tuple[Complex, Complex]:
        """Draw snapshots from the model.

        Parameters
        ----------
        n_samples : int, default=1
            Number of snapshots.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            The snapshots, complete.
        source : ndarray of shape (n_samples,)
            The signal of the source in each.
        """
        check_is_fitted(self)
        if not isinstance(n_samples, numbers.Integral) or n_samples < 1:
            raise ValueError(f"Invalid value for 'n_samples': {n_samples!r}. The sampling requires at least one sample.")
        return self._model.sample(self._read().parameters, int(n_samples), rng_of(self))

    # What was learned

    @property
    @reads
    def angle_(self) -> float:
        """The direction: a bearing from broadside, in radians, or the argument of `steering`."""
        return self._model.sensors.angle(self._read().parameters.direction)

    @property
    @reads
    def angle_std_(self) -> float:
        """Standard error of the angle."""
        statistics, count = self._believed()
        known = count * float(statistics.information[0] / statistics.count[0])
        stretch = self._model.sensors.stretch(self._read().parameters.direction)
        return float(1.0 / (np.sqrt(known) * stretch)) if known > 0.0 and stretch > 0.0 else np.inf

    @property
    @reads
    def omega_(self) -> float:
        """Phase from one sensor of a uniform linear array to the next, in radians."""
        linear = isinstance(self._model.sensors, LinearSensors)
        return float(self._read().parameters.direction) if linear else np.nan

    @property
    @reads
    def power_(self) -> float:
        """Power of the source."""
        return float(self._read().parameters.power)

    @property
    @reads
    def noise_variance_(self) -> float:
        """Power of the noise at each sensor."""
        return float(self._read().parameters.noise)

    @property
    @reads
    def covariance_(self) -> Complex:
        """Covariance of snapshots."""
        parameters = self._read().parameters
        vector = _vector(parameters)
        return np.asarray(parameters.power * np.outer(vector, vector.conj()) + parameters.noise * np.eye(len(vector)))

    @property
    @reads
    def observed_(self) -> Array:
        """Share of snapshots that have each sensor."""
        statistics, _ = self._believed()
        return np.asarray(statistics.heard / statistics.count)

    @property
    @reads
    def angle_range_(self) -> tuple[float, float]:
        """Angles that are searched."""
        return self._model.sensors.range


def _vector(parameters: ArrivalParameters) -> Complex:
    return np.asarray(parameters.steering[0] + 1j * parameters.steering[1])
