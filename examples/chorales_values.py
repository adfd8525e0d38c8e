"""Values and picture of the page about chorales."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pages.drawing import drawing
from pages.results import Results, by_seed
from pages.words import fine_percent, listed, median

STREAM, FIT, PEER = "stream", "fit", "hmmlearn"
UNIGRAM, CHAIN = "unigram", "chain"
WITHOUT = {UNIGRAM: "frequencies", CHAIN: "Markov chain"}
LABELS = {STREAM: "one pass", FIT: "fit", PEER: "hmmlearn"}
NOTES = ("C", "C#", "D", "Eb", "E", "F", "F#", "G", "G#", "A", "Bb", "B")
KINDS = {
    (0, 4, 7): "", (0, 3, 7): "m", (0, 3, 6): "dim", (0, 4, 8): "aug", (0, 4, 7, 10): "7", (0, 3, 7, 10): "m7",
    (0, 4, 7, 11): "maj7",
    (0, 3, 6, 10): "m7b5", (0, 3, 6, 9): "dim7", (0, 7): "5",
}  # fmt: skip


def chord_name(chord: Sequence[int]) -> str:
    """Return the common name of a chord, or its notes."""
    if not chord:
        return "rest"
    if len(chord) == 1:
        return f"{NOTES[chord[0]]} alone"
    for root in chord:
        kind = tuple(sorted((pitch - root) % 12 for pitch in chord))
        if kind in KINDS:
            return NOTES[root] + KINDS[kind]
    return "-".join(NOTES[pitch] for pitch in chord)


def states(results: Results) -> dict[str, Any]:
    found, facts = by_seed(results.of("states", "states/"), "states"), results.figures["states"]["chorales"]
    chosen = {name: max(found, key=lambda k: median(found[k][name]["valid"])) for name in (FIT, PEER)}
    taken = [f"{LABELS[name]} takes {k} states and has {median(found[k][name]['test']):.4f}" for name, k in chosen.items()]
    return {
        **facts, "without": [(label, facts["without"][name]) for name, label in WITHOUT.items()],
        "lines": [(k, LABELS[name], one[name]) for k, one in found.items() for name in LABELS],
        "beside": [beside(k, one) for k, one in found.items()], "chosen": listed(taken),
        "chain": facts["without"][CHAIN]["test"], "shown": len(results.figures["states"]["close"]["often"]),
    }  # fmt: skip


def beside(k: str, one: dict[str, dict[str, list[float]]]) -> dict[str, Any]:
    """Beside hmmlearn."""
    ahead = {name: median(one[name]["test"]) - median(one[PEER]["test"]) for name in LABELS}
    times = {name: median(one[PEER]["seconds"]) / median(one[name]["seconds"]) for name in LABELS}
    return {
        "k": k, "best": max(one[FIT]["train"]) - max(one[PEER]["train"]), "fit": ahead[FIT], "stream": ahead[STREAM],
        "fit_time": times[FIT], "stream_time": times[STREAM],
    }  # fmt: skip


def draw(path: Path, results: Results) -> None:
    """Chords of each state, and how states follow one another."""
    sets = results.figures["states"]
    close, names = sets["close"], [*[chord_name(chord) for chord in sets["chorales"]["chords"]], "other"]
    often, emissions, steps = (np.array(close[key]) for key in ("often", "emissions", "transitions"))
    order = np.argsort(-often, kind="stable")
    labels = [str(at) for at in range(1, len(order) + 1)]
    with drawing(path, 0.9 + 0.42 * len(order), 10.0, 110) as figure:
        wide, narrow = figure.subplots(1, 2, width_ratios=(1.75, 1.0))
        for line, state in enumerate(order):
            left = 0.0
            for place, symbol in enumerate(np.argsort(-emissions[state], kind="stable")[:6]):
                share = emissions[state, symbol]
                wide.barh(line, share, left=left, height=0.78, color="#3b6ea5", alpha=0.85 - 0.12 * place, edgecolor="white")
                if share > 0.022 * len(names[symbol]):
                    dark = place < 3
                    color = "white" if dark else "0.1"
                    wide.text(left + share / 2, line, names[symbol], ha="center", va="center", fontsize=8, color=color)
                left += share
        wide.set_ylim(len(order) - 0.5, -0.5)
        wide.set_xlim(0.0, 1.0)
        wide.set_yticks(
            range(len(order)), [f"{at} ({fine_percent(often[state])})" for at, state in zip(labels, order, strict=True)]
        )
        wide.tick_params(axis="y", length=0)
        wide.set_title("The six most common chords of each state (share of time)")
        wide.set_xlabel("probability in the state")
        shown = narrow.imshow(steps[np.ix_(order, order)], cmap="YlGnBu", vmin=0.0, vmax=1.0, interpolation="nearest")
        narrow.set_xticks(range(len(order)), labels)
        narrow.set_yticks(range(len(order)), labels)
        narrow.tick_params(length=0)
        narrow.set_title("From state (line) to state")
        for spine in narrow.spines.values():
            spine.set_visible(False)
        figure.colorbar(shown, ax=narrow, shrink=0.7, label="probability").outline.set_visible(False)
