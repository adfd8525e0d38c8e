"""The table of the README: headwater beside named peers, in CPU seconds of one thread, with the quality beside it.

python -m benchmarks.readme            # measure, and write the table into README.md
python -m benchmarks.readme --quick    # few rows, only printed: to see that it runs
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import headwater as hw

README = Path(__file__).resolve().parents[1] / "README.md"
MARKS = ("<!-- table: peers -->", "<!-- end of table: peers -->")
HEADS = ("task", "learner", "CPU s", "headwater is faster by", "quality on other data")


@dataclass(frozen=True)
class Entry:
    """One learner on one task: its CPU seconds, and how good its model is on data that it did not see."""

    learner: str
    seconds: float
    quality: str


def measure(learner: str, fit: Callable[[], Any], judge: Callable[[Any], str]) -> Entry:
    """Fit, charged in CPU seconds together with the first reading, and judge the model."""
    begin = process_time()
    model = fit()
    first = judge(model)
    return Entry(learner, process_time() - begin, first)


def compare_mixtures(rows: int) -> list[Entry]:
    """Ten Gaussians with full covariance in ten columns: one pass against scikit-learn with all rows in memory."""
    from sklearn.mixture import GaussianMixture

    rng = np.random.default_rng(0)
    means, factors = rng.normal(scale=1.2, size=(10, 10)), rng.normal(size=(10, 10, 10)) / np.sqrt(10)
    kinds = rng.integers(10, size=2 * rows)
    X = means[kinds] + np.einsum("nij,nj->ni", factors[kinds], rng.normal(size=(2 * rows, 10)))
    learned, other = X[:rows], X[rows:]

    def judge(model: Any) -> str:
        return f"{model.score(other):.3f} nats a row"

    return [
        measure("headwater, one pass", lambda: _stream(hw.GaussianMixture(10, n_threads=1, random_state=0), learned), judge),
        measure("scikit-learn", lambda: GaussianMixture(10, max_iter=200, random_state=0).fit(learned), judge),
        measure(
            "scikit-learn, n_init=5", lambda: GaussianMixture(10, max_iter=200, n_init=5, random_state=0).fit(learned), judge
        ),
    ]


def compare_chains(rows: int) -> list[Entry]:
    """Five states in four columns: the default fit of both, with up to 30 passes."""
    from hmmlearn.hmm import GaussianHMM

    rng = np.random.default_rng(1)
    moves, states = rng.random(2 * rows) < 0.05, np.zeros(2 * rows, dtype=int)
    jumps = rng.integers(5, size=2 * rows)
    for at in range(1, 2 * rows):
        states[at] = jumps[at] if moves[at] else states[at - 1]
    X = rng.normal(scale=1.5, size=(5, 4))[states] + rng.normal(size=(2 * rows, 4))
    learned, other = X[:rows], X[rows:]

    def judge(model: Any) -> str:
        return f"{model.score(other) / rows:.3f} nats a row"

    return [
        measure("headwater", lambda: hw.GaussianHMM(5, n_iter=30, n_threads=1, random_state=0).fit(learned), judge),
        measure("hmmlearn", lambda: GaussianHMM(5, n_iter=30, random_state=0).fit(learned), judge),
    ]


def compare_topics(rows: int) -> list[Entry]:
    """Twenty topics of a thousand words: ten passes of both."""
    from sklearn.decomposition import LatentDirichletAllocation

    rng = np.random.default_rng(2)
    topics = rng.dirichlet(np.full(1000, 0.05), size=20)
    documents = np.array([rng.multinomial(100, rng.dirichlet(np.full(20, 0.1)) @ topics) for _ in range(rows + 500)])
    learned, other = documents[:rows], documents[rows:]

    def judge(model: Any) -> str:
        return f"perplexity {hw.completion_perplexity(model, other, n_threads=1):.0f}"

    ours = hw.LatentDirichletAllocation(20, n_threads=1, random_state=0)
    peer = LatentDirichletAllocation(20, learning_method="online", max_iter=10, random_state=0)
    return [measure("headwater", lambda: ours.fit(learned), judge), measure("scikit-learn", lambda: peer.fit(learned), judge)]


def _stream(model: Any, X: Any) -> Any:
    for start in range(0, len(X), 10_000):
        model.partial_fit(X[start : start + 10_000])
    return model


TASKS = (
    ("Gaussian mixture, {:,} rows", compare_mixtures, 200_000),
    ("hidden Markov model, {:,} rows", compare_chains, 40_000),
    ("topics, {:,} documents", compare_topics, 3_000),
)


def make_lines(quick: bool) -> Iterator[str]:
    """Yield the lines of the table."""
    yield f"| {' | '.join(HEADS)} |"
    yield "|---|---|---:|---:|---|"
    for title, compare, rows in TASKS:
        size = 3_000 if quick and rows > 3_000 else 300 if quick else rows
        compare(300)  # compiles what has to be compiled
        entries = compare(size)
        for entry in entries:
            times = "" if entry is entries[0] else f"{entry.seconds / entries[0].seconds:.1f}x"
            task = title.format(size) if entry is entries[0] else ""
            yield f"| {task} | {entry.learner} | {entry.seconds:.2f} | {times} | {entry.quality} |"


def fill(text: str, lines: Sequence[str]) -> str:
    """Return the page with the table between its two marks."""
    between = re.compile(re.escape(MARKS[0]) + ".*?" + re.escape(MARKS[1]), re.DOTALL)
    return between.sub(lambda _: "\n".join([MARKS[0], "", *lines, "", MARKS[1]]), text)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and write the table; only print it if the run is quick."""
    quick = "--quick" in (sys.argv[1:] if argv is None else argv)
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers that stop at their limit of passes say so
        lines = list(make_lines(quick))
    print("\n".join(lines))
    if not quick:
        README.write_text(fill(README.read_text(encoding="utf-8"), lines), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
