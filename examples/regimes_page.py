"""The section about regimes of returns: its tables, its words and its picture, made of the figures."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from examples.tables import drawing, listed, percent, spread, table

TITLE = "Returns: calm and turbulent months"
FIT, PEER, MIXTURE, GAUSSIAN = "fit", "hmmlearn", "mixture", "one Gaussian"
STREAM, REFIT = "stream", "hmmlearn, fitted again"
EVENTS = {
    "1962 slide": ("1962-04", "1962-06"), "oil crisis": ("1973-11", "1974-12"), "1987 crash": ("1987-10", "1987-12"),
    "1998 Russia": ("1998-08", "1998-10"), "end of the dot-coms": ("2000-09", "2002-10"),
    "financial crisis": ("2008-09", "2009-03"),
}  # fmt: skip
CALM = {"mid-fifties": ("1953-10", "1955-08"), "mid-sixties": ("1963-01", "1965-12"), "mid-nineties": ("1992-01", "1996-12")}


def section(figures: dict[str, Any]) -> list[str]:
    """The lines of the section."""
    dates, runs = figures["dates"], figures["runs"]
    first = next(iter(runs))
    wait, stays, way = figures["shown"]
    return [
        f"The S&P 500 from {dates[0][:7]} to {dates[-1][:7]}: {len(dates)} monthly returns, as 100 times the logarithm. "
        "Each regime is a state with its own mean and variance, and the chain says how long regimes last.",
        "",
        "```python",
        f'model = hw.GaussianHMM({first}, algorithm="online-em", warm_up={wait}, transmat_prior=1 + {stays} * np.eye({first}))',
        "for month in months:",
        "    model.filter(month)  # the regime it is in, given the months so far",
        "    model.update(month[None])  # its score before it was learned",
        "```",
        "",
        "![The index and the probability of the turbulent regime](regimes.png)",
        "",
        f"Top: the index, grey where the turbulent one of {first} regimes is the more probable given all months. Middle: its "
        "probability given all months (fit), and given the months so far (stream, which learns as it goes). Bottom: what "
        "the stream had gained over one Gaussian by then.",
        "",
        "### The regimes",
        "",
        *table(
            ("regimes", "regime", "mean, % a month", "deviation", "share of months", "months it lasts"),
            [
                [k, str(at), f"{one['mean']:.2f}", f"{one['deviation']:.2f}", percent(one["often"]), f"{one['months']:.1f}"]
                for k, run in runs.items()
                for at, one in enumerate(run["regimes"], 1)
            ],
        ),
        "",
        *dates_words(figures),
        "",
        "### All months at hand",
        "",
        f"Nats a month: median and range over {figures['seeds']} seeds of each fit (1000 passes at most). hmmlearn has its "
        "default prior of the variances, which is small in these units. The mixture has as many components and no memory. "
        "BIC is that of the best fit, lower is better.",
        "",
        *table(
            ("regimes", "fit", "hmmlearn", "mixture", "BIC"),
            [
                ["1", f"{figures['alone']['score']:.4f}", "", "", f"{figures['alone']['bic']:.0f}"],
                *[[k, *[spread(run["at_once"][name], 4) for name in (FIT, PEER, MIXTURE)], f"{run['bic']:.0f}"]
                  for k, run in runs.items()],
            ],
        ),
        "",
        *fit_words(figures),
        "",
        "### Month by month",
        "",
        f"Score of each month before it was learned, from month {figures['wait'] + 1} on. The stream begins after 120 or "
        "240 months, learns step by step or a year at a time, and has a prior of so many months in which each regime was "
        f"seen to stay. hmmlearn cannot go on with a series, so it is fitted again every {figures['every']} months on all "
        f"months so far (the better of two starts, 100 passes). The picture shows {way}, after {wait} months, with a prior "
        f"of {stays}: it was chosen with the series in view, so the range of all is what to go by.",
        "",
        *table(
            ("learner", "regimes", "waits for", "stays", "nats a month", "gained over one Gaussian, nats in all"),
            stream_lines(figures),
        ),
        "",
        *stream_words(figures),
    ]  # fmt: skip


def inside(dates: list[str], span: tuple[str, str]) -> np.ndarray:
    """Which months are in a span."""
    months = np.array([one[:7] for one in dates])
    return (months >= span[0]) & (months <= span[1])


def dates_words(figures: dict[str, Any]) -> list[str]:
    """Whether the dates make sense."""
    dates, (k, run) = figures["dates"], next(iter(figures["runs"].items()))
    turbulent = np.array(run["turbulent"])
    lines = []
    for what, spans in (
        ("Mean probability of the turbulent regime in bad times", EVENTS),
        ("In calm times", CALM),
    ):
        told = [
            f"{name} ({span[0]} to {span[1]}) {turbulent[within].mean():.2f}"
            for name, span in spans.items()
            if (within := inside(dates, span)).any()
        ]
        if told:
            lines.append(f"- {what}: {listed(told)}.")
    if run["spells"]:
        told = [f"{begin[:7]} to {end[:7]}" for begin, end in run["spells"]]
        lines.append(f"- Turbulent for three months and more, with {k} regimes: {listed(told)}.")
    return lines


def fit_words(figures: dict[str, Any]) -> list[str]:
    """Beside hmmlearn and the mixture."""
    lines = []
    for k, run in figures["runs"].items():
        best = {name: max(found) for name, found in run["at_once"].items()}
        close = {name: sum(one > best[name] - 1e-3 for one in run["at_once"][name]) for name in (FIT, PEER)}
        lines.append(
            f"- {k} regimes: the best fit is {best[FIT] - best[PEER]:+.4f} nats a month against hmmlearn's best; "
            f"{close[FIT]} of {figures['seeds']} seeds end there (within 0.001), and {close[PEER]} of hmmlearn's at its "
            f"own. The order of the months is worth {len(figures['dates']) * (best[FIT] - best[MIXTURE]):.0f} nats in all."
        )
    return lines


def stream_lines(figures: dict[str, Any]) -> list[list[str]]:
    """The table of prequential scores."""
    months, alone = len(figures["stream"][GAUSSIAN]), float(np.mean(figures["stream"][GAUSSIAN]))
    lines = [["one Gaussian, months so far", "1", "", "", f"{alone:.4f}", ""]]
    for k, run in figures["runs"].items():
        found = [(name, str(wait), stays, score) for wait, stays, name, score in run["ways"]]
        found += [("hmmlearn, fitted again", "", stays, score) for stays, score in run["again"]]
        for name, wait, stays, score in found:
            prior = "flat" if name.startswith("hmmlearn") else "a tenth of a count"
            lines.append([name, k, wait, str(stays) if stays else prior, f"{score:.4f}", f"{months * (score - alone):+.1f}"])
    return lines


def stream_words(figures: dict[str, Any]) -> list[str]:
    """How much the settings matter."""
    months, alone, lines = len(figures["stream"][GAUSSIAN]), float(np.mean(figures["stream"][GAUSSIAN])), []
    for k, run in figures["runs"].items():
        gains = [months * (one[-1] - alone) for one in run["ways"]]
        again = [months * (one[-1] - alone) for one in run["again"]]
        lines.append(
            f"- {k} regimes: of {len(gains)} settings of the stream {sum(gain > 0 for gain in gains)} do better than one "
            f"Gaussian, by {min(gains):+.1f} to {max(gains):+.1f} nats over {months} months (median "
            f"{np.median(gains):+.1f}); hmmlearn, fitted again, {' and '.join(f'{gain:+.1f}' for gain in again)}."
        )
    return lines


def draw(path: Path, figures: dict[str, Any]) -> None:
    """The index, the regime, and what was gained."""
    days = [date.fromisoformat(one) for one in figures["dates"]]
    run = next(iter(figures["runs"].values()))
    turbulent, late = np.array(run["turbulent"]), days[figures["wait"] :]
    with drawing(path, 9.5, 6.6) as figure:
        top, middle, bottom = figure.subplots(3, 1, sharex=True, height_ratios=(2.2, 1.6, 1.1))
        top.semilogy(days, figures["index"], color="#1f3b57", linewidth=1.1)
        top.fill_between(days, 0, 1, where=turbulent > 0.5, transform=top.get_xaxis_transform(), color="0.85", step="mid", lw=0)
        top.set_title("S&P 500, turbulent months grey")
        ticks = [
            one for one in (20, 50, 100, 200, 500, 1000) if min(figures["index"]) * 0.9 < one < max(figures["index"]) * 1.1
        ]
        top.set_yticks(ticks, [str(one) for one in ticks])
        top.minorticks_off()
        middle.fill_between(days, turbulent, color="#d1495b", alpha=0.35, lw=0, label="fit: given all months")
        middle.plot(late, run["filtered"], color="#1f3b57", linewidth=0.9, label="stream: given the months so far")
        middle.set_ylim(0.0, 1.0)
        middle.set_title("Probability of the turbulent regime")
        middle.legend(loc="lower left", bbox_to_anchor=(0.42, 0.98), ncols=2, borderaxespad=0.0)
        alone = np.array(figures["stream"][GAUSSIAN])
        for name, color, label in ((STREAM, "#1f3b57", "stream"), (REFIT, "#e08e1b", "hmmlearn, fitted again")):
            bottom.plot(late, np.cumsum(np.array(run["stream"][name]) - alone), color=color, linewidth=1.1, label=label)
        bottom.axhline(0.0, color="0.6", linewidth=0.8)
        bottom.set_title("Gained over one Gaussian, nats")
        bottom.legend(loc="upper left")
        bottom.set_xlim(days[0], days[-1])
