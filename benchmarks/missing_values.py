"""Rows with gaps: the rate of learning, what a pass loses, how wide intervals are, and how fast equal weights converge.

``python -m pages missing_values`` measures it and writes docs/benchmarks/missing_values.md. Everything is on one thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import headwater as hw
from benchmarks import gaps
from benchmarks.data import Array, make_truth
from benchmarks.row_sweep import streaming
from benchmarks.scale import FULL
from benchmarks.timing import interleave, one_thread
from pages.page import Measures, Page
from pages.results import Figures, Results

ROOT = np.array([[1.0, 0.0], [0.6, 0.8]])  # of the covariance of two columns, whose correlation is 0.6
LEVEL = 0.9
SHARES = (0.0, 0.3, 0.6)  # of the second column that are missing
ALGORITHMS = ("em", "auto", "online-em", "online-vb")


@dataclass(frozen=True)
class Scale:
    """Rows of 10 columns, repeats and seeds of the rates; sets and rows of the intervals; rows and sets of the streams."""

    rows: int = 60_000
    repeats: int = 15
    seeds: int = 3
    sets: int = 200
    set_rows: int = 300
    streams: tuple[int, ...] = (2_000, 8_000, 32_000)
    stream_sets: int = 20


# Rates


def measure_rates(scale: Scale, data: Path | None) -> Measures:
    for kind, width in gaps.WANTED:
        yield f"{kind}-{width}", partial(measure_rate, kind, width, scale)


def measure_rate(kind: str, width: int, scale: Scale) -> Figures:
    """Learn streams of the same rows with and without gaps in turns; a ratio of 1 is as fast as complete rows."""
    wanted = gaps.WANTED[kind, width]
    rng = np.random.default_rng(FULL.first_seed)
    truth = make_truth(10, width, rng)
    rows = truth.sample(scale.rows * 10 // width, rng)
    given = {share: gaps.remove(rows, share, rng) for share in (0.0, *wanted)}
    with one_thread():
        models = {
            share: hw.GaussianMixture(10, covariance_type=kind, random_state=0, n_threads=1).partial_fit(one[:20_000])
            for share, one in given.items()
        }
        timings = interleave({share: streaming(models[share], given[share]) for share in given}, scale.repeats)
    ratios = {share: timings[0.0].best / timings[share].best for share in wanted}
    medians = {share: timings[0.0].median / timings[share].median for share in wanted}
    lines = [{"share": share, "best": ratios[share], "median": medians[share], "wanted": wanted[share]} for share in wanted]
    return {"kind": kind, "width": width, "complete": len(rows) / timings[0.0].best / 1e6, "lines": lines}


# Losses


def measure_losses(scale: Scale, data: Path | None) -> Measures:
    yield "pass", partial(measure_loss, scale)


def measure_loss(scale: Scale) -> Figures:
    """What a pass over rows with 15 % missing loses to the same pass over the rows complete."""
    small = replace(FULL, seeds=scale.seeds)
    with one_thread():
        lines = list(gaps.losses(small))
    return {word: line.ours for word, line in zip(gaps.ALGORITHMS, lines, strict=True)}


# Intervals


def measure_intervals(scale: Scale, data: Path | None) -> Measures:
    for kind in ("full", "diag"):
        for share in SHARES:
            yield f"{kind}-{share}", partial(measure_interval, kind, share, scale)


def measure_interval(kind: str, share: float, scale: Scale) -> Figures:
    """How often an interval of the mean holds the truth, in a column of which this share is missing."""
    inside = 0
    for seed in range(scale.sets):
        rng = np.random.default_rng(seed)
        rows = draw(scale.set_rows, share, rng)
        model = hw.GaussianMixture(1, covariance_type=kind, algorithm="vb", random_state=0, n_threads=1).fit(rows)
        low, high = model.credible_intervals(LEVEL).means[0, 1]
        inside += bool(low <= 0.0 <= high)
    return {"kind": kind, "share": share, "held": inside / scale.sets}


def draw(n: int, share: float, rng: np.random.Generator) -> Array:
    """Two columns with mean 0 and correlation 0.6; a share of the second is missing."""
    rows = rng.standard_normal((n, 2)) @ ROOT.T
    rows[rng.random(n) < share, 1] = np.nan
    return rows


# Streams


def measure_streams(scale: Scale, data: Path | None) -> Measures:
    for word in ALGORITHMS:
        yield word, partial(measure_stream, word, scale)


def measure_stream(word: str, scale: Scale) -> Figures:
    """Root mean square error of the mean of a column of which 80 % is missing, after streams of several lengths."""
    errors = []
    for n in scale.streams:
        found = []
        for seed in range(scale.stream_sets):
            rows = draw(n, 0.8, np.random.default_rng(seed))
            model = hw.GaussianMixture(1, algorithm=word, random_state=0, n_threads=1)
            model = model.fit(rows) if word == "em" else model.partial_fit(rows)
            found.append(float(model.means_[0, 1]))
        errors.append(float(np.sqrt(np.mean(np.square(found)))))
    return {"word": word, "rows": list(scale.streams), "errors": errors}


# The page


def show_rates(results: Results) -> dict[str, Any]:
    lines = [{**one, **line} for one in results.of("rates") for line in one["lines"]]
    return {"lines": lines, "met": sum(line["best"] >= line["wanted"] for line in lines)}


def show_losses(results: Results) -> Mapping[str, Any]:
    return results.of("losses")[0]


def show_intervals(results: Results) -> dict[str, Any]:
    found = {(one["kind"], one["share"]): one["held"] for one in results.of("intervals")}
    return {"shares": SHARES, "full": [found["full", one] for one in SHARES], "diag": [found["diag", one] for one in SHARES]}


def show_streams(results: Results) -> dict[str, Any]:
    lines = results.of("streams")
    for line in lines:
        line["ratios"] = [own / best for own, best in zip(line["errors"], lines[0]["errors"], strict=True)]
    return {"lines": lines, "rows": lines[0]["rows"]}


PAGE = Page(
    name="missing_values",
    room="benchmarks",
    parts={"rates": measure_rates, "losses": measure_losses, "intervals": measure_intervals, "streams": measure_streams},
    full=Scale(),
    quick=Scale(rows=40_000, repeats=1, seeds=1, sets=5, set_rows=60, streams=(500, 1000), stream_sets=2),
    minutes=3.0,
    seeds="1000 on, and 0 on",
    values={"rates": show_rates, "losses": show_losses, "intervals": show_intervals, "streams": show_streams},
    silent=(ConvergenceWarning,),
)
