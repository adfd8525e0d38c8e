"""The figures of paper 002's experiments on disk, and how they are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from papers.boem_results import Results as Stored

NAME = "online_em"
# In the order of the page
PARTS = (
    "records", "limit", "averaging", "efficiency", "exponents", "blocks", "gradient", "scans", "smoothing", "chains", "array",
)  # fmt: skip
Figures = dict[str, Any]


@dataclass(frozen=True)
class Scale:
    """How much is done."""

    copies: int = 200
    few: int = 20  # copies of what takes longer
    rows: int = 100_000
    marks: int = 25
    passes: int = 100
    chain: int = 30_000
    sizes: tuple[int, ...] = (500, 2000, 8000, 32_000, 128_000)

    @classmethod
    def stored(cls, fields: Any) -> Scale:
        """A scale that was on disk, where tuples are lists."""
        return cls(**{**fields, "sizes": tuple(fields["sizes"])})


FULL = Scale()
QUICK = Scale(copies=8, few=2, rows=3000, marks=6, passes=12, chain=2000, sizes=(500, 2000))


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

    def of(self, part: str, kind: str = "") -> list[Figures]:
        """The sets of a part whose names begin so."""
        return [one for name, one in self.figures.get(part, {}).items() if name.startswith(kind)]
