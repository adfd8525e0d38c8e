"""The pictures of paper 001's experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pages.drawing import drawing, legend_of
from pages.results import Results
from papers.latent_factors_audio import RANGE
from papers.latent_factors_audio import SHOWN as SPECTRA
from papers.latent_factors_corpus import (
    BATCH,
    BELIEFS,
    COLLAPSED,
    FIXED,
    GENSIM,
    LEARNED,
    METROPOLIS,
    ONLINE,
    TOMOTOPY,
    VARIATIONAL,
)
from papers.latent_factors_scale import decoded
from papers.latent_factors_swimmer import FOUND, SHOWN, SIDE
from papers.latent_factors_swimmer import METROPOLIS as LIMBS
from papers.latent_factors_values import by_corpus, limbs

BLUE, ORANGE, GREEN, RED, GREY = "#1b6ca8", "#e07b39", "#4a9d5f", "#c43c4d", "#222222"
COLORS = {
    LEARNED.name: BLUE, FIXED.name: "#5aa9e6", METROPOLIS.name: "#9467a8", VARIATIONAL.name: "#b08d57", COLLAPSED.name: GREEN,
    BELIEFS.name: "#2f8f8b",
    GENSIM.name: RED, ONLINE.name: ORANGE, BATCH.name: "#f0b184", TOMOTOPY.name: GREY,
}  # fmt: skip


def tile(axes: Any, picture: str, words: str = "", color: str = "0.3") -> None:
    values = decoded(picture) - decoded(picture).min()
    values /= max(float(values.max()), 0.1)  # what is nearly even is to look so
    axes.imshow(values.reshape(SIDE, SIDE), cmap="gray_r", vmin=0.0, vmax=1.0, interpolation="nearest")
    axes.set(xticks=[], yticks=[])
    axes.set_title(words, fontsize=8, fontweight="normal", loc="center", color=color, pad=2.0)
    for side in axes.spines.values():
        side.set(visible=True, color="0.8")


def draw_samples(path: Path, results: Results) -> None:
    """Figure 2."""
    one = results.figures["swimmer"]["samples"]
    with drawing(path, 1.4) as figure:
        for axes, picture in zip(figure.subplots(1, len(one["pictures"])), one["pictures"], strict=True):
            tile(axes, picture)


def draw_components(path: Path, results: Results) -> None:
    """Figure 3: the components of the first seed, by learner; above each its correlation with a limb."""
    sets = [one for line, k in SHOWN if (one := limbs(results, line, k))]
    rows, gap = 4, 9
    step = SIDE + gap
    wide = [-(-len(one["pictures"]) // rows) for one in sets]
    with drawing(path, 4.2) as figure:
        panels = figure.subplots(1, len(sets), width_ratios=wide, squeeze=False)[0]
        for axes, one, columns in zip(panels, sets, wide, strict=True):
            sheet = np.zeros((rows * step + 2, columns * step))
            for index, picture in enumerate(one["pictures"]):
                top, left = gap + index // columns * step, gap // 2 + index % columns * step
                sheet[top : top + SIDE, left : left + SIDE] = decoded(picture).reshape(SIDE, SIDE)
                value = one["correlations"][index] if index < len(one["correlations"]) else None
                color = "0.5" if value is None else GREEN if value > FOUND else RED
                words = "no limb" if value is None else f"{value:.2f}"
                axes.text(left + SIDE / 2, top - 2, words, ha="center", va="bottom", fontsize=7.5, color=color)
                axes.plot(
                    left - 0.5 + SIDE * np.array([0, 1, 1, 0, 0]), top - 0.5 + SIDE * np.array([0, 0, 1, 1, 0]), "0.8", lw=0.6
                )
            axes.imshow(sheet, cmap="gray_r", vmin=0.0, vmax=1.0, interpolation="nearest")
            axes.set_title(f"{one['line']}, K = {one['components']}")
            axes.set_axis_off()


def draw_growth(path: Path, results: Results) -> None:
    """Figure 4."""
    one = results.figures["swimmer"][f"{LIMBS.name}/16"]["growth"]
    with drawing(path, 1.9) as figure:
        for axes, picture, stage, value in zip(
            figure.subplots(1, len(one["times"])), one["pictures"], one["times"], one["correlations"], strict=True
        ):
            tile(axes, picture, f"{stage:,} image{'s' if stage > 1 else ''}\n{value:.2f}")


def draw_variance(path: Path, results: Results) -> None:
    """Variances by the number of draws, measured and by formula 4."""
    sets = results.of("variance")
    with drawing(path, 3.3) as figure:
        for axes, (said, after, measured, title) in zip(
            figure.subplots(1, 2),
            (
                ("formula", "finite", "measured", "the weight alone"),
                ("mixture_formula", "mixture_finite", "mixture_measured", "a mixture, by the library"),
            ),
            strict=True,
        ):
            places = np.arange(len(sets))
            axes.plot(places, [one[said] for one in sets], color="0.6", lw=6, alpha=0.5, label="formula 4")
            axes.plot(places, [one[after] for one in sets], color=ORANGE, lw=1.8, label="after these steps")
            axes.plot(places, [one[measured] for one in sets], "o", color=BLUE, label="measured")
            axes.set_xticks(places, [str(one["draws"] or "exact") for one in sets])
            axes.set(xlabel="m, draws of an E-step", ylim=(0.0, None))
            axes.set_title(title)
            axes.legend()
        figure.axes[0].set_ylabel("variance / gamma_n")


def draw_topics(path: Path, results: Results) -> None:
    """Perplexity against seconds, a panel for each corpus."""
    corpora = by_corpus(results)
    with drawing(path, 4.6) as figure:
        panels = figure.subplots(1, len(corpora), squeeze=False)[0]
        for axes, (title, lines) in zip(panels, corpora.items(), strict=True):
            for name, line in lines.items():
                axes.plot(line["seconds"], line["perplexities"], "o-", color=COLORS[name], lw=1.8, ms=4, label=name)
            axes.set(xscale="log", yscale="log", xlabel="seconds of CPU, training only")
            best = min(min(line["perplexities"]) for line in lines.values())
            axes.set_ylim(0.96 * best, 2.6 * best)
            axes.yaxis.set_major_formatter("{x:,.0f}")
            axes.yaxis.set_minor_formatter("{x:,.0f}")
            axes.xaxis.set_major_formatter("{x:g}")
            axes.set_title(title)
        panels[0].set_ylabel("perplexity of held-out words")
        legend_of(figure, panels, 5)


def draw_cost(path: Path, results: Results) -> None:
    """Nanoseconds a draw against the number of topics."""
    sets = results.of("cost")
    with drawing(path, 3.6) as figure:
        axes = figure.subplots()
        topics = [one["topics"] for one in sets]
        for key, name, color in (
            ("dense", "every topic looked at", RED),
            ("step", "the library's E-step, with reading the topics", "#5aa9e6"),
            ("kernel", "the library's kernel", BLUE),
        ):
            axes.plot(topics, [one[key] for one in sets], "o-", color=color, lw=1.8, label=name)
        axes.set(xscale="log", yscale="log", xlabel="topics", ylabel="nanoseconds a draw of a token")
        axes.set_xticks(topics, [f"{number:,}" for number in topics])
        axes.minorticks_off()
        axes.yaxis.set_major_formatter("{x:,.0f}")
        axes.legend()


def draw_audio(path: Path, results: Results) -> None:
    """Spectra on the left, the power of each component over time on the right, the deepest below."""
    one = results.figures["audio"][SPECTRA]
    number = len(one["spectra"])
    with drawing(path, 1.0 + 0.75 * number) as figure:
        panels = figure.subplots(number, 2, sharex="col", gridspec_kw={"width_ratios": (1.0, 2.0)})
        for (left, right), spectrum, power, share in zip(
            panels[::-1], one["spectra"], one["over_time"], one["shares"], strict=True
        ):
            values = RANGE * (decoded(spectrum) - 1.0)
            left.fill_between(np.linspace(0.0, one["hertz"] / 1000.0, len(values)), -RANGE, values, color=BLUE, lw=0)
            loud = RANGE * (decoded(power) - 1.0)
            right.fill_between(np.linspace(0.0, one["seconds_long"], len(loud)), -RANGE, loud, color=ORANGE, lw=0)
            right.text(1.01, 0.5, f"{100.0 * share:.1f} %", transform=right.transAxes, va="center", fontsize=8)
            for axes in (left, right):
                axes.set(ylim=(-RANGE, 2.0), yticks=[-RANGE, 0.0])
                axes.margins(x=0.0)
        panels[0][0].set_title("spectra, dB below the loudest bin")
        panels[0][1].set_title("power over time, dB below its loudest frame; share of all power")
        panels[-1][0].set_xlabel("kilohertz")
        panels[-1][1].set_xlabel("seconds")


PICTURES = {
    f"latent_factors_{draw.__name__.removeprefix('draw_')}": draw
    for draw in (draw_samples, draw_components, draw_growth, draw_variance, draw_topics, draw_cost, draw_audio)
}
