"""Passes over the same rows until the objective converges: batch EM, variational Bayes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

import numpy as np

from headwater.core.batch import Batch
from headwater.core.contracts import Model
from headwater.core.state import Summary
from headwater.core.statistics import Params, Prior, Stats
from headwater.kernels.mixture import converged
from headwater.kernels.parallel import slabs


@dataclass(frozen=True)
class Climb(Generic[Stats, Params]):
    """The result of passes over the same rows: the summary, the parameters it was taken at, and the objective per pass."""

    summary: Summary[Stats]
    parameters: Params
    trace: tuple[float, ...]
    converged: bool


def climb(
    model: Model[Prior, Stats, Params],
    name: str,
    prior: Prior,
    parameters: Params,
    summary: Summary[Stats],
    batch: Batch,
    passes: int,
    tol: float,
    n_threads: int | None = None,
    before: float = -np.inf,
    penalised: bool = True,
    watch: Callable[[int, float], None] | None = None,
) -> Climb[Stats, Params]:
    """Batch EM ("mode"), variational Bayes ("expect_log"), ...: passes until the objective per row gains less than tol.

    `summary` is that of the rows at `parameters`, which come back as they are if there are no passes to make; `before` is
    the objective of an earlier climb that this one continues. If not `penalised`, the objective is the score alone.
    """
    if passes and watch is None and not penalised and len(slabs(len(batch))) == 1:
        end = model.climb(name, prior, summary, batch, passes, tol, before)
        if end is not None:
            return Climb(end[0], end[1], tuple(end[2].tolist()), end[3])

    begun = Climb(summary, parameters, (), False)
    return climb_on(model, name, prior, begun, batch, passes, tol, n_threads, penalised, watch, before)


def climb_on(
    model: Model[Prior, Stats, Params],
    name: str,
    prior: Prior,
    begun: Climb[Stats, Params],
    batch: Batch,
    passes: int,
    tol: float,
    n_threads: int | None = None,
    penalised: bool = True,
    watch: Callable[[int, float], None] | None = None,
    before: float = -np.inf,
) -> Climb[Stats, Params]:
    """Continue a climb until it has made so many passes in all."""

    def summarize(parameters: Params) -> Summary[Stats]:
        return model.summarize(parameters, batch, n_threads=n_threads)

    def told(now: Climb[Stats, Params]) -> None:
        if watch is not None:
            watch(len(now.trace), now.trace[-1])

    return ascend(model, name, prior, begun, summarize, passes, tol, before, penalised, told)


def ascend(
    model: Model[Prior, Stats, Params],
    name: str,
    prior: Prior,
    begun: Climb[Stats, Params],
    summarize: Callable[[Params], Summary[Stats]],
    passes: int,
    tol: float,
    before: float = -np.inf,
    penalised: bool = True,
    told: Callable[[Climb[Stats, Params]], None] = lambda now: None,
) -> Climb[Stats, Params]:
    """Make passes wherever the rows are: `summarize` makes the E-step of all of them. `begun` is a climb to continue."""
    now, trace = begun, list(begun.trace)
    known = [before, *trace]
    before, last_gain = known[-1], known[-1] - known[-2] if len(known) > 1 else np.inf
    while len(trace) < passes and not now.converged:
        statistics = now.summary.statistics
        parameters = model.readout(name, prior, statistics, 1.0)
        penalty = model.objective(name, prior, parameters, statistics, 1.0) if penalised else 0.0
        summary = summarize(parameters)
        trace.append((summary.score + penalty) / summary.size)
        gain, before = trace[-1] - before, trace[-1]
        now = Climb(summary, parameters, tuple(trace), converged(gain, last_gain, tol))
        last_gain = gain
        told(now)
    return now
