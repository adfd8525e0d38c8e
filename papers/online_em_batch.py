"""Batch EM, whose number of passes does not fall as rows become many, and online EM as random scans of a finite set."""

from __future__ import annotations

import numpy as np

from headwater.core.statistics import Array
from pages.results import Figures
from papers.online_em_normals import (
    BAD,
    FAR,
    GROWING,
    KINDS,
    LAST,
    NAMES,
    PARAMETERS,
    START,
    TRUTH,
    WAIT,
    batch_em,
    drawn,
    incremental_em,
    information,
    online_em,
)
from papers.online_em_scale import Scale

LENGTHS = (500, 8000)
PASSES = 50
SHOWN = 1  # the first mean
ASTRAY = 5.0  # standard errors from the truth
QUARTILES = (5, 25, 50, 75, 95)
SCANNED = 1000
BATCH, RANDOM, AVERAGED, HARMONIC, INCREMENTAL = (
    "batch EM", "random scans, n^-0.6", "random scans, n^-0.6, averaged", "random scans, 1/n", "incremental EM",
)  # fmt: skip
SCANS = (BATCH, RANDOM, AVERAGED, HARMONIC, INCREMENTAL)
MANY_PASSES = 600  # of batch EM, to reach the maximum likelihood


def quartiles(values: Array) -> list[list[float]]:
    """Percentiles over the copies (rows of values)."""
    return np.percentile(values, QUARTILES, axis=0).tolist()


def bound(rows: int, parameter: int = SHOWN) -> float:
    """Standard deviation of an efficient estimate of a parameter."""
    return float(np.sqrt(np.linalg.inv(information(TRUTH)[1])[parameter, parameter] / rows))


def passes_set(rows: int, scale: Scale) -> Figures:
    """The estimate after each pass of batch EM."""
    paths = np.array([batch_em(drawn(TRUTH, rows, 1, copy), FAR, scale.passes)[:, SHOWN] for copy in range(scale.copies)])
    return {
        "rows": rows, "passes": scale.passes, "copies": scale.copies, "percentiles": quartiles(paths), "bound": bound(rows),
        "truth": float(TRUTH[SHOWN]), "name": NAMES[SHOWN], "start": FAR.tolist(), "settled": settled(paths, bound(rows)),
    }  # fmt: skip


def settled(paths: Array, deviation: float) -> int:
    """Passes after which the median is within half a standard deviation of where it ends, for good."""
    median = np.median(paths, axis=0)
    away = np.flatnonzero(np.abs(median - median[-1]) > 0.5 * deviation)
    return int(away[-1]) + 1 if away.size else 0


def sizes_set(rows: int, scale: Scale) -> Figures:
    """Estimates after 50 passes of batch EM, and after one pass of online EM with averaging."""
    copies = max(2, scale.copies // 2)
    ends: dict[str, list[float]] = {"batch": [], "online": []}
    for copy in range(copies):
        y = drawn(TRUTH, rows, 1, copy)
        ends["batch"].append(float(batch_em(y, FAR, PASSES)[-1, SHOWN]))
        ends["online"].append(float(online_em(y, FAR, 0.6, 0.0, WAIT, WAIT, np.array([rows]))[0, GROWING, SHOWN]))
    figures = {name: {"percentiles": quartiles(np.array(values))} for name, values in ends.items()}
    for name, values in ends.items():
        error = np.array(values) - TRUTH[SHOWN]
        figures[name] |= {
            "bias": float(np.median(error)) / bound(rows),
            "rmse": float(np.sqrt(np.median(error**2) / 0.4549)) / bound(rows),
        }  # 0.4549: the median of a squared standard normal
    return {"rows": rows, "copies": copies, "bound": bound(rows), "passes": PASSES, **figures}


def starts_set(scale: Scale) -> Figures:
    """Shares of runs that end far from the truth, by where they begin."""
    rows = scale.sizes[len(scale.sizes) // 2]
    streams = [drawn(TRUTH, rows, 1, copy) for copy in range(max(2, scale.copies // 2))]
    lines = {}
    for name, start in (("START", START), ("FAR", FAR), ("BAD", BAD)):
        ends = {
            "online": [online_em(y, start, 0.6, 0.0, WAIT, WAIT, np.array([rows]))[0, GROWING] for y in streams],
            "batch": [batch_em(y, start, PASSES)[-1] for y in streams],
            "longer": [batch_em(y, start, 4 * PASSES)[-1] for y in streams],
        }  # fmt: skip
        away = {key: np.abs(np.array(values)[:, SHOWN] - TRUTH[SHOWN]) / bound(rows) for key, values in ends.items()}
        lines[name] = {"start": start.tolist(), **{key: float(np.mean(values > ASTRAY)) for key, values in away.items()}}
    return {"rows": rows, "copies": len(streams), "passes": [PASSES, 4 * PASSES], "lines": lines, "astray": ASTRAY}


def scans_set(scale: Scale) -> Figures:
    """Median distance to the maximum likelihood estimate, in standard errors, after so many E-steps for each row."""
    stops = np.unique(np.geomspace(0.1, scale.passes, scale.marks).round(1))
    marks = (stops * SCANNED).round().astype(int)
    found: dict[str, list[Array]] = {name: [] for name in SCANS}
    copies = 3 * scale.few
    root = np.linalg.cholesky(information(TRUTH)[1] * SCANNED / PARAMETERS).T
    first_tour, later = 0.0, []
    for copy in range(copies):
        y = drawn(TRUTH, SCANNED, 7, copy)
        rng = np.random.default_rng(np.random.SeedSequence((2, 8, copy)))
        best = batch_em(y, START, MANY_PASSES)[-1]
        scan = rng.integers(SCANNED, size=marks[-1])
        tours = np.concatenate([rng.permutation(SCANNED) for _ in range(-(-marks[-1] // SCANNED))])[: marks[-1]]
        slow = online_em(y[scan], START, 0.6, 0.0, WAIT, WAIT, marks)
        harmonic = online_em(y[scan], START, 1.0, 0.0, WAIT, WAIT, marks)[:, LAST]
        lines = {
            BATCH: batch_em(y, START, scale.passes),
            RANDOM: slow[:, LAST], AVERAGED: slow[:, GROWING], HARMONIC: harmonic,
            INCREMENTAL: incremental_em(y, START, tours, WAIT, marks),
        }  # fmt: skip
        for name, line in lines.items():
            found[name].append(np.linalg.norm((line - best) @ root.T, axis=1))
        same = online_em(y[tours], START, 1.0, 0.0, WAIT, WAIT, np.array([SCANNED, marks[-1]]))[:, LAST]
        other = incremental_em(y, START, tours, WAIT, np.array([SCANNED, marks[-1]]))
        first_tour = max(first_tour, float(np.abs(same[0] - other[0]).max()))
        later.append(float(np.linalg.norm((same[1] - other[1]) @ root.T)))
    return {
        "rows": SCANNED, "copies": copies, "stops": stops.tolist(),
        "lines": {name: np.median(values, axis=0).tolist() for name, values in found.items()},
        "first_tour": first_tour, "later": float(np.median(later)), "kinds": [*KINDS],
    }  # fmt: skip
