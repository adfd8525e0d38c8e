"""A day of a news site: a million sessions, clustered in one pass by how visitors go from page to page.

``python -m pages msnbc`` measures it and writes docs/examples/msnbc.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import headwater as hw
from examples import msnbc_values as values
from examples.msnbc_values import BOTH, COUNTS, EM, MARKOV
from headwater.demo.memory import memory_since, reset_peak_memory
from pages.page import Measures, Page
from pages.results import Figures

FILE = "msnbc/msnbc.npz"
CHUNK = 10_000
HELD_OUT = 10  # every so many-th session is held out


@dataclass(frozen=True)
class Scale:
    """How much is done: numbers of components, seeds, sessions, and the number of components to look at closely."""

    components: tuple[int, ...] = (2, 4, 8, 16, 32)
    seeds: int = 3
    sessions: int | None = None
    shown: int = 8


# The sessions


@dataclass(frozen=True)
class Sessions:
    """Concatenated sessions: the category of each page view, and the length of each session."""

    values: NDArray[np.uint8]
    lengths: NDArray[np.int64]
    categories: list[str]

    @classmethod
    def load(cls, path: Path, at_most: int | None = None) -> Sessions:
        with np.load(path) as file:
            lengths = file["lengths"].astype(np.int64)[:at_most]
            return cls(file["values"][: lengths.sum()], lengths, file["categories"].tolist())

    def __len__(self) -> int:
        return len(self.lengths)

    def chosen(self, which: NDArray[np.bool_]) -> Sessions:
        return Sessions(self.values[np.repeat(which, self.lengths)], self.lengths[which], self.categories)

    def split(self) -> tuple[Sessions, Sessions]:
        """The sessions to learn from, and those held out, both in their order."""
        held_out = np.arange(len(self)) % HELD_OUT == HELD_OUT - 1
        return self.chosen(~held_out), self.chosen(held_out)

    def chunks(self, size: int = CHUNK) -> Iterator[tuple[slice, Sessions]]:
        """Yield sessions in the order of the stream, with their places."""
        first = 0
        for begin in range(0, len(self), size):
            place = slice(begin, begin + size)
            lengths = self.lengths[place]
            last = first + int(lengths.sum())
            yield place, Sessions(self.values[first:last], lengths, self.categories)
            first = last

    def counts(self) -> csr_array:
        """How often each session views each category, order ignored."""
        ends = np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int32)
        table = csr_array(
            (np.ones(len(self.values)), self.values.astype(np.int32), ends), shape=(len(self), len(self.categories))
        )
        table.sum_duplicates()
        return table

    def steps(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The session, the page and the next page of every step."""
        owner = np.repeat(np.arange(len(self)), self.lengths)
        within = owner[:-1] == owner[1:]
        return owner[:-1][within], self.values[:-1][within].astype(np.int64), self.values[1:][within].astype(np.int64)


# The learners


def chains(k: int, sessions: Sessions, seed: int, algorithm: str = "auto") -> hw.MarkovMixture:
    """Return an unfitted mixture of Markov chains."""
    symbols = len(sessions.categories)
    return hw.MarkovMixture(k, n_symbols=symbols, random_state=seed, algorithm=algorithm, n_threads=1)


def streamed(k: int, learn: Sessions, seed: int, labels: NDArray[np.int64] | None = None) -> hw.MarkovMixture:
    """One pass, chunk by chunk; with labels, each session goes to the component that is given for it."""
    model = chains(k, learn, seed)
    for place, chunk in learn.chunks():
        model.partial_fit(chunk.values, lengths=chunk.lengths, labels=None if labels is None else labels[place])
    return model


def in_passes(k: int, learn: Sessions, seed: int) -> hw.MarkovMixture:
    """EM over all sessions, pass after pass."""
    return chains(k, learn, seed, "em").fit(learn.values, lengths=learn.lengths)  # the table has the number of passes


def counted(k: int, learn: Sessions, seed: int) -> hw.MultinomialMixture:
    """Learn in one pass over counts of views; order is ignored."""
    model = hw.MultinomialMixture(k, random_state=seed, n_threads=1)
    for _, chunk in learn.chunks():
        model.partial_fit(chunk.counts())
    return model


def timed(learn: Callable[[], Any]) -> tuple[Any, Figures]:
    """Return the model, the seconds, and the increase of the peak memory in MB."""
    before = reset_peak_memory()
    began = time.process_time()
    model = learn()
    _ = model.weights_  # reading ends an incomplete warm-up, and folds the last rows
    seconds, grown = time.process_time() - began, memory_since(before)
    return model, {"seconds": seconds, "megabytes": None if grown is None else grown / 1e6}


