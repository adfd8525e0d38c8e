"""The section about web sessions: its tables, its words and its picture, made of the figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from examples.tables import drawing, listed, middle, percent, spread, table

TITLE = "Web sessions: a mixture of Markov chains"
MARKOV, EM, COUNTS, BOTH = "stream", "em", "counts", "chains of counts"
FEW_STEPS = 0.005  # of a cluster's steps: from pages that have fewer, nothing is drawn
NAMED, MOST_NAMES = 0.6, 3  # a cluster is called after the categories of so many of its views, but of no more


def values(figures: dict[str, Any], k: str, name: str, key: str) -> list[float]:
    """What the runs of one learner gave, seed by seed."""
    return [one[key] for one in figures["runs"][k][name]]


def memory(found: Sequence[float | None]) -> str:
    """The largest peak in MB, where it could be measured."""
    known = [one for one in found if one is not None]
    return "-" if not known else f"{max(known):.0f}" if max(known) >= 1.0 else "below 1"


def section(figures: dict[str, Any]) -> list[str]:
    """The lines of the section."""
    categories, clusters = figures["categories"], figures["clusters"]
    return [
        f"MSNBC's sessions of one day: {figures['sessions'] + figures['held_out']:,} visitors, each a sequence of page views "
        f"in {len(categories)} categories. Half of them are no longer than {figures['median_length']:g} views, "
        f"{percent(figures['single'])} are one view, and the longest has {figures['longest']:,}. A session is learned through "
        "its first page and its steps from page to page.",
        "",
        "```python",
        f"model = hw.MarkovMixture({len(clusters)}, n_symbols={len(categories)})",
        f"for values, lengths in chunks:  # {figures['chunk']:,} sessions at a time, in the order of the file",
        "    model.partial_fit(values, lengths=lengths)",
        "model.predict(values, lengths)  # the cluster of each session",
        "```",
        "",
        f"![Start and steps of the {len(clusters)} clusters](msnbc.png)",
        "",
        f"The {len(clusters)} clusters of one pass (seed 0) by weight. Top line: the first page. Below: the next page "
        f"(columns) after each page (lines). Grey: fewer than {percent(FEW_STEPS)} of the cluster's steps start there.",
        "",
        "### One pass beside many",
        "",
        f"{figures['sessions']:,} sessions ({figures['views']:,} views) to learn from; every {figures['every']}th is held out "
        f"({figures['held_out']:,} sessions, {figures['held_out_views']:,} views). Scores are log-probabilities per held-out "
        f"page view, in nats: median and range over the seeds ({figures['seeds']}); one component is one chain for all. EM is "
        "the same model with all sessions at hand (`algorithm=\"em\"`, from a k-means seed, until a pass gains less than 0.001 "
        f"nats per session, 100 passes at most). Memory is the peak over what was held before; the sessions themselves are "
        f"{figures['bytes'] / 1e6:.0f} MB in memory.",
        "",
        *passes_table(figures),
        "",
        *passes_words(figures),
        "",
        "### What the order of the pages tells",
        "",
        "`MultinomialMixture` on the counts of a session forgets the order. Its score is of the same views in the same order "
        "(each drawn from the cluster's categories, whatever came before), so it can be put beside the chains'. Chains in its "
        "clusters: each session goes to its most probable cluster by counts, and `MarkovMixture` learns the chains of these "
        "(`labels=`), in a second pass. Agreement is the adjusted Rand index of the held-out sessions' clusters with those of "
        "the Markov mixture; that with EM's is beside it.",
        "",
        *order_table(figures),
        "",
        *order_words(figures),
        "",
        "No peer was run: hmmlearn has hidden Markov models only, and pomegranate's `GeneralMixtureModel` takes rows of two "
        "dimensions where its `MarkovChain` wants sequences of one length in three, so neither has a mixture of Markov chains "
        "for sessions like these.",
        "",
        f"### The {len(clusters)} clusters",
        "",
        "Weights and first pages are the model's; steps and lengths are those of the held-out sessions that are most probably "
        f"the cluster's. A cluster is called after the categories that make up {percent(NAMED)} of its views, "
        f"{MOST_NAMES} at most.",
        "",
        *[f"{place}. {described(one, categories)}" for place, one in enumerate(clusters, 1)],
    ]  # fmt: skip


# Tables


def passes_table(figures: dict[str, Any]) -> list[str]:
    """One pass beside EM."""
    lines = []
    for k, runs in figures["runs"].items():
        seconds = middle(values(figures, k, MARKOV, "seconds"))
        line = [
            k,
            spread(values(figures, k, MARKOV, "score"), 4),
            f"{seconds:.1f}",
            f"{figures['sessions'] / seconds:,.0f}",
            memory(values(figures, k, MARKOV, "megabytes")),
        ]
        if EM in runs:
            line += [
                spread(values(figures, k, EM, "score"), 4),
                f"{middle(values(figures, k, EM, 'seconds')):.1f}",
                spread(values(figures, k, EM, "passes"), 0),
                memory(values(figures, k, EM, "megabytes")),
            ]
        lines.append([*line, *[""] * (9 - len(line))])
    heads = ("components", "one pass: score", "seconds", "sessions per second", "MB", "EM: score", "seconds", "passes", "MB")
    return table(heads, lines)


def order_table(figures: dict[str, Any]) -> list[str]:
    """Chains beside counts."""
    lines = []
    for k, runs in figures["runs"].items():
        line = [k, f"{middle(values(figures, k, MARKOV, 'score')):.4f}", spread(values(figures, k, COUNTS, "score"), 4)]
        if BOTH in runs:
            line.append(spread(values(figures, k, BOTH, "score"), 4))
            line += [spread(values(figures, k, BOTH, key), 2) for key in ("agreement", "em agreement")]
        lines.append([*line, *[""] * (6 - len(line))])
    heads = ("components", "Markov mixture", "multinomial mixture", "chains in its clusters", "agreement", "agreement with EM")
    return table(heads, lines)


# Words


def passes_words(figures: dict[str, Any]) -> list[str]:
    """How much of EM's gain one pass has, and at what cost."""
    one = middle(values(figures, "1", MARKOV, "score"))
    shares, times, lines = [], [], []
    for k, runs in figures["runs"].items():
        if EM in runs:
            mine, theirs = (middle(values(figures, k, name, "score")) for name in (MARKOV, EM))
            if theirs > one:
                shares.append(f"{percent((mine - one) / (theirs - one))} with {k}")
            times.append(middle(values(figures, k, EM, "seconds")) / middle(values(figures, k, MARKOV, "seconds")))
    if shares:
        lines.append(
            f"- Of what EM gains over one chain, one pass has {listed(shares)} components; EM takes {min(times):.1f} to "
            f"{max(times):.1f} times as long."
        )
    most = [*figures["runs"]][-1]
    best = {k: middle(values(figures, k, MARKOV, "score")) for k in figures["runs"]}
    top = max(best, key=lambda k: best[k])
    rising = "is still rising there" if top == most else f"is best with {top}"
    lines.append(
        f"- The next page is as uncertain as a fair choice among {np.exp(-one):.2f} with one chain and among "
        f"{np.exp(-best[most]):.2f} with {most} components; the held-out score {rising}."
    )
    grown = [values(figures, most, name, "megabytes") for name in (MARKOV, EM)]
    if all(one is not None for found in grown for one in found):
        lines.append(
            f"- With {most} components the stream needs {memory(grown[0])} MB at its peak, the chunk included, and "
            f"EM {memory(grown[1])} MB: it keeps the counts of all sessions."
        )
    return lines


