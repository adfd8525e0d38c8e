"""How much is done for the page about paper 002."""

from __future__ import annotations

from dataclasses import dataclass


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
