"""What comes after a sequence: the law of its states, paths of them, and the laws of the rows that they emit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from headwater.core.statistics import Array, Params
from headwater.families.capabilities import AnswersGaps
from headwater.families.conditional_law import ConditionalLaw

ROWS_AT_ONCE = 2**14  # of paths that are drawn


class StateForecast(Protocol):
    """The states of the next rows."""

    @property
    def laws(self) -> Array:
        """Probability (h, K) of each state at each step."""

    def draw(self, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return paths (size, h) of states."""


class RowForecast(Protocol):
    """The next rows, given the states."""

    def moments(self, states: StateForecast) -> tuple[Array, Array]:
        """Return mean and variance (h, d) of the rows, whatever the states are."""

    def quantile(self, states: StateForecast, probability: float) -> Array:
        """Return the values (h, d) that are not exceeded with this probability."""

    def log_density(self, states: StateForecast, of: Array) -> Array:
        """Return the log-density (h,) of rows, each by itself."""

    def draw(self, paths: NDArray[np.int64], rng: np.random.Generator) -> Array:
        """Return rows (size, h, d) for paths (size, h) of states."""


@dataclass(frozen=True)
class MarkovStates:
    """States of a Markov chain, whose first one has the law `first` (K,)."""

    first: Array
    transitions: Array
    steps: int

    @property
    def laws(self) -> Array:
        found = np.empty((self.steps, len(self.first)))
        now = self.first / self.first.sum()
        for step in range(self.steps):
            found[step] = now
            now = now @ self.passages
        return found

    @property
    def passages(self) -> Array:
        return self.transitions / self.transitions.sum(axis=1, keepdims=True)

    def draw(self, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        running, paths = np.cumsum(self.passages, axis=1), np.empty((size, self.steps), dtype=np.int64)
        bounds = np.broadcast_to(np.cumsum(self.first / self.first.sum()), (size, len(self.first)))
        for step in range(self.steps):
            drawn = (rng.random((size, 1)) >= bounds).sum(axis=1)
            paths[:, step] = np.minimum(drawn, len(self.first) - 1)
            bounds = running[paths[:, step]]
        return paths


@dataclass(frozen=True)
class FamilyRows(Generic[Params]):
    """Rows that do not depend on one another given the states: every answer is that of a mixture, and exact.

    `rows` (h, w) hold what is known of the next rows, such as the inputs of a regression; the columns `targets` are forecast.
    """

    family: AnswersGaps[Params]
    parameters: Params
    rows: Array
    targets: NDArray[np.int64]

    def _law(self, rows: Array) -> ConditionalLaw:
        missing = np.zeros(rows.shape, dtype=bool)
        missing[:, self.targets] = True
        return self.family.conditional(self.parameters, rows, missing)

    def _places(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        steps = len(self.rows)
        return np.repeat(np.arange(steps), len(self.targets)), np.tile(self.targets, steps)

    def moments(self, states: StateForecast) -> tuple[Array, Array]:
        rows, columns = self._places()
        mean, variance = self._law(self.rows).entries(rows, columns).mixture_moments(states.laws[rows])
        shape = (len(self.rows), len(self.targets))
        return mean.reshape(shape), variance.reshape(shape)

    def quantile(self, states: StateForecast, probability: float) -> Array:
        rows, columns = self._places()
        found = self._law(self.rows).entries(rows, columns).mixture_quantile(states.laws[rows], probability)
        return np.asarray(found).reshape(len(self.rows), len(self.targets))

    def log_density(self, states: StateForecast, of: Array) -> Array:
        whole = self.rows.copy()
        whole[:, self.targets] = of
        with np.errstate(divide="ignore"):
            return np.asarray(logsumexp(np.log(states.laws) + self._law(self.rows).log_density(whole), axis=1))

    def draw(self, paths: NDArray[np.int64], rng: np.random.Generator) -> Array:
        size, steps = paths.shape
        found = np.empty((size, steps, len(self.targets)))
        for some in _blocks(size, steps):
            known = np.tile(self.rows, (some.stop - some.start, 1))
            drawn = self._law(known).draw(paths[some].ravel(), rng.random((len(known), known.shape[1] + 1)))
            found[some] = drawn[:, self.targets].reshape(-1, steps, len(self.targets))
        return found


def _blocks(size: int, steps: int) -> Iterator[slice]:
    each = max(ROWS_AT_ONCE // steps, 1)
    for start in range(0, size, each):
        yield slice(start, min(start + each, size))