def order_words(figures: dict[str, Any]) -> list[str]:
    """What is lost without the order."""
    lost, kept = {}, {}
    for k, runs in figures["runs"].items():
        if BOTH in runs:
            mine = middle(values(figures, k, MARKOV, "score"))
            lost[k] = mine - middle(values(figures, k, COUNTS, "score"))
            kept[k] = mine - middle(values(figures, k, BOTH, "score"))
    least, most = min(lost, key=lambda k: lost[k]), max(lost, key=lambda k: lost[k])
    last = [*figures["runs"]][-1]
    gained = middle(values(figures, last, MARKOV, "score")) - middle(values(figures, "1", MARKOV, "score"))
    words = "lose" if min(kept.values()) > 0.0 else "differ by" if max(kept.values()) > 0.0 else "gain"
    sizes = [abs(one) for one in kept.values()]
    return [
        f"- Without the order a page view loses {lost[least]:.2f} nats (with {least} components) to {lost[most]:.2f} (with "
        f"{most}); {last} components add {gained:.2f} to one chain.",
        f"- Chains in clusters that were found without the order {words} {min(sizes):.3f} to {max(sizes):.3f} nats against "
        "chains that found their own.",
    ]


def called(one: dict[str, Any], categories: Sequence[str]) -> str:
    """The categories that most of a cluster's views are in."""
    views = np.array(one["views"])
    order = np.argsort(-views, kind="stable")
    enough = 1 + int(np.searchsorted(np.cumsum(views[order]), NAMED * views.sum()))
    return ", ".join(categories[at] for at in order[: min(enough, MOST_NAMES)])


def described(one: dict[str, Any], categories: Sequence[str]) -> str:
    """A cluster in a few words: where it starts, whether it stays, where it goes."""
    start, steps = np.array(one["start"]), np.array(one["steps"])
    first = [f"{categories[at]} ({percent(start[at])})" for at in np.argsort(-start, kind="stable")[:3] if start[at] >= 0.05]
    told = f"**{called(one, categories)}** ({percent(one['weight'])} of the sessions): starts at {listed(first)}"
    total = steps.sum()
    if total:
        moves = steps - np.diag(np.diag(steps))
        places = np.argsort(-moves, axis=None, kind="stable")[:3]
        pairs = [divmod(int(place), len(categories)) for place in places]
        named = [f"{categories[i]} → {categories[j]} ({percent(moves[i, j] / total)})" for i, j in pairs if moves[i, j]]
        told += f"; {percent(np.trace(steps) / total)} of its steps stay in their category"
        told += f"; the commonest others are {listed(named)}" if named else ""
    if one["sessions"]:
        mean = sum(one["views"]) / one["sessions"]
        told += f"; {mean:.1f} views on average, {percent(one['single'] / one['sessions'])} of its sessions are one view"
    return told + "."


# The picture


def draw(path: Path, figures: dict[str, Any]) -> None:
    """First page and steps of each cluster."""
    categories, clusters = figures["categories"], figures["clusters"]
    across = min(4, len(clusters))
    down, size = -(-len(clusters) // across), len(categories)
    with drawing(path, 1.6 + 2.55 * across, 1.3 + 2.85 * down) as figure:
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
            axes.set_title(f"{place + 1}: {percent(one['weight'])} of sessions\n{called(one, categories)}")
            axes.set_xticks(range(size), categories, rotation=90, fontsize=7)
            axes.set_yticks([0, *range(2, size + 2)], ["start", *categories], fontsize=7)
            axes.tick_params(length=0)
            for spine in axes.spines.values():
                spine.set_visible(False)
        figure.colorbar(shown, ax=panels, shrink=0.5, aspect=30, label="probability").outline.set_visible(False)
