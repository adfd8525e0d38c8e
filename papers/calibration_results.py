"""The figures of calibration on disk, and how much is done for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from papers.moment_matching_results import Results as Stored

NAME = "calibration"
PARTS = ("one", "gaussian", "starts", "exact", "mended", "others")
Figures = dict[str, Any]


@dataclass(frozen=True)
class Scale:
    """Simulations of one component, of Gaussian regimes, of other models; and sweeps of Gibbs sampling."""

    one: int = 150
    gaussian: int = 100
    others: int = 80
    sweeps: int = 600

    @classmethod
    def of(cls, simulations: int) -> Scale:
        return cls(simulations, simulations, simulations, min(cls.sweeps, 20 * simulations))


FULL = Scale()


class Results(Stored):
    """Figures by part and set; `scale` holds the fields of a Scale."""

    def begin(self, only: Sequence[str], fresh: bool) -> list[str]:
        """The parts to make: those asked for, or those that an interrupted run left, or all. Others are kept."""
        parts = [part for part in PARTS if part in (only or (not fresh and self.pending) or PARTS)]
        for part in parts:
            if fresh or part not in self.pending:
                self.figures.pop(part, None)
        self.pending = [part for part in PARTS if part in self.pending or part in parts]
        return parts
