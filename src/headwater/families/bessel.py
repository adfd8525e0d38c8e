"""Logarithms and ratios of modified Bessel functions I_v, for any order from -1/2 on and any argument from 0 on.

SciPy's `ive` underflows if the order is large compared with the argument. So it is used for low orders only; tiny arguments use
the first terms of the power series, and huge ones those of Hankel's expansion. From order 40 on Debye's expansion in 1/v
(Abramowitz and Stegun 9.7.7) is exact to rounding. Logarithms leave out the power of the argument and its exponential, so that
all is finite and smooth from 0 on.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import Polynomial
from scipy.special import gammaln, ive

from headwater.core.statistics import Array

LEAST_ORDER = 40.0  # from which on eleven terms of the expansion are exact to rounding
TERMS = 11
TINY = 1e-3  # arguments of low orders for which two terms of the power series are exact to rounding
HUGE = 1e8  # arguments of low orders beyond which four terms of Hankel's expansion are exact to rounding; `ive` ends at 1e9
NEWTON_STEPS = 50
CLOSE = 1e-8  # a smaller Newton step is the last: the next would be its square
LARGEST_ARGUMENT = 1e9  # that a ratio is solved for: beyond it, one minus the ratio is a rounding error


def _debye_polynomials(terms: int) -> tuple[Polynomial, ...]:
    """The polynomials u_k of the expansion (Abramowitz and Stegun 9.3.10)."""
    found = [Polynomial([1.0])]
    for _ in range(terms - 1):
        last = found[-1]
        integral = (Polynomial([1.0, 0.0, -5.0]) * last).integ()
        found.append(Polynomial([0.0, 0.0, 0.5, 0.0, -0.5]) * last.deriv() + integral / 8.0)
    return tuple(found)


POLYNOMIALS = _debye_polynomials(TERMS)


def _debye(order: float, x: Array) -> Array:
    """The scaled logarithm for a large order."""
    length = np.hypot(order, x)
    inverse = order / length
    series = np.zeros_like(x)
    for polynomial in POLYNOMIALS[::-1]:
        series = series / order + polynomial(inverse)
    return np.asarray(
        order * (order / (length + x) - np.log(order + length)) - 0.5 * np.log(2.0 * np.pi * length) + np.log(series)
    )


def _hankel(order: float, x: Array) -> Array:
    """I_v(x) exp(-x) sqrt(2 pi x) for a low order and a huge argument (Abramowitz and Stegun 9.7.1)."""
    found, term = np.ones_like(x), np.ones_like(x)
    for k in range(1, 4):
        term = -term * (4.0 * order * order - (2.0 * k - 1.0) ** 2) / (8.0 * k * x)
        found = found + term
    return found


def _low(order: float, x: Array) -> Array:
    """I_v(x) exp(-x) for a low order."""
    huge = np.maximum(x, HUGE)
    return np.where(x < HUGE, ive(order, np.minimum(x, HUGE)), _hankel(order, huge) / np.sqrt(2.0 * np.pi * huge))


def scaled_log_bessel(order: float, x: Array) -> Array:
    """Return log I_v(x) - v log x - x, which is finite at 0.

    Parameters
    ----------
    order : float
        v, at least -1/2.
    x : array
        Arguments that are not negative.
    """
    x = np.asarray(x, dtype=np.float64)
    if order >= LEAST_ORDER:
        return _debye(order, x)
    large = np.maximum(x, TINY)
    found = np.log(_low(order, large)) - order * np.log(large)
    if x.min(initial=1.0) >= TINY:
        return np.asarray(found)
    series = np.log1p(0.25 * x * x / (order + 1.0)) - order * np.log(2.0) - gammaln(order + 1.0) - x
    return np.where(x < TINY, series, found)


def ratio_by_argument(order: float, x: Array) -> Array:
    """Return I_{v+1}(x) / I_v(x) divided by x, which falls from 1 / (2v + 2) at 0."""
    x = np.asarray(x, dtype=np.float64)
    if order >= LEAST_ORDER:
        return np.exp(_debye(order + 1.0, x) - _debye(order, x))
    large = np.maximum(x, TINY)
    found = _low(order + 1.0, large) / (_low(order, large) * large)
    if x.min(initial=1.0) >= TINY:
        return np.asarray(found)
    term = 0.25 * x * x
    series = 0.5 / (order + 1.0) * (1.0 + term / (order + 2.0)) / (1.0 + term / (order + 1.0))
    return np.where(x < TINY, series, found)


def bessel_ratio(order: float, x: Array) -> Array:
    """Return I_{v+1}(x) / I_v(x), which rises from 0 to 1."""
    return np.asarray(x * ratio_by_argument(order, x))


def solve_bessel_ratio(order: float, ratios: Array) -> Array:
    """Return the arguments x with I_{v+1}(x) / I_v(x) as given, up to `LARGEST_ARGUMENT`: Newton's steps between bounds.

    The bounds are those of Amos (1974): x / (a + hypot(b, x)) lies below the ratio with a = v + 1/2 and b = v + 3/2, and above
    it with a = b = v + 1/2.
    """
    ratios = np.clip(np.asarray(ratios, dtype=np.float64), 0.0, 1.0 - 1e-15)
    least = np.minimum(_invert_bound(order + 0.5, order + 0.5, ratios), LARGEST_ARGUMENT)
    most = np.minimum(_invert_bound(order + 0.5, order + 1.5, ratios), LARGEST_ARGUMENT)
    x, moving = 0.5 * (least + most), np.ones(ratios.shape, dtype=bool)
    for _ in range(NEWTON_STEPS):
        by_argument = ratio_by_argument(order, x)
        found = x * by_argument
        slope = 1.0 - found * found - (2.0 * order + 1.0) * by_argument
        after = np.clip(x + (ratios - found) / np.maximum(slope, 1e-300), least, most)
        near = np.abs(after - x) <= CLOSE * x
        x = np.where(moving, after, x)
        moving = moving & ~near  # each entry stops by itself, so that it does not depend on the others
        if not moving.any():
            break
    return np.asarray(x)


def _invert_bound(a: float, b: float, ratio: Array) -> Array:
    """The x at which x / (a + hypot(b, x)) is the ratio."""
    rest = (1.0 - ratio) * (1.0 + ratio)
    return np.asarray(ratio * (a + np.sqrt(a * a + rest * (b * b - a * a))) / rest)
