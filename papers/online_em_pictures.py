"""The pictures of paper 002's experiments on independent rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pages.drawing import drawing, legend_of
from pages.results import Figures
from papers import online_em_blocks as blocks
from papers.online_em_averaging import AVERAGED as AVERAGED_ESTIMATES
from papers.online_em_averaging import TRUTHS
from papers.online_em_batch import AVERAGED, BATCH, HARMONIC, INCREMENTAL, RANDOM
from papers.online_em_normals import GROWING, KINDS, LAST, THETA

BLUE, ORANGE, GREEN, RED, PURPLE, GREY, BLACK = "#1b6ca8", "#e07b39", "#4a9d5f", "#c43c4d", "#9467a8", "0.6", "#222222"
SCAN_COLORS = {BATCH: BLACK, RANDOM: ORANGE, AVERAGED: BLUE, HARMONIC: RED, INCREMENTAL: GREEN}
LAW_COLORS = (BLUE, ORANGE, GREEN, PURPLE)
DECAY_COLORS = {0.6: BLUE, 0.7: "#3f9bb0", 0.8: GREEN, 0.9: ORANGE, 1.0: RED}


def band(axes: Any, x: Any, percentiles: Sequence[Sequence[float]], color: str, label: str = "") -> None:
    """Where nine copies in ten are, where half of them are, and the median."""
    low, first, median, third, high = percentiles
    axes.fill_between(x, low, high, color=color, alpha=0.15, lw=0)
    axes.fill_between(x, first, third, color=color, alpha=0.3, lw=0)
    axes.plot(x, median, color=color, lw=1.8, label=label)


def efficient(axes: Any, x: Any, truth: float, bound: Any) -> None:
    """Where half of efficient estimates would be, and nine in ten."""
    for times in (0.6745, 1.645):
        axes.plot(x, truth + times * np.asarray(bound), color=BLACK, lw=0.9, ls=":")
        axes.plot(x, truth - times * np.asarray(bound), color=BLACK, lw=0.9, ls=":")


def draw_records(path: Path, passes: Sequence[Figures], sizes: Sequence[Figures]) -> None:
    """Estimates by pass for two lengths, and by length after 50 passes."""
    with drawing(path, 3.8) as figure:
        left, middle, right = figure.subplots(1, 3)
        for axes, one in zip((left, middle), passes, strict=True):
            x = np.arange(one["passes"] + 1)
            band(axes, x, one["percentiles"], BLACK, "batch EM")
            efficient(axes, x, one["truth"], np.full(len(x), one["bound"]))
            axes.set(xlabel="passes of batch EM", ylim=(one["truth"] - 1.3, one["truth"] + 0.7))
            axes.set_title(f"{one['rows']:,} rows")
        rows = [one["rows"] for one in sizes]
        for name, color, label in (("batch", BLACK, "batch EM"), ("online", BLUE, "online EM, one pass, averaged")):
            values = [(np.array(one[name]["percentiles"]) - passes[0]["truth"]) / one["bound"] for one in sizes]
            band(right, rows, np.transpose(values).tolist(), color, label)
        efficient(right, rows, 0.0, np.ones(len(rows)))
        right.set(xscale="log", xlabel="rows", ylabel="error, in efficient standard errors", ylim=(-8.0, 4.0))
        right.set_title(f"after {sizes[0]['passes']} passes, or one")
        left.set_ylabel("estimate of the first mean")
        legend_of(figure, [left, right], 2)


def draw_averaging(path: Path, one: Figures) -> None:
    """Trajectories and their bands, the last iterate beside two averages."""
    with drawing(path, 3.8) as figure:
        panels = figure.subplots(1, 3, sharey=True)
        for axes, kind, color in zip(panels, (LAST, THETA, GROWING), (ORANGE, GREEN, BLUE), strict=True):
            name = KINDS[kind]
            rows = np.array(one["rows"])
            band(axes, rows, one["bands"][name], color)
            for line in one["lines"][name][:3]:
                axes.plot(rows, line, color=BLACK, lw=0.6, alpha=0.7)
            efficient(axes, rows, one["truth"], one["bound"] / np.sqrt(rows))
            axes.set(xscale="log", xlabel="rows", xlim=(100, rows[-1]), ylim=(one["truth"] - 0.25, one["truth"] + 0.35))
            axes.set_title(name if kind != GROWING else "averaged statistics, the library's")
        panels[1].axvline(one["begin"], color=GREY, lw=0.8, ls="--")
        panels[1].text(one["begin"], one["truth"] + 0.33, " averaging begins", fontsize=8, color="0.4", va="top")
        panels[0].set_ylabel(f"estimate of the {one['name']}")


def draw_efficiency(path: Path, cases: dict[str, list[Figures]]) -> None:
    """Losses by the number of rows; 1 is the bound."""
    colors = dict(zip(cases_names(cases), (BLACK, GREEN, PURPLE, BLUE, "#5aa9e6", ORANGE, "#b08d57", RED), strict=False))
    with drawing(path, 4.2) as figure:
        panels = figure.subplots(1, len(cases), sharey=True, squeeze=False)[0]
        for axes, sets in zip(panels, cases.values(), strict=True):
            rows = [one["rows"] for one in sets]
            axes.axhline(1.0, color=GREY, lw=5, alpha=0.4)
            for name, color in colors.items():
                dashes = "-" if name in AVERAGED_ESTIMATES or name == next(iter(colors)) else "--"
                axes.plot(rows, [one["lines"][name]["mean"] for one in sets], dashes, marker="o", ms=4, color=color, label=name)
            axes.set(xscale="log", yscale="log", xlabel="rows")
            axes.yaxis.set_major_formatter("{x:g}")
            missing = 100.0 * (1.0 - sets[0]["speeds"][0])
            axes.set_title(f"{missing:.0f} % of the information missing at worst")
        panels[0].set_ylabel("mean squared error over the Cramér-Rao bound")
        legend_of(figure, panels, 4)


def cases_names(cases: dict[str, list[Figures]]) -> list[str]:
    return [*next(iter(cases.values()))[0]["lines"]]


def draw_exponents(path: Path, sets: Sequence[Figures]) -> None:
    """Losses by exponent, the last iterate and averaged, from a poor start and from a good one."""
    cases = {one["case"]: one for one in sets}
    with drawing(path, 3.8) as figure:
        panels = figure.subplots(1, len(cases), sharey=True, squeeze=False)[0]
        for axes, (case, first) in zip(panels, cases.items(), strict=True):
            axes.axhline(first["batch"], color=BLACK, lw=1.2, ls=":", label="batch EM")
            for one in (one for one in sets if one["case"] == case):
                poor = "poor" in one["start"]
                for key, name, color in (("last", "the last iterate", ORANGE), ("averaged", "averaged", BLUE)):
                    look = {"color": color, "lw": 1.8, "ls": "--" if poor else "-", "mfc": "white" if poor else color}
                    axes.plot(one["decays"], one[key], marker="o", ms=5, label=f"{name}, {one['start']}", **look)
            axes.set(yscale="log", xlabel="exponent of the steps")
            axes.set_xticks(first["decays"])
            axes.yaxis.set_major_formatter("{x:g}")
            missing = 100.0 * (1.0 - first["speeds"][0])
            axes.set_title(f"lines {case}: {missing:.0f} % of the information missing")
        panels[0].set_ylabel("squared error over the bound")
        legend_of(figure, panels, 5)


def draw_blocks(path: Path, lines: dict[str, list[Figures]]) -> None:
    """The rare component's weight along streams, whether it is kept, and what blocks cost from a rough start."""
    with drawing(path, 3.8) as figure:
        left, middle, right = figure.subplots(1, 3)
        likeliest = lines.get(blocks.LIKELIEST, [])
        for one, color in zip(
            (one for one in likeliest if one["size"] in (1, 10, 100, 1000)), (RED, ORANGE, BLUE, GREEN), strict=False
        ):
            for number, weights in enumerate(one["paths"]):
                label = f"{one['size']:,} row{'s' if one['size'] > 1 else ''}" if number == 0 else None
                left.plot(one["marks"], weights, color=color, lw=1.2, alpha=0.8, label=label)
        left.axhline(blocks.WEIGHTS[2], color=GREY, lw=4, alpha=0.4)
        left.set(xscale="log", xlabel="rows", ylim=(-0.001, 0.034))
        left.xaxis.set_major_formatter("{x:,.0f}")
        left.set_title("weight of the rare component, averaged", fontsize=9)
        left.legend(title="blocks of", fontsize=8, loc="upper right", ncols=2)
        for name, color in ((blocks.LIKELIEST, RED), (blocks.PRIOR, BLUE)):
            sets = lines.get(name, [])
            middle.plot(
                [one["size"] for one in sets],
                [100.0 * one["kept"] for one in sets],
                "o-",
                color=color,
                label=name.partition(",")[0],
            )
        middle.set(xscale="log", xlabel="rows in a block", ylim=(-4.0, 104.0))
        middle.set_title("% of runs that keep it, from the truth", fontsize=9)
        middle.legend(fontsize=8, loc="lower right")
        sets = lines.get(blocks.ROUGH, [])
        right.plot([one["size"] for one in sets], [np.median(one["away"]) for one in sets], "o-", color=BLUE)
        right.set(xscale="log", xlabel="rows in a block", ylim=(0.0, None))
        right.set_title("distance to its mean, from a rough start", fontsize=9)
        for axes in (middle, right):
            axes.xaxis.set_major_formatter("{x:,.0f}")


