"""How much is done for the page about paper 001, and images as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from headwater.core.statistics import Array


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


def coded(image: Any) -> str:
    """An image as text: a byte for each pixel, the largest 255."""
    values = np.asarray(image, dtype=float)
    return np.round(255.0 * values / max(float(values.max()), 1e-300)).astype(np.uint8).tobytes().hex()


def decoded(text: str) -> Array:
    """The image that a text stands for, with values from 0 to 1."""
    return np.frombuffer(bytes.fromhex(text), dtype=np.uint8) / 255.0
