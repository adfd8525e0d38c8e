"""Forgetting that tunes itself: ``half_life="auto"`` beside fixed half-lives and none, where streams drift and where not.

Run it with ``python -m examples.drift``; it writes docs/examples/drift.md, the picture beside it and the figures behind both
(drift.json). The directory of data sets is named by HEADWATER_DATA or ``--data``.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import headwater as hw
from examples.command import run
from examples.drift_data import counts, electricity, heavy, lines, streams

Array = NDArray[np.float64]
FILE = "electricity_nsw/electricity_nsw.csv.gz"
SCORED_FROM = 2048  # rows, before which models wait for their first start
HALF_LIVES = (500, 1000, 2000, 4000, 8000, 16_000, 32_000)
SHOWN = ("abrupt", "gradual", "recurring")


@dataclass(frozen=True)
class Scale:
    """How much is done: rows and seeds of the made-up streams, half-hours, numbers of components for these, calm streams."""

    rows: int = 60_000
    seeds: int = 3
    half_hours: int | None = None
    components: tuple[int, ...] = (4, 6, 8)
    calm: int = 40
    calm_rows: int = 20_000
    half_lives: tuple[int, ...] = HALF_LIVES


FULL, QUICK = Scale(), Scale(6000, 1, 5000, (3,), 1, 4000, (1000,))


def scores_of(rows: Any, half_life: Any, k: int = 4, kind: Any = hw.GaussianMixture, **options: Any) -> tuple[Array, Any]:
    """Scores of the rows, each before it was learned, and the model at the end."""
    model = kind(k, half_life=half_life, random_state=0, n_threads=1, **options)
    given = rows if isinstance(rows, tuple) else (rows,)
    return np.asarray(model.update(*given)), model


def compared(rows: Any, half_lives: Sequence[int], k: int = 4, **options: Any) -> dict[str, float]:
    """Mean score of "auto", of no forgetting and of fixed half-lives."""
    return {
        str(half_life): float(scores_of(rows, half_life, k, **options)[0][SCORED_FROM:].mean())
        for half_life in ("auto", None, *half_lives)
    }


def traced(rows: Array, half_life: int, k: int = 4, points: int = 60) -> dict[str, Any]:
    """What "auto" and a fixed half-life have gained over no forgetting by then, in nats, and the half-lives it found."""
    size = max(len(rows) // points, 1)
    models = {name: hw.GaussianMixture(k, half_life=value, random_state=0, n_threads=1)
              for name, value in (("auto", "auto"), ("fixed", half_life), ("none", None))}  # fmt: skip
    found: dict[str, Any] = {"rows": [], "auto": [], "fixed": [], "half_lives": [], "fixed_half_life": half_life}
    total = dict.fromkeys(models, 0.0)
    for at in range(0, len(rows), size):
        for name, model in models.items():
            total[name] += float(np.nansum(model.update(rows[at : at + size])))
        found["rows"].append(min(at + size, len(rows)))
        found["half_lives"].append([float(one) if np.isfinite(one) else 0.0 for one in models["auto"].half_life_])
        for name in ("auto", "fixed"):
            found[name].append(total[name] - total["none"])
    return found


def calm_streams(scale: Scale) -> dict[str, list[int]]:
    """Streams in which nothing changes: how many there were, and in how many something was forgotten."""
    found = {}
    for name, k in (("4 components, 4 learned", 4), ("4 components, 2 learned", 2), ("4 components, 6 learned", 6),
                    ("heavy tails, 4 learned", 4)):  # fmt: skip
        alarms = 0
        for seed in range(scale.calm):
            rows = heavy(scale.calm_rows, seed) if "heavy" in name else streams(scale.calm_rows, seed)["stationary"]
            alarms += scores_of(rows, "auto", k)[1]._state.records["drift"].alarms > 0
        found[name] = [scale.calm, int(alarms)]
    return found


def others(scale: Scale) -> dict[str, dict[str, float]]:
    """The same for other covariances, for counts and for regressions."""
    rows, some, fewer = streams(scale.rows, 0)["abrupt"], (1000, 8000), max(scale.rows // 3, 2 * SCORED_FROM)
    found = {f"Gaussians, {kind}, abrupt": compared(rows, some, covariance_type=kind) for kind in ("tied", "diag", "spherical")}
    found["counts, one topic becomes another"] = compared(counts(fewer, 0), some, 3, kind=hw.MultinomialMixture)
    found["regressions, one line turns"] = compared(lines(fewer, 0), some, 2, kind=hw.RegressionMixture)
    return found


def cost(scale: Scale) -> dict[str, list[float]]:
    """Seconds of a stream in which nothing changes, without and with watching; the best of three."""
    found = {}
    for columns, k in ((2, 4), (10, 8), (20, 20)):
        rng = np.random.default_rng(0)
        rows = (4.0 * rng.normal(size=(k, columns)))[rng.integers(k, size=5 * scale.rows)]
        rows += rng.normal(size=rows.shape)
        seconds: dict[Any, list[float]] = {None: [], "auto": []}
        for half_life in (None, "auto") * 3:
            model = hw.GaussianMixture(k, half_life=half_life, random_state=0, n_threads=1)
            began = time.perf_counter()
            model.partial_fit(rows)
            seconds[half_life].append(time.perf_counter() - began)
        found[f"{columns} columns, {k} components"] = [min(seconds[None]), min(seconds["auto"])]
    return found


def measure(path: Path, quick: bool = False) -> dict[str, Any]:
    """Learn everything that the page tells of."""
    scale = QUICK if quick else FULL
    kinds: dict[str, list[dict[str, float]]] = {}
    for seed in range(scale.seeds):
        for name, rows in streams(scale.rows, seed).items():
            kinds.setdefault(name, []).append(compared(rows, scale.half_lives))
    for name, runs in kinds.items():
        print(name, {key: round(float(np.mean([run[key] for run in runs])), 3) for key in runs[0]}, flush=True)
    prices = electricity(path, scale.half_hours)
    market = {str(k): compared(prices, scale.half_lives, k) for k in scale.components}
    print("electricity", {k: {key: round(value, 3) for key, value in run.items()} for k, run in market.items()}, flush=True)
    made, shown = streams(scale.rows, 0), scale.components[len(scale.components) // 2]
    best = {name: int(best_fixed(kinds[name][0])) for name in SHOWN}
    traces = {name: traced(made[name], best[name]) for name in SHOWN}
    traces["electricity"] = traced(prices, int(best_fixed(market[str(shown)])), shown)
    return {
        "quick": quick, "rows": scale.rows, "seeds": scale.seeds, "half_hours": len(prices), "kinds": kinds, "market": market,
        "shown": shown, "others": others(scale), "traces": traces, "calm": calm_streams(scale), "calm_rows": scale.calm_rows,
        "cost": cost(scale), "cost_rows": 5 * scale.rows,
    }  # fmt: skip


def best_fixed(run: dict[str, float]) -> str:
    """The fixed half-life that scored best, which nobody knows beforehand."""
    return max((key for key in run if key not in ("auto", "None")), key=lambda key: run[key])


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    return run("drift", FILE, measure, __doc__, argv)


if __name__ == "__main__":
    raise SystemExit(main())
