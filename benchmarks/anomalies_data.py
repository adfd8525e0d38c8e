"""Streams for the page of anomalies: sets with marked anomalies, simulated streams with some, and streams that drift."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from examples.drift_data import streams

Array = NDArray[np.float64]
SETS = ("cardio", "http", "mammography", "shuttle", "skin", "smtp", "thyroid")
LEAST_ODD = 20  # anomalies that are kept of a set, if it has as many


def path_of(name: str) -> str:
    """Return where a set is in the directory of data sets."""
    return f"anomaly_{name}/anomaly_{name}.npz"


def marked_rows(data: Path, name: str, most: int) -> tuple[Array, NDArray[np.bool_]]:
    """Return rows in random order, at most so many, and which are anomalies: their share is kept, but at least 20 of them."""
    with np.load(data / path_of(name)) as held:
        rows, marks = np.asarray(held["X"], dtype=np.float64), np.asarray(held["y"]).ravel() > 0
    rng = np.random.default_rng(0)
    odd, usual = rng.permutation(np.flatnonzero(marks)), rng.permutation(np.flatnonzero(~marks))
    kept = min(most, len(rows))
    some = min(max(round(len(odd) * kept / len(rows)), LEAST_ODD), len(odd))
    places = rng.permutation(np.concatenate([odd[:some], usual[: kept - some]]))
    return rows[places], marks[places]


def usual_rows(n: int, rng: np.random.Generator) -> Array:
    """Return rows of three components in five columns."""
    centres = np.array([[0.0] * 5, [5.0, 0.0, 5.0, 0.0, 0.0], [0.0, 5.0, 0.0, -5.0, 3.0]])
    return centres[rng.integers(3, size=n)] + rng.normal(size=(n, 5))


def log_density(rows: Array) -> Array:
    """Return the log-density of usual rows, which an oracle knows, up to a constant."""
    centres = np.array([[0.0] * 5, [5.0, 0.0, 5.0, 0.0, 0.0], [0.0, 5.0, 0.0, -5.0, 3.0]])
    distance = ((rows[:, None] - centres) ** 2).sum(axis=2)
    return np.asarray(np.logaddexp.reduce(-0.5 * distance, axis=1))


def seasonal(rows: int, seed: int) -> Array:
    """Return rows whose level goes up and down each thousandth of a stream, which wanders itself."""
    rng = np.random.default_rng(seed)
    time = np.arange(rows)
    wave = np.column_stack([np.sin(time * (2.0 * np.pi / 480.0)), np.cos(time * (2.0 * np.pi / 480.0))])
    return 2.0 * wave + rng.normal(size=(rows, 2))


def drifting(rows: int, seed: int) -> dict[str, Array]:
    """Return the streams of the page of drift, and a seasonal one."""
    return {**streams(rows, seed), "seasonal": seasonal(rows, seed)}
