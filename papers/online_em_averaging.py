"""Averaging after Polyak and Ruppert: what it does to a trajectory, and whether estimates become Fisher efficient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from headwater.core.statistics import Array
from pages.results import Figures
from papers.online_em_batch import bound, quartiles
from papers.online_em_normals import (
    APART,
    KINDS,
    LAST,
    NAMES,
    START,
    STATISTICS,
    THETA,
    TRUTH,
    WAIT,
    batch_em,
    drawn,
    library,
    loss,
    online_em,
    parameters,
    speeds,
)
from papers.online_em_scale import Scale

DECAY = 0.6
SHOWN = 0  # the weight
LINES = 5  # trajectories that are drawn
TENTH = 10  # averages begin after a tenth of the rows
TRUTHS = {"close": TRUTH, "apart": APART}
BATCH = 100


def averaging_set(scale: Scale) -> Figures:
    """A parameter along streams: last iterates, averages of parameters, averages of statistics."""
    marks = np.unique(np.geomspace(WAIT, scale.rows, 4 * scale.marks).round().astype(int))
    begin = scale.rows // TENTH // TENTH
    found = np.array(
        [online_em(drawn(TRUTH, scale.rows, 3, copy), START, DECAY, 0.0, WAIT, begin, marks) for copy in range(scale.copies)]
    )
    at = [int(np.searchsorted(marks, n)) for n in (scale.rows // 100, scale.rows // 10, scale.rows)]
    losses = {
        name: [float(np.median(loss(found[:, mark, kind], TRUTH, int(marks[mark])))) for mark in at]
        for kind, name in enumerate(KINDS)
    }
    gap = found[:, -1, THETA] - found[:, -1, STATISTICS]
    bands = {name: quartiles(found[:, :, kind, SHOWN]) for kind, name in enumerate(KINDS)}
    return {
        "rows": marks.tolist(), "begin": begin, "copies": scale.copies, "name": NAMES[SHOWN], "truth": float(TRUTH[SHOWN]),
        "decay": DECAY, "bands": bands, "bound": bound(1, SHOWN), "stops": [int(marks[mark]) for mark in at], "losses": losses,
        "lines": {name: found[:LINES, :, kind, SHOWN].tolist() for kind, name in enumerate(KINDS)},
        "difference": float(np.median(loss(TRUTH + gap, TRUTH, int(marks[-1])))),
    }  # fmt: skip


# Efficiency


@dataclass(frozen=True)
class Estimate:
    """One way to estimate, and what theory says of its loss: n (theta - truth)' I (theta - truth) / parameters."""

    name: str
    make: Callable[[Array, Array], Array]
    theory: Callable[[Array, int], float | None]


def online(decay: float, kind: int) -> Callable[[Array, Array], Array]:
    def make(y: Array, truth: Array) -> Array:
        return np.asarray(online_em(y, START, decay, 0.0, WAIT, len(y) // TENTH, np.array([len(y)]))[0, kind])

    return make


def by_library(y: Array, truth: Array) -> Array:
    return parameters(library(DECAY).partial_fit(y[:, None]))


def by_batches(y: Array, truth: Array) -> Array:
    """The library in batches, with the offset of its default."""
    return parameters(library(DECAY, batch_size=BATCH, offset=2.0).partial_fit(y[:, None]))


def likeliest(y: Array, truth: Array) -> Array:
    """Batch EM from the truth, until the slowest direction has been shortened by e^-12."""
    return np.asarray(batch_em(y, truth, int(12.0 / speeds(truth)[0]))[-1])


def unaveraged(decay: float) -> Callable[[Array, int], float | None]:
    """The last iterate: each direction has half its speed times n^(1 - decay); 1/n needs speeds above a half."""

    def theory(speed: Array, rows: int) -> float | None:
        if decay < 1.0:
            return float(np.mean(speed / 2.0)) * rows ** (1.0 - decay)
        return float(np.mean(speed**2 / (2.0 * speed - 1.0))) if speed.min() > 0.5 else None

    return theory


ESTIMATES = (
    Estimate("batch maximum likelihood", likeliest, lambda speed, rows: 1.0),
    Estimate("n^-0.6, averaged parameters", online(DECAY, THETA), lambda speed, rows: 1.0 / (1.0 - 1.0 / TENTH)),
    Estimate("n^-0.6, averaged statistics", online(DECAY, STATISTICS), lambda speed, rows: 1.0 / (1.0 - 1.0 / TENTH)),
    Estimate("the library, row by row", by_library, lambda speed, rows: 4.0 / 3.0),
    Estimate(f"the library, batches of {BATCH}", by_batches, lambda speed, rows: 4.0 / 3.0),
    Estimate("n^-0.6, not averaged", online(0.6, LAST), unaveraged(0.6)),
    Estimate("n^-0.8, not averaged", online(0.8, LAST), unaveraged(0.8)),
    Estimate("1/n, not averaged", online(1.0, LAST), unaveraged(1.0)),
)
AVERAGED = tuple(one.name for one in ESTIMATES[1:5])


def sizes(scale: Scale) -> list[int]:
    return sorted({min(rows, scale.rows) for rows in (1000, 10_000, 100_000)})


def efficiency_set(case: str, rows: int, scale: Scale) -> Figures:
    """Losses of every estimate on the same streams."""
    truth, copies = TRUTHS[case], max(scale.few, scale.copies // 2)
    streams = [drawn(truth, rows, 10, copy) for copy in range(copies)]
    lines = {}
    for one in ESTIMATES:
        losses = np.array([loss(one.make(y, truth), truth, rows) for y in streams])
        lines[one.name] = {
            "mean": float(losses.mean()), "error": float(losses.std() / np.sqrt(copies)), "median": float(np.median(losses)),
            "theory": one.theory(speeds(truth), rows),
        }  # fmt: skip
    return {
        "case": case, "rows": rows, "copies": copies, "speeds": speeds(truth).tolist(), "truth": truth.tolist(),
        "start": START.tolist(), "lines": lines,
    }  # fmt: skip
