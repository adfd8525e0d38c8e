"""Vowels and consonants, found in a novel by a hidden Markov model of its letters, without labels.

``python -m pages letters`` measures it and writes docs/examples/letters.md.
"""

from __future__ import annotations

import gzip
import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

import headwater as hw
from examples import letters_values as values
from examples.letters_values import CHAIN, FIT, PEER, STEPS, STREAM, SYMBOLS, UNIGRAM, VOWELS
from pages.page import Measures, Page
from pages.results import Figures

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


def load(path: Path, at_most: int | None = None) -> NDArray[np.int64]:
    """Return the novel from its first chapter on, as letters (0 to 25) and spaces (26); other characters are spaces."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        text = file.read()
    text = re.sub("[^a-z]+", " ", text[max(text.find("Chapter 1"), 0) :].lower()).strip()[:at_most]
    codes = np.frombuffer(text.encode("ascii"), dtype=np.uint8).astype(np.int64)
    return np.where(codes == ord(" "), 26, codes - ord("a"))[:, None]


# The learners


def model(k: int, seed: int, **options: Any) -> hw.CategoricalHMM:
    """Return an unfitted hidden Markov model."""
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


def judged(learn: Callable[[], Any], learned: NDArray[np.int64], held_out: NDArray[np.int64]) -> Figures:
    """Return cost and quality of a learner: nats per training letter and per held-out letter."""
    began = time.process_time()
    found = learn()
    _ = found.transmat_
    seconds = time.process_time() - began
    outcome = {
        "seconds": seconds,
        "learned": found.score(learned) / len(learned),
        "held_out": found.score(held_out) / len(held_out),
    }
    if len(found.transmat_) == 2:
        outcome |= sides(found.transmat_, found.emissionprob_, learned)
    passes = getattr(found, "monitor_", None) if hasattr(found, "lower_bounds_") or not hasattr(found, "partial_fit") else None
    return outcome if passes is None else outcome | {"passes": passes.iter}


def sides(transitions: NDArray[np.float64], emissions: NDArray[np.float64], X: NDArray[np.int64]) -> Figures:
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
    """Return the probability of each state given the letter alone (27, K), under the stationary distribution."""
    values, vectors = np.linalg.eig(transitions.T)
    often = np.abs(np.real(vectors[:, np.argmax(np.real(values))]))
    joint = (often / often.sum())[:, None] * emissions
    return (joint / joint.sum(axis=0)).T


def without_states(learned: NDArray[np.int64], held_out: NDArray[np.int64]) -> dict[str, float]:
    """Return nats per held-out letter by letter frequencies, and by a Markov chain (prior: a tenth of a count each)."""
    n, (old, new) = len(SYMBOLS), (part[:, 0] for part in (learned, held_out))
    alone = np.bincount(old, minlength=n) + 0.1
    pairs = np.bincount(n * old[:-1] + old[1:], minlength=n * n).reshape(n, n) + 0.1
    pairs /= pairs.sum(axis=1, keepdims=True)
    alone /= alone.sum()
    return {UNIGRAM: float(np.log(alone[new]).mean()), CHAIN: float(np.log(pairs[new[:-1], new[1:]]).mean())}


def window_of(X: NDArray[np.int64]) -> int:
    """Letters in a window, of which there are two at least."""
    return min(WINDOW, len(X) // 2)


def online(k: int, X: NDArray[np.int64]) -> Figures:
    """Mean score of the letters before they were learned, window by window."""
    found, window = {}, window_of(X)
    for name, algorithm in ((STREAM, "auto"), (STEPS, "online-em")):
        learner = model(k, 0, algorithm=algorithm)
        scores = np.concatenate([learner.update(X[at : at + 1000]) for at in range(0, len(X), 1000)])
        windows = range(0, len(X) - window + 1, window)
        found[name] = [float(np.nanmean(scores[at : at + window])) for at in windows]
    return {"window": window, "scores": found}


# The page


def facts(learned: NDArray[np.int64], held_out: NDArray[np.int64], scale: Scale) -> Figures:
    return {
        "letters": len(learned), "held_out": len(held_out), "chunk": CHUNK, "seeds": scale.seeds, "passes": PASSES,
        "shown": scale.shown, "without": without_states(learned, held_out),
    }  # fmt: skip


def compared(k: int, learned: NDArray[np.int64], held_out: NDArray[np.int64], seeds: int) -> Figures:
    """Every learner with so many states, seed by seed."""
    kept: dict[str, list[Figures]] = {}
    for seed in range(seeds):
        learners = {
            STREAM: partial(streamed, k, learned, seed), STEPS: partial(streamed, k, learned, seed, "online-em"),
            FIT: partial(fitted, k, learned, seed), PEER: partial(peer, k, learned, seed),
        }  # fmt: skip
        for name, learn in learners.items():
            kept.setdefault(name, []).append(judged(learn, learned, held_out))
    return {"states": k, "runs": kept}


def closely(learned: NDArray[np.int64], scale: Scale) -> Figures:
    """The best fit of a larger model."""
    best = max((fitted(scale.shown, learned, seed) for seed in range(scale.seeds)), key=lambda one: one.score(learned))
    return {
        "emissions": best.emissionprob_.round(4).tolist(), "transitions": best.transmat_.round(4).tolist(),
        "given_letter": state_of_letter(best.transmat_, best.emissionprob_).round(4).tolist(),
    }  # fmt: skip


def measure(scale: Scale, data: Path | None) -> Measures:
    assert data is not None
    X = load(data / FILE, scale.letters)
    cut = len(X) - len(X) // HELD_OUT
    learned, held_out = X[:cut], X[cut:]
    for warm in (streamed, fitted, partial(streamed, algorithm="online-em")):
        warm(2, X[:5000], 0)  # compiles the kernels
    yield "text", partial(facts, learned, held_out, scale)
    yield "online", partial(online, 2, learned)
    for k in scale.states:
        yield f"states/{k}", partial(compared, k, learned, held_out, scale.seeds)
    yield "close", partial(closely, learned, scale)


PAGE = Page(
    name="letters", room="examples", full=Scale(), quick=Scale((2,), 1, 60_000, 2), minutes=6, seeds="0 to 2: the starts",
    parts={"states": measure}, values={"states": values.states}, names={"UNIGRAM": UNIGRAM, "CHAIN": CHAIN}, needs=(FILE,),
    pictures={"letters": values.draw}, silent=(ConvergenceWarning,),
)  # fmt: skip