def draw_gradient(path: Path, beside: Sequence[Figures], leaving: Sequence[Figures]) -> None:
    """How the two recursions come together, and how often Titterington's leaves the parameter space."""
    with drawing(path, 3.8) as figure:
        left, right = figure.subplots(1, 2)
        for one in beside:
            color = DECAY_COLORS[one["decay"]]
            name = "1/n" if one["decay"] == 1.0 else f"n^-{one['decay']:g}"
            left.plot(one["rows"], one["em"], color=color, lw=1.8, label=f"{name}: online EM from the truth")
            left.plot(one["rows"], one["apart"], color=color, lw=1.8, ls="--", label=f"{name}: Titterington's from online EM's")
        left.set(xscale="log", yscale="log", xlabel="rows")
        left.set_title("distances, in standard deviations of one row", fontsize=9)
        left.legend(fontsize=7.5)
        places = np.arange(len(leaving[0]["weights"])) if leaving else []
        for number, one in enumerate(leaving):
            color = DECAY_COLORS[one["decay"]]
            name = "1/n" if one["decay"] == 1.0 else f"n^-{one['decay']:g}"
            shift = places + 0.27 * (number - 1)
            right.bar(
                shift - 0.06, 100.0 * np.array(one["gradient"]), 0.12, color=color, label=f"{name}: Titterington's leaves"
            )
            right.bar(
                shift + 0.06, 100.0 * np.array(one["collapsed"]), 0.12, color=color, alpha=0.35,
                label=f"{name}: a variance of online EM collapses",
            )  # fmt: skip
        if leaving:
            right.set_xticks(places, [f"{weight:g}" for weight in leaving[0]["weights"]])
        right.set(xlabel="weight of the rarer of two normals", ylabel="% of runs")
        right.set_title("leaving the parameter space", fontsize=9)
        right.legend(fontsize=7.5)


