"""The number of components: growth in one pass, against a fit for each number and the least BIC."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from sklearn.mixture import GaussianMixture as Peer

from benchmarks.data import Array
from benchmarks.line import Line, quotient
from benchmarks.registry import benchmark
from benchmarks.scale import Scale
from benchmarks.timing import timed
from headwater import GaussianMixture, MultinomialMixture
from headwater.estimators.race_stream import COMPONENTS

LARGEST = 16  # number of components that the peer tries; we try more


@dataclass(frozen=True)
class Drawn:
    """Rows, and the number of components that they were drawn from."""

    rows: Array
    n_components: int


def gaussians(n: int, apart: float, rng: np.random.Generator) -> Drawn:
    """Two to twelve Gaussians of different shapes and weights in 2 to 10 dimensions, their means drawn `apart`."""
    k, width = int(rng.integers(2, 13)), int(rng.choice([2, 3, 5, 10]))
    sources = rng.choice(k, size=n, p=rng.dirichlet(np.full(k, 5.0)))
    shapes = np.eye(width) + 0.5 * rng.normal(size=(k, width, width))
    means = apart * rng.normal(size=(k, width))
    return Drawn(means[sources] + np.einsum("nij,nj->ni", shapes[sources], rng.normal(size=(n, width))), k)


def with_a_rare_one(n: int, rng: np.random.Generator) -> Drawn:
    """Three to sixteen Gaussians in 2 to 20 dimensions, one of which has one row in a hundred."""
    k, width = int(rng.integers(3, 17)), int(rng.choice([2, 3, 5, 10, 20]))
    shares = np.append(0.99 * rng.dirichlet(np.full(k - 1, 5.0)), 0.01)
    return _gaussians(n, shares, 4.0, 0.5 / np.sqrt(max(width / 4, 1.0)), width, rng)


def wide(n: int, rng: np.random.Generator) -> Drawn:
    """Three to eight Gaussians in 30 dimensions."""
    k = int(rng.integers(3, 9))
    return _gaussians(n, rng.dirichlet(np.full(k, 5.0)), 2.0, 1.0 / np.sqrt(30.0), 30, rng)


def _gaussians(n: int, shares: Array, apart: float, bent: float, width: int, rng: np.random.Generator) -> Drawn:
    sources = rng.choice(len(shares), size=n, p=shares)
    shapes = np.eye(width) + bent * rng.normal(size=(len(shares), width, width))
    means = apart * rng.normal(size=(len(shares), width))
    return Drawn(means[sources] + np.einsum("nij,nj->ni", shapes[sources], rng.normal(size=(n, width))), len(shares))


def counts(n: int, rng: np.random.Generator) -> Drawn:
    """Two to twelve multinomials over 50 words, 30 of which are drawn."""
    k = int(rng.integers(2, 13))
    sources = rng.choice(k, size=n, p=rng.dirichlet(np.full(k, 5.0)))
    return Drawn(rng.multinomial(30, rng.dirichlet(np.full(50, 0.5), size=k)[sources]).astype(float), k)


@benchmark
def choices(scale: Scale) -> Iterator[Line]:
    n = scale.rows(20_000, 600)
    for name, apart in (("far apart", 4.0), ("near", 1.5)):
        yield _line(f"K of Gaussians {name}", lambda rng, apart=apart: gaussians(n, apart, rng), GaussianMixture, Peer, scale)
    yield _line("K with one of 1 percent", lambda rng: with_a_rare_one(n, rng), GaussianMixture, Peer, scale)
    yield _line("K in 30 columns", lambda rng: wide(2 * n, rng), GaussianMixture, Peer, scale)
    yield _line("K of counts, 30 a row", lambda rng: counts(n, rng), MultinomialMixture, _alone, scale)


def _alone(n_components: int, random_state: int) -> MultinomialMixture:
    """Return our fits as the peer, one after the other, since scikit-learn has no multinomial mixture."""
    return MultinomialMixture(n_components, random_state=random_state, n_threads=1)


def _line(name: str, make: Callable[..., Drawn], kind: Any, peer: Any, scale: Scale) -> Line:
    seconds: dict[str, list[float]] = {"stream": [], "fit": [], "peer": []}
    found: dict[str, list[int]] = {"stream": [], "fit": [], "peer": [], "true": []}
    for seed in range(scale.first_seed, scale.first_seed + scale.seeds):
        drawn = make(np.random.default_rng(seed))
        found["true"].append(drawn.n_components)
        works = {
            "stream": lambda rows, seed=seed: kind("auto", random_state=seed, n_threads=1).partial_fit(rows).n_components_,
            "fit": lambda rows, seed=seed: kind("auto", random_state=seed, n_threads=1).fit(rows).n_components_,
            "peer": lambda rows, seed=seed: _least_bic(peer, rows, seed),
        }
        for side, work in works.items():
            if seed == scale.first_seed and side != "peer":
                work(drawn.rows)  # compile
            spent, chosen = timed(work, drawn.rows)
            seconds[side].append(spent)
            found[side].append(chosen)
    right = {side: sum(a == b for a, b in zip(found[side], found["true"], strict=True)) for side in seconds}
    near = sum(abs(a - b) <= 1 for a, b in zip(found["stream"], found["true"], strict=True))
    ours, theirs = median(seconds["stream"]), median(seconds["peer"])
    note = (
        f"right for {right['stream']} of {scale.seeds} streams (within one: {near}), {right['fit']} fits "
        f"({median(seconds['fit']):.2f} s), and {right['peer']} by the least BIC of K 1 to {LARGEST}"
    )
    details = {"seconds": seconds, "found": found}
    return Line(name, ours, theirs, "s", quotient(theirs, ours), None, note, details=details)


def _least_bic(peer: Any, rows: Array, seed: int) -> int:
    fits = [peer(k, random_state=seed).fit(rows) for k in COMPONENTS if k <= LARGEST]
    best = min(fits, key=lambda fit: fit.bic(rows))
    return int(best.n_components)
