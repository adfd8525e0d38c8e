"""A small fit: iris (150 x 4), three components, both with their defaults, a new seed each time."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean

from sklearn.datasets import load_iris
from sklearn.mixture import GaussianMixture as Peer

from benchmarks.line import UNITS, Line, at_least, quotient
from benchmarks.registry import benchmark
from benchmarks.scale import Scale
from benchmarks.timing import Timing, timed
from headwater import GaussianMixture


@benchmark
def small_fit(scale: Scale) -> Iterator[Line]:
    rows = load_iris().data
    for kind in ("full", "tied", "diag", "spherical"):
        seconds: dict[str, list[float]] = {"ours": [], "peer": []}
        scores: dict[str, list[float]] = {"ours": [], "peer": []}
        for repeat in range(-1, scale.rows(30, least=5)):
            seed = scale.first_seed + repeat
            models = {
                "ours": GaussianMixture(3, covariance_type=kind, random_state=seed, n_threads=1),
                "peer": Peer(3, covariance_type=kind, random_state=seed),
            }
            for name, model in models.items():
                spent, _ = timed(model.fit, rows)
                if repeat >= 0:  # the one before the first compiles
                    seconds[name].append(spent)
                    scores[name].append(model.score(rows))
        yield _line(kind, seconds, scores)


def _line(kind: str, seconds: dict[str, list[float]], scores: dict[str, list[float]]) -> Line:
    ours, peer = Timing.of(seconds["ours"]), Timing.of(seconds["peer"])
    slower = sum(mine > other for mine, other in zip(seconds["ours"], seconds["peer"], strict=True))
    gap = fmean(scores["ours"]) - fmean(scores["peer"])
    ratio = quotient(peer.median, ours.median)
    return Line(
        f"small fit {kind} K3 150 x 4", ours.median * UNITS["ms"], peer.median * UNITS["ms"], "ms", ratio, at_least(1),
        f"medians; slower for {slower} of {len(seconds['ours'])} seeds; mean score {gap:+.3f} nat/row against the peer",
        ratio, {"ours_seconds": ours.to_json(), "peer_seconds": peer.to_json()},
    )  # fmt: skip
