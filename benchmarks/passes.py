"""One EM pass (E-step and M-step over all rows), from the same given parameters, through the public `fit` of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.mixture import GaussianMixture as Peer

from benchmarks.data import Array, make_truth, start_from
from benchmarks.line import Line, Target, at_least, rates
from benchmarks.registry import benchmark
from benchmarks.scale import Scale
from benchmarks.timing import Timing, interleave
from headwater import GaussianMixture

PASSES = 3


@dataclass(frozen=True)
class Case:
    covariance_type: str
    n_components: int
    width: int
    rows: int
    target: Target | None = None

    @property
    def name(self) -> str:
        return f"EM pass {self.covariance_type} K{self.n_components} d{self.width}"


CASES = (
    Case("full", 10, 10, 1_000_000, at_least(8)),
    Case("diag", 10, 10, 1_000_000, at_least(7)),
    Case("full", 16, 50, 200_000, at_least(3)),
    Case("full", 16, 91, 100_000, at_least(2)),
    Case("tied", 10, 10, 1_000_000),
    Case("spherical", 10, 10, 1_000_000),
)


@benchmark
def passes(scale: Scale) -> Iterator[Line]:
    for case in CASES:
        rows, arguments = prepare(case, scale)
        kinds = {"ours": partial(GaussianMixture, algorithm="em", n_threads=1), "peer": Peer}
        timings = per_pass({name: partial(fit, kind, arguments, rows) for name, kind in kinds.items()}, scale.repeats)
        few = rows[:20_000]
        gap = np.ptp([fit(kind, arguments, few, PASSES).score(few) for kind in kinds.values()])
        note = f"{len(rows):,} rows; scores after {PASSES} passes over {len(few):,} rows differ by {gap:.0e} nat/row"
        yield rates(case.name, timings["ours"], timings["peer"], rows=len(rows), target=case.target, note=note)


def prepare(case: Case, scale: Scale) -> tuple[Array, dict[str, Any]]:
    """Return the rows of a case, and arguments of a model that starts from the truth; compile what is needed."""
    rng = np.random.default_rng(scale.first_seed)
    truth = make_truth(case.n_components, case.width, rng)
    rows = truth.sample(scale.rows(case.rows), rng)
    arguments = {"n_components": case.n_components, "tol": 0.0, "random_state": 0}
    arguments |= start_from(truth, case.covariance_type)
    fit(partial(GaussianMixture, algorithm="em"), arguments, rows[:20_000], 1)
    fit(Peer, arguments, rows[:2000], 1)
    return rows, arguments


def fit(kind: Callable[..., Any], arguments: dict[str, Any], rows: Array, n_passes: int) -> Any:
    return kind(**arguments, max_iter=n_passes).fit(rows)


def per_pass(fits: dict[Any, Callable[[int], Any]], repeats: int, passes: int = PASSES) -> dict[Any, Timing]:
    """Return the time of one pass: a fit with several passes less a fit with one, which has the same overhead.

    The best times are subtracted. The best difference would favour the noisier side.
    """

    def turn(fit: Callable[[int], Any], n_passes: int) -> Callable[[int], Any]:
        return lambda repeat: fit(n_passes)

    timings = interleave({(name, n): turn(fit, n) for name, fit in fits.items() for n in (passes, 1)}, repeats)

    def each(name: Any, pick: Callable[[Timing], float]) -> float:
        return (pick(timings[name, passes]) - pick(timings[name, 1])) / (passes - 1)

    return {name: Timing(each(name, lambda t: t.best), each(name, lambda t: t.median)) for name in fits}
