"""Values and picture of the page about regimes of returns."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from pages.drawing import drawing
from pages.results import Figures, Results
from pages.words import listed

FIT, PEER, MIXTURE = "fit", "hmmlearn", "mixture"
STREAM, REFIT = "stream", "hmmlearn, fitted again"
EVENTS = {
    "1962 slide": ("1962-04", "1962-06"), "oil crisis": ("1973-11", "1974-12"), "1987 crash": ("1987-10", "1987-12"),
    "1998 Russia": ("1998-08", "1998-10"), "end of the dot-coms": ("2000-09", "2002-10"),
    "financial crisis": ("2008-09", "2009-03"),
}  # fmt: skip
CALM = {"mid-fifties": ("1953-10", "1955-08"), "mid-sixties": ("1963-01", "1965-12"), "mid-nineties": ("1992-01", "1996-12")}


def runs(results: Results) -> dict[str, Figures]:
    return {str(one["k"]): one for one in results.of("regimes", "regimes/")}


def inside(dates: list[str], span: tuple[str, str]) -> np.ndarray:
    """Which months are in a span."""
    months = np.array([one[:7] for one in dates])
    return (months >= span[0]) & (months <= span[1])


def in_times(turbulent: np.ndarray, dates: list[str], spans: dict[str, tuple[str, str]]) -> str:
    """Mean probability of the turbulent regime in some spans."""
    found = [
        f"{name} ({span[0]} to {span[1]}) {turbulent[within].mean():.2f}"
        for name, span in spans.items()
        if (within := inside(dates, span)).any()
    ]
    return listed(found)


def regimes(results: Results) -> dict[str, Any]:
    found, series = runs(results), results.figures["regimes"]["series"]
    dates, (first, run) = series["dates"], next(iter(found.items()))
    turbulent, alone = np.array(run["turbulent"]), float(np.mean(series["gaussian"]))
    scored = len(series["gaussian"])
    lines, gains = [], []
    for k, one in found.items():
        ways = [
            (name, str(wait), str(stays) if stays else "a tenth of a count", score) for wait, stays, name, score in one["ways"]
        ]
        again = [(REFIT, "", str(stays) if stays else "flat", score) for stays, score in one["again"]]
        for name, wait, stays, score in ways + again:
            lines.append({"k": k, "name": name, "wait": wait, "stays": stays, "score": score, "gain": scored * (score - alone)})
        over = [[scored * (line[-1] - alone) for line in some] for some in (ways, again)]
        gains.append({"k": k, "ways": over[0], "again": over[1], "months": scored, "better": sum(gain > 0 for gain in over[0])})
    return {
        **series, "first": first, "runs": found, "months": len(dates), "first_month": dates[0][:7], "last_month": dates[-1][:7],
        "bad": in_times(turbulent, dates, EVENTS), "calm": in_times(turbulent, dates, CALM),
        "spells": listed([f"{begin[:7]} to {end[:7]}" for begin, end in run["spells"]]),
        "fits": [beside(k, one, len(dates)) for k, one in found.items()], "gaussian": alone, "stream": lines, "gains": gains,
        "waits": [*dict.fromkeys(str(one[0]) for one in run["ways"])],
    }  # fmt: skip


def beside(k: str, run: Figures, months: int) -> dict[str, Any]:
    """Beside hmmlearn and the mixture."""
    best = {name: max(found) for name, found in run["at_once"].items()}
    close = [sum(one > best[name] - 1e-3 for one in run["at_once"][name]) for name in (FIT, PEER)]
    return {"k": k, "ahead": best[FIT] - best[PEER], "close": close, "order": months * (best[FIT] - best[MIXTURE])}


def draw(path: Path, results: Results) -> None:
    """The index, the regime, and what was gained."""
    series, run = results.figures["regimes"]["series"], next(iter(runs(results).values()))
    days = [date.fromisoformat(one) for one in series["dates"]]
    turbulent, late = np.array(run["turbulent"]), days[series["wait"] :]
    with drawing(path, 6.6, 9.5, 110) as figure:
        top, middle, bottom = figure.subplots(3, 1, sharex=True, height_ratios=(2.2, 1.6, 1.1))
        top.semilogy(days, series["index"], color="#1f3b57", linewidth=1.1)
        top.fill_between(days, 0, 1, where=turbulent > 0.5, transform=top.get_xaxis_transform(), color="0.85", step="mid", lw=0)
        top.set_title("S&P 500, turbulent months grey")
        ticks = [one for one in (20, 50, 100, 200, 500, 1000) if min(series["index"]) * 0.9 < one < max(series["index"]) * 1.1]
        top.set_yticks(ticks, [str(one) for one in ticks])
        top.minorticks_off()
        middle.fill_between(days, turbulent, color="#d1495b", alpha=0.35, lw=0, label="fit: given all months")
        middle.plot(late, run["filtered"], color="#1f3b57", linewidth=0.9, label="stream: given the months so far")
        middle.set_ylim(0.0, 1.0)
        middle.set_title("Probability of the turbulent regime")
        middle.legend(loc="lower left", bbox_to_anchor=(0.42, 0.98), ncols=2, borderaxespad=0.0)
        alone = np.array(series["gaussian"])
        for name, color, label in ((STREAM, "#1f3b57", "stream"), (REFIT, "#e08e1b", "hmmlearn, fitted again")):
            bottom.plot(late, np.cumsum(np.array(run["stream"][name]) - alone), color=color, linewidth=1.1, label=label)
        bottom.axhline(0.0, color="0.6", linewidth=0.8)
        bottom.set_title("Gained over one Gaussian, nats")
        bottom.legend(loc="upper left")
        bottom.set_xlim(days[0], days[-1])
