"""Rows with gaps: the rate of learning relative to complete rows, and the loss of a pass with 15 % missing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.data import Array, make_truth
from benchmarks.line import Line, Target, at_least, rates
from benchmarks.registry import benchmark
from benchmarks.row_sweep import streaming
from benchmarks.scale import Scale
from benchmarks.timing import interleave
from headwater import GaussianMixture

WANTED = {
    ("full", 10): {0.02: 0.6, 0.1: 0.4, 0.3: 0.2}, ("full", 50): {0.1: 0.4}, ("diag", 10): {0.02: 0.8, 0.1: 0.8, 0.3: 0.8}
}  # fmt: skip
ALGORITHMS = ("auto", "online-em", "online-vb")
MOST_LOSS = 0.01  # nats a row


@benchmark
def gaps(scale: Scale) -> Iterator[Line]:
    rng = np.random.default_rng(scale.first_seed)
    for (kind, width), wanted in WANTED.items():
        truth = make_truth(10, width, rng)
        rows = truth.sample(scale.rows(200_000 * 10 // width), rng)
        shares = (0.0, *wanted)
        given = {share: remove(rows, share, rng) for share in shares}
        models = {
            share: GaussianMixture(10, covariance_type=kind, random_state=0, n_threads=1).partial_fit(one[:20_000])
            for share, one in given.items()
        }
        timings = interleave({share: streaming(models[share], given[share]) for share in shares}, scale.repeats)
        for share, least in wanted.items():
            name = f"{share:.0%} missing, {kind} K10 d{width}"
            note = "beside complete rows: 1 is as fast"
            yield rates(name, timings[share], timings[0.0], rows=len(rows), target=at_least(least), note=note)
    yield from losses(scale)


def losses(scale: Scale) -> Iterator[Line]:
    """What a pass over rows with 15 % missing loses to a pass over the same rows complete, on rows that neither has seen."""
    for word in ALGORITHMS:
        lost = []
        for seed in range(min(scale.seeds, 3)):
            rng = np.random.default_rng(scale.first_seed + seed)
            truth = make_truth(5, 8, rng, sep=2.0)
            rows, other = truth.sample(scale.rows(20_000), rng), truth.sample(20_000, rng)
            scores = [
                GaussianMixture(5, algorithm=word, random_state=0, n_threads=1).partial_fit(part).score(other)
                for part in (rows, remove(rows, 0.15, rng))
            ]
            lost.append(scores[0] - scores[1])
        loss = float(np.median(lost))
        target = Target("ours", "<=", MOST_LOSS) if word == "auto" else None
        yield Line(f"15% missing, one pass, {word}", loss, None, "nats", None, target, "lost to complete rows")


def remove(rows: Array, share: float, rng: np.random.Generator) -> Array:
    """Return rows of which this share of the values is missing at random."""
    return rows if share == 0.0 else np.where(rng.random(rows.shape) < share, np.nan, rows)
