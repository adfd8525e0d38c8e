"""``half_life="auto"`` beside fixed half-lives and none, on streams with and without drift.

``python -m pages drift`` measures it and writes docs/examples/drift.md.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import headwater as hw
from examples import drift_values as values
from examples.drift_data import KINDS, counts, electricity, heavy, lines, streams
from pages.page import Measures, Page
from pages.results import Figures

Array = NDArray[np.float64]
FILE = "electricity_nsw/electricity_nsw.csv.gz"
SCORED_FROM = 2048  # rows of the warm-up
HALF_LIVES = (500, 1000, 2000, 4000, 8000, 16_000, 32_000)
SHOWN = ("abrupt", "gradual", "recurring")
CALM = {
    "4 components, 4 learned": 4, "4 components, 2 learned": 2, "4 components, 6 learned": 6, "heavy tails, 4 learned": 4,
}  # fmt: skip


@dataclass(frozen=True)
class Scale:
    """How much is done: rows and seeds of the simulated streams, half-hours, numbers of components for these, calm streams."""

    rows: int = 60_000
    seeds: int = 3
    half_hours: int | None = None
    components: tuple[int, ...] = (4, 6, 8)
    calm: int = 40
    calm_rows: int = 20_000
    half_lives: tuple[int, ...] = HALF_LIVES


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
    """Return the gain of "auto" and of a fixed half-life over no forgetting so far, in nats, and the half-lives of "auto"."""
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


# The page


def of_seed(seed: int, scale: Scale) -> Figures:
    """Every kind of stream, drawn by one seed."""
    return {"runs": {name: compared(rows, scale.half_lives) for name, rows in streams(scale.rows, seed).items()}}


def best_fixed(run: dict[str, float]) -> int:
    """Return the fixed half-life with the best score, which is not known in advance."""
    return int(max((key for key in run if key not in ("auto", "None")), key=lambda key: run[key]))


def traced_kind(name: str, scale: Scale) -> Figures:
    rows = streams(scale.rows, 0)[name]
    return {"name": name, **traced(rows, best_fixed(compared(rows, scale.half_lives)))}


def measure_streams(scale: Scale, data: Path | None) -> Measures:
    for seed in range(scale.seeds):
        yield f"seed/{seed}", partial(of_seed, seed, scale)
    for name in SHOWN:
        yield f"trace/{name}", partial(traced_kind, name, scale)


def measure_electricity(scale: Scale, data: Path | None) -> Measures:
    if data is not None and (data / FILE).is_file():
        prices, shown = electricity(data / FILE, scale.half_hours), scale.components[len(scale.components) // 2]
        for k in scale.components:
            yield f"components/{k}", partial(of_prices, prices, k, scale)
        yield "trace", lambda: traced(prices, best_fixed(compared(prices, scale.half_lives, shown)), shown)


def of_prices(prices: Array, k: int, scale: Scale) -> Figures:
    return {"components": k, "run": compared(prices, scale.half_lives, k)}


def measure_others(scale: Scale, data: Path | None) -> Measures:
    rows, some, fewer = streams(scale.rows, 0)["abrupt"], (1000, 8000), max(scale.rows // 3, 2 * SCORED_FROM)
    for kind in ("tied", "diag", "spherical"):
        yield f"Gaussians, {kind}, abrupt", partial(compared, rows, some, covariance_type=kind)
    topics = partial(compared, counts(fewer, 0), some, 3, kind=hw.MultinomialMixture)
    yield "counts, one topic becomes another", topics
    yield "regressions, one line turns", partial(compared, lines(fewer, 0), some, 2, kind=hw.RegressionMixture)


def measure_calm(scale: Scale, data: Path | None) -> Measures:
    for name, k in CALM.items():
        yield name, partial(calm_set, name, k, scale)


def calm_set(name: str, k: int, scale: Scale) -> Figures:
    """Count streams without drift, and those in which something was forgotten."""
    forgot = 0
    for seed in range(scale.calm):
        rows = heavy(scale.calm_rows, seed) if "heavy" in name else streams(scale.calm_rows, seed)["stationary"]
        forgot += scores_of(rows, "auto", k)[1]._state.records["drift"].alarms > 0
    return {"name": name, "rows": scale.calm_rows, "streams": scale.calm, "forgot": int(forgot)}


def measure_cost(scale: Scale, data: Path | None) -> Measures:
    for columns, k in ((2, 4), (10, 8), (20, 20)):
        yield f"{columns}/{k}", partial(cost_set, columns, k, scale)


def cost_set(columns: int, k: int, scale: Scale) -> Figures:
    """Return CPU seconds of a stream without drift, without and with monitoring; the best of three."""
    rng = np.random.default_rng(0)
    rows = (4.0 * rng.normal(size=(k, columns)))[rng.integers(k, size=5 * scale.rows)]
    rows += rng.normal(size=rows.shape)
    seconds: dict[Any, list[float]] = {None: [], "auto": []}
    for half_life in (None, "auto") * 3:
        model = hw.GaussianMixture(k, half_life=half_life, random_state=0, n_threads=1)
        began = time.process_time()
        model.partial_fit(rows)
        seconds[half_life].append(time.process_time() - began)
    spent = {"none": min(seconds[None]), "auto": min(seconds["auto"])}
    return {"name": f"{columns} columns, {k} components", "rows": len(rows), **spent}


def absent(scale: Scale, data: Path | None) -> list[str]:
    return [] if data is not None and (data / FILE).is_file() else ["electricity prices"]


PAGE = Page(
    name="drift", room="examples", full=Scale(), quick=Scale(6000, 1, 5000, (3,), 1, 4000, (1000,)), minutes=4,
    seeds="0 to 2 of the streams, 0 to 39 where nothing drifts",
    parts={
        "streams": measure_streams, "electricity": measure_electricity, "others": measure_others, "calm": measure_calm,
        "cost": measure_cost,
    },
    values=values.VALUES, names={"KINDS": KINDS, "SCORED_FROM": SCORED_FROM}, pictures={"drift": values.draw}, absent=absent,
)  # fmt: skip
