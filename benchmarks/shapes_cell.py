"""One cell of the page of shapes: a method learns a shape in a process of its own, and prints its cost and how good it is.

    python -m benchmarks.shapes_cell SHAPE METHOD SCALE

SCALE divides the rows. Rows are made before the clock starts, and for each method anew, by the same seed. Peers are imported in
their own cells alone.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Rows = Any


@dataclass(frozen=True)
class Shape:
    """Rows to learn and rows to judge by, with the groups that they were made of."""

    rows: Rows
    judge: Rows
    groups: Any
    components: int


def clusters(rows: int, components: int, width: int, apart: float, dtype: Any = np.float64, seed: int = 0) -> Shape:
    """Round groups of different weights about centres that lie apart."""
    rng = np.random.default_rng(seed)
    centres = (apart * rng.normal(size=(components, width))).astype(dtype)
    weights = rng.dirichlet(np.full(components, 5.0))
    held = max(rows // 10, 200)
    kinds = rng.choice(components, p=weights, size=rows + held)
    X = rng.standard_normal((rows + held, width), dtype=np.float32).astype(dtype, copy=False)
    for at in range(0, len(X), 10_000):
        X[at : at + 10_000] += centres[kinds[at : at + 10_000]]
    return Shape(X[:rows], X[rows:], kinds[rows:], components)


def embeddings(rows: int, components: int, width: int) -> Shape:
    """Directions of known clusters of different concentrations, of length one, in float32."""
    found = clusters(rows, components, width, 0.5, np.float32, seed=3)
    for part in (found.rows, found.judge):
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    return found


def chain(rows: int) -> Shape:
    """A hidden chain of five states that stay for about twenty steps."""
    rng = np.random.default_rng(1)
    states = np.cumsum(rng.random(rows + rows // 10) < 0.05)
    kinds = rng.integers(5, size=states[-1] + 1)[states]
    X = 2.0 * rng.normal(size=(5, 4))[kinds] + rng.normal(size=(len(kinds), 4))
    return Shape(X[:rows], X[rows:], kinds[rows:], 5)


def documents(rows: int) -> Shape:
    """Documents of 80 words by ten topics over 2,000 words."""
    rng = np.random.default_rng(2)
    topics = rng.dirichlet(np.full(2000, 0.05), size=10)
    shares = rng.dirichlet(np.full(10, 0.2), size=rows + rows // 10)
    counts = np.array([rng.multinomial(80, share @ topics) for share in shares])
    return Shape(counts[:rows], counts[rows:], shares[rows:].argmax(axis=1), 10)


SHAPES: dict[str, Callable[[int], Shape]] = {
    "small": lambda scale: clusters(1_000, 3, 4, 3.0),
    "table": lambda scale: clusters(20_000 // scale, 10, 10, 2.0),
    "long": lambda scale: clusters(1_000_000 // scale, 10, 10, 2.0),
    "wide": lambda scale: clusters(30_000 // scale, 256 // scale, 256, 0.5),
    "embeddings": lambda scale: embeddings(200_000 // scale, 1000 // scale, 768 // min(scale, 8)),
    "chain": lambda scale: chain(40_000 // scale),
    "documents": lambda scale: documents(4_000 // scale),
}


def measure(shape: str, method: str, scale: int) -> dict[str, float]:
    """Learn, and return seconds, CPU seconds, the peak memory beside the rows in MB, and the quality of the result."""
    from benchmarks.shapes_methods import METHODS

    found = SHAPES[shape](scale)
    learn, judge = METHODS[shape][method](found)
    before, cpu, begin = _peak(), time.process_time(), time.perf_counter()
    model = learn()
    seconds, spent = time.perf_counter() - begin, time.process_time() - cpu
    return {"seconds": seconds, "cpu": spent, "memory": _peak() - before, "peak": _peak(), **judge(model)}


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
