"""Direction of arrival with sensors missing (the model that online EM was made for): online EM against batch EM, by the "
"library."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np

import headwater as hw
from headwater.core.statistics import Array
from pages.results import Figures
from papers.online_em_scale import Scale

SENSORS, MISSING, WAIT = 8, 0.4, 20
TRUTH = np.array([0.7, 1.0, 0.5])  # electrical angle, power of the source, power of the noise
NAMES = ("omega", "power", "noise")


def steering(omega: float) -> Any:
    return np.exp(1j * omega * np.arange(SENSORS))


def drawn(rows: int, seed: int) -> Any:
    """Snapshots, NaN where a sensor is missing."""
    rng = np.random.default_rng(np.random.SeedSequence((2, 14, seed)))

    def noise(*shape: int) -> Any:
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)) / np.sqrt(2.0)

    omega, power, variance = TRUTH
    snapshots = np.sqrt(power) * noise(rows, 1) * steering(omega) + np.sqrt(variance) * noise(rows, SENSORS)
    snapshots[rng.random(snapshots.shape) < MISSING] = np.nan
    return snapshots


@cache
def information() -> Array:
    """Fisher information of a snapshot, mean over all ways in which sensors can be missing."""
    omega, power, variance = TRUTH
    a, phase = steering(omega), 1j * np.arange(SENSORS) * steering(omega)
    covariance = power * np.outer(a, a.conj()) + variance * np.eye(SENSORS)
    slopes = (
        power * (np.outer(phase, a.conj()) + np.outer(a, phase.conj())), np.outer(a, a.conj()), np.eye(SENSORS, dtype=complex)
    )  # fmt: skip
    total = np.zeros((3, 3))
    for pattern in product((False, True), repeat=SENSORS):
        seen = np.flatnonzero(pattern)
        if not seen.size:
            continue
        share = (1.0 - MISSING) ** seen.size * MISSING ** (SENSORS - seen.size)
        parts = [np.linalg.solve(covariance[np.ix_(seen, seen)], slope[np.ix_(seen, seen)]) for slope in slopes]
        total += share * np.array([[np.trace(one @ other).real for other in parts] for one in parts])
    return total


@dataclass(frozen=True)
class Line:
    """A learner: in passes, or in a stream after a short warm-up, or with the library's own."""

    name: str
    algorithm: Callable[[], Any]
    batch: bool = False
    short: bool = True


LINES = (
    Line("batch EM", lambda: "em", batch=True),
    Line("online EM, row by row, n^-0.6", lambda: hw.OnlineEM(decay=0.6, offset=0.0, batch_size=1, average=False)),
    Line("online EM, row by row, averaged", lambda: hw.OnlineEM(decay=0.6, offset=0.0, batch_size=1, average_exponent=1.0)),
    Line("online EM, row by row, 1/n", lambda: hw.OnlineEM(decay=1.0, offset=0.0, batch_size=1, average=False)),
    Line("headwater's default stream", lambda: "auto", short=False),
)


def sizes(scale: Scale) -> list[int]:
    return sorted({min(rows, scale.rows) for rows in (100, 1000, 10_000)})


def array_set(line: Line, rows: int, scale: Scale) -> Figures:
    """Errors over the streams, their mean square over the bound, and seconds."""
    errors, seconds, passes = [], 0.0, []
    settings: dict[str, Any] = {"algorithm": line.algorithm(), "n_threads": 1, "random_state": 0}
    hw.DirectionOfArrival(**settings).fit(drawn(WAIT, 0))  # so that the seconds hold no compiling
    for copy in range(3 * scale.few):
        snapshots = drawn(rows, copy)
        began = time.process_time()
        if line.batch:
            model = hw.DirectionOfArrival(tol=1e-9, max_iter=500, **settings).fit(snapshots)
            passes.append(int(model.n_iter_))
        else:
            warm_up = min(WAIT, rows) if line.short else "auto"
            model = hw.DirectionOfArrival(warm_up=warm_up, **settings).partial_fit(snapshots)
        seconds += time.process_time() - began
        errors.append([model.omega_, model.power_, model.noise_variance_] - TRUTH)
    error = np.array(errors)
    loss = rows * np.einsum("cp,pq,cq->c", error, information(), error) / len(TRUTH)
    bound = np.sqrt(np.diag(np.linalg.inv(information())) / rows)
    return {
        "line": line.name, "rows": rows, "copies": len(error), "rmse": np.sqrt((error**2).mean(axis=0)).tolist(),
        "bound": bound.tolist(), "loss": float(loss.mean()), "error": float(loss.std() / np.sqrt(len(loss))),
        "median": float(np.median(loss)), "seconds": seconds / len(error), "passes": float(np.mean(passes)) if passes else 1.0,
    }  # fmt: skip
