"""Streams that heal: when they do, what of a state is healed, and what it is afterwards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np

from headwater.core.contracts import Start
from headwater.core.learner import RESERVOIR_BYTES, Learner, refreshed, suited
from headwater.core.state import Base, Batch, State
from headwater.kernels.parallel import one_blas_thread
from headwater.models.mixture import Mixture
from headwater.policies.control_variate import corrected
from headwater.policies.drift_monitor import heals_by, moved, recent, watching
from headwater.policies.growth import Growth
from headwater.policies.growth_states import regrown
from headwater.policies.refinement import OFTEN, Healing, Patient, healed
from headwater.policies.reservoir import Reservoir, taken

LATER = 2.0  # times the rows seen to wait for after a healing; after the warm-up, as many as it had
MUCH_LATER = 7.0  # and where there is nothing more to be found
NO_PROMISE = -1e300  # of kept rows, if there are none yet
READING = 50.0  # times that rows may be looked at again where nobody waits but who reads
GROWN = 1.1  # times the rows of the last healing, after which a model that is read has healed again
SURPRISINGLY_GROWN = 1.02


def opened(learner: Learner, state: State, reference: Any, batch: Batch, counts: bool = True) -> State:
    """Return a state at the beginning of a stream that is to heal: it keeps rows, of which these are the first if they count.

    `reference` are the parameters that its statistics are sums at.
    """
    learner = suited(learner, state)
    if not learner.kept_rows:
        return state
    reservoir = Reservoir(state.key, learner.kept_rows, RESERVOIR_BYTES)
    if counts:
        reservoir = taken(reservoir, batch, 0, clock(learner, state, 0, len(batch)))
    scores = learner.model.log_likelihood(reference, batch, learner.n_threads)
    healing = Healing().begun(len(batch), scores, batch.row_weights, learner.model.rows_to_learn(learner.width))
    healing = replace(healing, rows=state.progress.rows_seen)
    state = replace(state, reservoir=reservoir, healing=healing, parameters=reference)
    return watching(learner.model, scheduled(learner, state), learner.adapts, learner.n_threads)


def keeping(learner: Learner, state: State) -> State:
    """Return a state that keeps rows from now on, if it is to watch for drift and keeps none."""
    if state.healing is not None or not learner.adapts:
        return state
    reservoir = Reservoir(state.key, learner.kept_rows, RESERVOIR_BYTES)
    return scheduled(learner, replace(state, reservoir=reservoir, healing=Healing(rows=state.rows, expected=NO_PROMISE)))


def plain(learner: Learner, state: State) -> State:
    """Return a state that heals no more, and keeps no rows."""
    if state.healing is None:
        return state
    return refreshed(learner, replace(state, reservoir=None, healing=None, drift=None))


def clock(learner: Learner, state: State, first: int, rows: int) -> Any:
    """What had been forgotten when rows came, in nats."""
    if state.drift is not None:
        return float(state.drift.clock)
    return 0.0 if learner.half_life is None else (first + np.arange(rows)) * (np.log(2.0) / learner.half_life)


def scheduled(learner: Learner, state: State) -> State:
    """Return the state with the rows at which it heals next: twice as many, or after a half-life; at the end of a batch."""
    assert state.base is not None and state.healing is not None
    seen, first = state.rows, state.base.progress.rows_seen
    if state.drift is not None and state.drift.last:  # what was forgotten was another stream
        seen = max(seen - state.drift.last, learner.warm_up_rows)
    times = MUCH_LATER if state.healing.content else LATER if state.healing.contested else 1.0
    ahead = max(int(times * seen), learner.batch_rows)
    if learner.half_life is not None:
        ahead = min(ahead, max(int(learner.half_life), learner.batch_rows))
    batches = -(-(state.rows + ahead - first) // learner.batch_rows)
    return replace(state, healing=replace(state.healing, next=first + batches * learner.batch_rows))


def contested(learner: Learner, settled: State) -> State:
    """Return a settled state as it is read: healed, if the stream has grown by a tenth since it was the last time.

    If the rows since then came as a surprise, a few of them are enough.
    """
    learner, healing = suited(learner, settled), settled.healing
    if healing is None or settled.reservoir is None:
        return settled
    if settled.rows < (SURPRISINGLY_GROWN if healing.surprise else GROWN) * healing.rows:
        return settled
    if not heals_by(settled, learner.warm_up_rows):
        return settled
    if learner.grows:
        settled = regrown_state(learner, settled)
        learner = suited(learner, settled)
    allowed = READING * settled.rows + OFTEN * learner.warm_up_rows
    return healed_state(learner, settled, allowed, thorough=True)


def healed_state(learner: Learner, settled: State, allowed: float, thorough: bool = False) -> State:
    """Return a settled state at a reference that kept rows prefer; its base is brought there, too."""
    assert settled.base is not None and settled.reservoir is not None and isinstance(learner.model, Mixture)
    if len(settled.reservoir) == 0:
        return settled
    settings = replace(learner.settings, inference=learner.inference)

    def restart(batch: Batch, salt: int) -> Start:
        return learner.model.start(batch, (settled.key + salt) % 2**63, settings, learner.n_threads)

    patient = Patient(
        learner.model,
        learner.algorithm.readout,
        settled.base.prior,
        settled.statistics,
        settled.parameters,
        learner.count(settled.progress),
        recent(settled, learner.half_life),
        settled.healing,
        settled.rows,
        settled.key,
        settings.method,
        settings.readout,
        restart if settings.polish and settings.given is None else None,
        not learner.holds(settled),
        thorough,
        settled.drift is not None and (settled.drift.clock > 0.0 or len(settled.reservoir) < settled.rows),
        learner.n_threads,
    )
    with one_blas_thread():
        parameters, statistics, healing = healed(patient, allowed)
        base = transported(learner, settled, parameters)
    state = State(
        settled.key, base=base, parameters=parameters, statistics=statistics, progress=settled.progress,
        reservoir=settled.reservoir, healing=healing, drift=settled.drift,
    )  # fmt: skip
    state = state if learner.holds(state) else refreshed(learner, state)
    return moved(learner.model, settled, state, learner.n_threads) if state.drift is not None else state


def regrown_state(learner: Learner, settled: State, on_the_way: bool = False) -> State:
    """Return a settled state with the number of components that kept rows prefer."""
    assert settled.base is not None and settled.reservoir is not None
    if len(settled.reservoir) == 0:
        return settled
    growth = settled.base.growth or Growth()
    allowed = growth.allowance(settled.rows, learner.warm_up_rows) if on_the_way else np.inf
    model, forgets = cast(Mixture, learner.model), learner.half_life is not None
    count = learner.count(settled.progress)
    with one_blas_thread():
        state = regrown(model, settled, count, learner.settings, forgets, allowed, learner.n_threads)
    return state if state.parameters is settled.parameters or learner.holds(state) else refreshed(learner, state)


def transported(learner: Learner, settled: State, parameters: Any) -> Base:
    """Return the base as it would be at other parameters, as far as kept rows of it tell."""
    assert settled.base is not None and settled.reservoir is not None and isinstance(learner.model, Mixture)
    base, model = settled.base, learner.model
    rows = np.flatnonzero(settled.reservoir.places < base.progress.rows_seen)
    if not len(rows):
        return base
    own = settled.reservoir.batch[rows]
    old, new = (model.summarize(one, own, n_threads=learner.n_threads).mean for one in (settled.parameters, parameters))
    count = base.progress.n_eff
    statistics = corrected(model, base.prior, count, new, base.statistics - old, own.size).writable()
    statistics.from_base[...] = 1.0
    return replace(base, statistics=statistics)
