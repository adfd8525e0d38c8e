"""The data sets of `parts_and_rounds`: each sorted by the component that its rows are from, and some rows to judge by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import headwater as hw
from benchmarks.data import Array, make_truth
from benchmarks.density import mean_score, mixture_of

HELD_OUT = 10  # of so many rows one is held out


@dataclass(frozen=True)
class Drawn:
    """Rows sorted by component, test rows, an unfitted model, and a scorer of models."""

    rows: Array
    held_out: Array
    model: Callable[[], Any]
    score: Callable[[Any, Array], float]


def gaussians(rows: int, rng: np.random.Generator) -> Drawn:
    n_components, width = int(rng.integers(5, 13)), int(rng.integers(4, 11))
    truth = make_truth(n_components, width, rng, sep=float(rng.uniform(0.7, 1.5)))
    return Drawn(
        truth.sample(rows, rng, shuffled=False), truth.sample(rows // HELD_OUT, rng),
        lambda: hw.GaussianMixture(n_components, random_state=0, n_threads=1),
        lambda model, X: mean_score(mixture_of(model.weights_, model.means_, model.covariances_), X),
    )  # fmt: skip


def counts(rows: int, rng: np.random.Generator, width: int = 200, length: int = 30) -> Drawn:
    """Documents of about 30 words, each from one of 5 to 12 sources, which are Dirichlet(0.1) over 200 words."""
    n_components = int(rng.integers(5, 13))
    weights = rng.dirichlet(np.full(n_components, 5.0))
    sources = rng.dirichlet(np.full(width, 0.1), size=n_components)

    def draw(size: int) -> Array:
        labels = np.sort(rng.choice(n_components, size=size, p=weights))
        return rng.multinomial(1 + rng.poisson(length, size=size), sources[labels]).astype(float)

    return Drawn(
        draw(rows), draw(rows // HELD_OUT),
        lambda: hw.MultinomialMixture(n_components, random_state=0, n_threads=1),
        lambda model, X: float(model.score(X)),
    )  # fmt: skip


def topics(rows: int, rng: np.random.Generator, width: int = 500, n_topics: int = 10, length: int = 60) -> Drawn:
    """Documents of about 60 words from topics that are Dirichlet(0.05) over 500 words, sorted by their largest topic."""
    words = rng.dirichlet(np.full(width, 0.05), size=n_topics)

    def draw(size: int) -> Array:
        proportions = rng.dirichlet(np.full(n_topics, 0.1), size=size)
        proportions = proportions[np.argsort(proportions.argmax(axis=1), kind="stable")]
        return rng.multinomial(1 + rng.poisson(length, size=size), proportions @ words).astype(float)

    return Drawn(
        draw(rows), draw(rows // HELD_OUT),
        lambda: hw.LatentDirichletAllocation(n_topics, doc_topic_prior="learn", random_state=0, n_threads=1),
        lambda model, X: -float(np.log(hw.completion_perplexity(model, X))),
    )  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """A kind of data: how it is drawn, rows of a set, and what a loss is counted per."""

    name: str
    draw: Callable[[int, np.random.Generator], Drawn]
    rows: int
    per: str = "row"


KINDS = (
    Kind("Gaussians", gaussians, 192_000),
    Kind("counts", counts, 64_000),
    Kind("topics", topics, 16_000, "word"),
)
