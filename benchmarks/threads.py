"""The gain of a second thread: the EM pass over a million rows on two threads against one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.line import Line, at_least, rates
from benchmarks.passes import CASES, fit, per_pass, prepare
from benchmarks.registry import benchmark
from benchmarks.scale import Scale
from headwater import GaussianMixture
from pages.machine import cores


@benchmark
def threads(scale: Scale) -> Iterator[Line]:
    case = CASES[0]
    rows, arguments = prepare(case, scale)
    fits = {n: partial(fit, partial(GaussianMixture, algorithm="em", n_threads=n), arguments, rows) for n in (1, 2)}
    timings = per_pass(fits, 2 * scale.repeats)
    note = f"{len(rows):,} rows; peer: itself on 1 thread; {cores()} cores here"
    yield rates(f"{case.name}, 2 threads", timings[2], timings[1], rows=len(rows), target=at_least(1.8), note=note)
