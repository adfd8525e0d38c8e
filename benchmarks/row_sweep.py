"""Row by row: rows a second of the algorithms that fold every row by itself. For information: there is no peer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.data import Array, make_truth
from benchmarks.line import Line, rates
from benchmarks.registry import benchmark
from benchmarks.scale import Scale
from benchmarks.timing import interleave
from headwater import BayesianOnlineEM, GaussianMixture, OnlineVB, QuasiBayes, SatoEM

ALGORITHMS = (OnlineVB(batch_size=1), BayesianOnlineEM(batch_size=1), SatoEM(batch_size=1), QuasiBayes(batch_size=1))


@benchmark
def row_sweep(scale: Scale) -> Iterator[Line]:
    rng = np.random.default_rng(scale.first_seed)
    truth = make_truth(10, 10, rng)
    warm_up = truth.sample(scale.rows(10_000, least=8000), rng)
    rows = truth.sample(scale.rows(200_000), rng)
    for kind in ("full", "diag"):
        models = {
            algorithm.word: GaussianMixture(
                10, covariance_type=kind, algorithm=algorithm, random_state=0, n_threads=1
            ).partial_fit(warm_up)
            for algorithm in ALGORITHMS
        }
        timings = interleave({word: streaming(model, rows) for word, model in models.items()}, scale.repeats)
        for word, timing in timings.items():
            yield rates(f"row by row {word} {kind} K10 d10", timing, rows=len(rows), note=f"{len(rows):,} rows")


def streaming(model: Any, rows: Array) -> Callable[[int], Any]:
    """Go on with the stream: no repeat starts over, and every one does the same work."""
    return lambda repeat: model.partial_fit(rows)
