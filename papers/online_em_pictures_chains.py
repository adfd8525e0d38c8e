"""The pictures of paper 002's experiments on hidden chains and sensor arrays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pages.drawing import drawing, legend_of
from pages.results import Figures
from papers.online_em_chains import BLOCKS, CASES, DECAYS, OWN, steps_name
from papers.online_em_pictures import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, RED


def draw_smoothing(path: Path, sets: Sequence[Figures]) -> None:
    """Distance of the fixed points to that of full smoothing, by lag."""
    with drawing(path, 3.8) as figure:
        panels = figure.subplots(1, len(sets), sharey=True, squeeze=False)[0]
        for axes, one in zip(panels, sets, strict=True):
            places = np.arange(len(one["lags"]))
            for (name, kind), color in zip(one["kinds"].items(), (ORANGE, BLUE), strict=True):
                axes.plot(places, np.maximum(kind["away"], 1e-4), "o-", color=color, lw=1.8, label=f"{name}, a far start")
                axes.plot(
                    places, np.maximum(kind["from_truth"], 1e-4), "o--", color=color, lw=1.2, mfc="none",
                    label=f"{name}, from the truth",
                )  # fmt: skip
            axes.axhline(max(one["recursive"]), color=GREEN, lw=1.4, label="Cappé's recursion, any start")
            axes.set(yscale="log", xlabel="lag, and memory")
            axes.set_xticks(places, [str(lag) for lag in one["lags"]])
            axes.set_title(one["law"])
        panels[0].set_ylabel("largest difference of a parameter\nfrom the fixed point of full smoothing")
        legend_of(figure, panels, 3)


def draw_chains(path: Path, cases: dict[str, list[Figures]]) -> None:
    """Errors of the passages as the sequence grows: each copy a line, a panel for each case and exponent."""
    names = [steps_name(decay) for decay in DECAYS]
    with drawing(path, 5.4) as figure:
        panels = figure.subplots(len(cases), len(names) + 1, sharex=True, sharey=True, squeeze=False)
        for row_of, (case, sets) in zip(panels, cases.items(), strict=True):
            for axes, name in zip(row_of, (*names, ""), strict=True):
                wanted = {name: ORANGE, f"{name}, averaged": BLUE} if name else {BLOCKS.name: PURPLE, OWN.name: GREEN}
                for one in sets:
                    if one["line"] not in wanted:
                        continue
                    label = one["line"] if not name else "averaged" if "averaged" in one["line"] else "the last iterate"
                    for number, errors in enumerate(one["passages"]):
                        look = {"color": wanted[one["line"]], "lw": 1.3, "alpha": 0.85}
                        axes.plot(one["rows"], errors, label=label if number == 0 else None, **look)
                axes.set(xscale="log", yscale="log")
                axes.set_title(f"{case}: {name}" if name else f"{case}: blocks, defaults", fontsize=9)
        for axes in panels[-1]:
            axes.set_xlabel("rows")
        figure.supylabel("largest error of a transition probability")
        legend_of(figure, [*panels.ravel()], 4)


def draw_array(path: Path, sets: Sequence[Figures]) -> None:
    """Squared errors over the bound by the number of snapshots, and the same of the angle."""
    colors = dict(zip(dict.fromkeys(one["line"] for one in sets), (BLACK, ORANGE, BLUE, RED, GREEN), strict=False))
    with drawing(path, 3.8) as figure:
        left, right = figure.subplots(1, 2)
        left.axhline(1.0, color=GREY, lw=5, alpha=0.4)
        for name, color in colors.items():
            mine = [one for one in sets if one["line"] == name]
            rows = [one["rows"] for one in mine]
            left.plot(rows, [one["loss"] for one in mine], "o-", color=color, ms=4, lw=1.8, label=name)
            right.plot(rows, [one["rmse"][0] for one in mine], "o-", color=color, ms=4, lw=1.8)
        right.plot(rows, [one["bound"][0] for one in mine], color=GREY, lw=5, alpha=0.4, zorder=0)
        left.set(xscale="log", yscale="log", xlabel="snapshots", ylabel="squared error over the bound")
        right.set(xscale="log", yscale="log", xlabel="snapshots", ylabel="error of the electrical angle")
        left.yaxis.set_major_formatter("{x:g}")
        left.yaxis.set_minor_formatter("")
        legend_of(figure, [left], 3)


PICTURES = {
    "online_em_smoothing": lambda path, results: draw_smoothing(path, results.of("smoothing")),
    "online_em_chains": lambda path, results: draw_chains(path, {case: results.of("chains", f"{case}/") for case in CASES}),
    "online_em_array": lambda path, results: draw_array(path, results.of("array")),
}
