"""The section about chorales: its tables, its words and its picture, made of the figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from examples.tables import drawing, middle, percent, spread, table

TITLE = "Chorales: the harmony of Bach"
STREAM, FIT, PEER = "stream", "fit", "hmmlearn"
UNIGRAM, CHAIN = "unigram", "chain"
LABELS = {STREAM: "one pass", FIT: "fit", PEER: "hmmlearn"}
NOTES = ("C", "C#", "D", "Eb", "E", "F", "F#", "G", "G#", "A", "Bb", "B")
KINDS = {
    (0, 4, 7): "", (0, 3, 7): "m", (0, 3, 6): "dim", (0, 4, 8): "aug", (0, 4, 7, 10): "7", (0, 3, 7, 10): "m7",
    (0, 4, 7, 11): "maj7",
    (0, 3, 6, 10): "m7b5", (0, 3, 6, 9): "dim7", (0, 7): "5",
}  # fmt: skip


def chord_name(chord: Sequence[int]) -> str:
    """A name that a musician knows, or the notes."""
    if not chord:
        return "rest"
    if len(chord) == 1:
        return f"{NOTES[chord[0]]} alone"
    for root in chord:
        kind = tuple(sorted((pitch - root) % 12 for pitch in chord))
        if kind in KINDS:
            return NOTES[root] + KINDS[kind]
    return "-".join(NOTES[pitch] for pitch in chord)


def values(figures: dict[str, Any], k: str, name: str, key: str) -> list[float]:
    """What the runs of one learner gave, seed by seed."""
    return [one[key] for one in figures["runs"][k][name]]


def names_of(figures: dict[str, Any]) -> list[str]:
    """The names of the symbols."""
    return [*[chord_name(chord) for chord in figures["chords"]], "other"]


def section(figures: dict[str, Any]) -> list[str]:
    """The lines of the section."""
    chorales, steps = figures["chorales"], figures["steps"]
    return [
        f"Bach's chorales, split as usual: {chorales['train']} to learn from, {chorales['valid']} to choose by and "
        f"{chorales['test']} to judge ({steps['train']:,}, {steps['valid']:,} and {steps['test']:,} quarter notes). The "
        f"four voices of a quarter note are one symbol: the set of pitch classes that sound. The {figures['symbols'] - 1} "
        "commonest sets of the training chorales are symbols of their own, and all others are one more "
        f"({percent(figures['other']['train'])} of the training steps, {percent(figures['other']['test'])} of the test's). "
        "Keys are left as they are. Every chorale is a sequence (`lengths`).",
        "",
        "```python",
        f"model = hw.CategoricalHMM(20, n_features={figures['symbols']})",
        "model.fit(chords, lengths)",
        "model.score(others, their_lengths)",
        "```",
        "",
        "![Chords of the states](chorales.png)",
        "",
        f"The {len(figures['close']['often'])} states of the best fit by how often they are, with their commonest chords, "
        "and from which to which they go.",
        "",
        f"Nats a chord: median and range over {figures['seeds']} seeds. Both libraries have the same model with the same "
        f"prior (a tenth of a count for all probabilities) and make up to {figures['passes']} passes; hmmlearn by "
        "`implementation=\"scaling\"`. One pass sees every chorale once, in the order of the file. Without states: how "
        "often chords are, and a Markov chain from chord to chord. CPU seconds.",
        "",
        *table(
            ("states", "learner", "train", "valid", "test", "CPU seconds"),
            [
                *[["", label, *[f"{figures['without'][name][part]:.4f}" for part in ("train", "valid", "test")], ""]
                  for name, label in ((UNIGRAM, "how often"), (CHAIN, "Markov chain"))],
                *[[k, LABELS[name], *[spread(values(figures, k, name, part), 4) for part in ("train", "valid", "test")],
                   spread(values(figures, k, name, "seconds"), 2)] for k in figures["runs"] for name in LABELS],
            ],
        ),
        "",
        *words(figures),
    ]  # fmt: skip


def words(figures: dict[str, Any]) -> list[str]:
    """Beside hmmlearn and the chain."""
    lines = []
    for k in figures["runs"]:
        best = {name: max(values(figures, k, name, "train")) for name in LABELS}
        test = {name: middle(values(figures, k, name, "test")) for name in LABELS}
        spent = {name: middle(values(figures, k, name, "seconds")) for name in LABELS}
        lines.append(
            f"- {k} states, beside hmmlearn: the best fit is {best[FIT] - best[PEER]:+.4f} nats a training chord; the "
            f"medians on the test chorales are {test[FIT] - test[PEER]:+.4f} (fit) and {test[STREAM] - test[PEER]:+.4f} "
            f"(one pass), in 1/{spent[PEER] / spent[FIT]:.1f} and 1/{spent[PEER] / spent[STREAM]:.1f} of the time."
        )
    chosen = {name: max(figures["runs"], key=lambda k: middle(values(figures, k, name, "valid"))) for name in (FIT, PEER)}
    told = [
        f"{LABELS[name]} takes {k} states and has {middle(values(figures, k, name, 'test')):.4f}" for name, k in chosen.items()
    ]
    lines.append(
        f"- By the validation chorales {' and '.join(told)} on the test chorales; the Markov chain has "
        f"{figures['without'][CHAIN]['test']:.4f}."
    )
    return lines


def draw(path: Path, figures: dict[str, Any]) -> None:
    """Chords of each state, and how states follow one another."""
    close, names = figures["close"], names_of(figures)
    often, emissions, steps = (np.array(close[key]) for key in ("often", "emissions", "transitions"))
    order = np.argsort(-often, kind="stable")
    labels = [str(at) for at in range(1, len(order) + 1)]
    with drawing(path, 10.0, 0.9 + 0.42 * len(order)) as figure:
        wide, narrow = figure.subplots(1, 2, width_ratios=(1.75, 1.0))
        for line, state in enumerate(order):
            left = 0.0
            for place, symbol in enumerate(np.argsort(-emissions[state], kind="stable")[:6]):
                share = emissions[state, symbol]
                wide.barh(line, share, left=left, height=0.78, color="#3b6ea5", alpha=0.85 - 0.12 * place, edgecolor="white")
                if share > 0.022 * len(names[symbol]):
                    dark = place < 3
                    wide.text(
                        left + share / 2,
                        line,
                        names[symbol],
                        ha="center",
                        va="center",
                        fontsize=8,
                        color="white" if dark else "0.1",
                    )
                left += share
        wide.set_ylim(len(order) - 0.5, -0.5)
        wide.set_xlim(0.0, 1.0)
        wide.set_yticks(range(len(order)), [f"{at} ({percent(often[state])})" for at, state in zip(labels, order, strict=True)])
        wide.tick_params(axis="y", length=0)
        wide.set_title("The six commonest chords of each state (share of time)")
        wide.set_xlabel("probability in the state")
        shown = narrow.imshow(steps[np.ix_(order, order)], cmap="YlGnBu", vmin=0.0, vmax=1.0, interpolation="nearest")
        narrow.set_xticks(range(len(order)), labels)
        narrow.set_yticks(range(len(order)), labels)
        narrow.tick_params(length=0)
        narrow.set_title("From state (line) to state")
        for spine in narrow.spines.values():
            spine.set_visible(False)
        figure.colorbar(shown, ax=narrow, shrink=0.7, label="probability").outline.set_visible(False)
