"""The pictures of calibration."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from pages.drawing import drawing
from pages.results import Results
from papers.calibration_ranks import AMBIGUITY, BINS, NOMINAL

QUANTITIES = ("weights", "means", "variances")
COLORS = (
    "#1b6ca8", "#7fb2d9", "#222222", "#8c6d46", "#e07b39", "#c43c4d", "#e8a0a8", "#4a9d5f", "#9ccf8a", "#9467a8", "#d4a017",
    "#5b5b5b", "#17a2b8",
)  # fmt: skip
KOLMOGOROV = 1.358  # of sqrt(n) times the largest deviation, 95 % are less


def colors(ways: Any) -> dict[str, str]:
    return {name: COLORS[place % len(COLORS)] for place, name in enumerate(ways)}


def draw_ranks(path: Path, results: Results) -> None:
    """How far the share of truths below each quantile is from what it should be, kinds of covariance together."""
    kinds = [one["regimes"] for one in results.of("gaussian")]
    regimes = kinds[0]
    first = next(iter(regimes.values()))
    chosen = colors(first)
    at = np.arange(BINS + 1) / BINS
    with drawing(path, 7.2) as figure:
        panels = figure.subplots(len(QUANTITIES), len(regimes), sharex=True, sharey="row", squeeze=False)
        for column, (title, by_way) in enumerate(regimes.items()):
            for line, quantity in enumerate(QUANTITIES):
                axes = panels[line, column]
                n = sum(next(iter(kind[title].values()))[quantity]["simulations"] for kind in kinds)
                axes.axhspan(-KOLMOGOROV / np.sqrt(n), KOLMOGOROV / np.sqrt(n), color="0.93", lw=0)
                axes.axhline(0.0, color="0.7", lw=0.8)
                for name in by_way:
                    shares = np.mean([kind[title][name][quantity]["histogram"] for kind in kinds], axis=0)
                    below = np.concatenate([[0.0], np.cumsum(shares)])
                    axes.plot(at, below - at, color=chosen[name], lw=1.3, label=name)
                if line == 0:
                    axes.set_title(title)
                if column == 0:
                    axes.set_ylabel(quantity)
        figure.supxlabel("quantile of the belief")
        figure.supylabel("share of truths below it, minus what it should be")
        handles, labels = panels[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=6)


def draw_coverage(path: Path, results: Results) -> None:
    """How often intervals contain the truth, by algorithm."""
    regimes = results.figures["gaussian"]["full"]["regimes"]
    marks = dict(zip(QUANTITIES, (("s", "#e07b39"), ("o", "#1b6ca8"), ("^", "#4a9d5f")), strict=True))
    names = [*next(iter(regimes.values()))]
    with drawing(path, 4.6) as figure:
        panels = figure.subplots(1, len(regimes), sharey=True, squeeze=False)[0]
        for axes, (title, by_way) in zip(panels, regimes.items(), strict=True):
            for level in NOMINAL:
                axes.axvline(level, color="0.8", lw=1.0)
                for shift, (quantity, (mark, color)) in zip((-0.22, 0.0, 0.22), marks.items(), strict=True):
                    shares = np.array([by_way[name][quantity][f"{level:g}"] for name in names])
                    label = quantity if level == NOMINAL[-1] else None
                    axes.errorbar(
                        shares[:, 0], np.arange(len(names)) + shift, xerr=2.0 * shares[:, 1], fmt=mark, color=color, ms=4.5,
                        lw=1.0, label=label, mfc=color if label else "white",
                    )  # fmt: skip
            axes.set_title(title)
            axes.set_xlim(0.0, 1.0)
        panels[0].set_yticks(range(len(names)), names)
        panels[0].invert_yaxis()
        figure.supxlabel("share of truths in 50 % intervals (hollow) and 90 % intervals (filled), with two standard errors")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=3)


def draw_ambiguity(path: Path, results: Results) -> None:
    """How much 90 % intervals must be stretched, by how much components share their rows."""
    by_way = results.figures["gaussian"]["full"]["ambiguity"]
    chosen = colors(by_way)
    bins = [f"{low:g}" for low in AMBIGUITY[:-1]]
    words = [f"{100 * low:g}-{100 * high:g} %" for low, high in pairwise(AMBIGUITY)]
    with drawing(path, 3.8) as figure:
        panels = figure.subplots(1, len(QUANTITIES), sharey=True)
        for axes, quantity in zip(panels, QUANTITIES, strict=True):
            axes.axhline(1.0, color="0.7", lw=0.8)
            for name, cells in by_way.items():
                points = [(place, cells[low][quantity]["stretch"]) for place, low in enumerate(bins) if quantity in cells[low]]
                axes.plot(*np.transpose(points), color=chosen[name], marker=".", lw=1.3, label=name)
            axes.set_title(quantity)
            axes.set_xticks(range(len(bins)), words)
            axes.set_yscale("log", base=2)
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        panels[0].set_ylabel("stretch that 90 % intervals need")
        figure.supxlabel("ambiguity of the component")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=6)


PICTURES = {"calibration": draw_ranks, "calibration_coverage": draw_coverage, "calibration_ambiguity": draw_ambiguity}
