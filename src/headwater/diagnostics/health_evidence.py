"""The evidence by which the health of a model is judged, in parts that are the same for every model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.diagnostics.health import Finding

NO_ROWS: Array = np.empty(0)
PRUNE_ADVICE = "; prune() removes {}"  # in braces, the components


@dataclass(frozen=True)
class Support:
    """The data behind each component (K,), found and needed. `has` says why it is needed, with the number in braces.

    Of counts, the number needed is that of the words over which a component is spread, not of all words.
    """

    found: Array
    unit: str
    needed: Array
    has: str = "but has {} parameters"
    least: float = 1.0  # rows, or words, for each of those that are needed


class ComponentChecks(Protocol):
    """Checks of the components of one kind of model."""

    def support(self) -> Support | None:
        """Return the data behind each component, or None if any amount is enough."""

    def divergences(self) -> tuple[Array, Array] | None:
        """Return symmetric divergences of the densities (K, K), in nats a row, and how much of each may be chance."""

    def degenerate_findings(self, alive: NDArray[np.bool_]) -> list[Finding]:
        """Return findings about components that have collapsed, or about columns that carry no information."""


@dataclass(frozen=True)
class Evidence:
    """What there is to judge a model by.

    Attributes
    ----------
    rows : ndarray of shape (n_components,)
        Effective rows (or words, or frames) behind each component; empty if the model has none.
    word, unit : str
        What a component is called, and what is counted in `rows`.
    shares : ndarray of shape (n_components,)
        Weights; by default, those of the rows.
    checks : callable, optional
        Returns the `ComponentChecks`, at a cost of about `work` operations.
    remedy : str
        What can be done about components that are dead.
    known : tuple of Finding
        What a model knows by itself, such as how much was missing.
    """

    rows: Array = field(default_factory=lambda: NO_ROWS)
    word: str = "component"
    unit: str = "rows"
    shares: Array = field(default_factory=lambda: NO_ROWS)
    checks: Callable[[], ComponentChecks] | None = None
    work: float = 0.0
    remedy: str = ""
    known: tuple[Finding, ...] = ()

    @property
    def weights(self) -> Array:
        """Shares of the components, which sum to one."""
        shares = np.maximum(self.shares if len(self.shares) else self.rows, 0.0)
        return np.asarray(shares / max(float(shares.sum()), 1e-300))


def component_phrase(word: str, components: Sequence[int], most: int = 6) -> str:
    """Return the subject of a sentence about these components, such as "Components 2, 3 and 5"."""
    shown = [str(one) for one in components[:most]]
    if len(components) > most:
        return f"{word.capitalize()}s {', '.join(shown)} and {len(components) - most} more"
    listed = f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else shown[0]
    return f"{word.capitalize()}{'s' * (len(shown) != 1)} {listed}"


def format_amount(value: float) -> str:
    """Return a number of rows, in at most three digits if it is small."""
    return f"{value:,.0f}" if value >= 9.995 else f"{value:.3g}"


def count_phrase(value: float, unit: str) -> str:
    """Return a number of effective rows, or of what else the unit says."""
    number = format_amount(value)
    return f"{number} effective {unit[:-1] if number == '1' else unit}"


def format_percent(share: float) -> str:
    """Return a share in percent, with two or three digits."""
    return f"{100.0 * share:.2g}%" if share < 0.0995 else f"{100.0 * share:.3g}%"
