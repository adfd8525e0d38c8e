"""Harmony of Bach's chorales: hidden Markov models of their chords, on the usual split, beside hmmlearn and a plain chain.

``python -m pages chorales`` measures it and writes docs/examples/chorales.md.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

import headwater as hw
from examples import chorales_values as values
from examples.chorales_values import CHAIN, FIT, PEER, STREAM, UNIGRAM
from pages.page import Measures, Page
from pages.results import Figures

FILE = "jsb_chorales/jsb_chorales.npz"
SYMBOLS = 100  # the most common chords, and one symbol for all others
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
    """Return the pitch classes that sound, regardless of octave and voice."""
    return tuple(sorted({int(pitch) % 12 for pitch in row if pitch >= 0}))


def part_of(pieces: list[list[Chord]], number: dict[Chord, int]) -> Part:
    """Chords as symbols."""
    symbols = [number.get(chord, len(number)) for piece in pieces for chord in piece]
    return Part(np.array(symbols)[:, None], np.array([len(piece) for piece in pieces]))


# The learners


def model(k: int, seed: int, width: int, **options: Any) -> hw.CategoricalHMM:
    """Return an unfitted hidden Markov model."""
    priors = {f"{name}_prior": PRIOR for name in ("startprob", "transmat", "emissionprob")}
    return hw.CategoricalHMM(k, n_features=width, random_state=seed, n_threads=1, **priors, **options)


def learners(k: int, seed: int, learn: Part, width: int) -> dict[str, Any]:
    """Return the same model learned in three ways: in one pass, in several passes, and by hmmlearn."""
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


def judged(learn: Any, parts: dict[str, Part]) -> dict[str, float]:
    """CPU seconds, and nats a chord of every part."""
    began = time.process_time()
    found = learn()
    _ = found.transmat_
    spent = {"seconds": time.process_time() - began}
    return spent | {name: found.score(part.symbols, part.lengths) / len(part.symbols) for name, part in parts.items()}


def without_states(parts: dict[str, Part], width: int) -> dict[str, dict[str, float]]:
    """Return nats per chord by the frequencies of chords, and by the chord before, with the same prior."""
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


# The page


def facts(chorales: Chorales, scale: Scale) -> Figures:
    parts, width = chorales.parts, len(chorales.chords) + 1
    return {
        "chorales": {name: len(part.lengths) for name, part in parts.items()},
        "steps": {name: len(part.symbols) for name, part in parts.items()}, "symbols": width, "seeds": scale.seeds,
        "passes": PASSES, "other": {name: float((part.symbols == width - 1).mean()) for name, part in parts.items()},
        "chords": [[*chord] for chord in chorales.chords], "without": without_states(parts, width),
    }  # fmt: skip


def compared(k: int, chorales: Chorales, seeds: int) -> Figures:
    """Every learner with so many states, seed by seed."""
    parts, kept = chorales.parts, {}
    for seed in range(seeds):
        for name, learn in learners(k, seed, parts["train"], len(chorales.chords) + 1).items():
            kept.setdefault(name, []).append(judged(learn, parts))
    return {"states": k, "runs": kept}


def closely(chorales: Chorales, scale: Scale) -> Figures:
    """The best fit of the model that is shown."""
    learn, width = chorales.parts["train"], len(chorales.chords) + 1
    fits = [learners(scale.shown, seed, learn, width)[FIT]() for seed in range(scale.seeds)]
    best = max(fits, key=lambda one: one.score(learn.symbols, learn.lengths))
    return {
        "often": best.get_stationary_distribution().round(4).tolist(), "emissions": best.emissionprob_.round(4).tolist(),
        "transitions": best.transmat_.round(4).tolist(),
    }  # fmt: skip


def measure(scale: Scale, data: Path | None) -> Measures:
    assert data is not None
    chorales = Chorales.load(data / FILE, scale.chorales)
    for learn in [*learners(2, 0, chorales.parts["train"], len(chorales.chords) + 1).values()][:2]:
        learn()  # compiles the kernels
    yield "chorales", partial(facts, chorales, scale)
    for k in scale.states:
        yield f"states/{k}", partial(compared, k, chorales, scale.seeds)
    yield "close", partial(closely, chorales, scale)


PAGE = Page(
    name="chorales", room="examples", full=Scale(), quick=Scale((2, 3), 1, 20, 2), minutes=2, seeds="0 to 2: the starts",
    parts={"states": measure}, values={"states": values.states}, needs=(FILE,), pictures={"chorales": values.draw},
    silent=(ConvergenceWarning,),
)  # fmt: skip