def per_view(model: hw.MarkovMixture, held_out: Sessions) -> float:
    """Log-probability of the held-out page views, in their order, on average."""
    return float(model.score_samples(held_out.values, held_out.lengths).sum() / len(held_out.values))


def compared(k: int, learn: Sessions, held_out: Sessions, seed: int) -> dict[str, Figures]:
    """All learners with as many components, from one seed."""
    found: dict[str, Figures] = {}
    model, found[MARKOV] = timed(lambda: streamed(k, learn, seed))
    found[MARKOV]["score"] = per_view(model, held_out)
    bags, found[COUNTS] = timed(lambda: counted(k, learn, seed))
    found[COUNTS]["score"] = float(bags.score_samples(held_out.counts()).sum() / len(held_out.values))
    if k > 1:
        fitted, found[EM] = timed(lambda: in_passes(k, learn, seed))
        found[EM] |= {"score": per_view(fitted, held_out), "passes": fitted.n_iter_, "converged": fitted.converged_}
        both = streamed(k, learn, seed, np.concatenate([bags.predict(chunk.counts()) for _, chunk in learn.chunks()]))
        mine = model.predict(held_out.values, held_out.lengths)
        found[BOTH] = {
            "score": per_view(both, held_out),
            "agreement": float(adjusted_rand_score(bags.predict(held_out.counts()), mine)),
            "em agreement": float(adjusted_rand_score(fitted.predict(held_out.values, held_out.lengths), mine)),
        }
    return found


# A closer look


def portraits(model: hw.MarkovMixture, held_out: Sessions) -> list[Figures]:
    """The clusters by weight: their chains, and the held-out sessions that are theirs."""
    cluster = model.predict(held_out.values, held_out.lengths)
    k, symbols = model.n_components, len(held_out.categories)
    session, page, following = held_out.steps()
    steps, views = np.zeros((k, symbols, symbols), dtype=np.int64), np.zeros((k, symbols), dtype=np.int64)
    np.add.at(steps, (cluster[session], page, following), 1)
    np.add.at(views, (np.repeat(cluster, held_out.lengths), held_out.values), 1)
    found = []
    for one in np.argsort(-model.weights_, kind="stable"):
        lengths = held_out.lengths[cluster == one]
        found.append({
            "weight": float(model.weights_[one]), "start": model.startprob_[one].round(4).tolist(),
            "transitions": model.transmat_[one].round(4).tolist(), "steps": steps[one].tolist(), "views": views[one].tolist(),
            "sessions": len(lengths), "single": int((lengths == 1).sum()),
        })  # fmt: skip
    return found


# The page


def facts(sessions: Sessions, scale: Scale) -> Figures:
    learn, held_out = sessions.split()
    return {
        "sessions": len(learn), "views": len(learn.values), "held_out": len(held_out), "held_out_views": len(held_out.values),
        "chunk": CHUNK, "every": HELD_OUT, "seeds": scale.seeds, "median_length": float(np.median(sessions.lengths)),
        "longest": int(sessions.lengths.max()), "single": int((sessions.lengths == 1).sum()) / len(sessions),
        "bytes": int(learn.values.nbytes + learn.lengths.nbytes), "categories": sessions.categories,
    }  # fmt: skip


def measure(scale: Scale, data: Path | None) -> Measures:
    assert data is not None
    sessions = Sessions.load(data / FILE, scale.sessions)
    learn, held_out = sessions.split()
    for fit in (streamed, in_passes, counted):  # compiles the kernels
        fit(2, learn.chosen(np.arange(len(learn)) < 3000), 0)
    yield "sessions", partial(facts, sessions, scale)
    yield "clusters", lambda: {"clusters": portraits(streamed(scale.shown, learn, 0), held_out)}
    for k in (1, *scale.components):
        yield f"components/{k}", partial(repeated, k, learn, held_out, scale.seeds)


def repeated(k: int, learn: Sessions, held_out: Sessions, seeds: int) -> Figures:
    found = [compared(k, learn, held_out, seed) for seed in range(seeds)]
    return {"components": k, "runs": {name: [one[name] for one in found] for name in found[0]}}


PAGE = Page(
    name="msnbc", room="examples", full=Scale(), quick=Scale((2, 3), 1, 4000, 3), minutes=5, seeds="0 to 2: the starts",
    parts={"chains": measure}, values={"chains": values.chains}, needs=(FILE,),
    names={"code": values, "MARKOV": MARKOV, "EM": EM, "COUNTS": COUNTS, "BOTH": BOTH}, pictures={"msnbc": values.draw},
    silent=(ConvergenceWarning,),
)  # fmt: skip
