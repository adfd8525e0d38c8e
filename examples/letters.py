"""Vowels and consonants, found in a novel by a hidden Markov model of its letters that was told nothing of either.

Run it with ``python -m examples.letters``; it writes its section of docs/examples/chains.md, the picture beside it and the
figures behind both (chains.json). The directory of data sets is named by HEADWATER_DATA or ``--data``.
"""

from __future__ import annotations

import gzip
import logging
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import headwater as hw
from examples.command import run
from examples.letters_page import CHAIN, FIT, PEER, STEPS, STREAM, SYMBOLS, UNIGRAM, VOWELS

FILE = "english_text/pride_and_prejudice.txt.gz"
CHUNK = 10_000
WINDOW = 20_000  # letters that the online score is averaged over
PASSES = 40
HELD_OUT = 5  # the last so many-th of the novel


@dataclass(frozen=True)
class Scale:
    """How much is done: numbers of states, seeds, letters, and how many states to look at closely."""

    states: tuple[int, ...] = (2, 3, 6)
    seeds: int = 3
    letters: int | None = None
    shown: int = 6


FULL, QUICK = Scale(), Scale((2,), 1, 60_000, 2)


def load(path: Path, at_most: int | None = None) -> NDArray[np.int64]:
    """The novel from its first chapter on, as letters (0 to 25) and spaces (26): all that is no letter is a space."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        text = file.read()
    text = re.sub("[^a-z]+", " ", text[max(text.find("Chapter 1"), 0) :].lower()).strip()[:at_most]
    codes = np.frombuffer(text.encode("ascii"), dtype=np.uint8).astype(np.int64)
    return np.where(codes == ord(" "), 26, codes - ord("a"))[:, None]


# The learners


def model(k: int, seed: int, **options: Any) -> hw.CategoricalHMM:
    """A hidden Markov model that has learned nothing yet."""
    return hw.CategoricalHMM(k, n_features=len(SYMBOLS), random_state=seed, n_threads=1, **options)


def streamed(k: int, X: NDArray[np.int64], seed: int, algorithm: str = "auto") -> hw.CategoricalHMM:
    """One pass, chunk by chunk."""
    learner = model(k, seed, algorithm=algorithm)
    for at in range(0, len(X), CHUNK):
        learner.partial_fit(X[at : at + CHUNK])
    return learner


def fitted(k: int, X: NDArray[np.int64], seed: int) -> hw.CategoricalHMM:
    """A stream, and then passes of EM."""
    return model(k, seed, n_iter=PASSES).fit(X)


def peer(k: int, X: NDArray[np.int64], seed: int) -> Any:
    """hmmlearn, with the faster of its two implementations."""
    from hmmlearn.hmm import CategoricalHMM

    logging.getLogger("hmmlearn").setLevel(logging.ERROR)
    return CategoricalHMM(k, n_iter=PASSES, random_state=seed, implementation="scaling", n_features=len(SYMBOLS)).fit(X)


def judged(learn: Callable[[], Any], learned: NDArray[np.int64], held_out: NDArray[np.int64]) -> dict[str, Any]:
    """What a learner took and how good it is: nats a letter of what it learned and of what it did not see."""
    began = time.process_time()
    found = learn()
    _ = found.transmat_
    seconds = time.process_time() - began
    told = {
        "seconds": seconds,
        "learned": found.score(learned) / len(learned),
        "held_out": found.score(held_out) / len(held_out),
    }
    if len(found.transmat_) == 2:
        told |= sides(found.transmat_, found.emissionprob_, learned)
    passes = getattr(found, "monitor_", None) if hasattr(found, "lower_bounds_") or not hasattr(found, "partial_fit") else None
    return told if passes is None else told | {"passes": passes.iter}


def sides(transitions: NDArray[np.float64], emissions: NDArray[np.float64], X: NDArray[np.int64]) -> dict[str, Any]:
    """How far the state that has e is the vowels': the share of letters, and of the alphabet, on the right side."""
    belongs = state_of_letter(transitions, emissions)[
        :, 1 if emissions[1, SYMBOLS.index("e")] > emissions[0, SYMBOLS.index("e")] else 0
    ]
    often = np.bincount(X[:, 0], minlength=len(SYMBOLS)) / len(X)
    judged = np.array([letter not in (" ", "y") for letter in SYMBOLS])
    vowel = np.array([letter in VOWELS for letter in SYMBOLS])
    right = (belongs > 0.5) == vowel
    return {
        "right_letters": float((often * right)[judged].sum() / often[judged].sum()), "right_kinds": int(right[judged].sum()),
        "wrong": [letter for letter, good, asked in zip(SYMBOLS, right, judged, strict=True) if asked and not good],
        "vowel_state": belongs.round(4).tolist(),
    }  # fmt: skip


