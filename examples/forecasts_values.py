"""Values and picture of the page about forecasts of switching series."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pages.drawing import drawing
from pages.results import Results

REGIMES, PEER_REGIMES = "two regimes", "two regimes, statsmodels"
AUTOREGRESSION, PEER_AUTOREGRESSION = "two autoregressions", "two autoregressions, statsmodels"
ALONE = "one normal law"
SAME = 0.05  # nats; fits that differ by less are the same optimum: ours has a first state of its own until it is scored


def months(results: Results) -> dict[str, Any]:
    facts = results.figures["months"]["facts"]
    found = {one["name"]: one for one in results.of("months", "learner/")}
    base = np.array(found[ALONE]["logs"])
    lines = []
    for name, one in found.items():
        logs, gain = np.array(one["logs"]), np.array(one["logs"]) - base
        error = float(np.sqrt(len(gain)) * gain.std()) if name != ALONE else 0.0
        lines.append(
            {"name": name, "score": logs.mean(), "crps": np.mean(one["crps"]), "gain": float(gain.sum()), "error": error}
        )
    ours, peer = (next(line for line in lines if line["name"] == name) for name in (REGIMES, PEER_REGIMES))
    return {**facts, "forecasts": len(base), "lines": lines, "ahead": ours["gain"] - peer["gain"]}


def quakes(results: Results) -> dict[str, Any]:
    lines = results.of("quakes", "states/")
    first = np.array(lines[0]["logs"])
    for one in lines:
        one["later"], one["gain"] = float(np.mean(one["logs"])), float((np.array(one["logs"]) - first).sum())
    chosen = min(lines, key=lambda one: one["bic"])
    return {**results.figures["quakes"]["facts"], "lines": lines, "forecasts": len(first), "chosen": chosen}


def power(results: Results) -> dict[str, Any]:
    lines = results.of("power", "states/")
    return {**results.figures["power"]["facts"], "lines": lines, "best": max(lines, key=lambda one: one["later"])}


def races(results: Results) -> dict[str, Any]:
    figures = results.figures["races"]
    named = {name.removeprefix("set/"): one for name, one in figures.items() if name.startswith("set/")}
    ahead = {name: one["ours"] - one["peer"] for name, one in named.items()}
    simulated = [gain for name, gain in ahead.items() if name.startswith("simulated")]
    return {
        "simulated": simulated, "real": {name: gain for name, gain in ahead.items() if not name.startswith("simulated")},
        "at_least": sum(gain > -SAME for gain in simulated), "better": sum(gain > SAME for gain in simulated),
        "race": figures["race"], "times": figures["race"]["peer"] / figures["race"]["ours"],
        "passes": {
            name: {**one, "times": one["peer"] / one["ours"]} for name, one in figures["passes"]["runs"].items()
        },
        "pass_rows": figures["passes"]["rows"], "coverage": figures["coverage"],
    }  # fmt: skip


def draw(path: Path, results: Results) -> None:
    """What was gained over one normal law, month by month."""
    found = {one["name"]: np.array(one["logs"]) for one in results.of("months", "learner/")}
    colors = {REGIMES: "#1f3b57", PEER_REGIMES: "#e08e1b", AUTOREGRESSION: "#3a7d44", PEER_AUTOREGRESSION: "#d1495b"}
    with drawing(path, 3.2, 9.5, 110) as figure:
        axes = figure.subplots()
        for name, color in colors.items():
            axes.plot(np.cumsum(found[name] - found[ALONE]), color=color, linewidth=1.2, label=name)
        axes.axhline(0.0, color="0.6", linewidth=0.8)
        axes.set_xlabel("months that were forecast")
        axes.set_title("Gained over one normal law, nats")
        axes.legend(loc="upper left")
