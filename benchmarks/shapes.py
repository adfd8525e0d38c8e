"""Shapes of data, methods and peers: time, quality and memory, cell by cell.

``python -m pages shapes`` measures it and writes docs/benchmarks/shapes.md. Each cell is a process of its own (shapes_cell.py),
one after the other, on as many threads as the machine has cores. A peer that is not installed has no line.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.process import PACKAGE
from benchmarks.shapes_cell import SHAPES
from benchmarks.shapes_methods import METHODS
from pages.page import ROOT, Measures, Page
from pages.results import Figures, Results

# What a shape is, and what its results are judged by, best first.
ABOUT = {
    "small": ("1,000 rows of 4 columns, 3 groups, full covariances", ("score", "rand")),
    "table": ("20,000 rows of 10 columns, 10 groups, full covariances", ("score", "rand")),
    "long": ("1,000,000 rows of 10 columns, 10 groups, full covariances", ("score", "rand")),
    "wide": ("30,000 rows of 256 columns, 256 groups, spherical", ("score", "rand")),
    "embeddings": ("200,000 rows of 768 columns in float32, of length one, 1,000 groups", ("rand",)),
    "chain": ("a sequence of 40,000 rows of 4 columns, 5 hidden states, diagonal covariances", ("score",)),
    "documents": ("4,000 documents of 80 words, 10 topics, 2,000 words", ("perplexity",)),
}
TITLES = {
    "small": "A small table", "table": "A table", "long": "A million rows", "wide": "Many columns and many groups",
    "embeddings": "Embeddings in a thousand groups", "chain": "A hidden Markov model", "documents": "Topics",
}  # fmt: skip
PEERS = {"FAISS k-means": "faiss", "River KMeans": "river", "hmmlearn GaussianHMM": "hmmlearn", "gensim LdaModel": "gensim",
         "tomotopy LDAModel": "tomotopy", "pomegranate GeneralMixtureModel": "pomegranate"}  # fmt: skip
LONGEST = 300  # seconds of a cell, after which it is given up


@dataclass(frozen=True)
class Scale:
    """What the rows of each shape are divided by, and how often each cell is measured."""

    divisor: int = 1
    repeats: int = 1


def measure_cells(shape: str, scale: Scale, data: Path | None) -> Measures:
    """All methods of a shape."""
    for method in METHODS[shape]:
        if find_spec(PEERS.get(method, "headwater")) is not None:
            yield method, partial(measure_cell, shape, method, scale)


def measure_cell(shape: str, method: str, scale: Scale) -> Figures:
    """The run of the least time, of so many."""
    return min((run_cell(shape, method, scale.divisor) for _ in range(scale.repeats)), key=lambda one: one.get("seconds", 1e9))


def run_cell(shape: str, method: str, divisor: int) -> Figures:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PACKAGE.parent), str(ROOT)])}
    command = [sys.executable, "-m", "benchmarks.shapes_cell", shape, method, str(divisor)]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LONGEST, cwd=ROOT)
    except subprocess.TimeoutExpired:
        return {"method": method, "given_up": LONGEST}
    if done.returncode:
        raise RuntimeError(f"{shape}, {method} failed:\n{done.stderr[-2000:]}")
    return {"method": method, **json.loads(done.stdout.splitlines()[-1])}


def cells(shape: str, results: Results) -> dict[str, Any]:
    """The lines of a table, headwater's first, with how they compare to its first one."""
    lines = results.of(shape)
    about, measures = ABOUT[shape]
    first = next((one for one in lines if one["method"].startswith("headwater") and "seconds" in one), None)
    for one in lines:
        one["ratio"] = one["seconds"] / first["seconds"] if first and "seconds" in one else None
        one["loses"] = [word for word in measures if first and word in one and is_better(word, one[word], first[word])]
        one["faster"] = bool(first and one["ratio"] is not None and one["ratio"] < 1.0)
    return {"about": about, "measures": measures, "lines": lines}


def is_better(measure: str, one: float, other: float) -> bool:
    """Whether a figure is better than another, by more than the last digit that is shown."""
    gap = {"score": 0.001, "rand": 0.001, "perplexity": 0.1}[measure]
    return one < other - gap if measure == "perplexity" else one > other + gap


PAGE = Page(
    name="shapes",
    room="benchmarks",
    parts={shape: partial(measure_cells, shape) for shape in SHAPES},
    full=Scale(),
    quick=Scale(divisor=100),
    minutes=25.0,
    seeds="0 to 3",
    values={shape: partial(cells, shape) for shape in SHAPES},
    names={"titles": TITLES},
)
