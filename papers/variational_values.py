"""What the page about paper 004 says of its figures: verdicts, and the picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from headwater import plotting
from headwater.demo.picture import PALETTE
from pages.drawing import drawing
from pages.results import Figures, Results
from pages.words import percent
from papers import variational_methods as code

CLOSE = 0.05  # nats per row between densities that count as the same
MOST = 0.9  # of the data sets in which a claim must be right to hold
HELPS = 0.3  # of the data sets that a warm-up must bring to be what decides


def outcome(pairs: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Active components and gaps to the truth of one method, over data sets."""
    active, gaps = np.array(pairs).T
    one = {
        "mean": float(active.mean()), "exact": float(np.mean(active == code.CLUSTERS)), "gap": float(gaps.mean()),
        "fewer": float(np.mean(active < code.CLUSTERS)), "more": float(np.mean(active > code.CLUSTERS)),
        "worst": float(gaps.min()), "close": float(gaps.mean()) >= -CLOSE,
    }  # fmt: skip
    return {**one, "right": one["exact"] >= MOST and one["close"], "verdict": verdict(one), "density": density(one)}


def verdict(one: dict[str, Any]) -> str:
    """Whether the claim holds, and how often."""
    if one["exact"] >= MOST and one["close"]:
        return "the claim holds"
    if one["exact"] >= 0.5 and one["close"]:
        return "the claim holds more often than not"
    if abs(one["mean"] - code.CLUSTERS) <= 1.0:
        return "the claim holds on average only" if one["close"] else "the number is about right, the components are not"
    return "the claim does not hold"


def density(one: dict[str, Any]) -> str:
    """How good the density is; with a cluster missed it would not be close to the truth."""
    if not one["close"]:
        return ", so the components that stay are not the clusters"
    return ": a good density, in which several components share a cluster" if one["more"] >= 0.5 else ""


def outcomes(sets: Sequence[Figures]) -> dict[str, dict[str, Any]]:
    """Outcomes by name; each set has a pair for each name."""
    return {name: outcome([one[name] for one in sets]) for name in sets[0]}


def methods(results: Results) -> dict[str, Any]:
    sets = results.of("methods")
    found = outcomes(sets)
    reached = {name: one["exact"] if one["close"] else 0.0 for name, one in found.items()}
    helped = reached[code.WARMED.name] - max(reached[code.WEAK.name], reached[code.COLD.name])
    if helped >= HELPS:
        words = "The start decides: the same recursion over the same rows needs a warm-up to be reliable."
    elif helped <= -HELPS:
        words = "The warm-up does harm here: the bare recursion comes closer to the claim."
    else:
        words = "The warm-up makes little difference to the number of components here."
    return {"sets": len(sets), "outcomes": found, "warm_up": words}


def worths(results: Results) -> dict[str, Any]:
    """Which weight of the seeds comes closest to the claim, and how good it is."""
    sets = results.of("worths")
    found = outcomes(sets)
    best = min(found, key=lambda worth: abs(found[worth]["mean"] - code.CLUSTERS))
    means = [one["mean"] for one in found.values()]
    spread = f"The number that stays depends on it: from {min(means):.2f} to {max(means):.2f} on average."
    return {
        "sets": len(sets), "outcomes": found, "best": best, "one": found[best],
        "spread": spread if max(means) - min(means) >= 1.0 else "The number that stays hardly depends on it.",
        "reached": "are right" if found[best]["right"] else "are right on average at best",
    }  # fmt: skip


def others(results: Results) -> dict[str, Any]:
    """For each method, the settings in which the claim holds."""
    found = {name: outcomes(one["sets"]) for name, one in results.figures["others"].items()}
    verdicts = {}
    for method in code.STREAMS:
        row = {name: by_method[method.name] for name, by_method in found.items()}
        good = [name for name, one in row.items() if one["right"]]
        best = max(row, key=lambda name: row[name]["exact"])
        if len(good) == len(row):
            words = "the claim holds in all of these"
        elif good:
            words = f"the claim holds with {'; '.join(good)}; not with the others"
        else:
            words = f"the claim holds in none of these; the best is {percent(row[best]['exact'])} exact, with {best}"
        verdicts[method.name] = words
    return {"sets": len(results.of("others")[0]["sets"]), "outcomes": found, "verdicts": verdicts}


def draw(path: Path, results: Results) -> None:
    """The active components of four methods on one data set."""
    data = code.Settings().data(results.scale["first"])
    with drawing(path, 3.4, **{"xtick.labelbottom": False, "ytick.labelleft": False}) as figure:
        for axes, (name, one) in zip(figure.subplots(1, 4), results.figures["panels"].items(), strict=True):
            model = SimpleNamespace(**{f"{key}_": np.array(value) for key, value in one.items()}, covariance_type="full")
            active = code.active_components(model)
            colors = np.resize(PALETTE, code.COMPONENTS)[np.argsort(np.argsort(-model.weights_))]
            plotting.ellipses(model, data.rows, ax=axes, components=active, color=list(colors))
            plotting.ellipses(data, ax=axes, color="#222222", filled=False)
            axes.set_title(f"{name}\n{len(active)} of {code.COMPONENTS} active")
            axes.set(xlabel="", ylabel="")
            axes.set_aspect("equal", adjustable="datalim")
            axes.tick_params(length=0)


VALUES = {
    "methods": methods, "worths": worths, "others": others, "panels": lambda results: results.figures["panels"],
}  # fmt: skip
