"""DirectionOfArrival: where a source is, from snapshots of an array of sensors that keep coming."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from headwater.core.algorithm import Algorithm
from headwater.core.algorithms import Auto, resolve
from headwater.core.batch import Batch
from headwater.core.learner import Learner
from headwater.core.snapshot_validation import check_angles, check_snapshot, check_snapshots
from headwater.core.statistics import Array
from headwater.core.validation import check_finite, numeric
from headwater.core.values import Matrix, RandomState, Row, Rows, Values
from headwater.estimators.base import StreamingEstimator
from headwater.estimators.calls import answers_by_chunk, answers_by_score, reads
from headwater.estimators.describers.arrival import ArrivalDescriber
from headwater.estimators.estimator_core import rng_of
from headwater.estimators.mixture import CONSTRAINTS
from headwater.estimators.parameters import check_parameters
from headwater.estimators.traits import Taken
from headwater.models.arrival import Arrival, ArrivalParameters, ArrivalStatistics
from headwater.models.steering import Complex, GivenSensors, LinearSensors, Sensors, powers

if TYPE_CHECKING:
    from sklearn.utils import Tags

SHARED = (
    "tol", "max_iter", "random_state", "warm_start", "verbose", "verbose_interval", "algorithm", "half_life", "warm_up",
    "n_threads", "parts",
)  # fmt: skip


class DirectionOfArrival(DensityMixin, StreamingEstimator):
    """The direction of one source, learned from a stream of snapshots of an array of sensors, or from all at once.

    A snapshot is a row of complex numbers, one for each sensor: a narrow band of what they receive at one moment, such as one
    frequency of a short-time Fourier transform. It is the signal of a source that all sensors receive, each with a phase that
    depends on the direction, in noise: circular complex Gaussian with covariance power a(angle) a(angle)^H + noise I. Where a
    snapshot is NaN a sensor is missing, and EM completes it by what is expected of it. What is learned is the expected
    covariance of complete snapshots; the likeliest direction is searched for in it (Cappé and Moulines, 2009).

    Parameters
    ----------
    steering : callable, optional
        The array: a function from angles (g,) to what the sensors receive of a source there, a complex matrix (g, m). By
        default a uniform linear array, whose sensor k = 0, 1, ... receives exp(i omega k), with omega = 2 pi spacing
        sin(angle). To be pickled it has to be a function of a module.
    spacing : float, default=0.5
        Distance of neighbours in the uniform linear array, in wavelengths. Beyond 0.5 several angles look the same; `angle_` is
        then the one nearest to broadside.
    angles : array-like, optional
        Angles to search with a `steering` of your own: the first and the last, between which the grid is as fine as lobes ask
        for, or a rising grid of at least three, between the points of which no two lobes should lie. By default from -pi to pi.
    tol : float, default=1e-6
        `fit` ends when a pass raises the mean log-density of a snapshot by less, and as little is to come.
    max_iter : int, default=100
        Most passes of `fit` over the snapshots.
    random_state : int, RandomState instance or None, default=None
        Seed of `sample`, and of the order in which `fit` takes snapshots.
    warm_start : bool, default=False
        Whether `fit` goes on from where the last one ended.
    verbose : int, default=0
        Whether to print the passes of `fit`, and how much.
    verbose_interval : int, default=1
        Passes between two lines.
    algorithm : str or algorithm object, default='auto'
        'auto' (streams in batches of equal weight; `fit` finishes by EM), 'em', 'online-em' or 'soem' (row by row).
    half_life : float, optional
        Snapshots after which a snapshot counts half, for sources that move.
    warm_up : int or 'auto', default='auto'
        Snapshots that are kept to find a start on before the stream proper begins. The model answers during warm-up, too.
    n_threads : int, optional
        Threads for the snapshots of a batch; all cores by default. Never changes the answer.
    parts : int, default=1
        Parts that the stream is dealt out to, each learned on a thread of its own and merged when the model is read. Unlike
        the number of threads, it changes the answer.

    Attributes
    ----------
    angle_ : float
        The direction: of a uniform linear array the bearing in radians from broadside, positive where phases rise with the
        number of the sensor; otherwise the argument of `steering`.
    angle_std_ : float
        Standard error of the angle, by Fisher's information of the sensors observed. It is that of a `fit`; after a stream in
        which many sensors were missing the error is somewhat larger, since early snapshots were completed by what was known
        then. Too large, if anything, where also the gains that `steering` makes depend on the angle.
    omega_ : float
        Electrical angle of a uniform linear array, the phase from one sensor to the next, in radians; otherwise NaN.
    power_ : float
        Power of the source at a sensor of gain 1.
    noise_variance_ : float
        Power of the noise at each sensor.
    covariance_ : ndarray of shape (n_features, n_features)
        Covariance of snapshots, complex.
    observed_ : ndarray of shape (n_features,)
        Share of snapshots that have each sensor.
    angle_range_ : tuple of float
        Angles that are searched.
    merge_report_ : MergeReport
        What was done by `headwater.merge`, if the model comes from there.
    converged_, n_iter_, lower_bound_, lower_bounds_
        How the passes of `fit` went, until something else is learned. The bounds are mean log-densities.
    n_samples_seen_ : int
        Snapshots learned from, those without any sensor included.
    n_features_in_, feature_names_in_
        Sensors seen.

    Notes
    -----
    A snapshot in which every sensor is missing is counted, and expected to be like what is known by then: it slows a stream
    down, as a row that says nothing new. A sensor that is always missing does no harm. The noise is taken to be no more
    than 120 dB below the mean power of a sensor. The model has one source; of several, the strongest is found, and the
    others are taken for noise.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import DirectionOfArrival
    >>> rng = np.random.default_rng(0)
    >>> def noise(*shape):
    ...     return (rng.normal(size=shape) + 1j * rng.normal(size=shape)) / np.sqrt(2.0)
    >>> model = DirectionOfArrival(random_state=0)
    >>> for _ in range(20):
    ...     X = noise(500, 1) * np.exp(0.7j * np.arange(8)) + np.sqrt(0.5) * noise(500, 8)
    ...     X[rng.random(X.shape) < 0.4] = np.nan
    ...     model = model.partial_fit(X)
    >>> round(model.omega_, 2), round(model.power_, 1), round(model.noise_variance_, 1)
    (0.7, 1.0, 0.5)
    >>> bool(abs(model.angle_ - np.arcsin(0.7 / np.pi)) < 3.0 * model.angle_std_)
    True
    """

    _traits = replace(
        StreamingEstimator._traits,
        unit="snapshots",
        column_word="sensor ",
        shape_parameters=("steering", "spacing"),
        merge_parameters=("steering", "spacing", "angles", "half_life"),
        answers=("angle_", "power_", "noise_variance_"),
    )
    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **{name: CONSTRAINTS[name] for name in SHARED},
        "half_life": CONSTRAINTS["half_life"][:2],  # it keeps no rows by which it could find one itself
        "steering": [None, callable],
        "spacing": [Interval(numbers.Real, 0.0, None, closed="neither")],
        "angles": [None, "array-like"],
    }

    @property
    def _describer(self) -> ArrivalDescriber:
        return ArrivalDescriber(self)

    def __init__(
        self,
        *,
        steering: Callable[[Array], Any] | None = None,
        spacing: float = 0.5,
        angles: Values = None,
        tol: float = 1e-6,
        max_iter: int = 100,
        random_state: RandomState = None,
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 1,
        algorithm: str | Algorithm = "auto",
        half_life: float | None = None,
        warm_up: int | Literal["auto"] = "auto",
        n_threads: int | None = None,
        parts: int = 1,
    ) -> None:
        self.steering = steering
        self.spacing = spacing
        self.angles = angles
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.algorithm = algorithm
        self.half_life = half_life
        self.warm_up = warm_up
        self.n_threads = n_threads
        self.parts = parts

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _described(self, width: int) -> Learner:
        check_parameters(self)
        sensors: Sensors = LinearSensors(width, float(self.spacing))
        angles = check_angles(self.angles)
        if self.steering is not None:
            sensors = GivenSensors(width, self.steering, angles)
        elif self.angles is not None:
            raise ValueError("angles must be None without a steering function: a linear array is searched from side to side")
        model = Arrival(sensors)
        return Learner(
            model,
            resolve(self.algorithm, model, type(self).__name__, {"auto": Auto(stream="mode")}),
            width,
            half_life=self.half_life,
            warm_up=None if self.warm_up == "auto" else int(self.warm_up),
            n_threads=self.n_threads,
            shards=int(self.parts),
        )

    def _take(self, *arguments: Any, **options: Any) -> tuple[Batch, Learner]:
        batch, learner = super()._take(*arguments, **options)
        learner.model.sensors.check()  # type: ignore[attr-defined]
        return batch, learner

    def _fit(self, X: Rows, sample_weight: Values, labels: Values = None) -> Self:
        if np.isnan(self._checked(X)).all():
            raise ValueError("every sensor of every snapshot in X is missing (NaN): there is nothing to learn from")
        return super()._fit(X, sample_weight, labels)

    def _checked(self, X: Taken) -> Matrix:
        return check_snapshots(X, owner=type(self).__name__)

    def _checked_one(self, x: Row, names: Sequence[str] | None, width: int | None) -> Matrix:
        return check_snapshot(x, names, width)

    @property
    def _n_labels(self) -> int:
        """One row is enough."""
        return 1

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
        """Return what is expected of the signal of the source in each snapshot: a beamformer that knows the noise.

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
        """Return the snapshots with what is expected of the missing sensors given the others.

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

    # How it looks


def _vector(parameters: ArrivalParameters) -> Complex:
    return np.asarray(parameters.steering[0] + 1j * parameters.steering[1])
