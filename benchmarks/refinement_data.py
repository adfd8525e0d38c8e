"""Data sets of `refinement`: mixtures of many shapes, and the orders that their rows arrive in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import Array, Truth, make_truth

ROWS, HELD_OUT = 100_000, 50_000

# How far two means lie apart, in deviations within a component: the root of the mean square over pairs.
SEPARATIONS = {"overlapping": 2.5, "medium": 4.5, "separated": 9.0}

SMALL = 0.01  # the weight of the smallest component, in every other set
LONGEST = 100.0  # the variance along the longest axis by that along the shortest, in elongated sets

Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Shape:
    """What is known of a set before it is drawn."""

    n_components: int
    width: int
    separation: str
    small: bool
    elongated: bool

    def __str__(self) -> str:
        marks = ("1%" if self.small else "") + (" long" if self.elongated else "")
        return f"K{self.n_components:<2} d{self.width:<2} {self.separation:11} {marks.strip():7}"


@dataclass(frozen=True)
class Drawn:
    """Rows in random order, the component that each is from, other rows to judge by, and what all were drawn from."""

    shape: Shape
    truth: Truth
    rows: Array
    labels: Labels
    held_out: Array


def shape_of(number: int, rng: np.random.Generator) -> Shape:
    """Separation, small component and elongation go round in all combinations; K is uniform and log d, too."""
    n_components = int(rng.integers(3, 17))
    width = int(np.exp(rng.uniform(np.log(2.0), np.log(31.0))))
    return Shape(n_components, width, list(SEPARATIONS)[number % 3], number // 3 % 2 == 0, number // 6 % 3 == 2)


def draw(seed: int, number: int, rows: int = ROWS, held_out: int = HELD_OUT) -> Drawn:
    """Draw the set of this number."""
    rng = np.random.default_rng([seed, number])
    shape = shape_of(number, rng)
    truth = truth_of(shape, rng)
    train, labels = sample(truth, rows, rng)
    return Drawn(shape, truth, train, labels, sample(truth, held_out, rng)[0])


def truth_of(shape: Shape, rng: np.random.Generator) -> Truth:
    truth = make_truth(shape.n_components, shape.width, rng, SEPARATIONS[shape.separation] / np.sqrt(2.0 * shape.width))
    if shape.elongated:
        truth = replace(truth, covariances=np.stack([elongated(shape.width, rng) for _ in truth.weights]))
    if shape.small:
        weights = truth.weights / truth.weights[1:].sum() * (1.0 - SMALL)
        weights[0] = SMALL
        truth = replace(truth, weights=weights)
    return truth


def elongated(width: int, rng: np.random.Generator) -> Array:
    """A covariance with axes of very different lengths in random directions, and with the trace of the identity."""
    axes = np.linalg.qr(rng.standard_normal((width, width)))[0]
    lengths = np.geomspace(1.0, LONGEST, width)
    return (axes * lengths * (width / lengths.sum())) @ axes.T


def sample(truth: Truth, size: int, rng: np.random.Generator) -> tuple[Array, Labels]:
    labels = rng.choice(truth.weights.size, size=size, p=truth.weights)
    rows = rng.standard_normal((size, truth.means.shape[1]))
    for k, factor in enumerate(np.linalg.cholesky(truth.covariances)):
        own = labels == k
        rows[own] = rows[own] @ factor.T + truth.means[k]
    return rows, labels


# Orders: places of the rows, in the order of their arrival.


def shuffled(drawn: Drawn, rng: np.random.Generator) -> Labels:
    return np.arange(len(drawn.rows))


def by_cluster(drawn: Drawn, rng: np.random.Generator) -> Labels:
    """One component after another, in random order."""
    turn = rng.permutation(drawn.truth.weights.size)
    return np.argsort(turn[drawn.labels], kind="stable")


def half_missing(drawn: Drawn, rng: np.random.Generator) -> Labels:
    """Of the first 30 percent of the rows, or as many as there are, all are from one half of the components."""
    n_components = drawn.truth.weights.size
    early = rng.permutation(n_components)[: max(1, n_components // 2)]
    first = np.flatnonzero(np.isin(drawn.labels, early))[: int(0.3 * len(drawn.rows))]
    later = np.ones(len(drawn.rows), dtype=bool)
    later[first] = False
    return np.concatenate([first, np.flatnonzero(later)])


def by_coordinate(drawn: Drawn, rng: np.random.Generator) -> Labels:
    """Sorted by the first column."""
    return np.argsort(drawn.rows[:, 0], kind="stable")


def drifting(drawn: Drawn, rng: np.random.Generator) -> Labels:
    """Weights that drift: the rows of each component arrive around a time of its own, spread over half of the stream."""
    times = rng.uniform(size=drawn.truth.weights.size)
    return np.argsort(times[drawn.labels] + 0.25 * rng.standard_normal(len(drawn.rows)), kind="stable")


Order = Callable[[Drawn, np.random.Generator], Labels]

ORDERS: dict[str, Order] = {
    "shuffled": shuffled,
    "by cluster": by_cluster,
    "half missing": half_missing,
    "by coordinate": by_coordinate,
    "drifting": drifting,
}


def arranged(drawn: Drawn, order: str, seed: int) -> Array:
    """The rows in the order of this name."""
    return np.ascontiguousarray(drawn.rows[ORDERS[order](drawn, np.random.default_rng([seed, list(ORDERS).index(order)]))])
