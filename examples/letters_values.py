"""Values and picture of the page about letters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pages.drawing import drawing
from pages.results import Figures, Results, by_seed
from pages.words import listed, median

SYMBOLS, VOWELS = [*"abcdefghijklmnopqrstuvwxyz", " "], "aeiou"
STREAM, STEPS, FIT, PEER = "blocks", "steps", "fit", "hmmlearn"
UNIGRAM, CHAIN = "unigram", "chain"
LABELS = {STREAM: "one pass, in blocks", STEPS: "one pass, step by step", FIT: "fit", PEER: "hmmlearn"}


def states(results: Results) -> dict[str, Any]:
    sets = results.figures["states"]
    found, text = by_seed(results.of("states", "states/"), "states"), sets["text"]
    two = found[next(iter(found))]
    vowel_state = two[FIT]["vowel_state"][0]
    left_out = [f"{'the space' if one == ' ' else one} with {vowel_state[SYMBOLS.index(one)]:.2f}" for one in (" ", "y")]
    online = [
        f"{scores[0]:.3f} over the first {sets['online']['window']:,} and {scores[-1]:.3f} over the last ({LABELS[name]})"
        for name, scores in sets["online"]["scores"].items()
    ]
    return {
        **text, "sides": [side(name, two[name]) for name in LABELS], "left_out": listed(left_out),
        "lines": [(k, LABELS[name], one[name]) for k, one in found.items() for name in LABELS],
        "beside": [beside(k, one) for k, one in found.items()], "online": listed(online), "close": described(sets["close"]),
    }  # fmt: skip


def side(name: str, one: dict[str, list[Any]]) -> dict[str, Any]:
    """One learner with two states."""
    return {
        "label": LABELS[name], "right": [100 * share for share in one["right_letters"]], "kinds": one["right_kinds"],
        "wrong": ", ".join(sorted({letter for letters in one["wrong"] for letter in letters})) or "none",
    }  # fmt: skip


def beside(k: str, one: dict[str, dict[str, list[Any]]]) -> dict[str, Any]:
    """Beside hmmlearn."""
    best = {name: max(one[name]["learned"]) - max(one[PEER]["learned"]) for name in LABELS}
    times = {name: median(one[PEER]["seconds"]) / median(one[name]["seconds"]) for name in LABELS}
    return {"k": k, "fit": best[FIT], "stream": best[STREAM], "fit_time": times[FIT], "stream_time": times[STREAM]}


def order_of_states(close: Figures) -> list[int]:
    """States by the letter they have most of: those of the vowels first, then of the space, then of consonants."""
    emissions = np.array(close["emissions"])
    share = emissions[:, [SYMBOLS.index(letter) for letter in VOWELS]].sum(axis=1) + 0.5 * emissions[:, 26]
    return [int(one) for one in np.argsort(-share, kind="stable")]


def described(close: Figures) -> list[str]:
    """The states of a larger model."""
    emissions, steps = np.array(close["emissions"]), np.array(close["transitions"])
    order, lines = order_of_states(close), []
    for state in order:
        letters = [at for at in np.argsort(-emissions[state], kind="stable") if emissions[state, at] >= 0.04]
        named = [f"{'space' if at == 26 else SYMBOLS[at]} {emissions[state, at]:.2f}" for at in letters]
        goes = [
            f"{order.index(to) + 1} ({steps[state, to]:.2f})" for to in np.argsort(-steps[state]) if steps[state, to] >= 0.2
        ]
        lines.append(f"{', '.join(named)}; goes to {listed(goes) or 'all'}.")
    return lines


def draw(path: Path, results: Results) -> None:
    """Letters and their states."""
    close, two = results.figures["states"]["close"], next(iter(by_seed(results.of("states", "states/"), "states").values()))
    stream, fit = (np.array(two[name]["vowel_state"][0]) for name in (STREAM, FIT))
    names = [letter if letter != " " else "space" for letter in SYMBOLS]
    letters = np.lexsort((-fit, [letter not in VOWELS for letter in SYMBOLS]))
    with drawing(path, 6.2, 10.0, 110) as figure:
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
        order = order_of_states(close)
        given = np.array(close["given_letter"])[:, order]
        shown = wide.imshow(given[letters].T, cmap="YlGnBu", vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest")
        wide.set_xticks(range(27), ["␣" if SYMBOLS[at] == " " else SYMBOLS[at] for at in letters])
        labels = [str(at) for at in range(1, len(order) + 1)]
        wide.set_yticks(range(len(order)), labels)
        wide.set_ylabel("state")
        wide.set_title(f"State given the letter, {len(order)} states")
        steps = np.array(close["transitions"])[np.ix_(order, order)]
        narrow.imshow(steps, cmap="YlGnBu", vmin=0.0, vmax=1.0, aspect="equal", interpolation="nearest")
        narrow.set_xticks(range(len(order)), labels)
        narrow.set_yticks(range(len(order)), labels)
        narrow.set_title("From state (line) to state")
        for one in (wide, narrow):
            one.tick_params(length=0)
            for spine in one.spines.values():
                spine.set_visible(False)
        below.colorbar(shown, ax=[wide, narrow], shrink=0.8, label="probability").outline.set_visible(False)
