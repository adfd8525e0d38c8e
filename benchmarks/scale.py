"""How much of the full sizes to run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Rows are divided, repeats and seeds counted; only figures of the full scale are held against targets."""

    name: str
    divide: int = 1
    repeats: int = 3
    seeds: int = 10
    first_seed: int = 1000

    @property
    def judged(self) -> bool:
        return self.divide == 1

    def rows(self, full: int, least: int = 2000) -> int:
        """Rows, or calls, to use where the full run uses `full`."""
        return max(full // self.divide, min(full, least))


FULL = Scale("full")
QUICK = Scale("quick", divide=40, repeats=1, seeds=2)
