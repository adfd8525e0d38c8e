"""The loop: summarize a batch, fold it into the statistics, read parameters out. Every algorithm is learned here."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np

from headwater.algorithms import Algorithm
from headwater.models.mixture import Mixture
from headwater.models.start import Climb, StartSettings, climb, start
from headwater.schedules import Schedule, forgetting
from headwater.state import Base, Batch, Buffer, Info, Progress, State, Summary
from headwater.statistics import Array, Statistics

NO_SCORES: Array = np.empty(0)


@dataclass(frozen=True)
class Learner:
    """A model, an algorithm and the settings of a run; holds nothing that is learned."""

    model: Mixture
    algorithm: Algorithm
    width: int
    start: StartSettings
    half_life: float | None = None
    warm_up: int | None = None
    n_threads: int | None = None

    @cached_property
    def warm_up_rows(self) -> int:
        """Rows to wait for: ten for every parameter, at least 2000, at most 64 MB of them."""
        if self.warm_up is not None:
            return self.warm_up
        wanted = max(2000, 10 * self.model.n_parameters(self.width))
        return max(2 * self.model.n_components, min(wanted, 2**26 // (8 * self.width)))

    @cached_property
    def batch_rows(self) -> int:
        return self.algorithm.batch_rows(self.model.n_components, self.model.n_parameters(self.width))

    @cached_property
    def schedule(self) -> Schedule:
        schedule = self.algorithm.schedule(
            self.model.n_components, self.model.n_parameters(self.width), self.warm_up_rows
        )
        return forgetting(schedule, self.half_life)

    def average_gains(self, weight_seen: float, sizes: Array) -> Array:
        """Gains of the running average: 2/n favours later statistics, and no end of the stream need be known."""
        if not self.algorithm.average:
            return NO_SCORES
        gains = np.minimum(1.0, 2.0 * sizes / (weight_seen + np.cumsum(sizes)))
        return gains if self.half_life is None else np.maximum(gains, 1.0 - np.exp2(-sizes / self.half_life))


def advance(learner: Learner, state: State, batch: Batch, scores: Array = NO_SCORES) -> tuple[State, Info]:
    """Learn a chunk. The state that is given may be consumed: its buffers are used again."""
    before = state.progress
    total = 0.0
    at = 0
    if state.base is None:
        buffer = state.buffer or Buffer(learner.warm_up_rows)
        at = min(len(batch), buffer.capacity - buffer.rows)
        buffer.append(batch[:at])
        state = replace(state, buffer=buffer)
        if buffer.rows == buffer.capacity:
            state = begin(learner, state)
    if at < len(batch):
        step = _sweep if learner.batch_rows == 1 else _fold_batches
        state, total = step(learner, state, batch[at:], scores[at:])
    learned = max(len(batch) - at, 1)
    return state, Info(len(batch), total / learned, state.progress.last_step if before else 0.0)


def begin(learner: Learner, state: State, rows: int | None = None) -> State:
    """End the warm-up: find a start on the buffered rows and fold them, once, as the base of the stream."""
    assert state.buffer is not None
    batch = state.buffer.batch(rows)
    prior, summary = start(learner.model, batch, state.key, learner.start, learner.n_threads)
    return rooted(learner, state.key, prior, summary)


def rooted(learner: Learner, key: int, prior: Any, summary: Summary) -> State:
    """Return the state that stands on one summary and nothing else."""
    statistics = summary.mean
    statistics.from_base[...] = 1.0
    folds = summary.size / learner.batch_rows
    progress = Progress(summary.rows, summary.size, folds, summary.size, summary.size, min(1.0, 1.0 / max(folds, 1.0)))
    base = Base(prior, statistics, progress, _lineage(key, statistics))
    state = State(key, base=base, statistics=statistics, progress=progress)
    if learner.algorithm.average:
        state = replace(state, average=statistics)
    return _refresh(learner, state)


def settle(learner: Learner, state: State, rows: int | None = None) -> State:
    """Return what the state would be if the stream ended here: warm-up over, partial batch folded. Changes nothing."""
    if state.base is None:
        return begin(learner, state, rows)
    if state.pending is not None and state.pending.rows:
        return _fold(learner, state, state.pending)
    return state


def report(learner: Learner, state: State) -> tuple[Any, Statistics, float]:
    """Return prior, statistics and count of a settled state: what the belief and the reported parameters stand on."""
    assert state.base is not None and state.statistics is not None
    if state.average is None:
        return state.base.prior, state.statistics, state.progress.n_eff
    return state.base.prior, state.average, _average_count(learner, state)


def learn(
    learner: Learner,
    batch: Batch,
    key: int,
    max_iter: int,
    tol: float,
    n_init: int = 1,
    resume: State | None = None,
    watch: Callable[[int, float], None] | None = None,
) -> tuple[State, Climb | None]:
    """Learn all rows at hand: an online algorithm in its one pass, the others in passes until the objective settles."""
    model, algorithm = learner.model, learner.algorithm
    if algorithm.online and not algorithm.finish:
        state, _ = advance(learner, resume or State(key), batch)
        return state, None
    name = "mode" if algorithm.finish else algorithm.readout
    best: Climb | None = None
    for run in range(n_init if resume is None else 1):
        if resume is not None:
            settled = settle(learner, resume)
            assert settled.base is not None and settled.statistics is not None
            prior = settled.base.prior
            summary = model.summarize(settled.parameters, batch, n_threads=learner.n_threads)
        else:
            prior, summary = _first_summary(learner, batch, key, run)
        climbing = _passes_prior(learner, prior)
        reached = climb(model, name, climbing, summary, batch, max_iter, tol, learner.n_threads, watch)
        if best is None or reached.trace[-1] > best.trace[-1]:
            best, best_prior = reached, prior if algorithm.finish else climbing
    assert best is not None
    return rooted(learner, key, best_prior, best.summary), best


def _passes_prior(learner: Learner, prior: Any) -> Any:
    """EM passes are maximum likelihood unless the user gave a prior."""
    flat = learner.model.flat_prior(prior.components.origin)
    wants_flat = learner.algorithm.word in ("em", "auto") and not learner.model.has_prior
    return flat if wants_flat else prior


def _first_summary(learner: Learner, batch: Batch, key: int, run: int) -> tuple[Any, Summary]:
    """Start on a random sample the size of a warm-up; then stream the rest once, in an order that mixes sorted rows."""
    model = learner.model
    rng = np.random.default_rng(np.random.SeedSequence((key, run, 1)))
    rows = min(len(batch), learner.warm_up_rows)
    sample = batch if rows == len(batch) else batch[np.sort(rng.choice(len(batch), rows, replace=False))]
    settings = learner.start if learner.algorithm.finish else replace(learner.start, n_starts=1)
    prior, summary = start(model, sample, key + run, settings, learner.n_threads)
    if rows < len(batch):
        state = rooted(learner, key, prior, summary)
        if learner.algorithm.finish:
            stride = max(1, len(batch) // learner.batch_rows)
            for offset in range(stride):
                state, _ = advance(learner, state, batch[offset::stride])
        summary = model.summarize(state.parameters, batch, n_threads=learner.n_threads)
    return prior, summary


def merge(learner: Learner, states: Sequence[State]) -> State:
    """Add what each state learned since their common base, and count the base once (paper 003, eq. 10)."""
    settled = [settle(learner, state) for state in states]
    base = settled[0].base
    assert base is not None
    first = settled[0]

    def combined(pick: Callable[[State], tuple[Statistics, float]]) -> tuple[Statistics, float]:
        kept, count, parts = np.inf, 0.0, []
        for state in settled:
            statistics, mass = pick(state)
            share = min(mass * float(statistics.from_base[0]), base.progress.n_eff)
            kept = min(kept, share)
            count += mass - share
            parts.append(statistics.scaled(mass) - base.statistics.scaled(share))
        count += kept
        return (reduce(lambda a, b: a + b, parts) + base.statistics.scaled(kept)).scaled(1.0 / count), count

    def added(pick: Callable[[Progress], float]) -> float:
        return pick(base.progress) + sum(pick(state.progress) - pick(base.progress) for state in settled)

    statistics, n_eff = combined(lambda state: (state.statistics, state.progress.n_eff))  # type: ignore[arg-type,return-value]
    average = None
    if first.average is not None:
        average, _ = combined(lambda state: (state.average, _average_count(learner, state)))  # type: ignore[arg-type,return-value]
    progress = Progress(
        int(added(lambda p: p.rows_seen)),
        added(lambda p: p.weight_seen),
        added(lambda p: p.folds),
        added(lambda p: p.mass) if learner.half_life is None else max(state.progress.mass for state in settled),
        n_eff,
        min(state.progress.last_step for state in settled),
    )
    return _refresh(learner, State(first.key, base=base, statistics=statistics, average=average, progress=progress))


def _average_count(learner: Learner, state: State) -> float:
    """Rows that averaged statistics are worth: all of them, unless some were forgotten."""
    return state.progress.weight_seen if learner.half_life is None else state.progress.n_eff


def _fold_batches(learner: Learner, state: State, batch: Batch, scores: Array) -> tuple[State, float]:
    total = 0.0
    at = 0
    while at < len(batch):
        pending = state.pending
        room = learner.batch_rows - (pending.rows if pending else 0)
        part = batch[at : at + room]
        before = pending.score if pending else 0.0
        summary = learner.model.summarize(
            state.parameters, part, pending, scores[at : at + room], learner.n_threads
        )
        total += summary.score - before
        full = summary.rows == learner.batch_rows
        state = _fold(learner, state, summary) if full else replace(state, pending=summary)
        at += len(part)
    return state, total


def _fold(learner: Learner, state: State, summary: Summary) -> State:
    assert state.statistics is not None
    sizes = np.array([summary.size])
    step = float(learner.schedule(state.progress, sizes, learner.batch_rows)[0])
    statistics = state.statistics.toward(summary.mean, step)
    average = state.average
    if average is not None:
        average = average.toward(statistics, float(learner.average_gains(state.progress.weight_seen, sizes)[0]))
    progress = state.progress.after(summary.rows, summary.size, step, summary.size / learner.batch_rows)
    return _refresh(
        learner, replace(state, statistics=statistics, average=average, progress=progress, pending=None, buffer=None)
    )


def _sweep(learner: Learner, state: State, batch: Batch, scores: Array) -> tuple[State, float]:
    """Row by row, inside the kernel, in stretches that keep the arrays of steps small."""
    assert state.base is not None and state.statistics is not None
    scores = scores if scores.size else np.empty(len(batch))
    for at in range(0, len(batch), 4096):
        part = batch[at : at + 4096]
        sizes = part.row_weights
        progress = state.progress
        steps = learner.schedule(progress, sizes, 1.0)
        gains = learner.average_gains(progress.weight_seen, sizes)
        statistics, average, n_eff = learner.model.sweep(
            learner.algorithm.readout, state.base.prior, state.statistics, state.average, progress.n_eff, part, steps,
            gains, scores[at : at + 4096],
        )  # fmt: skip
        weight = float(sizes.sum())
        progress = Progress(
            progress.rows_seen + len(part), progress.weight_seen + weight, progress.folds + weight,
            float(sizes[-1] / steps[-1]), n_eff, float(steps[-1]),
        )  # fmt: skip
        state = replace(state, statistics=statistics, average=average, progress=progress, buffer=None)
    return _refresh(learner, state), float(scores @ batch.row_weights)


def _refresh(learner: Learner, state: State) -> State:
    assert state.base is not None and state.statistics is not None
    parameters = learner.model.readout(
        learner.algorithm.readout, state.base.prior, state.statistics, state.progress.n_eff
    )
    return replace(state, parameters=parameters)


def _lineage(key: int, statistics: Statistics) -> str:
    """A name for the base that two learners share exactly if they started from the same rows in the same way."""
    digest = hashlib.blake2b(str(key).encode(), digest_size=8)
    for array in statistics.to_arrays().values():
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
