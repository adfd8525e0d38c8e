"""Clusters that appear late: how many of them streams find, by every algorithm that grows and by a Dirichlet process.

Paper 003 leaves the number of components to future work. ``python -m pages late_clusters`` measures what became of it and
writes docs/papers/late_clusters.md. All data are generated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import headwater as hw
from headwater.core.statistics import Array
from pages.page import Measures, Page
from pages.results import Figures, Results

EARLY, ALL, COLUMNS = 3, 6, 4
SPREAD = 4.0  # standard deviations of the centres around their middle, in those of a cluster
NEAREST = 3.0  # between two centres, at least
CHUNK = 1000
ROOM = 20  # components of a Dirichlet process
LEAST_WEIGHT = 0.01  # of a component that counts

WAYS: dict[str, Callable[[], Any]] = {
    "auto": lambda: hw.GaussianMixture("auto", random_state=0),
    "boem": lambda: hw.GaussianMixture("auto", algorithm="boem", random_state=0),
    "online-vb": lambda: hw.GaussianMixture("auto", algorithm="online-vb", random_state=0),
    "quasi-bayes": lambda: hw.GaussianMixture("auto", algorithm="quasi-bayes", random_state=0),
    "Dirichlet process, online-vb": lambda: process("online-vb"),
    "Dirichlet process, online-vb, refined": lambda: process(hw.OnlineVB(refine=True)),
    "Dirichlet distribution, online-vb": lambda: process("online-vb", "dirichlet_distribution"),
    "moment-matching, number given": lambda: hw.GaussianMixture(ALL, algorithm="moment-matching", random_state=0),
    "online-em, number given": lambda: hw.GaussianMixture(ALL, algorithm="online-em", random_state=0),
}


def process(algorithm: Any, law: str = "dirichlet_process") -> Any:
    return hw.BayesianGaussianMixture(
        n_components=ROOM, algorithm=algorithm, weight_concentration_prior_type=law, random_state=0
    )


@dataclass(frozen=True)
class Scale:
    """Sets, the rows before the late clusters appear, and those after it."""

    sets: int = 20
    early: int = 10_000
    late: int = 30_000


def centres_of(rng: np.random.Generator) -> Array:
    """Centres (ALL, COLUMNS), no two of them nearer than so many standard deviations."""
    while True:
        found = rng.normal(scale=SPREAD, size=(ALL, COLUMNS))
        gaps = np.linalg.norm(found[:, None] - found, axis=2)[np.triu_indices(ALL, 1)]
        if gaps.min() >= NEAREST:
            return found


def stream_of(seed: int, scale: Scale) -> tuple[Array, Array, Array]:
    """Rows of a stream, rows like its last ones to score, and their log-densities under the truth."""
    rng = np.random.default_rng(np.random.SeedSequence((3, seed)))
    centres = centres_of(rng)
    labels = np.concatenate([rng.integers(EARLY, size=scale.early), rng.integers(ALL, size=scale.late)])
    rows = centres[labels] + rng.normal(size=(len(labels), COLUMNS))
    shares = np.bincount(labels, minlength=ALL) / len(labels)
    held = rng.choice(ALL, p=shares, size=10_000)
    held_out = centres[held] + rng.normal(size=(len(held), COLUMNS))
    squares = ((held_out[:, None] - centres) ** 2).sum(axis=2)
    truth = np.logaddexp.reduce(np.log(shares) - 0.5 * squares, axis=1) - 0.5 * COLUMNS * np.log(2.0 * np.pi)
    return rows, held_out, truth


def outcome(way: str, seed: int, scale: Scale) -> list[float]:
    """Components that count when the late clusters appear and at the end, and the held-out gap to the truth."""
    rows, held_out, truth = stream_of(seed, scale)
    model, before = WAYS[way](), 0
    for at in range(0, len(rows), CHUNK):
        model.partial_fit(rows[at : at + CHUNK])
        if at + CHUNK == scale.early:
            before = int((model.weights_ >= LEAST_WEIGHT).sum())
    after = int((model.weights_ >= LEAST_WEIGHT).sum())
    return [before, after, float(model.score(held_out) - truth.mean())]


def make_found(scale: Scale, data: Path | None) -> Measures:
    def measured(seed: int) -> Figures:
        return {way: outcome(way, seed, scale) for way in WAYS}

    for seed in range(scale.sets):
        yield f"{seed}", partial(measured, seed)


def found(results: Results) -> dict[str, Any]:
    """For each way: sets in which it had the right number before and after, all numbers, and the gap with its spread."""
    sets = results.of("found")
    lines = {}
    for way in sets[0]:
        before, after, gap = np.array([one[way] for one in sets]).T
        lines[way] = {
            "before": int((before == EARLY).sum()), "after": int((after == ALL).sum()),
            "numbers": ", ".join(f"{int((after == k).sum())} x {k}" for k in np.unique(after.astype(int))),
            "gap": float(gap.mean()), "spread": float(gap.std(ddof=1)) if len(gap) > 1 else 0.0,
        }  # fmt: skip
    return {"lines": lines, "sets": len(sets)}


PAGE = Page(
    name="late_clusters", room="papers", full=Scale(), quick=Scale(2, 2000, 4000), minutes=8, seeds="0 to the number of sets",
    parts={"found": make_found}, values={"found": found},
    names={
        "EARLY": EARLY, "ALL": ALL, "COLUMNS": COLUMNS, "SPREAD": SPREAD, "NEAREST": NEAREST, "ROOM": ROOM,
        "LEAST": LEAST_WEIGHT,
    },
)  # fmt: skip
