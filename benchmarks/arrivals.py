"""One source before an array of sensors: a pass of EM against NumPy's products, and streams, for which there is no peer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.data import Array
from benchmarks.line import Line, rates
from benchmarks.registry import benchmark
from benchmarks.scale import Scale
from benchmarks.timing import Timing, interleave
from headwater import DirectionOfArrival

PASSES = 5


@benchmark
def arrivals(scale: Scale) -> Iterator[Line]:
    rng = np.random.default_rng(scale.first_seed)
    for sensors, full in ((8, 400_000), (32, 100_000)):
        rows = snapshots(scale.rows(full), sensors, rng)
        ends: dict[str, float] = {}
        timings = interleave(
            {
                "one": fitting(rows, 1, ends),
                "ours": fitting(rows, 1 + PASSES, ends),
                "peer": lambda repeat, rows=rows, ends=ends: ends.update(peer=plain_em(rows, PASSES)),
            },
            scale.repeats,
        )
        one, ours, peer = timings["one"], timings["ours"], timings["peer"]
        name = f"arrivals {sensors} sensors"
        note = f"{len(rows):,} rows, 40 % missing; NumPy; directions differ by {abs(ends['ours'] - ends['peer']):.0e}"
        own = Timing((ours.best - one.best) / PASSES, (ours.median - one.median) / PASSES)
        other = Timing(peer.best / PASSES, peer.median / PASSES)
        yield rates(f"{name}: a pass of EM", own, other, rows=len(rows), note=note)
        models = {
            word: DirectionOfArrival(algorithm=word, n_threads=1, random_state=0).partial_fit(rows[:1100])
            for word in ("auto", "online-em", "soem")
        }
        streams = interleave({word: streaming(model, rows) for word, model in models.items()}, scale.repeats)
        for word, timing in streams.items():
            yield rates(f"{name}: stream {word}", timing, rows=len(rows), note=f"{len(rows):,} rows, 40 % missing")


def snapshots(rows: int, sensors: int, rng: np.random.Generator) -> Any:
    draws = rng.normal(scale=np.sqrt(0.5), size=(rows, sensors + 1, 2)).view(np.complex128)[..., 0]
    X = draws[:, :1] * np.exp(0.7j * np.arange(sensors)) + np.sqrt(0.5) * draws[:, 1:]
    X[rng.random(X.shape) < 0.4] = np.nan
    return X


def fitting(rows: Any, passes: int, ends: dict[str, float]) -> Callable[[int], Any]:
    def work(repeat: int) -> None:
        model = DirectionOfArrival(algorithm="em", max_iter=passes, tol=0.0, n_threads=1).fit(rows)
        ends["ours"] = model.omega_

    return work


def streaming(model: Any, rows: Any) -> Callable[[int], Any]:
    """Continue the stream: no repeat starts anew, and each does the same work."""
    return lambda repeat: model.partial_fit(rows)


def plain_em(X: Any, passes: int) -> float:
    """Batch EM in NumPy without matrix inversions and loops over rows; the search uses a fine grid."""
    m = X.shape[1]
    grid = np.linspace(-np.pi, np.pi, 4096)
    beams = np.exp(1j * np.outer(grid, np.arange(m)))
    heard = ~np.isnan(X)
    known = np.where(heard, X, 0.0)
    x, power, noise = 0.0, 0.0, float((np.abs(known) ** 2).sum() / heard.sum())
    for _ in range(passes):
        a = np.exp(1j * x * np.arange(m))
        total = noise + power * heard.sum(axis=1)
        completed = np.where(heard, known, (power / total * (known @ a.conj()))[:, None] * a)
        holes: Array = ~heard * np.sqrt(power * noise / total)[:, None]
        S = completed.T @ completed.conj() + holes.T @ holes * np.outer(a, a.conj())
        S = (S + noise * np.diag((~heard).sum(axis=0))) / len(X)
        heights = ((beams @ S.T) * beams.conj()).sum(axis=1).real / m
        x, first = float(grid[heights.argmax()]), float(heights.max())
        noise = (float(np.trace(S).real) - first) / (m - 1)
        power = (first - noise) / m
    return x