def draw_scans(path: Path, one: Figures) -> None:
    """Distance to the maximum likelihood estimate by E-steps for each row."""
    with drawing(path, 3.8) as figure:
        axes = figure.subplots()
        stops = np.array(one["stops"])
        for name, values in one["lines"].items():
            look: dict[str, Any] = {"color": SCAN_COLORS[name], "lw": 1.8, "label": name}
            if name == BATCH:
                axes.plot(np.arange(1, len(values)), values[1:], marker=".", **look)
            else:
                axes.plot(stops, values, **look)
        axes.axhline(1.0, color=GREY, lw=0.8, ls=":")
        axes.set(xscale="log", yscale="log", xlabel="E-steps for each row (passes)", ylim=(1e-3, None))
        axes.set_ylabel("distance to the maximum likelihood estimate,\nin standard errors")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.legend()


def draw_limit(path: Path, sets: Sequence[Figures]) -> None:
    """Divergence above its end by step of the limiting recursion, and by rows of online EM."""
    with drawing(path, 3.8) as figure:
        left, right = figure.subplots(1, 2, sharey=True)
        for one, color in zip(sets, LAW_COLORS, strict=False):
            values = np.array(one["divergences"])
            above = np.maximum(values - one["least"], 1e-9)
            left.plot(np.arange(1, len(values) + 1), above, color=color, lw=1.8, label=one["name"])
            right.plot(one["rows"], np.maximum(np.array(one["online"]) - one["least"], 1e-9), color=color, lw=1.8)
        last = max(int(np.flatnonzero(np.array(one["divergences"]) - one["least"] > 1e-7).max(initial=1)) for one in sets)
        left.set(xscale="log", yscale="log", xlabel="steps of the limiting recursion", ylim=(1e-7, 1.0), xlim=(0.9, 1.3 * last))
        right.set(xscale="log", xlabel="rows, online EM, averaged")
        left.set_ylabel("KL(law ‖ model) above the least, nats")
        legend_of(figure, [left], 4)


PICTURES = {
    "online_em_records": lambda path, results: draw_records(
        path, results.of("records", "passes/"), results.of("records", "sizes/")
    ),
    "online_em_limit": lambda path, results: draw_limit(path, results.of("limit")),
    "online_em_averaging": lambda path, results: draw_averaging(path, results.one("averaging", "trajectories")),
    "online_em_efficiency": lambda path, results: draw_efficiency(
        path, {case: results.of("efficiency", f"{case}/") for case in TRUTHS}
    ),
    "online_em_exponents": lambda path, results: draw_exponents(path, results.of("exponents")),
    "online_em_blocks": lambda path, results: draw_blocks(
        path, {line: results.of("blocks", f"{line}/") for line in blocks.LINES}
    ),
    "online_em_gradient": lambda path, results: draw_gradient(
        path, results.of("gradient", "beside/"), results.of("gradient", "leaving/")
    ),
    "online_em_scans": lambda path, results: draw_scans(path, results.one("scans", "scans")),
}
