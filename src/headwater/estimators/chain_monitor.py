"""How a fit of a chain went: `monitor_`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ChainMonitor:
    """How a fit went, with the names of hmmlearn: the log-likelihood of all rows after each pass, and whether it converged."""

    history: tuple[float, ...]
    converged: bool

    @property
    def iter(self) -> int:
        """Number of passes."""
        return len(self.history)
