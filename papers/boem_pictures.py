"""The pictures of paper 000's experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pages.drawing import drawing, legend_of
from pages.results import Figures
from papers.boem_learners import (
    BATCH,
    FACTOR,
    HARMONIC,
    LITERAL,
    MAP_EM,
    MEAN_BOEM,
    MODE_BOEM,
    OWN,
    POWER,
    VANISHING,
)
from papers.boem_scale import SHRINK_BETA
from papers.boem_values import by_kind, likelihoods

COLORS = {
    LITERAL.name: "#1b6ca8", VANISHING.name: "#5aa9e6", MODE_BOEM: "#9467a8", FACTOR.name: "#c43c4d", POWER.name: "#e07b39",
    HARMONIC.name: "#b08d57", BATCH: "#222222", OWN: "#4a9d5f", MEAN_BOEM: "#1b6ca8", MAP_EM: "#222222",
}  # fmt: skip
DASHES = {FACTOR.name: "--", POWER.name: "--", HARMONIC.name: "--"}  # the paper's SOEM is broken
CLUSTER_COLORS = ("#1b6ca8", "#e07b39", "#4a9d5f", "#9467a8", "#8c6d46", "#c43c4d")


def band(axes: Any, line: Figures, name: str, across: Sequence[float] | None = None, **look: Any) -> None:
    """The median over the starts, and where eight in ten of them are."""
    x = line["documents"] if across is None else across
    width = 3.6 if name == MEAN_BOEM else 1.8  # which the modes often cover
    look = {"color": COLORS[name], "ls": DASHES.get(name, "-"), "label": name, "lw": width, **look}
    if len(x) == 1:
        look["marker"] = "o"
    axes.plot(x, line["median"], **look)
    axes.fill_between(x, line["low"], line["high"], color=look["color"], alpha=0.13, lw=0)


def markers(name: str) -> dict[str, Any]:
    """A mark for every pass of batch EM."""
    return {"marker": "o", "ms": 3} if name in (BATCH, MAP_EM) else {}


def draw_likelihood(path: Path, sets: Sequence[Figures]) -> None:
    """Figure 1: streams on the left, batch EM beside them on the right, a row for each reading of the lengths."""
    with drawing(path, 1.0 + 3.1 * len(sets)) as figure:
        panels = figure.subplots(len(sets), 2, sharey="row", squeeze=False)
        for (left, right), one in zip(panels, sets, strict=True):
            for name, line in one["lines"].items():
                if name != BATCH:
                    band(left, line, name)
                if name in (LITERAL.name, VANISHING.name, FACTOR.name, BATCH, OWN):
                    band(right, line, name, **markers(name))
            for axes in (left, right):
                axes.axhline(0.0, color="0.6", lw=0.8, ls=":")
                axes.axhline(one["start"], color="0.8", lw=0.8, ls=":")
                axes.set_xscale("log")
            worst = min(line["median"][-1] for line in one["lines"].values())
            left.set_ylim(max(1.5 * worst, one["start"]), 0.08 * abs(worst))  # where the slowest begin would flatten the rest
            left.set_title(f"one pass; lengths of standard deviation {one['spread']:g}")
            right.set_title(f"with batch EM, {one['passes']} passes")
            left.set_ylabel("log-likelihood per document\nminus the generating mixture's")
        for axes in panels[-1]:
            axes.set_xlabel("documents processed")
        legend_of(figure, panels.ravel(), 4)


def draw_shrinkage(path: Path, sets: Mapping[str, Figures]) -> None:
    """Figure 2: the weights of typical runs, and the log-posterior over the starts, a row for each kind of start."""
    with drawing(path, 1.0 + 2.9 * len(sets)) as figure:
        panels = figure.subplots(len(sets), 2, squeeze=False)
        for (left, right), (name, one) in zip(panels, sets.items(), strict=True):
            for color, weights in zip(CLUSTER_COLORS, one["typical"], strict=False):
                left.plot(one["points"], weights, color=color, lw=1.8)
            for weight in one["truth"]:
                left.axhline(weight, color="0.6", lw=0.8, ls=":")
            left.set(xscale="log", ylim=(-0.03, 1.03), ylabel="weights of the clusters")
            left.set_title(f"a typical run of BOEM's means, {name}")
            for line_name, line in one["lines"].items():
                band(right, line, line_name, **markers(line_name))
            right.axhline(0.0, color="0.6", lw=0.8, ls=":")
            right.set(xscale="log", ylabel="log-posterior per document\nminus the generating mixture's")
            right.set_title(f"{one['starts']} runs, {name}")
        panels[-1][0].set_xlabel("documents")
        panels[-1][1].set_xlabel("documents processed")
        legend_of(figure, panels.ravel(), 4)


def draw_gutenberg(path: Path, sets: Mapping[str, Figures], own: Figures | None) -> None:
    """Figure 3: the log-posterior against seconds and against documents, a row for each kind of start."""
    with drawing(path, 1.0 + 3.0 * len(sets)) as figure:
        panels = figure.subplots(len(sets), 2, sharey=True, squeeze=False)
        for (left, right), (name, one) in zip(panels, sets.items(), strict=True):
            for line_name, line in one["lines"].items():
                band(left, line, line_name, line["seconds"], **markers(line_name))
                band(right, line, line_name, **markers(line_name))
            if own is not None:
                line = own["lines"][OWN]
                left.plot([np.median(line["whole"])], [np.median(line["final"])], "o", color=COLORS[OWN])
                band(right, line, OWN)
            for axes in (left, right):
                axes.axhline(0.0, color="0.6", lw=0.8, ls=":")
                axes.set_xscale("log")
            left.set_title(f"against time, {name}")
            right.set_title(f"against documents, {name}")
            left.set_ylabel("log-posterior per document\nabove one cluster for all")
        panels[-1][0].set_xlabel("seconds of CPU")
        panels[-1][1].set_xlabel("documents processed")
        lowest = min(min(line["median"]) for one in sets.values() for line in one["lines"].values())
        panels[0][0].set_ylim(bottom=max(lowest, -150.0))
        legend_of(figure, panels.ravel(), 4)


PICTURES = {
    "boem_likelihood": lambda path, results: draw_likelihood(path, likelihoods(results)),
    "boem_shrinkage": lambda path, results: draw_shrinkage(path, by_kind(results, "shrinkage", f"/{SHRINK_BETA:g}")),
    "boem_gutenberg": lambda path, results: draw_gutenberg(
        path, by_kind(results, "gutenberg"), results.one("gutenberg", "own")
    ),
}
