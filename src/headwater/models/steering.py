"""Arrays of sensors: the steering vector of a direction, and the direction of most power.

A direction is a number x: the electrical angle of a uniform linear array, or the argument of the user's function. Complex
vectors over the sensors are real arrays (2, m).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.kernels.arrival import FINENESS, linear_peak, steered

Complex = NDArray[np.complex128]
# Neighbours of a grid share at least this part of their power, unless it had to be larger than the largest.
ALIKE, LARGEST_GRID = 0.97, 2**14
CONTENDERS, NEAR, FINER = 3, 0.9, 17
NODES: Array = np.linspace(-1.0, 1.0, 9)
FITTED: Array = np.asarray(np.linalg.pinv(chebyshev.chebvander(NODES, 6)), dtype=np.float64)
NUDGE = 1e-6  # of the range, for slopes


class Sensors(Protocol):
    """What a model asks of an array of sensors."""

    @property
    def sensors(self) -> int: ...

    @property
    def range(self) -> tuple[float, float]: ...  # of angles, as the user sees them

    def check(self) -> None: ...

    def vectors(self, x: Array) -> Complex: ...

    def steered(self, x: float) -> tuple[Array, Array]: ...

    def peak(self, real: Array, imag: Array) -> float: ...

    def angle(self, x: float) -> float: ...

    def direction(self, angle: Array) -> Array: ...

    def stretch(self, x: float) -> float: ...


@dataclass(frozen=True, eq=False)
class LinearSensors:
    """A uniform linear array: sensor k sees exp(i x k), where x = 2 pi spacing sin(angle), the angle from broadside."""

    sensors: int
    spacing: float

    @property
    def range(self) -> tuple[float, float]:
        return -0.5 * np.pi, 0.5 * np.pi

    @property
    def limit(self) -> float:
        """The largest x that a source can have; beyond pi directions repeat."""
        return float(min(np.pi, 2.0 * np.pi * self.spacing))

    @cached_property
    def turns(self) -> Array:
        """Cosine and sine of the points where the search begins."""
        points = int(np.ceil(FINENESS * self.sensors * self.limit / np.pi)) + 1
        grid = np.linspace(-self.limit, self.limit, points)
        return np.stack([np.cos(grid), np.sin(grid)])

    def check(self) -> None:
        """Nothing to check."""

    def vectors(self, x: Array) -> Complex:
        return np.exp(1j * np.outer(x, np.arange(self.sensors)))

    def steered(self, x: float) -> tuple[Array, Array]:
        """Steering vector and its derivative."""
        vector, slope = np.empty((2, self.sensors)), np.empty((2, self.sensors))
        steered(x, vector, slope)
        return vector, slope

    def peak(self, real: Array, imag: Array) -> float:
        """The direction of most power."""
        work = np.empty((3, self.turns.shape[1]))
        return float(linear_peak(real, imag, self.turns, self.limit, np.empty((2, self.sensors)), work))

    def angle(self, x: float) -> float:
        return float(np.arcsin(np.clip(x / (2.0 * np.pi * self.spacing), -1.0, 1.0)))

    def direction(self, angle: Array) -> Array:
        return 2.0 * np.pi * self.spacing * np.sin(angle)

    def stretch(self, x: float) -> float:
        """The derivative of x by the angle."""
        return float(2.0 * np.pi * self.spacing * np.cos(self.angle(x)))


@dataclass(frozen=True, eq=False)
class GivenSensors:
    """Any array: `steering` makes vectors (g, m) of angles (g,), among which `angles`, a range or a grid, are searched."""

    sensors: int
    steering: Callable[[Array], Complex]
    angles: Array

    @property
    def range(self) -> tuple[float, float]:
        return float(self.angles[0]), float(self.angles[-1])

    def check(self) -> None:
        """Refuse a function that does not fit."""
        _ = self._grid

    def vectors(self, x: Array) -> Complex:
        x = np.asarray(x, dtype=np.float64)
        found = np.asarray(self.steering(x))
        if found.shape != (len(x), self.sensors):
            raise ValueError(
                f"steering must return a matrix {(len(x), self.sensors)} for {len(x)} angles, a row of {self.sensors} sensors "
                f"for each, got shape {found.shape}"
            )
        if found.dtype.kind not in "cfiu" or not np.isfinite(found).all():
            raise ValueError("steering must return finite complex numbers, got others")
        if not np.abs(found).max(axis=1).all():
            raise ValueError("steering must not be zero, but it is for some angle: a source there cannot be observed")
        return found.astype(np.complex128)

    @cached_property
    def _grid(self) -> tuple[Array, Complex]:
        """Angles where the search begins, and unit vectors; of a range so many that no lobe can fall between them."""
        if len(self.angles) > 2:
            grid = np.asarray(self.angles, dtype=np.float64)
            return grid, self._units(grid)
        points = FINENESS * self.sensors
        while True:
            grid = np.linspace(*self.range, points + 1)
            units = self._units(grid)
            shared = np.abs((units[1:].conj() * units[:-1]).sum(axis=1)) ** 2
            if shared.min() >= ALIKE or 2 * points > LARGEST_GRID:
                return grid, units
            points *= 2

    def _units(self, x: Array) -> Complex:
        vectors = self.vectors(x)
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))

    def steered(self, x: float) -> tuple[Array, Array]:
        """Steering vector and its derivative, by a difference that stays within the range."""
        first, last = self.range
        low, high = max(first, x - NUDGE * (last - first)), min(last, x + NUDGE * (last - first))
        before, at, after = self.vectors(np.array([low, x, high]))
        slope = (after - before) / (high - low)
        return np.stack([at.real, at.imag]), np.stack([slope.real, slope.imag])

    def peak(self, real: Array, imag: Array) -> float:
        """The direction of most power: the highest peaks of the grid are refined."""
        moments = real + 1j * imag
        grid, units = self._grid
        values = powers(units, moments)
        padded = np.concatenate([[-np.inf], values, [-np.inf]])
        summits = np.flatnonzero((values >= padded[:-2]) & (values >= padded[2:]) & (values >= NEAR * values.max()))
        summits = summits[np.argsort(-values[summits], kind="stable")[:CONTENDERS]]
        ends = [self._climbed(moments, grid[max(g - 1, 0)], grid[min(g + 1, len(grid) - 1)]) for g in summits.tolist()]
        return max(ends, key=lambda end: end[0])[1]

    def _climbed(self, moments: Complex, low: float, high: float) -> tuple[float, float]:
        """The maximum between two angles, by finer grids, and by a polynomial through the last one, to full precision."""
        for _ in range(2):
            points = np.linspace(low, high, FINER)
            values = powers(self._units(points), moments)
            best = int(values.argmax())
            low, high = points[max(best - 1, 0)], points[min(best + 1, FINER - 1)]
        place, height = float(points[best]), float(values[best])
        centre, half = 0.5 * (low + high), 0.5 * (high - low)
        found = powers(self._units(centre + half * NODES), moments) - height
        scale = float(np.abs(found).max())
        if scale > 0.0:
            roots = chebyshev.chebroots(chebyshev.chebder(FITTED @ (found / scale)))
            inside = roots.real[(np.abs(roots.imag) < 1e-9) & (np.abs(roots.real) <= 1.0)]
            if len(inside):
                inside = centre + half * inside
                heights = powers(self._units(inside), moments)
                top = int(heights.argmax())
                if heights[top] >= height * (1.0 - 1e-12):
                    place, height = float(inside[top]), float(heights[top])
        return height, place

    def angle(self, x: float) -> float:
        return x

    def direction(self, angle: Array) -> Array:
        return angle

    def stretch(self, x: float) -> float:
        return 1.0


def powers(vectors: Complex, moments: Complex) -> Array:
    """a^H S a for every row a of `vectors`."""
    return np.asarray(((vectors @ moments.T) * vectors.conj()).sum(axis=1).real)
