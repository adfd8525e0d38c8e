"""Vitals: what the health of a model is judged by, in parts that are the same for every model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.diagnostics.health import Finding

NOTHING: Array = np.empty(0)
PRUNE = ", so prune() may leave {} out"


@dataclass(frozen=True)
class Food:
    """What components were learned from, and what it takes: `has` says why, with the number in braces.

    Of counts, what it takes is not the number of words that there are, but of those over which a component is spread.
    """

    fed: Array
    unit: str
    needs: Array
    has: str = "but has {} parameters"
    least: float = 1.0  # how often it takes the number


class Signs(Protocol):
    """What the components of one kind of model show of themselves."""

    def food(self) -> Food | None:
        """What they were learned from."""

    def apart(self) -> tuple[Array, Array] | None:
        """How far densities are apart: symmetric divergences (K, K), in nats a row, and what of them may be chance."""

    def worn(self, alive: NDArray[np.bool_]) -> list[Finding]:
        """What is wrong with components by themselves."""


@dataclass(frozen=True)
class Vitals:
    """What there is to judge a model by.

    Attributes
    ----------
    rows : ndarray of shape (n_components,)
        Effective rows (or words, or frames) behind each component; empty if the model has none.
    word, unit : str
        What a component is called, and what is counted in `rows`.
    shares : ndarray of shape (n_components,)
        Weights; by default, those of the rows.
    signs : callable, optional
        Makes the `Signs`, at a cost of about `work` operations.
    remedy : str
        What can be done about components that are dead.
    """

    rows: Array = field(default_factory=lambda: NOTHING)
    word: str = "component"
    unit: str = "rows"
    shares: Array = field(default_factory=lambda: NOTHING)
    signs: Callable[[], Signs] | None = None
    work: float = 0.0
    remedy: str = ""

    @property
    def weights(self) -> Array:
        """Shares of the components, which sum to one."""
        shares = np.maximum(self.shares if len(self.shares) else self.rows, 0.0)
        return np.asarray(shares / max(float(shares.sum()), 1e-300))


def named(word: str, components: Sequence[int], most: int = 6) -> str:
    """Return what begins a sentence about these components, such as "Components 2, 3 and 5"."""
    shown = [str(one) for one in components[:most]]
    if len(components) > most:
        return f"{word.capitalize()}s {', '.join(shown)} and {len(components) - most} more"
    listed = f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else shown[0]
    return f"{word.capitalize()}{'s' * (len(shown) != 1)} {listed}"


def amount(value: float) -> str:
    """Return a number of rows as a person would say it."""
    return f"{value:,.0f}" if value >= 9.995 else f"{value:.3g}"


def counted(value: float, unit: str) -> str:
    """Return a number of effective rows, or of what else the unit says."""
    told = amount(value)
    return f"{told} effective {unit[:-1] if told == '1' else unit}"


def percent(share: float) -> str:
    """Return a share as a person would say it."""
    return f"{100.0 * share:.2g}%" if share < 0.0995 else f"{100.0 * share:.3g}%"
