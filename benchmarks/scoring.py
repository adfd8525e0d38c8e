"""Reading a fitted model over many rows: score_samples and predict_proba, both libraries with the same parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.mixture import GaussianMixture as Peer

from benchmarks.data import Array, make_truth, start_from
from benchmarks.line import Line, at_least, rates
from benchmarks.registry import benchmark
from benchmarks.scale import Scale
from benchmarks.timing import interleave
from headwater import GaussianMixture

METHODS = ("score_samples", "predict_proba")


@benchmark
def scoring(scale: Scale) -> Iterator[Line]:
    rng = np.random.default_rng(scale.first_seed)
    truth = make_truth(10, 10, rng)
    rows = truth.sample(scale.rows(1_000_000), rng)
    for covariance_type in ("full", "diag"):
        models = same_models(start_from(truth, covariance_type), rows[:20_000])
        for method in METHODS:
            calls = {name: reading(model, method, rows) for name, model in models.items()}
            ours, peer = (getattr(model, method)(rows[:10_000]) for model in models.values())
            timings = interleave(calls, scale.repeats)
            note = f"{len(rows):,} rows; answers differ by at most {np.abs(ours - peer).max():.0e}"
            name = f"{method} {covariance_type} K10 d10"
            yield rates(name, timings["ours"], timings["peer"], rows=len(rows), target=at_least(5), note=note)


def same_models(arguments: dict[str, Any], rows: Array) -> dict[str, Any]:
    """Return both libraries' models with the parameters that scikit-learn has after one pass."""
    peer = Peer(10, **arguments, max_iter=1).fit(rows)
    given = {
        "weights_init": peer.weights_,
        "means_init": peer.means_,
        "precisions_init": peer.precisions_,
    }
    kind = arguments["covariance_type"]
    ours = GaussianMixture(10, covariance_type=kind, **given, algorithm="em", max_iter=0, n_threads=1).fit(rows)
    return {"ours": ours, "peer": peer}


def reading(model: Any, method: str, rows: Array) -> Callable[[int], Any]:
    return lambda repeat: getattr(model, method)(rows)
