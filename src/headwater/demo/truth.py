"""The mixture that the demo learns, and the stream of its rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from headwater.core.statistics import Array

COMPONENTS, WIDTH = 8, 5
CHUNK_ROWS = 1000  # of a chunk: the only rows in memory
HELD_OUT_ROWS = 20_000  # scores of which have a standard error of a hundredth of a nat


@dataclass(frozen=True)
class Truth:
    """The mixture that the rows are drawn from, under the names of a fitted one."""

    weights_: Array
    means_: Array
    covariances_: Array
    covariance_type: str = "full"

    @classmethod
    def draw(cls, seed: int) -> Truth:
        """Draw components with unequal weights and full covariances, the nearest of which overlap."""
        rng = np.random.default_rng(np.random.SeedSequence((seed, 0)))
        weights = 0.4 / COMPONENTS + 0.6 * rng.dirichlet(np.full(COMPONENTS, 3.0))
        means = rng.normal(scale=2.5, size=(COMPONENTS, WIDTH))
        axes = np.linalg.qr(rng.normal(size=(COMPONENTS, WIDTH, WIDTH)))[0]
        spreads = rng.uniform(0.4, 1.3, size=(COMPONENTS, 1, WIDTH))
        return cls(weights, means, (axes * spreads**2) @ axes.swapaxes(1, 2))

    def rows(self, number: int, rng: np.random.Generator) -> Array:
        """Draw rows."""
        component = rng.choice(COMPONENTS, size=number, p=self.weights_)
        roots = np.linalg.cholesky(self.covariances_)
        noise = rng.standard_normal((number, WIDTH))
        return self.means_[component] + np.einsum("nij,nj->ni", roots[component], noise)

    def score(self, X: Array) -> float:
        """Mean log-density per row."""
        factors = np.linalg.inv(np.linalg.cholesky(self.covariances_))
        scaled = np.einsum("kij,knj->kni", factors, X - self.means_[:, None])
        offsets = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1) - 0.5 * WIDTH * np.log(2.0 * np.pi)
        joint = (np.log(self.weights_) + offsets)[:, None] - 0.5 * (scaled**2).sum(axis=2)
        return float(np.logaddexp.reduce(joint, axis=0).mean())


def make_stream(truth: Truth, rows: int, seed: int) -> Iterator[Array]:
    """Yield the rows in chunks, the same ones every time; only one chunk is in memory."""
    for index, start in enumerate(range(0, rows, CHUNK_ROWS)):
        rng = np.random.default_rng(np.random.SeedSequence((seed, 2, index)))
        yield truth.rows(min(CHUNK_ROWS, rows - start), rng)


def held_out_rows(truth: Truth, seed: int) -> Array:
    """Return rows that no contender learns from."""
    return truth.rows(HELD_OUT_ROWS, np.random.default_rng(np.random.SeedSequence((seed, 1))))
