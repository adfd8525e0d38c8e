"""The section about letters: its tables, its words and its picture, made of the figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from examples.tables import drawing, listed, middle, spread, table

TITLE = "Letters: vowels and consonants"
SYMBOLS, VOWELS = [*"abcdefghijklmnopqrstuvwxyz", " "], "aeiou"
STREAM, STEPS, FIT, PEER = "blocks", "steps", "fit", "hmmlearn"
UNIGRAM, CHAIN = "unigram", "chain"
LABELS = {STREAM: "one pass, in blocks", STEPS: "one pass, step by step", FIT: "fit", PEER: "hmmlearn"}


def values(figures: dict[str, Any], k: str, name: str, key: str) -> list[Any]:
    """What the runs of one learner gave, seed by seed."""
    return [one[key] for one in figures["runs"][k][name]]


def section(figures: dict[str, Any]) -> list[str]:
    """The lines of the section."""
    return [
        f"*Pride and Prejudice* as {figures['letters'] + figures['held_out']:,} letters and spaces, 27 symbols; what is no "
        f"letter is a space. The first {figures['letters']:,} are learned as one sequence, the last {figures['held_out']:,} "
        "judged.",
        "",
        "```python",
        "model = hw.CategoricalHMM(2, n_features=27)",
        f"for letters in chunks:  # {figures['chunk']:,} at a time; the sequence goes on",
        "    model.partial_fit(letters)",
        "model.emissionprob_  # two states: which letters each has",
        "```",
        "",
        "![States of the letters](letters.png)",
        "",
        "Top: the probability of the vowels' state given the letter alone, with two states, after one pass (bars) and after "
        f"the fit (dots). Bottom left: the same for each of {figures['shown']} states of the best fit, columns sum to one; "
        "right: from which state to which.",
        "",
        "### Two states",
        "",
        "The state that has more of the letter e is called that of the vowels; a letter belongs to the state that is more "
        "probable given it. Letters: share of the running text (a to z without y) on the right side. Kinds: how many of "
        "these 25.",
        "",
        *table(("learner", "letters right", "kinds right", "on the wrong side"), [side_line(figures, name) for name in LABELS]),
        "",
        *side_words(figures),
        "",
        "### Nats a letter",
        "",
        f"Median and range over {figures['seeds']} seeds. `fit` is a stream and then up to {figures['passes']} passes of "
        f"EM; hmmlearn makes up to {figures['passes']} (`implementation=\"scaling\"`, its faster one); a fit that made as "
        f"many had not settled. CPU seconds. Without states, a held-out letter has {figures['without'][UNIGRAM]:.4f} by how "
        f"often letters are, and {figures['without'][CHAIN]:.4f} by the letter before it.",
        "",
        *table(
            ("states", "learner", "learned letters", "held-out letters", "CPU seconds", "passes"),
            [score_line(figures, k, name) for k in figures["runs"] for name in LABELS],
        ),
        "",
        *score_words(figures),
        "",
        *online_words(figures),
        "",
        f"### {figures['shown']} states",
        "",
        "Letters by their probability in the state (0.04 and more), and where it goes (0.2 and more):",
        "",
        *[f"{at}. {told}" for at, told in enumerate(states_words(figures), 1)],
    ]  # fmt: skip


def side_line(figures: dict[str, Any], name: str) -> list[str]:
    """One learner with two states."""
    first = next(iter(figures["runs"]))
    wrong = sorted({letter for one in values(figures, first, name, "wrong") for letter in one})
    right = values(figures, first, name, "right_letters")
    return [
        LABELS[name],
        f"{spread([100 * one for one in right], 1)} %",
        spread(values(figures, first, name, "right_kinds"), 0),
        ", ".join(wrong) or "none",
    ]


def side_words(figures: dict[str, Any]) -> list[str]:
    """Where the space and y go."""
    one = figures["runs"][next(iter(figures["runs"]))][FIT][0]["vowel_state"]
    told = [f"{'the space' if letter == ' ' else letter} with {one[SYMBOLS.index(letter)]:.2f}" for letter in (" ", "y")]
    return [f"- Left out above: {listed(told)} in the vowels' state (fit, seed 0)."]


def score_line(figures: dict[str, Any], k: str, name: str) -> list[str]:
    """One learner with so many states."""
    runs = figures["runs"][k][name]
    passes = spread([one["passes"] for one in runs], 0) if all("passes" in one for one in runs) else "1"
    return [
        k, LABELS[name], spread(values(figures, k, name, "learned"), 4), spread(values(figures, k, name, "held_out"), 4),
        spread(values(figures, k, name, "seconds"), 1), passes,
    ]  # fmt: skip


def score_words(figures: dict[str, Any]) -> list[str]:
    """Beside hmmlearn."""
    lines = []
    for k in figures["runs"]:
        best = {name: max(values(figures, k, name, "learned")) for name in LABELS}
        spent = {name: middle(values(figures, k, name, "seconds")) for name in LABELS}
        lines.append(
            f"- {k} states: the best fit is {best[FIT] - best[PEER]:+.4f} nats a letter against hmmlearn's best, in 1/"
            f"{spent[PEER] / spent[FIT]:.1f} of the time; one pass in blocks {best[STREAM] - best[PEER]:+.4f}, in 1/"
            f"{spent[PEER] / spent[STREAM]:.1f}."
        )
    return lines


def online_words(figures: dict[str, Any]) -> list[str]:
    """How the online score went."""
    told = []
    for name in (STREAM, STEPS):
        scores = figures["online"][name]
        told.append(f"{scores[0]:.3f} over the first {figures['window']:,} and {scores[-1]:.3f} over the last ({LABELS[name]})")
    return [f"- Scored before it was learned, with two states, a letter has {listed(told)}."]


def order_of_states(figures: dict[str, Any]) -> list[int]:
    """States by the letter they have most of: those of the vowels first, then of the space, then of consonants."""
    emissions = np.array(figures["close"]["emissions"])
    share = emissions[:, [SYMBOLS.index(letter) for letter in VOWELS]].sum(axis=1) + 0.5 * emissions[:, 26]
    return np.argsort(-share, kind="stable").tolist()


def states_words(figures: dict[str, Any]) -> list[str]:
    """The states of a larger model."""
    emissions, steps = np.array(figures["close"]["emissions"]), np.array(figures["close"]["transitions"])
    order, told = order_of_states(figures), []
    for state in order:
        letters = [at for at in np.argsort(-emissions[state], kind="stable") if emissions[state, at] >= 0.04]
        named = [f"{'space' if at == 26 else SYMBOLS[at]} {emissions[state, at]:.2f}" for at in letters]
        goes = [
            f"{order.index(to) + 1} ({steps[state, to]:.2f})" for to in np.argsort(-steps[state]) if steps[state, to] >= 0.2
        ]
        told.append(f"{', '.join(named)}; goes to {listed(goes) or 'all'}.")
    return told


def draw(path: Path, figures: dict[str, Any]) -> None:
    """Letters and their states."""
    first = next(iter(figures["runs"]))
    stream, fit = (np.array(figures["runs"][first][name][0]["vowel_state"]) for name in (STREAM, FIT))
    names = [letter if letter != " " else "space" for letter in SYMBOLS]
    letters = np.lexsort((-fit, [letter not in VOWELS for letter in SYMBOLS]))
    with drawing(path, 10.0, 6.2) as figure:
        above, below = figure.subfigures(2, 1, height_ratios=(1.0, 1.15))
        axes = above.subplots()
        colors = ["#d1495b" if SYMBOLS[at] in VOWELS else "0.6" if SYMBOLS[at] in " y" else "#3b6ea5" for at in letters]
        axes.bar(range(27), stream[letters], color=colors, width=0.75)
        axes.plot(range(27), fit[letters], "o", color="black", markersize=3.5)
        axes.axhline(0.5, color="0.5", linewidth=0.8, linestyle=":")
        axes.set_xticks(range(27), [names[at] for at in letters])
        axes.set_xlim(-0.7, 26.7)
        axes.set_ylim(0.0, 1.03)
        axes.tick_params(axis="x", length=0)
        axes.set_title("Vowels' state given the letter: one pass (bars; vowels red, space and y grey) and fit (dots)")
        wide, narrow = below.subplots(1, 2, width_ratios=(3.6, 1.0))
        order = order_of_states(figures)
        given = np.array(figures["close"]["given_letter"])[:, order]
        shown = wide.imshow(given[letters].T, cmap="YlGnBu", vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest")
        wide.set_xticks(range(27), ["␣" if SYMBOLS[at] == " " else SYMBOLS[at] for at in letters])
        labels = [str(at) for at in range(1, len(order) + 1)]
        wide.set_yticks(range(len(order)), labels)
        wide.set_ylabel("state")
        wide.set_title(f"State given the letter, {len(order)} states")
        steps = np.array(figures["close"]["transitions"])[np.ix_(order, order)]
        narrow.imshow(steps, cmap="YlGnBu", vmin=0.0, vmax=1.0, aspect="equal", interpolation="nearest")
        narrow.set_xticks(range(len(order)), labels)
        narrow.set_yticks(range(len(order)), labels)
        narrow.set_title("From state (line) to state")
        for one in (wide, narrow):
            one.tick_params(length=0)
            for spine in one.spines.values():
                spine.set_visible(False)
        below.colorbar(shown, ax=[wide, narrow], shrink=0.8, label="probability").outline.set_visible(False)
