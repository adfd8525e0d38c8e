"""The page about drift: its tables, its words and its picture, made of the figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from examples.drift_data import KINDS
from examples.tables import drawing, table

TITLE = 'half_life="auto" beside fixed half-lives and none'
NAMES = {"auto": "auto", "None": "none"}


def section(figures: dict[str, Any]) -> list[str]:
    """The lines of the section."""
    kinds, market, rows = figures["kinds"], figures["market"], figures["rows"]
    heads = list(next(iter(market.values())))
    return [
        'A mixture that streams with `half_life="auto"` expects of each component what kept rows promise, and watches how rows '
        "score before they are learned. A component whose rows score otherwise, by more than chance, forgets; others do not.",
        "",
        "```python",
        'model = hw.GaussianMixture(4, half_life="auto")',
        "for chunk in stream:",
        "    scores = model.update(chunk)  # each row before it is learned",
        "model.half_life_  # of each component now; infinite where nothing is forgotten",
        "model.health_  # a sentence, while something is",
        "```",
        "",
        f"All scores are prequential: the mean log-density of every row before it was learned, from row {2048:,} on, in nats. "
        "Higher is better; the best of a line is bold. The constants of auto were chosen with these streams in view.",
        "",
        "![What is gained over never forgetting, and the half-lives that were found](drift.png)",
        "",
        "Left: what auto and the best fixed half-life have gained over never forgetting, by then. Right: the half-life of each "
        "component, while it forgets.",
        "",
        "### Made-up streams",
        "",
        f"{rows:,} rows of four components in the plane; means of {figures['seeds']} streams of each kind.",
        "",
        *[f"- {name}: {about}" for name, about in KINDS.items()],
        "",
        *table(("stream", *map(head, heads)), [line(name, mean(runs), heads) for name, runs in kinds.items()]),
        "",
        *verdict({name: mean(runs) for name, runs in kinds.items() if name != "stationary"}, "stream"),
        "",
        "### Electricity",
        "",
        f"Price and demand of New South Wales in {figures['half_hours']:,} half-hours of 1996 to 1998 (Elec2), in their order.",
        "",
        *table(("components", *map(head, heads)), [line(k, run, heads) for k, run in market.items()]),
        "",
        *verdict(market, "number of components"),
        "",
        "### Other models",
        "",
        *table(
            ("stream", *map(head, next(iter(figures["others"].values())))),
            [line(name, run, list(run)) for name, run in figures["others"].items()],
        ),
        "",
        "A covariance that all components share is a sum over all rows, so with `tied` all forget together.",
        "",
        "### Where nothing drifts",
        "",
        f"Streams of {figures['calm_rows']:,} rows in which nothing changes, and in how many of them something was forgotten:",
        "",
        *table(("streams", "number", "forgot"), [[name, *map(str, found)] for name, found in figures["calm"].items()]),
        "",
        "As long as nothing is forgotten the model is that without a half-life, to the bit; with one component, to rounding.",
        "",
        "### What it costs",
        "",
        f"Seconds for {figures['cost_rows']:,} rows in which nothing changes:",
        "",
        *table(
            ("model", "none", "auto", "times"),
            [[name, f"{none:.2f}", f"{auto:.2f}", f"{auto / none:.2f}"] for name, (none, auto) in figures["cost"].items()],
        ),
    ]  # fmt: skip


def head(key: str) -> str:
    """The head of a column."""
    return NAMES.get(key) or f"{int(key):,}"


def mean(runs: list[dict[str, float]]) -> dict[str, float]:
    """The mean of some streams."""
    return {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}


def line(name: str, run: dict[str, float], heads: list[str]) -> list[str]:
    """A line of a table; the best is bold."""
    shown = [f"{run[key]:.3f}" for key in heads]
    best = max(shown, key=float)
    return [name, *(f"**{one}**" if one == best else one for one in shown)]


def verdict(runs: dict[str, dict[str, float]], word: str) -> list[str]:
    """What the table says: how far auto is from the best half-life of each line, and from the best one for all of them."""
    fixed = [key for key in next(iter(runs.values())) if key not in NAMES]
    gaps = {name: run["auto"] - max(run[key] for key in fixed) for name, run in runs.items()}
    every = max(fixed, key=lambda key: float(np.mean([run[key] for run in runs.values()])))
    ahead = float(np.mean([run["auto"] - run[every] for run in runs.values()]))
    worst = min(gaps, key=lambda name: gaps[name])
    better = sum(gap >= 0.0 for gap in gaps.values())
    return [
        f"Against the fixed half-life that is best for each {word}, which nobody knows beforehand, auto is better in {better} "
        f"of {len(gaps)}, and at worst {abs(min(gaps[worst], 0.0)):.3f} nats a row behind ({worst}). Against the one that is "
        f"best for all of them together, {int(every):,} rows, it is {abs(ahead):.3f} nats a row "
        f"{'ahead' if ahead >= 0.0 else 'behind'} on average.",
    ]  # fmt: skip


def draw(path: Path, figures: dict[str, Any]) -> None:
    """What was gained, and the half-lives, of each stream that is shown."""
    traces = figures["traces"]
    with drawing(path, 9.0, 2.1 * len(traces)) as figure:
        axes = figure.subplots(len(traces), 2, squeeze=False)
        for (left, right), (name, trace) in zip(axes, traces.items(), strict=True):
            rows = np.array(trace["rows"]) / 1000.0
            left.plot(rows, np.array(trace["auto"]) / 1000.0, color="C0", label="auto")
            left.plot(rows, np.array(trace["fixed"]) / 1000.0, color="C1", label=f"half-life {trace['fixed_half_life']:,}")
            left.axhline(0.0, color="0.75", linewidth=0.8)
            left.set_title(f"{name}: thousand nats gained over never forgetting")
            left.legend(loc="upper left")
            half_lives = np.array(trace["half_lives"])
            for k in range(half_lives.shape[1]):
                right.plot(
                    rows, np.where(half_lives[:, k] > 0.0, half_lives[:, k], np.nan), ".-", color=f"C{k + 2}", markersize=3
                )
            right.axhline(trace["fixed_half_life"], color="C1", linewidth=0.8)
            right.set_yscale("log")
            right.set_xlim(left.get_xlim())
            right.set_title("half-life of each component, rows")
        for one in axes[-1]:
            one.set_xlabel("thousand rows")
