"""Latency of calls with one row, K10 d10, after a stream of 20,000 rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter_ns
from typing import Any

import numpy as np
from sklearn.mixture import GaussianMixture as Peer

from benchmarks.data import Array, make_truth, start_from
from benchmarks.line import Line, Target, at_most, quotient
from benchmarks.registry import benchmark
from benchmarks.scale import Scale
from headwater import GaussianMixture

BLOCK = 50
TARGETS = {("diag", "score_one"): at_most(50), ("diag", "learn_one"): at_most(100)}


@benchmark
def one_row(scale: Scale) -> Iterator[Line]:
    rng = np.random.default_rng(scale.first_seed)
    truth = make_truth(10, 10, rng)
    rows = truth.sample(scale.rows(20_000, least=8000), rng)
    calls = truth.sample(scale.rows(5000, least=2 * BLOCK), rng)
    for kind in ("diag", "full"):
        peer = Peer(10, **start_from(truth, kind), max_iter=1).fit(rows)
        batches, by_row = (
            GaussianMixture(10, covariance_type=kind, algorithm=word, random_state=0, n_threads=1).partial_fit(rows)
            for word in ("auto", "online-vb")
        )

        def score_peer(row: Array, peer: Any = peer) -> Any:
            return peer.score_samples(row[None])

        def predict_peer(row: Array, peer: Any = peer) -> Any:
            return peer.predict(row[None])

        def test_then_learn(row: Array, model: Any = by_row) -> Any:
            model.score_one(row)
            return model.learn_one(row)

        stands_in = "peer: its score_samples, since it cannot learn a row"
        contests = {
            "score_one": (batches.score_one, score_peer, ""),
            "predict_one": (batches.predict_one, predict_peer, "peer: predict"),
            "learn_one": (batches.learn_one, score_peer, f"folds a batch now and then; {stands_in}"),
            "learn_one online-vb": (by_row.learn_one, score_peer, f"folds every row; {stands_in}"),
            "score_one + learn_one online-vb": (
                test_then_learn,
                score_peer,
                f"parameters change every row; {stands_in}",
            ),
        }
        for name, (ours, theirs, note) in contests.items():
            yield contest(f"{name} {kind} K10 d10", ours, theirs, calls, TARGETS.get((kind, name)), note)


def contest(
    name: str,
    ours: Callable[[Array], Any],
    theirs: Callable[[Array], Any],
    rows: Array,
    target: Target | None,
    note: str,
) -> Line:
    """Call both with the same rows, in alternating blocks; the median call counts."""
    spent: dict[Callable[[Array], Any], list[int]] = {ours: [], theirs: []}
    for call in spent:
        call(rows[0])
    for at in range(0, len(rows), BLOCK):
        for call, nanoseconds in spent.items():
            for row in rows[at : at + BLOCK]:
                begin = perf_counter_ns()
                call(row)
                nanoseconds.append(perf_counter_ns() - begin)
    mine, other = (np.array(values) / 1e3 for values in spent.values())
    figures = {
        side: {"median_us": np.median(us), "mean_us": us.mean(), "p99_us": np.quantile(us, 0.99)}
        for side, us in (("ours", mine), ("peer", other))
    }
    details = {side: {key: float(value) for key, value in values.items()} for side, values in figures.items()}
    us, peer_us = details["ours"]["median_us"], details["peer"]["median_us"]
    spread = f"mean {details['ours']['mean_us']:.0f}, 99 % {details['ours']['p99_us']:.0f} us"
    return Line(
        name, us, peer_us, "us", quotient(peer_us, us), target, "; ".join(filter(None, (spread, note))),
        details=details,
    )  # fmt: skip
