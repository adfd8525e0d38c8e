"""DirectionOfArrival: where a source is, from snapshots of an array of sensors that keep coming."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal, Self

import numpy as np
from sklearn.utils._param_validation import Interval

from headwater.core.algorithm import Algorithm
from headwater.core.algorithms import Auto, resolve
from headwater.core.batch import Batch
from headwater.core.learner import Learner
from headwater.core.snapshot_validation import check_angles, check_snapshot, check_snapshots
from headwater.core.statistics import Array
from headwater.core.values import AnyArray, Matrix, RandomState, Row, Rows, Values
from headwater.estimators.arrival_answers import ArrivalAnswers
from headwater.estimators.describers.arrival import ArrivalDescriber
from headwater.estimators.mixture import CONSTRAINTS
from headwater.estimators.parameters import check_parameters
from headwater.estimators.traits import Taken
from headwater.models.arrival import Arrival
from headwater.models.steering import GivenSensors, LinearSensors, Sensors

if TYPE_CHECKING:
    from sklearn.utils import Tags


SHARED = (
    "tol", "max_iter", "random_state", "warm_start", "verbose", "verbose_interval", "algorithm", "half_life", "warm_up",
    "n_threads", "parts",
)  # fmt: skip


class DirectionOfArrival(ArrivalAnswers):
    """The direction of one source, learned from a stream of snapshots of an array of sensors, or from all at once.

    A snapshot is a row of complex numbers, one for each sensor: a narrow band of what they receive at one moment, such as one
    frequency of a short-time Fourier transform. It is the signal of a source that all sensors receive, each with a phase that
    depends on the direction, in noise: circular complex Gaussian with covariance power a(angle) a(angle)^H + noise I. Where a
    snapshot is NaN a sensor is missing, and EM replaces it by its expectation. The model learns the expected covariance of
    complete snapshots and searches it for the likeliest direction (Cappé and Moulines, 2009).

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
        `fit` ends when a pass raises the mean log-density of a snapshot by less.
    max_iter : int, default=100
        Most passes of `fit` over the snapshots.
    random_state : int, RandomState instance or None, default=None
        Seed of `sample`, and of the order in which `fit` takes snapshots.
    warm_start : bool, default=False
        Whether `fit` continues from the result of the last one.
    verbose : int, default=0
        Whether to print the passes of `fit`, and how much.
    verbose_interval : int, default=1
        Passes between two lines.
    algorithm : str or algorithm object, default='auto'
        'auto' (streams in batches of equal weight; `fit` finishes by EM), 'em', 'online-em' or 'soem' (row by row).
    half_life : float, optional
        Snapshots after which the weight of a snapshot is halved, for sources that move.
    warm_up : int or 'auto', default='auto'
        Snapshots that a start is found on before learning from the stream begins. The model can be read meanwhile.
    n_threads : int, optional
        Threads for the snapshots of a batch; all cores by default. The result does not depend on it.
    parts : int, default=1
        Parts that rows are dealt to in turns; each is learned on its own thread, and they are merged when the model is read.
        Unlike the number of threads, it changes the result.

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
        How the passes of `fit` went; dropped when more is learned. The bounds are mean log-densities.
    n_samples_seen_ : int
        Snapshots learned from, those without any sensor included.
    n_features_in_, feature_names_in_
        Sensors seen.

    Notes
    -----
    A snapshot in which every sensor is missing is counted and replaced by its expectation, so it slows learning down. A sensor
    that is always missing does no harm. The noise is taken to be no more
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
        ArrivalAnswers._traits,
        unit="snapshots",
        column_word="sensor ",
        shape_parameters=("steering", "spacing"),
        merge_parameters=("steering", "spacing", "angles", "half_life"),
        answers=("angle_", "power_", "noise_variance_"),
    )
    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **{name: CONSTRAINTS[name] for name in SHARED},
        "half_life": CONSTRAINTS["half_life"][:2],  # 'auto' needs a reservoir, which this model does not have
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
        steering: Callable[[Array], AnyArray] | None = None,
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

    def _take(
        self, X: Taken, sample_weight: Values, labels: Values, reset: bool, going_on: bool | None = None
    ) -> tuple[Batch, Learner]:
        batch, learner = super()._take(X, sample_weight, labels, reset, going_on)
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
