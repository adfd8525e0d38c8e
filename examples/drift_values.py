"""Values and picture of the page about drift."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pages.drawing import drawing
from pages.results import Results
from pages.words import table

NAMES = {"auto": "auto", "None": "none"}


def by_kind(results: Results) -> dict[str, list[dict[str, float]]]:
    """Scores of each kind of stream, seed by seed."""
    found: dict[str, list[dict[str, float]]] = {}
    for one in results.of("streams", "seed/"):
        for name, run in one["runs"].items():
            found.setdefault(name, []).append(run)
    return found


def streams(results: Results) -> dict[str, Any]:
    means = {name: mean(runs) for name, runs in by_kind(results).items()}
    return {
        "rows": results.scale["rows"], "seeds": results.scale["seeds"], "table": scores("stream", means),
        "verdict": verdict({name: run for name, run in means.items() if name != "stationary"}, "stream"),
    }  # fmt: skip


def electricity(results: Results) -> dict[str, Any]:
    runs = {str(one["components"]): one["run"] for one in results.of("electricity", "components/")}
    return {
        "half_hours": results.figures["electricity"]["trace"]["rows"][-1], "table": scores("components", runs),
        "verdict": verdict(runs, "number of components"),
    }  # fmt: skip


def others(results: Results) -> dict[str, Any]:
    return {"table": scores("stream", results.figures["others"])}


def scores(first: str, runs: dict[str, dict[str, float]]) -> str:
    heads = [*next(iter(runs.values()))]
    return table((first, *map(head, heads)), [line(name, run, heads) for name, run in runs.items()])


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


def verdict(runs: dict[str, dict[str, float]], word: str) -> str:
    """Return the verdict: the distance of auto from the best half-life of each line, and from the best one for all lines."""
    fixed = [key for key in next(iter(runs.values())) if key not in NAMES]
    gaps = {name: run["auto"] - max(run[key] for key in fixed) for name, run in runs.items()}
    every = max(fixed, key=lambda key: float(np.mean([run[key] for run in runs.values()])))
    ahead = float(np.mean([run["auto"] - run[every] for run in runs.values()]))
    worst = min(gaps, key=lambda name: gaps[name])
    better = sum(gap >= 0.0 for gap in gaps.values())
    return (
        f"Against the fixed half-life that is best for each {word}, which nobody knows beforehand, auto is better in {better} "
        f"of {len(gaps)}, and at worst {abs(min(gaps[worst], 0.0)):.3f} nats a row behind ({worst}). Against the one that is "
        f"best for all of them together, {int(every):,} rows, it is {abs(ahead):.3f} nats a row "
        f"{'ahead' if ahead >= 0.0 else 'behind'} on average."
    )


def draw(path: Path, results: Results) -> None:
    """Draw gains and half-lives of each stream that is shown."""
    traces = {one["name"]: one for one in results.of("streams", "trace/")}
    traces["electricity"] = results.figures["electricity"]["trace"]
    with drawing(path, 2.1 * len(traces), 9.0, 110, **{"axes.titlesize": 9}) as figure:
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


VALUES = {
    "streams": streams, "electricity": electricity, "others": others, "calm": lambda results: results.of("calm"),
    "cost": lambda results: results.of("cost"),
}  # fmt: skip
