"""Harmony of Bach's chorales: hidden Markov models of their chords, on the usual split, beside hmmlearn and a plain chain.

Run it with ``python -m examples.chorales``; it writes its section of docs/examples/chains.md, the picture beside it and the
figures behind both (chains.json). The directory of data sets is named by HEADWATER_DATA or ``--data``.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import headwater as hw
from examples.chorales_page import CHAIN, FIT, PEER, STREAM, UNIGRAM
from examples.command import run

FILE = "jsb_chorales/jsb_chorales.npz"
SYMBOLS = 100  # the commonest chords, and one symbol for all others
QUARTER = 4  # sixteenths
PRIOR = 1.1  # a tenth of a count for everything, in both libraries
PASSES = 100
Chord = tuple[int, ...]


@dataclass(frozen=True)
class Scale:
    """How much is done: numbers of states, seeds, chorales of each part, and how many states to look at closely."""

    states: tuple[int, ...] = (5, 10, 20, 40)
    seeds: int = 3
    chorales: int | None = None
    shown: int = 10


FULL, QUICK = Scale(), Scale((2, 3), 1, 20, 2)


@dataclass(frozen=True)
class Part:
    """Chorales one after the other: the symbol of every quarter note, and the length of each chorale."""

    symbols: NDArray[np.int64]
    lengths: NDArray[np.int64]


@dataclass(frozen=True)
class Chorales:
    """The three parts, and the chords that the symbols stand for; the last symbol is every other chord."""

    parts: dict[str, Part]
    chords: list[Chord]

    @classmethod
    def load(cls, path: Path, at_most: int | None = None) -> Chorales:
        with np.load(path) as file:
            pitches, lengths, split = file["pitches"], file["lengths"].astype(np.int64), file["split"]
        pieces = [[chord_of(row) for row in piece[::QUARTER]] for piece in np.split(pitches, np.cumsum(lengths)[:-1])]
        parts = {
            name: [piece for piece, own in zip(pieces, split, strict=True) if own == name][:at_most]
            for name in ("train", "valid", "test")
        }
        counts = Counter(chord for piece in parts["train"] for chord in piece)
        chords = [chord for chord, _ in counts.most_common(SYMBOLS - 1)]
        number = {chord: at for at, chord in enumerate(chords)}
        return cls({name: part_of(found, number) for name, found in parts.items()}, chords)


def chord_of(row: NDArray[Any]) -> Chord:
    """The pitch classes that sound, whatever the octave and the voice."""
    return tuple(sorted({int(pitch) % 12 for pitch in row if pitch >= 0}))


def part_of(pieces: list[list[Chord]], number: dict[Chord, int]) -> Part:
    """Chords as symbols."""
    symbols = [number.get(chord, len(number)) for piece in pieces for chord in piece]
    return Part(np.array(symbols)[:, None], np.array([len(piece) for piece in pieces]))


# The learners


def model(k: int, seed: int, width: int, **options: Any) -> hw.CategoricalHMM:
    """A hidden Markov model that has learned nothing yet."""
    priors = {f"{name}_prior": PRIOR for name in ("startprob", "transmat", "emissionprob")}
    return hw.CategoricalHMM(k, n_features=width, random_state=seed, n_threads=1, **priors, **options)


def learners(k: int, seed: int, learn: Part, width: int) -> dict[str, Any]:
    """The same model, learned in three ways: once through, in passes, and by hmmlearn."""
    from hmmlearn.hmm import CategoricalHMM

    logging.getLogger("hmmlearn").setLevel(logging.ERROR)
    priors = {f"{name}_prior": PRIOR for name in ("startprob", "transmat", "emissionprob")}
    peer = CategoricalHMM(k, n_iter=PASSES, random_state=seed, n_features=width, implementation="scaling", **priors)

    def stream() -> hw.CategoricalHMM:
        one, ends = model(k, seed, width), np.cumsum(learn.lengths)
        for begin, end in zip(ends - learn.lengths, ends, strict=True):
            one.partial_fit(learn.symbols[begin:end], lengths=[end - begin])
        return one

    return {
        STREAM: stream,
        FIT: lambda: model(k, seed, width, n_iter=PASSES).fit(learn.symbols, learn.lengths),
        PEER: lambda: peer.fit(learn.symbols, learn.lengths),
    }


def judged(learn: Any, parts: dict[str, Part]) -> tuple[Any, dict[str, float]]:
    """What was learned, with CPU seconds, and nats a chord of every part."""
    began = time.process_time()
    found = learn()
    _ = found.transmat_
    told = {"seconds": time.process_time() - began}
    return found, told | {name: found.score(part.symbols, part.lengths) / len(part.symbols) for name, part in parts.items()}


def without_states(parts: dict[str, Part], width: int) -> dict[str, dict[str, float]]:
    """Nats a chord by how often chords are, and by the chord before, with as much of a prior."""
    chain = hw.MarkovMixture(1, n_symbols=width, n_threads=1, random_state=0)
    learn = parts["train"]
    chain.partial_fit(learn.symbols[:, 0], lengths=learn.lengths)
    often = np.bincount(learn.symbols[:, 0], minlength=width) + 0.1
    logs = np.log(often / often.sum())
    return {
        UNIGRAM: {name: float(logs[part.symbols[:, 0]].mean()) for name, part in parts.items()},
        CHAIN: {
            name: float(chain.score_samples(part.symbols[:, 0], part.lengths).sum() / len(part.symbols))
            for name, part in parts.items()
        },
    }


def measure(path: Path, quick: bool = False) -> dict[str, Any]:
    """Learn everything that the section tells of."""
    scale = QUICK if quick else FULL
    chorales = Chorales.load(path, scale.chorales)
    parts, width = chorales.parts, len(chorales.chords) + 1
    for learn in [*learners(2, 0, parts["train"], width).values()][:2]:
        learn()  # compiles the kernels
    runs: dict[str, dict[str, list[dict[str, float]]]] = {}
    shown: Any = None
    for k in scale.states:
        kept: dict[str, list[dict[str, float]]] = {}
        for seed in range(scale.seeds):
            for name, learn in learners(k, seed, parts["train"], width).items():
                found, told = judged(learn, parts)
                kept.setdefault(name, []).append(told)
                if name == FIT and k == scale.shown and (shown is None or told["train"] > shown[0]):
                    shown = told["train"], found
        runs[str(k)] = kept
        print(f"{k} states: " + ", ".join(f"{name} {ones[0]['test']:.4f}" for name, ones in kept.items()), flush=True)
    return {
        "quick": quick, "chorales": {name: len(part.lengths) for name, part in parts.items()},
        "steps": {name: len(part.symbols) for name, part in parts.items()}, "symbols": width, "seeds": scale.seeds,
        "passes": PASSES, "prior": PRIOR,
        "other": {name: float((part.symbols == width - 1).mean()) for name, part in parts.items()},
        "chords": [list(chord) for chord in chorales.chords], "runs": runs, "without": without_states(parts, width),
        "close": {
            "often": shown[1].get_stationary_distribution().round(4).tolist(),
            "emissions": shown[1].emissionprob_.round(4).tolist(), "transitions": shown[1].transmat_.round(4).tolist(),
        },
    }  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    return run("chorales", FILE, measure, __doc__, argv)


if __name__ == "__main__":
    raise SystemExit(main())
