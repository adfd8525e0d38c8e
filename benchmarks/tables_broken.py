"""Broken rows: what one row in a hundred, twenty deviations away, costs a mixture on clean rows that it has not seen."""

from __future__ import annotations

from typing import Any

import numpy as np

import headwater as hw
from benchmarks.timing import one_thread
from pages.results import Figures

COMPONENTS, WIDTH = 4, 5
BROKEN, AWAY = 0.01, 20.0  # part of the rows, and standard deviations of the table that each column of them is off
CHUNK = 1000
CONTENDERS: dict[str, tuple[str, dict[str, Any]]] = {
    "GaussianMixture": ("GaussianMixture", {}),
    "GaussianMixture, background=True": ("GaussianMixture", {"background": True}),
    "StudentMixture": ("StudentMixture", {}),
    "StudentMixture, degrees_of_freedom=20": ("StudentMixture", {"degrees_of_freedom": 20.0}),
}


def make_rows(rows: int, seed: int) -> tuple[Any, Any, Any]:
    """Clean rows, the same rows of which some are broken, and clean rows for the judgement."""
    rng = np.random.default_rng(seed)
    centres = 4.0 * rng.normal(size=(COMPONENTS, WIDTH))
    shapes = 0.5 * rng.normal(size=(COMPONENTS, WIDTH, WIDTH)) + np.eye(WIDTH)
    groups = rng.integers(COMPONENTS, size=2 * rows)
    X = np.einsum("nij,nj->ni", shapes[groups], rng.normal(size=(2 * rows, WIDTH))) + centres[groups]
    clean, test = X[:rows], X[rows:]
    odd = np.flatnonzero(rng.random(rows) < BROKEN)
    ways = rng.normal(size=(len(odd), WIDTH))
    ways *= WIDTH**0.5 / np.linalg.norm(ways, axis=1)[:, None]
    dirty = clean.copy()
    dirty[odd] = clean.mean(axis=0) + AWAY * clean.std(axis=0) * ways
    return clean, dirty, test


def measure_broken(rows: int, seed: int) -> Figures:
    """Nats a row that each contender loses on clean rows, beside a plain mixture that learned from clean rows."""
    clean, dirty, test = make_rows(rows, seed)

    def score(kind: str, options: dict[str, Any], X: Any) -> float:
        model = getattr(hw, kind)(COMPONENTS, n_threads=1, random_state=0, **options)
        for start in range(0, len(X), CHUNK):
            model.partial_fit(X[start : start + CHUNK])
        return float(model.score(test))

    with one_thread():
        best = score("GaussianMixture", {}, clean)
        lost = {name: best - score(kind, options, dirty) for name, (kind, options) in CONTENDERS.items()}
    return {"rows": rows, "seed": seed, "lost": lost}
