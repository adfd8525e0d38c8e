"""Where a mixture starts: seeds, short climbs, and a tournament between them on rows they were not fitted to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.models.protocol import Model, Start, StartSettings
from headwater.models.seeding import seed_assignments
from headwater.state import Batch, Summary
from headwater.statistics import Array

if TYPE_CHECKING:
    from headwater.models.mixture import Mixture


@dataclass(frozen=True)
class Climb:
    """Where passes over the same rows ended: the summary, the parameters it was taken at, and the objective per pass."""

    summary: Summary
    parameters: Any
    trace: tuple[float, ...]
    converged: bool


def climb(
    model: Model,
    name: str,
    prior: Any,
    parameters: Any,
    summary: Summary,
    batch: Batch,
    passes: int,
    tol: float,
    n_threads: int | None = None,
    before: float = -np.inf,
    watch: Callable[[int, float], None] | None = None,
) -> Climb:
    """Batch EM ("mode"), variational Bayes ("expect_log"), ...: passes until the objective per row gains less than tol.

    `summary` is that of the rows at `parameters`, which come back as they are if there are no passes to make; `before` is
    the objective of an earlier climb that this one goes on with.
    """
    trace: list[float] = []
    converged = False
    for number in range(1, passes + 1):
        parameters = model.readout(name, prior, summary.mean, summary.size)
        penalty = model.objective(name, prior, parameters, summary.mean, summary.size)
        summary = model.summarize(parameters, batch, n_threads=n_threads)
        trace.append((summary.score + penalty) / summary.size)
        if watch is not None:
            watch(number, trace[-1])
        if abs(trace[-1] - before) < tol:
            converged = True
            break
        before = trace[-1]
    return Climb(summary, parameters, tuple(trace), converged)


@dataclass(frozen=True)
class Geometry:
    """Centre and spread of the rows, and the rows in the units that distances are measured in."""

    origin: Array
    spread: Array
    views: tuple[Array, ...]

    @classmethod
    def of(cls, batch: Batch, matrix: bool) -> Geometry:
        weights = batch.row_weights
        total = weights.sum()
        origin = weights @ batch.X / total
        centred = batch.X - origin
        spread = weights @ centred**2 / total
        # A column whose spread is rounding error of its size is constant.
        spread[spread <= (4e-16 * np.abs(origin)) ** 2] = 0.0
        scaled = centred / np.sqrt(np.where(spread > 0.0, spread, 1.0))
        views = [scaled]
        width = len(origin)
        if matrix and width > 1 and len(batch) > 2 * width:
            values, vectors = np.linalg.eigh((scaled * weights[:, None]).T @ scaled / total)
            values = np.maximum(values, 1e-6 * max(values[-1], 1e-300))
            views.append(scaled @ (vectors / np.sqrt(values)))
        return cls(origin, spread, tuple(views))


def tournament(model: Mixture, batch: Batch, key: int, settings: StartSettings, n_threads: int | None = None) -> Start:
    """Seed, climb and compare: half of the rows fit the seeds, the other half judges them, the best two climb on all.

    Without `polish` one seed is taken as it is. Parameters that are `given` replace what a seed says.
    """
    geometry = Geometry.of(batch, model.family.kind.matrix)
    n_starts = settings.n_starts if settings.polish and model.n_components > 1 else 1
    generators = [np.random.default_rng(np.random.SeedSequence((key, index))) for index in range(n_starts + 1)]
    n = len(batch)
    order = np.arange(n)
    learn_rows = judge_rows = order
    if n_starts > 1 and n >= 20 * model.n_components:
        order = generators[-1].permutation(n)
        learn_rows, judge_rows = order[: n // 2], order[n // 2 :]
    learn, judge = batch[learn_rows], batch[judge_rows]

    def seed(index: int) -> Array:
        view = geometry.views[index % len(geometry.views)]
        steps = 3 if settings.polish else 20
        return seed_assignments(settings.method, view[learn_rows], learn, model.n_components, generators[index], steps)

    def summarized(parameters: Any) -> Start:
        return Start(prior, parameters, model.summarize(parameters, batch, n_threads=n_threads))

    responsibilities = seed(0)
    prior = model.prior(geometry.origin, within_spread(model, learn, responsibilities), geometry.spread)
    contenders: list[tuple[float, Any]] = []
    for index in range(n_starts):
        summary = model.collect(geometry.origin, learn, responsibilities if index == 0 else seed(index))
        parameters = model.readout("mode", prior, summary.mean, summary.size)
        if settings.given is not None:
            parameters = settings.given(parameters)
            summary = model.summarize(parameters, learn, n_threads=n_threads)
        if not settings.polish:
            return summarized(parameters)
        parameters = climb(model, "mode", prior, parameters, summary, learn, 8, 0.0, n_threads).parameters
        contenders.append((model.summarize(parameters, judge, n_threads=n_threads).score, parameters))
    contenders.sort(key=lambda contender: -contender[0])
    finals = []
    for _, parameters in contenders[:2]:
        begun = summarized(parameters)
        finals.append(climb(model, "mode", prior, parameters, begun.summary, batch, 60, 1e-5, n_threads))
    best = max(finals, key=lambda final: final.trace[-1])
    return Start(prior, best.parameters, best.summary)


def within_spread(model: Mixture, batch: Batch, responsibilities: Array) -> Array:
    """Covariance (or variances) about the means of the seeded groups, pooled."""
    weighted = responsibilities * batch.row_weights[:, None]
    mass = weighted.sum(axis=0)
    means = weighted.T @ batch.X / np.maximum(mass, 1e-300)[:, None]
    rows = weighted.sum(axis=1)
    centred = batch.X - (responsibilities / np.maximum(responsibilities.sum(axis=1, keepdims=True), 1e-300)) @ means
    total = max(float(rows.sum()), 1e-300)
    if model.family.kind.matrix:
        return (centred * rows[:, None]).T @ centred / total
    return rows @ centred**2 / total
