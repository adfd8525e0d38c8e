"""Values and picture of the page about web sessions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pages.drawing import drawing
from pages.results import Results, by_seed
from pages.words import fine_percent, listed, median

MARKOV, EM, COUNTS, BOTH = "stream", "em", "counts", "chains of counts"
FEW_STEPS = 0.005  # of a cluster's steps; pages with a smaller share are not drawn
NAMED, MOST_NAMES = 0.6, 3  # a cluster is named after the categories of this share of its views, up to a number


def memory(found: Sequence[float | None]) -> str:
    """The largest peak in MB, where it could be measured."""
    known = [one for one in found if one is not None]
    return "-" if not known else f"{max(known):.0f}" if max(known) >= 1.0 else "below 1"


def chains(results: Results) -> dict[str, Any]:
    found, sets = by_seed(results.of("chains", "components/"), "components"), results.figures["chains"]
    return {
        **sets["sessions"], "clusters": sets["clusters"]["clusters"], "runs": found, "gains": gains(found),
        "order": order(found),
    }  # fmt: skip


def gains(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the share of EM's gain that one pass reaches, and the costs."""
    best = {k: median(one[MARKOV]["score"]) for k, one in found.items()}
    alone, most = best["1"], [*found][-1]
    shares, times = [], []
    for k, one in found.items():
        if EM in one:
            theirs = median(one[EM]["score"])
            if theirs > alone:
                shares.append(f"{fine_percent((best[k] - alone) / (theirs - alone))} with {k}")
            times.append(median(one[EM]["seconds"]) / median(one[MARKOV]["seconds"]))
    top = max(best, key=lambda k: best[k])
    grown = [memory(found[most][name]["megabytes"]) for name in (MARKOV, EM)]
    return {
        "shares": listed(shares), "times": (min(times), max(times)), "most": most,
        "choices": (np.exp(-alone), np.exp(-best[most])), "memory": None if "-" in grown else grown,
        "rising": "is still rising there" if top == most else f"is best with {top}",
    }  # fmt: skip


def order(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the loss without the order."""
    score = {
        k: {name: median(one[name]["score"]) for name in (MARKOV, COUNTS, BOTH) if name in one} for k, one in found.items()
    }
    both = [k for k, one in score.items() if BOTH in one]
    lost = {k: score[k][MARKOV] - score[k][COUNTS] for k in both}
    kept = [score[k][MARKOV] - score[k][BOTH] for k in both]
    least, most, last = min(both, key=lambda k: lost[k]), max(both, key=lambda k: lost[k]), [*found][-1]
    sizes = [abs(one) for one in kept]
    return {
        "least": f"{lost[least]:.2f} nats (with {least} components)", "most": f"{lost[most]:.2f} (with {most})",
        "last": last, "gained": score[last][MARKOV] - score["1"][MARKOV], "sizes": (min(sizes), max(sizes)),
        "words": "lose" if min(kept) > 0.0 else "differ by" if max(kept) > 0.0 else "gain",
    }  # fmt: skip


def called(one: dict[str, Any], categories: Sequence[str]) -> str:
    """The categories that most of a cluster's views are in."""
    views = np.array(one["views"])
    order = np.argsort(-views, kind="stable")
    enough = 1 + int(np.searchsorted(np.cumsum(views[order]), NAMED * views.sum()))
    return ", ".join(categories[at] for at in order[: min(enough, MOST_NAMES)])


def described(one: dict[str, Any], categories: Sequence[str]) -> str:
    """A cluster in a few words: where it starts, whether it stays, where it goes."""
    start, steps = np.array(one["start"]), np.array(one["steps"])
    first = [
        f"{categories[at]} ({fine_percent(start[at])})" for at in np.argsort(-start, kind="stable")[:3] if start[at] >= 0.05
    ]
    text = f"**{called(one, categories)}** ({fine_percent(one['weight'])} of the sessions): starts at {listed(first)}"
    total = steps.sum()
    if total:
        moves = steps - np.diag(np.diag(steps))
        places = np.argsort(-moves, axis=None, kind="stable")[:3]
        pairs = [divmod(int(place), len(categories)) for place in places]
        named = [f"{categories[i]} → {categories[j]} ({fine_percent(moves[i, j] / total)})" for i, j in pairs if moves[i, j]]
        text += f"; {fine_percent(np.trace(steps) / total)} of its steps stay in their category"
        text += f"; the most common others are {listed(named)}" if named else ""
    if one["sessions"]:
        mean = sum(one["views"]) / one["sessions"]
        text += f"; {mean:.1f} views on average, {fine_percent(one['single'] / one['sessions'])} of its sessions are one view"
    return text + "."


def draw(path: Path, results: Results) -> None:
    """First page and steps of each cluster."""
    sets = results.figures["chains"]
    categories, clusters = sets["sessions"]["categories"], sets["clusters"]["clusters"]
    across = min(4, len(clusters))
    down, size = -(-len(clusters) // across), len(categories)
    with drawing(path, 1.3 + 2.85 * down, 1.6 + 2.55 * across, 110, **{"axes.titlesize": 9}) as figure:
        from matplotlib import colormaps

        colors = colormaps["YlGnBu"].with_extremes(bad="0.93")
        panels = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True)
        for place, axes in enumerate(panels.ravel()):
            if place >= len(clusters):
                axes.set_axis_off()
                continue
            one = clusters[place]
            leaving = np.array(one["steps"]).sum(axis=1)
            image = np.full((size + 2, size), np.nan)
            image[0], image[2:] = one["start"], one["transitions"]
            image[2:][leaving < max(1.0, FEW_STEPS * leaving.sum())] = np.nan
            shown = axes.imshow(image, cmap=colors, vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest")
            axes.axhspan(0.5, 1.5, color="white")
            axes.set_title(f"{place + 1}: {fine_percent(one['weight'])} of sessions\n{called(one, categories)}")
            axes.set_xticks(range(size), categories, rotation=90, fontsize=7)
            axes.set_yticks([0, *range(2, size + 2)], ["start", *categories], fontsize=7)
            axes.tick_params(length=0)
            for spine in axes.spines.values():
                spine.set_visible(False)
        figure.colorbar(shown, ax=panels, shrink=0.5, aspect=30, label="probability").outline.set_visible(False)
