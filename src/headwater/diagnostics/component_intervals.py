"""Credible intervals of one parameter a column: rates, probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from headwater.core.statistics import Array
from headwater.diagnostics.description import (
    MOST_COMPONENTS,
    MOST_VALUES,
    short_name,
    wide_table_html,
    wide_table_text,
)
from headwater.diagnostics.intervals import interval_text


@dataclass(frozen=True)
class ComponentIntervals:
    """Central intervals of the belief, lower and upper end last: weights (K, 2), and what a column has (K, d, 2)."""

    level: float
    weights: Array
    values: Array
    word: str  # what the values are: "rates"
    columns: tuple[str, ...]

    def __str__(self) -> str:
        return wide_table_text(*self._table())

    def _repr_html_(self) -> str:
        return wide_table_html(*self._table())

    def _table(self) -> tuple[str, list[str], list[list[str]], list[str]]:
        """Return a title, the header and a row for each component, and a line each for what is not shown."""
        k, width = self.values.shape[:2]
        names = [short_name(name) for name in self.columns[:MOST_VALUES]]
        rows = [
            [
                str(one),
                interval_text(*self.weights[one]),
                ", ".join(f"{name} {interval_text(*ends)}" for name, ends in zip(names, self.values[one], strict=False)),
            ]
            for one in range(min(k, MOST_COMPONENTS))
        ]
        hidden = {"components": k - len(rows), "columns": width - len(names)}
        more = " and ".join(f"{number:,} more {what}" for what, number in hidden.items() if number)
        head = ["component", "weight", self.word]
        return f"Central intervals that hold with probability {self.level:g}", head, rows, [f"and {more}"] if more else []


def weight_intervals(concentration: Array, level: float) -> Array:
    """Return the ends (K, 2) of the weights under a Dirichlet belief: each is a Beta variable."""
    ends = np.array([0.5 * (1.0 - level), 0.5 * (1.0 + level)])
    rest = concentration.sum() - concentration
    if len(concentration) == 1:
        return np.ones((1, 2))
    return np.asarray(betaincinv(concentration[:, None], rest[:, None], ends))


def component_intervals(
    level: float, concentration: Array, values: Array, word: str, columns: Sequence[str]
) -> ComponentIntervals:
    """Return intervals of the weights beside those of what the columns have (K, d, 2)."""
    return ComponentIntervals(level, weight_intervals(concentration, level), values, word, tuple(columns))
