"""The figures of paper 001's experiments on disk, and how they are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headwater.core.statistics import Array
from papers.moment_matching_results import Results as Stored

NAME = "latent_factors"
PARTS = ("ratio", "variance", "swimmer", "topics", "cost", "audio")
Figures = dict[str, Any]


@dataclass(frozen=True)
class Scale:
    """How much is done."""

    seeds: int = 5
    images: int = 10_000
    burn_in: int = 400
    kept: int = 100
    chains: int = 200
    draws: int = 4000
    copies: int = 2000
    steps: int = 20_000
    library_copies: int = 100
    library_rows: int = 8192
    documents: int = 100_000  # more than any corpus has
    topics: int = 50
    passes: int = 10
    sweeps: int = 400
    most_topics: int = 2000
    tokens: int = 100_000
    frames: int = 100_000

    @classmethod
    def of(cls, seeds: int, images: int, documents: int) -> Scale:
        return cls(seeds=seeds, images=images, documents=documents)


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

    def one(self, part: str, name: str) -> Figures | None:
        return self.figures.get(part, {}).get(name)


def coded(image: Any) -> str:
    """An image as text: a byte for each pixel, the largest 255."""
    values = np.asarray(image, dtype=float)
    return np.round(255.0 * values / max(float(values.max()), 1e-300)).astype(np.uint8).tobytes().hex()


def decoded(text: str) -> Array:
    """The image that a text stands for, with values from 0 to 1."""
    return np.frombuffer(bytes.fromhex(text), dtype=np.uint8) / 255.0