def state_of_letter(transitions: NDArray[np.float64], emissions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probability of each state given the letter alone (27, K), in the long run of the chain."""
    values, vectors = np.linalg.eig(transitions.T)
    often = np.abs(np.real(vectors[:, np.argmax(np.real(values))]))
    joint = (often / often.sum())[:, None] * emissions
    return (joint / joint.sum(axis=0)).T


def without_states(learned: NDArray[np.int64], held_out: NDArray[np.int64]) -> dict[str, float]:
    """Nats a held-out letter by how often letters are, and by how they follow one another (a tenth of a count each)."""
    n, (old, new) = len(SYMBOLS), (part[:, 0] for part in (learned, held_out))
    alone = np.bincount(old, minlength=n) + 0.1
    pairs = np.bincount(n * old[:-1] + old[1:], minlength=n * n).reshape(n, n) + 0.1
    pairs /= pairs.sum(axis=1, keepdims=True)
    alone /= alone.sum()
    return {UNIGRAM: float(np.log(alone[new]).mean()), CHAIN: float(np.log(pairs[new[:-1], new[1:]]).mean())}


def window_of(X: NDArray[np.int64]) -> int:
    """Letters in a window, of which there are two at least."""
    return min(WINDOW, len(X) // 2)


def online(k: int, X: NDArray[np.int64]) -> dict[str, list[float]]:
    """Mean score of the letters before they were learned, window by window."""
    found, window = {}, window_of(X)
    for name, algorithm in ((STREAM, "auto"), (STEPS, "online-em")):
        learner = model(k, 0, algorithm=algorithm)
        scores = np.concatenate([learner.update(X[at : at + 1000]) for at in range(0, len(X), 1000)])
        windows = range(0, len(X) - window + 1, window)
        found[name] = [float(np.nanmean(scores[at : at + window])) for at in windows]
    return found


def measure(path: Path, quick: bool = False) -> dict[str, Any]:
    """Learn everything that the section tells of."""
    scale = QUICK if quick else FULL
    X = load(path, scale.letters)
    cut = len(X) - len(X) // HELD_OUT
    learned, held_out = X[:cut], X[cut:]
    for warm in (streamed, fitted):
        warm(2, X[:5000], 0)  # compiles the kernels
    streamed(2, X[:5000], 0, "online-em")
    runs: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for k in scale.states:
        kept: dict[str, list[dict[str, Any]]] = {}
        for seed in range(scale.seeds):
            for name, learn in (
                (STREAM, lambda k=k, seed=seed: streamed(k, learned, seed)),
                (STEPS, lambda k=k, seed=seed: streamed(k, learned, seed, "online-em")),
                (FIT, lambda k=k, seed=seed: fitted(k, learned, seed)),
                (PEER, lambda k=k, seed=seed: peer(k, learned, seed)),
            ):
                kept.setdefault(name, []).append(judged(learn, learned, held_out))
        runs[str(k)] = kept
        print(f"{k} states: " + ", ".join(f"{name} {ones[0]['held_out']:.4f}" for name, ones in kept.items()), flush=True)
    close = max((fitted(scale.shown, learned, seed) for seed in range(scale.seeds)), key=lambda one: one.score(learned))
    return {
        "quick": quick, "letters": len(learned), "held_out": len(held_out), "chunk": CHUNK,
        "window": window_of(learned), "seeds": scale.seeds,
        "passes": PASSES, "shown": scale.shown, "runs": runs, "without": without_states(learned, held_out),
        "often": (np.bincount(X[:, 0], minlength=len(SYMBOLS)) / len(X)).tolist(), "online": online(2, learned),
        "close": {
            "emissions": close.emissionprob_.round(4).tolist(), "transitions": close.transmat_.round(4).tolist(),
            "given_letter": state_of_letter(close.transmat_, close.emissionprob_).round(4).tolist(),
        },
    }  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    return run("letters", FILE, measure, __doc__, argv)


if __name__ == "__main__":
    raise SystemExit(main())
