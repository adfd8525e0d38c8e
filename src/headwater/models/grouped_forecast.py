"""Forecasts of chains whose states have groups of components: a state and a member of its group make one component."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.models.forecasting import RowForecast, StateForecast


@dataclass(frozen=True)
class GroupedStates:
    """States, each with a member of its group, drawn with these weights (K, size) at each step anew."""

    states: StateForecast
    weights: Array

    @property
    def laws(self) -> Array:
        laws = self.states.laws
        return np.asarray((laws[:, :, None] * self.weights).reshape(len(laws), -1))

    def draw(self, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        return draw_members(self.states.draw(size, rng), self.weights, rng)


@dataclass(frozen=True)
class GroupedRows:
    """Rows, given the states: those of the members of their groups."""

    rows: RowForecast
    weights: Array

    def moments(self, states: StateForecast) -> tuple[Array, Array]:
        return self.rows.moments(GroupedStates(states, self.weights))

    def quantile(self, states: StateForecast, probability: float) -> Array:
        return self.rows.quantile(GroupedStates(states, self.weights), probability)

    def log_density(self, states: StateForecast, of: Array) -> Array:
        return self.rows.log_density(GroupedStates(states, self.weights), of)

    def draw(self, paths: NDArray[np.int64], rng: np.random.Generator) -> Array:
        return self.rows.draw(draw_members(paths, self.weights, rng), rng)


def draw_members(paths: NDArray[np.int64], weights: Array, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return a component of the group of each state, drawn with these weights (K, size)."""
    bounds = np.cumsum(weights, axis=1)[paths]
    members = np.minimum((rng.random((*paths.shape, 1)) >= bounds).sum(axis=-1), weights.shape[1] - 1)
    return np.asarray(paths * weights.shape[1] + members)


@dataclass(frozen=True)
class PooledStates:
    """States that are each several of a chain, one after the other: `times` of it are one."""

    states: StateForecast
    times: int

    @property
    def laws(self) -> Array:
        laws = self.states.laws
        return np.asarray(laws.reshape(len(laws), -1, self.times).sum(axis=2))

    def draw(self, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        return self.states.draw(size, rng) // self.times
