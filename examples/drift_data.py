"""Streams that drift: simulated ones, each in its own way, and half-hourly prices and demand of electricity."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
CENTRES = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0], [6.0, 6.0]])
KINDS = {
    "stationary": "nothing changes",
    "abrupt": "one component jumps by 2.5 standard deviations after a third of the rows, another by 6 after two thirds",
    "gradual": "two components move 5 and 7 standard deviations, all through the second third",
    "recurring": "two components are in one of two places, in turns of a sixth of the rows",
    "weights": "weights of 0.4, 0.3, 0.2 and 0.1 are turned round after half of the rows",
    "widths": "one component becomes narrower after half of the rows, another wider after three quarters",
}


def streams(rows: int, seed: int) -> dict[str, Array]:
    """Rows of four components in the plane, one stream for each kind of drift."""
    rng = np.random.default_rng(seed)
    time = np.arange(rows) / rows
    still, even = np.repeat(CENTRES[None], rows, axis=0), np.full((rows, 4), 0.25)

    def drawn(centres: Array = still, weights: Array = even, widths: Array | None = None) -> Array:
        labels = (rng.uniform(size=rows)[:, None] > np.cumsum(weights, axis=1)).sum(axis=1).clip(max=3)
        noise = rng.normal(size=(rows, 2))
        if widths is not None:
            noise *= widths[np.arange(rows), labels][:, None]
        return centres[np.arange(rows), labels] + noise

    jumps, moves, turns = still.copy(), still.copy(), still.copy()
    jumps[time >= 1 / 3, 0] += [2.0, 1.5]
    jumps[time >= 2 / 3, 3] += [4.0, 4.5]
    way = np.clip(3.0 * time - 1.0, 0.0, 1.0)[:, None]
    moves[:, 0] += way * [-6.0, -4.0]
    moves[:, 2] += way * [0.0, 5.0]
    away = np.floor(6.0 * time) % 2 == 1
    turns[away, 1] += [3.0, -2.0]
    turns[away, 2] += [-3.0, 2.0]
    widths = np.ones((rows, 4))
    widths[time >= 1 / 2, 1], widths[time >= 3 / 4, 2] = 0.4, 2.0
    weights = np.where((time < 1 / 2)[:, None], [0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4])
    return {
        "stationary": drawn(), "abrupt": drawn(jumps), "gradual": drawn(moves), "recurring": drawn(turns),
        "weights": drawn(weights=weights), "widths": drawn(widths=widths),
    }  # fmt: skip


def heavy(rows: int, seed: int) -> Array:
    """Return rows of four components with tails of Student's t with three degrees of freedom, without drift."""
    rng = np.random.default_rng(seed)
    return CENTRES[rng.integers(4, size=rows)] + rng.standard_t(3, size=(rows, 2))


def counts(rows: int, seed: int) -> Array:
    """Counts of 30 words of three topics, one of which becomes another after half of the rows."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(30, 0.3), size=4)
    labels = rng.integers(3, size=rows)
    labels[rows // 2 :] = np.where(labels[rows // 2 :] == 0, 3, labels[rows // 2 :])
    return rng.multinomial(25, topics[labels]).astype(float)


def lines(rows: int, seed: int) -> tuple[Array, Array]:
    """Inputs and targets on two lines, one of which turns after half of the rows."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3.0, 3.0, size=(rows, 1))
    second = np.where(np.arange(rows) < rows // 2, -1.0, -2.0)
    slope = np.where(rng.uniform(size=rows) < 0.5, 1.0, second)
    return X, slope * X[:, 0] + 4.0 * (slope > 0.0) + 0.3 * rng.normal(size=rows)


def electricity(path: Path, at_most: int | None = None) -> Array:
    """Return half-hourly price and demand of New South Wales, in the order of the file."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return np.array([[float(line["nswprice"]), float(line["nswdemand"])] for line in csv.DictReader(file)][:at_most])
