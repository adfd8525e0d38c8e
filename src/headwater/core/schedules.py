"""Schedules: how far one fold moves the statistics.

A schedule turns the progress so far and the sizes of the next folds into step sizes. It keeps nothing of its own: what it
needs to go on is in `Progress`. Time is counted in batches of the algorithm's size, so a batch that is only partly
filled, or whose rows carry weights, takes part of a step: 1 - (1 - step)^(size / batch_size).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Protocol

import numpy as np

from headwater.core.state import Progress
from headwater.core.statistics import Array

# Limits of the numbers of a schedule other than 0: beyond them a step is so small that its weight overflows.
SMALLEST, LARGEST = 1e-20, 1e20


def _number(value: object) -> float:
    """The value as a float, or NaN if it is not a finite number."""
    try:
        return float(value) if isinstance(value, Real) and not isinstance(value, bool) else np.nan
    except OverflowError:
        return np.nan


def check_number(name: str, value: object, zero: bool = True) -> None:
    """Refuse numbers outside the limits of a schedule; 0 if it is not allowed."""
    number = _number(value)
    if not (SMALLEST <= number <= LARGEST or (zero and number == 0.0)):
        least = "at least 0" if zero else "more than 0"
        raise ValueError(f"{name} must be a number of {least}, between {SMALLEST:g} and {LARGEST:g} in size, got {value!r}")


def check_decay(value: object) -> None:
    """Refuse an exponent outside (0, 1]."""
    if not 0.0 < _number(value) <= 1.0:
        raise ValueError(f"decay must be greater than 0 and at most 1, got {value!r}")


def _check_half_life(value: object) -> None:
    if not _number(value) > 0.0:
        raise ValueError(f"half_life must be a number of more than 0, got {value!r}")


class Schedule(Protocol):
    """Step sizes of a run of folds; `sizes` are the weights of the batches, `batch_size` what a full one weighs."""

    def __call__(self, progress: Progress, sizes: Array, batch_size: float) -> Array: ...


@dataclass(frozen=True)
class Equal:
    """Every row counts the same: step m / (n + m). With a half-life (in rows) older rows fade."""

    half_life: float | None = None

    def __post_init__(self) -> None:
        if self.half_life is not None:
            _check_half_life(self.half_life)

    def __call__(self, progress: Progress, sizes: Array, batch_size: float) -> Array:
        if self.half_life is None:
            return sizes / (progress.mass + np.cumsum(sizes))
        keep = np.exp2(-sizes / self.half_life)
        return np.minimum(sizes / linear_recurrence(progress.mass, keep, sizes), 1.0)


@dataclass(frozen=True)
class Decay:
    """Step scale * (t + offset)^-decay at fold t = 1, 2, ...: Cappé-Moulines, and Sato with his kappa and t0.

    Examples
    --------
    >>> import headwater as hw
    >>> hw.OnlineEM(decay=0.7, offset=4.0).schedule(2, 1000, 100)
    Decay(decay=0.7, offset=4.0, scale=1.0)
    """

    decay: float = 0.6
    offset: float = 2.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_decay(self.decay)
        check_number("offset", self.offset)
        check_number("scale", self.scale, zero=False)

    def __call__(self, progress: Progress, sizes: Array, batch_size: float) -> Array:
        return partial(self.scale * (fold_times(progress, sizes, batch_size) + self.offset) ** -self.decay, sizes, batch_size)

    @classmethod
    def window(cls, rows: float, decay: float = 0.6) -> Decay:
        """Step (1/w) (1 + t/w)^-decay: as if `rows` rows had been seen already."""
        return cls(decay, rows, rows ** (decay - 1.0))


@dataclass(frozen=True)
class Harmonic:
    """Step a / (b t + c), the learning rate of paper 000, section 3.

    Examples
    --------
    >>> import headwater as hw
    >>> hw.SatoEM(rate=hw.Harmonic(a=1.0, b=0.5, c=2.0)).rate
    Harmonic(a=1.0, b=0.5, c=2.0)
    """

    a: float = 1.0
    b: float = 1.0
    c: float = 0.0

    def __post_init__(self) -> None:
        check_number("a", self.a, zero=False)
        for name in ("b", "c"):
            check_number(name, getattr(self, name))
        if self.b == self.c == 0.0:
            raise ValueError("b or c must be more than 0, got 0 for both")

    def __call__(self, progress: Progress, sizes: Array, batch_size: float) -> Array:
        return partial(self.a / (self.b * fold_times(progress, sizes, batch_size) + self.c), sizes, batch_size)


@dataclass(frozen=True)
class ForgettingFactor:
    """A forgetting factor (paper 000, equations 4, 5): zeta_t = 1 - 1 / ((t - 2) kappa + t0); the step is its normaliser eta_t.

    By Proposition 1, eta_t = eta_{t-1} / (zeta_t + eta_{t-1}); eta_1 = 1, so the first fold replaces the statistics.

    Examples
    --------
    >>> import headwater as hw
    >>> hw.SatoEM(rate=hw.ForgettingFactor(kappa=0.7, t0=1000.0)).rate.kappa
    0.7
    """

    kappa: float = 0.7
    t0: float = 5000.0
    half_life: float | None = None

    def __post_init__(self) -> None:
        for name in ("kappa", "t0"):
            check_number(name, getattr(self, name))
        if self.half_life is not None:
            _check_half_life(self.half_life)

    def factors(self, times: Array) -> Array:
        """Return zeta at the given fold times."""
        return np.clip(1.0 - 1.0 / np.maximum((times - 2.0) * self.kappa + self.t0, 1.0), 0.0, 1.0)

    def __call__(self, progress: Progress, sizes: Array, batch_size: float) -> Array:
        parts = sizes / batch_size
        keep = self.factors(fold_times(progress, sizes, batch_size)) ** parts
        if self.half_life is not None:
            keep = np.minimum(keep, np.exp2(-sizes / self.half_life))
        return np.minimum(parts / linear_recurrence(progress.mass / batch_size, keep, parts), 1.0)


@dataclass(frozen=True)
class HalfLife:
    """A schedule that never steps less than forgetting with this half-life (in rows) asks for."""

    schedule: Schedule
    half_life: float

    def __post_init__(self) -> None:
        if not callable(self.schedule):
            raise ValueError(f"schedule must be a schedule, such as Harmonic(a, b, c), got {self.schedule!r}")
        _check_half_life(self.half_life)

    def __call__(self, progress: Progress, sizes: Array, batch_size: float) -> Array:
        return np.maximum(self.schedule(progress, sizes, batch_size), 1.0 - np.exp2(-sizes / self.half_life))


def with_half_life(schedule: Schedule, half_life: float | None) -> Schedule:
    """Return the schedule with a half-life, if there is one."""
    if half_life is None:
        return schedule
    return (
        replace(schedule, half_life=half_life)
        if isinstance(schedule, Equal | ForgettingFactor)
        else HalfLife(schedule, half_life)
    )


def fold_times(progress: Progress, sizes: Array, batch_size: float) -> Array:
    """Return the time t at the end of each fold, in batches."""
    return progress.folds + np.cumsum(sizes) / batch_size


def partial(steps: Array, sizes: Array, batch_size: float) -> Array:
    """Return the steps of batches that hold only a part of their weight, or more than it."""
    steps = np.minimum(steps, 1.0)
    with np.errstate(divide="ignore"):  # a step of 1 leaves nothing, whatever the weight
        return np.where(sizes == batch_size, steps, -np.expm1(sizes / batch_size * np.log1p(-steps)))


def linear_recurrence(start: float, factors: Array, terms: Array, piece: int = 32) -> Array:
    """Return y with y_t = factors_t * y_{t-1} + terms_t, in vectorised pieces short enough not to underflow."""
    values = np.empty_like(terms)
    for begin in range(0, len(terms), piece):
        part = slice(begin, begin + piece)
        product = np.cumprod(factors[part])
        if product[-1] < 1e-250:
            if piece > 1:
                values[part] = linear_recurrence(start, factors[part], terms[part], 1)
            else:
                values[part] = factors[part] * start + terms[part]
        else:
            values[part] = product * (start + np.cumsum(terms[part] / product))
        start = float(values[part][-1])
    return values
