"""The pictures of paper 003's experiments."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pages.drawing import drawing
from pages.results import Results
from papers.moment_matching_learners import BATCH_EM, BATCHES, BMM, DMM, KL, OVERFITTING_LINES, QB, ROWS, VB, line_name

FLOOR = 1e-4
COLORS = {
    BMM.name: "#1b6ca8", KL.name: "#7fb2d9", DMM.name: "#e07b39", VB.name: "#4a9d5f", QB.name: "#9467a8",
    BATCHES.name: "#8c6d46", ROWS.name: "#c43c4d", BATCH_EM.name: "#222222",
}  # fmt: skip


def draw_figure1(path: Path, results: Results) -> None:
    sets = results.of("figure1")
    lines = -(-len(sets) // 3)
    with drawing(path, 0.8 + 2.6 * lines) as figure:
        panels = figure.subplots(lines, 3, sharex=True, sharey=True).ravel()
        for axes, one in zip(panels, sets, strict=False):
            axes.axvspan(one["rows"][0], max(one["warm_up"], one["rows"][0]), color="0.94", lw=0)
            for name in reversed(one["learners"]):
                missing = np.maximum(one["truth"] - np.array(one["learners"][name]["scores"]), FLOOR)
                width = 2.4 if name == BMM.name else 1.2
                axes.plot(one["rows"], missing, color=COLORS[name], lw=width, label=name)
            axes.set(xscale="log", yscale="log")
            axes.set_title(f"{one['components']} components, {one['columns']} columns, {one['apart']:g} apart")
        for axes in panels[len(sets) :]:
            axes.set_axis_off()
        figure.supxlabel("rows learned")
        figure.supylabel("truth's held-out score minus the model's, nats per row")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles[::-1], labels[::-1], loc="outside upper center", ncols=6)


def draw_overfitting(path: Path, results: Results) -> None:
    sets = results.of("overfitting")
    with drawing(path, 3.6) as figure:
        panels = figure.subplots(1, len(sets), squeeze=False)[0]
        for axes, one in zip(panels, sets, strict=True):
            drawn = []
            for learner, warm_up in OVERFITTING_LINES:
                name = line_name(learner, warm_up)
                means = np.mean(one["lines"][name], axis=1)
                dashes = "-" if warm_up == "auto" else "--"
                width, above = (2.4, 3) if learner is BMM else (1.3, 2)
                look = {"color": COLORS[learner.name], "marker": ".", "lw": width, "zorder": above}
                axes.plot(one["components"], means, dashes, label=name, **look)
                drawn.append(means)
            # A line that falls without end would flatten all others.
            best, first = np.max(drawn), np.median([means[0] for means in drawn])
            margin = max(best - first, 0.2)
            axes.set_ylim(max(np.min(drawn), first - margin) - 0.05 * margin, best + 0.1 * margin)
            axes.set_title(one["title"])
            axes.set_xlabel("components")
        panels[0].set_ylabel("held-out score, nats per row")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=3)


PICTURES = {"moment_matching": draw_figure1, "moment_matching_overfitting": draw_overfitting}
