"""The belief about a von Mises-Fisher component: its normaliser and its expectations, by quadrature.

A component has the density C(kappa) exp(theta . x) of unit rows x, where theta is kappa times its mean direction. The conjugate
belief about theta is proportional to C(kappa)^rows exp(R . theta), as of rows whose sum is R. Directions are integrated in
closed form, which leaves kappa^(d-1) C(kappa)^rows / C(kappa |R|), an integral over one number. In the logarithm of kappa that
falls off exponentially on both sides, where the trapezoidal rule is exact to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from headwater.core.statistics import Array
from headwater.families.bessel import ratio_by_argument, scaled_log_bessel

NODES = 160  # of the trapezoidal rule
DEPTH = 42.0  # nats below the peak where the rule begins and ends: the rest is below rounding
DOUBLINGS = 200
BISECTIONS = 60
HUGE = 1e5  # kappa in multiples of the width; beyond it, its moment is linear up to 1e-10


class Expectations(NamedTuple):
    """Of beliefs (K,): log-normaliser, expected length of theta along R, and expected log C(kappa)."""

    log_normaliser: Array
    length: Array
    log_constant: Array


def log_constant(width: int, concentration: Array) -> Array:
    """Return log C(kappa): minus the logarithm of the integral of exp(theta . x) over the sphere."""
    value = scaled_log_bessel(0.5 * width - 1.0, concentration)
    return np.asarray(-0.5 * width * np.log(2.0 * np.pi) - value - concentration)


def mean_length(width: int, concentration: Array) -> Array:
    """Return the length A(kappa) of the mean of the rows of a component."""
    return np.asarray(concentration * ratio_by_argument(0.5 * width - 1.0, concentration))


def expectations(width: int, rows: Array, length: Array) -> Expectations:
    """Return expectations under beliefs of `rows` (K,) rows whose sums have these, smaller, lengths (K,)."""
    rows, length = rows[:, None], length[:, None]

    def height(log_kappa: Array) -> Array:
        kappa = np.exp(log_kappa)
        one, two = (scaled_log_bessel(0.5 * width - 1.0, at) for at in (kappa, length * kappa))
        constants = -0.5 * width * np.log(2.0 * np.pi) * (rows - 1.0)
        # The exponentials of both constants nearly cancel if rows are alike: their difference is taken first.
        return np.asarray(width * log_kappa + constants - rows * one + two - (rows - length) * kappa)

    peak, spread = _find_peak(width, rows, length)
    lowest = height(peak) - DEPTH

    def is_high(at: Array) -> NDArray[np.bool_]:
        return np.asarray(height(at) > lowest)

    reach = np.sqrt(2.0 * DEPTH) * spread
    left, right = _leave(is_high, peak, -reach), _leave(is_high, peak, reach)
    nodes = left + (right - left) * np.linspace(0.0, 1.0, NODES)
    heights = height(nodes)
    total = logsumexp(heights, axis=1)
    shares, kappa = np.exp(heights - total[:, None]), np.exp(nodes)
    spacing = (right - left)[:, 0] / (NODES - 1)
    return Expectations(
        total + np.log(spacing),
        np.sum(shares * kappa * mean_length(width, length * kappa), axis=1),
        np.sum(shares * log_constant(width, kappa), axis=1),
    )


def _find_peak(width: int, rows: Array, length: Array) -> tuple[Array, Array]:
    """Where the integrand is highest, in the logarithm of kappa, and how wide it is there: safe Newton's steps."""

    def slopes(log_kappa: Array) -> tuple[Array, Array]:
        kappa = np.exp(log_kappa)
        one, two = (_moment(width, kappa * scale) for scale in (1.0, length))
        return width - rows * one[0] + two[0], rows * one[1] - two[1]

    low = np.log(width) - 0.5 * np.log(rows)  # below the peak, since A(kappa) < kappa / d
    high = _leave(lambda at: slopes(at)[0] > 0.0, low, np.full_like(low, 0.5))
    at = 0.5 * (low + high)
    for _ in range(BISECTIONS):
        slope, curvature = slopes(at)
        low, high = np.where(slope > 0.0, at, low), np.where(slope > 0.0, high, at)
        after = at + slope / np.maximum(curvature, 1e-100)
        after = np.where((after > low) & (after < high), after, 0.5 * (low + high))
        done = np.abs(after - at) * np.sqrt(np.maximum(curvature, 1.0)) < 1e-3
        at = after
        if done.all():
            break
    return at, 1.0 / np.sqrt(np.maximum(slopes(at)[1], 1e-6))


def _moment(width: int, kappa: Array) -> tuple[Array, Array]:
    """kappa A(kappa), and its derivative by the logarithm of kappa."""
    value = kappa * kappa * ratio_by_argument(0.5 * width - 1.0, kappa)
    slope = kappa * kappa - value * value - (width - 2.0) * value
    # The squares of a huge kappa leave no digits; its first terms are exact then.
    return value, np.where(kappa > HUGE * width, kappa - 0.125 * (width - 1.0) * (width - 3.0) / np.maximum(kappa, 1.0), slope)


def _leave(inside: Callable[[Array], NDArray[np.bool_]], start: Array, step: Array) -> Array:
    """Walk from each start in growing steps until the condition fails."""
    at, going = start + step, np.ones(start.shape, dtype=bool)
    for _ in range(DOUBLINGS):
        going = going & inside(at)
        if not going.any():
            break
        step = 1.3 * step
        at = np.where(going, at + step, at)
    return at
