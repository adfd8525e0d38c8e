"""Where a mixture starts: seeds, short climbs, and a tournament between them on rows they were not fitted to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from headwater.models.mixture import Mixture, MixtureParameters, MixturePrior
from headwater.models.seeding import seed_assignments
from headwater.state import Batch, Summary
from headwater.statistics import Array


@dataclass(frozen=True)
class StartSettings:
    """How to start: the way of seeding, how many seeds compete, and parameters that replace what the seeds say."""

    method: str = "kmeans"
    n_starts: int = 5
    given: Callable[[MixtureParameters], MixtureParameters] | None = None


@dataclass(frozen=True)
class Climb:
    """Where passes over the same rows ended: the summary, the parameters it was taken at, and the objective per pass."""

    summary: Summary
    parameters: MixtureParameters
    trace: tuple[float, ...]
    converged: bool


def climb(
    model: Mixture,
    name: str,
    prior: MixturePrior,
    summary: Summary,
    batch: Batch,
    passes: int,
    tol: float,
    n_threads: int | None = None,
    watch: Callable[[int, float], None] | None = None,
) -> Climb:
    """Batch EM ("mode"), variational Bayes ("expect_log"), ...: passes until the objective per row gains less than tol."""
    trace: list[float] = []
    converged = False
    for number in range(1, passes + 1):
        parameters = model.readout(name, prior, summary.mean, summary.size)
        penalty = model.objective(name, prior, parameters, summary.mean, summary.size)
        summary = model.summarize(parameters, batch, n_threads=n_threads)
        trace.append((summary.score + penalty) / summary.size)
        if watch is not None:
            watch(number, trace[-1])
        if number > 1 and abs(trace[-1] - trace[-2]) < tol:
            converged = True
            break
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
        if matrix and 1 < width and len(batch) > 2 * width:
            values, vectors = np.linalg.eigh((scaled * weights[:, None]).T @ scaled / total)
            values = np.maximum(values, 1e-6 * max(values[-1], 1e-300))
            views.append(scaled @ (vectors / np.sqrt(values)))
        return cls(origin, spread, tuple(views))


def start(
    model: Mixture, batch: Batch, key: int, settings: StartSettings, n_threads: int | None = None
) -> tuple[MixturePrior, Summary]:
    """Warm-up: return a prior in the scale of the rows, and one summary of them at the best parameters found.

    Half of the rows fit the seeds and the other half judges them; the best two climb on all rows.
    """
    geometry = Geometry.of(batch, model.family.kind.matrix)
    generators = [np.random.default_rng(np.random.SeedSequence((key, index))) for index in range(settings.n_starts + 1)]
    n = len(batch)
    n_starts = 1 if settings.given is not None or model.n_components == 1 else settings.n_starts
    split = n_starts > 1 and n >= 20 * model.n_components
    order = generators[-1].permutation(n) if split else np.arange(n)
    learn_rows, judge_rows = (order[: n // 2], order[n // 2 :]) if split else (order, order)
    learn, judge = batch[learn_rows], batch[judge_rows]
    prior: MixturePrior | None = None
    contenders: list[tuple[float, MixtureParameters]] = []
    for index in range(n_starts):
        view = geometry.views[index % len(geometry.views)]
        responsibilities = seed_assignments(
            settings.method, view[learn_rows], learn, model.n_components, generators[index], lloyd_steps=3
        )
        if prior is None:
            prior = model.prior(geometry.origin, within_spread(model, learn, responsibilities), geometry.spread)
        summary = model.collect(geometry.origin, learn, responsibilities)
        if settings.given is not None:
            parameters = settings.given(model.readout("mode", prior, summary.mean, summary.size))
            summary = model.summarize(parameters, learn, n_threads=n_threads)
        parameters = climb(model, "mode", prior, summary, learn, 8, 0.0, n_threads).parameters
        contenders.append((model.summarize(parameters, judge, n_threads=n_threads).score, parameters))
    assert prior is not None
    contenders.sort(key=lambda contender: -contender[0])
    finals = [
        climb(model, "mode", prior, model.summarize(parameters, batch, n_threads=n_threads), batch, 60, 1e-5, n_threads)
        for _, parameters in contenders[:2]
    ]
    return prior, max(finals, key=lambda final: final.trace[-1]).summary


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
