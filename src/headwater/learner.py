"""The loop: summarize a batch, fold it into the statistics, read parameters out. Every algorithm is learned here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property, partial, reduce
from operator import add
from typing import Any, cast

import numpy as np

from headwater.algorithms import Algorithm
from headwater.delta import Delta, grown_by, since_base
from headwater.grown_states import Moving, grown_start, regrown
from headwater.growth import Growth
from headwater.healing import Healing, Patient, healed
from headwater.kernels.parallel import one_blas_thread, run_tasks
from headwater.models.kept_rows import corrected
from headwater.models.mixture import Mixture
from headwater.models.protocol import NO_SCORES, Chained, Inference, Model, Start, StartSettings
from headwater.reservoir import Reservoir, taken
from headwater.reservoir import merged as union
from headwater.schedules import Schedule, forgetting
from headwater.state import Base, Batch, Buffer, Info, Progress, State, Summary, appended, fingerprint, joined
from headwater.statistics import Array, Statistics
from headwater.watching import adapted, alike, calmed, heals_by, moved, recent, together, watched, watching

SWEEP_ROWS = 16384
UNKNOWN_ROWS = 8  # what the first rows of a stream score tells nothing: the scale of the data is not known yet
WARM_UP_BYTES = 2**23
LONGER = 4
BLOCKS = 8  # a batch that grows holds so many of the first size, at most
PART_ROWS = 16  # rows that one part gets before it is the next one's turn
PART_KEYS = 0x1F3D5B79A2C4E687
USUAL = 8  # components that rows are waited for and kept for, where their number is to be found
RESERVOIR_ROWS = 20_000
RESERVOIR_TIMES = 80  # what moves every parameter
RESERVOIR_BYTES = 2**26
HEALED_BYTES = 2**24  # of parameters, beyond which nothing is moved: moves hold several copies of them
LATER = 2.0  # times the rows seen to wait for after a healing; after the warm-up, as many as it had
MUCH_LATER = 7.0  # and where there is nothing more to be found
AGAIN = 1.0  # times that rows may be looked at again where something was forgotten
NO_PROMISE = -1e300  # of kept rows, if there are none yet
GROWN = 1.1  # times the rows of the last healing, after which a model that is read has healed again
SURPRISINGLY_GROWN = 1.02


@dataclass(frozen=True)
class Learner:
    """A model, an algorithm and the settings of a run; holds nothing that is learned."""

    model: Model
    algorithm: Algorithm
    width: int
    settings: StartSettings = StartSettings()
    half_life: float | None = None
    warm_up: int | None = None
    n_threads: int | None = None
    parts: int = 1
    rows_at_hand: float = np.inf  # what `fit` has: rows that come again are not more rows
    averages_after: float = 0.0  # weight that was seen before the running average began
    reservoir: int | None = 0  # rows to keep for healing; None, as many as it takes
    adapts: bool = False  # whether components forget by themselves, when rows come that they did not expect
    grows: bool = False  # whether the number of components is to be found; that of the model is the one so far

    @property
    def chain(self) -> Chained:
        """The model, where rows hang together."""
        return cast(Chained, self.model)

    @cached_property
    def inference(self) -> Inference:
        return self.algorithm.inference(self.model)

    @cached_property
    def sweeps(self) -> bool:
        """Whether rows are folded one by one, in a kernel."""
        return self.batch_rows == 1 and not self.algorithm.counts_rows and self.model.sweeps(self.inference)

    def drawing(self, state: State, after: int = 0) -> Inference:
        """How the next E-step of a state is taken, so many rows after those it has folded."""
        return replace(self.inference, key=state.key, first=state.progress.rows_seen + after)

    def count(self, progress: Progress) -> float:
        """What the statistics are worth beside the prior."""
        if self.algorithm.counts_rows and self.half_life is None:
            return min(progress.weight_seen, self.rows_at_hand)
        return progress.n_eff

    @cached_property
    def alone(self) -> Learner:
        """The learner of one part: parts run side by side, so each has one thread, and each sees but its part of the rows."""
        half_life = None if self.half_life is None else self.half_life / self.parts
        return replace(self, parts=1, n_threads=1, half_life=half_life)

    @cached_property
    def warm_up_rows(self) -> int:
        """Rows to wait for: what the model asks for, at most 8 MB of them."""
        if self.warm_up is not None:
            return self.warm_up
        wanted = self.usual.rows_to_start(self.width)
        return max(2 * self.model.n_components, min(wanted, WARM_UP_BYTES // self.model.row_bytes(self.width)))

    @cached_property
    def usual(self) -> Any:
        """The model, with a usual number of components if that is to be found."""
        return cast(Mixture, self.model).resized(USUAL) if self.grows else self.model

    @cached_property
    def sample_rows(self) -> int:
        """Rows that are enough to heal by, and to grow on."""
        enough, room = self.usual.rows_to_learn(self.width), RESERVOIR_BYTES // self.model.row_bytes(self.width)
        return min(max(RESERVOIR_ROWS, RESERVOIR_TIMES * enough), room)

    @cached_property
    def kept_rows(self) -> int:
        """Rows of a stream that are kept to heal by; 0 if it does not."""
        if not self.algorithm.heals or not isinstance(self.model, Mixture):
            return 0
        if self.usual.n_components == 1 and not self.adapts:
            return 0
        if self.sweeps:  # parameters that follow every row do not stand still until a healing
            return 0
        if self.reservoir is not None:
            return self.reservoir
        outweighed = self.sample_rows < self.usual.rows_to_learn(self.width)  # rows that fit say next to nothing
        return 0 if outweighed or 8 * self.usual.n_parameters(self.width) > HEALED_BYTES else self.sample_rows

    def holds(self, state: State) -> bool:
        """Whether the parameters of the E-step stand still until the stream heals."""
        return state.healing is not None and self.half_life is None and not (state.drift is not None and state.drift.following)

    @cached_property
    def batch_rows(self) -> int:
        return self.algorithm.batch_rows(self.model.n_components, self.model.rows_to_learn(self.width))

    def fold_rows(self, state: State) -> int:
        """Rows of the next batch: while parameters stand still they grow with the stream, by which they cost less."""
        if not self.holds(state) or state.drift is not None:  # which is looked for at the end of every batch
            return self.batch_rows
        return self.batch_rows * int(np.clip(state.progress.rows_seen // (32 * self.batch_rows), 1, BLOCKS))

    def block_rows(self, progress: Progress) -> int:
        """Rows of the next batch, where rows hang together: they may grow with the stream, by which they cost less."""
        if not self.algorithm.grows:
            return self.batch_rows
        most = BLOCKS * self.batch_rows
        if self.half_life is not None:  # a batch is forgotten as one
            most = max(16, min(most, int(self.half_life / 8)))
        return int(np.clip(progress.rows_seen // 64, min(self.batch_rows, most), most))

    @cached_property
    def schedule(self) -> Schedule:
        rows = self.model.rows_to_learn(self.width)
        schedule = self.algorithm.schedule(self.model.n_components, rows, self.warm_up_rows)
        return forgetting(schedule, self.half_life)

    def average_gains(self, weight_seen: float, sizes: Array) -> Array:
        """Gains of the running average: 2/n favours later statistics, and no end of the stream need be known."""
        gains = np.minimum(1.0, 2.0 * sizes / (weight_seen - self.averages_after + np.cumsum(sizes)))
        return gains if self.half_life is None else np.maximum(gains, 1.0 - np.exp2(-sizes / self.half_life))

    def average_count(self, progress: Progress) -> float:
        """Rows that averaged statistics are worth: all of them, unless some were forgotten."""
        return min(progress.weight_seen, self.rows_at_hand) if self.half_life is None else progress.n_eff


def advance(
    learner: Learner, state: State, batch: Batch, scores: Array = NO_SCORES, scores_start: bool = True
) -> tuple[State, Info]:
    """Learn a chunk. Of the state that is given only the buffer is used again; if learning is broken off, it is as it was.

    Rows are scored before they are learned if there is room for `scores`; those of the warm-up only if `scores_start` says so.
    """
    at, total = 0, 0.0
    if state.base is None:
        state, at = _wait(learner, state, batch, scores if scores_start else NO_SCORES)
    learner = suited(learner, state)
    if at < len(batch):
        if len(state.parts) != (learner.parts if learner.parts > 1 else 0):
            state = _dealt(learner, state)
        chained = learner.model.chained
        full = state.pending is not None and state.pending.rows >= learner.fold_rows(state)
        if full or (learner.sweeps and state.waiting):  # the algorithm was another before
            state = replace(settle(learner, state), carry=_now(learner, state) if chained else None)
        if state.healing is not None and not learner.kept_rows:
            state = plain(learner, state)
        if learner.adapts != (state.drift is not None):  # or the half-life was, or `fit` came before, which keeps no rows
            state = watching(learner.model, _keeping(learner, state), learner.adapts, learner.n_threads)
        take = _deal if learner.parts > 1 else _sweep if learner.sweeps else _fold_chained if chained else _fold_batches
        if state.reservoir is not None:
            take = partial(_heal_on_the_way, take)
        state, total = take(learner, state, batch[at:], scores[at:])
    step = learner.batch_rows / state.progress.mass if state.progress.mass else 0.0
    return state, Info(len(batch), total / batch[at:].size if at < len(batch) else 0.0, step)


def suited(learner: Learner, state: State) -> Learner:
    """Return the learner of a state: the number of components that is to be found is the one that the state has."""
    if not learner.grows or state.statistics is None:
        return learner
    found = len(cast(Any, state.statistics).count)  # of components
    return learner if found == learner.model.n_components else replace(learner, model=learner.usual.resized(found))


def milestone_parameters(learner: Learner, state: State) -> Any:
    """Return the reported parameters of a start on the rows up to the last power of two: what quick reads see in warm-up."""
    assert state.buffer is not None
    rows = 1 << (state.buffer.rows.bit_length() - 1)
    if state.buffer.milestone is None or state.buffer.milestone[0] != rows:
        state.buffer.milestone = rows, report(learner, settle(learner, state, rows))
    return state.buffer.milestone[1]


def settle(learner: Learner, state: State, rows: int | None = None) -> State:
    """Return the state as if the stream ended here: warm-up over, partial batch folded, sequences closed.

    The one given is not changed. The buffered rows (or the first `rows` of them) become the base of the stream, folded once.
    """
    if state.base is None:
        assert state.buffer is not None
        batch = state.buffer.batch(rows)
        return rooted(learner, state.key, started(learner, batch, state.key))
    learner = suited(learner, state)
    if state.parts:
        return _gathered(learner, state)
    if state.pending is not None:
        return fold(learner, state, state.pending)
    if state.waiting:
        waiting = joined(state.waiting)
        summary, _ = learner.chain.summarize_open(state.parameters, waiting, state.carry, len(waiting), learner.n_threads)
        return fold(learner, state, summary)
    return replace(state, carry=None) if state.carry is not None else state


def started(learner: Learner, batch: Batch, key: int, polish: bool = True) -> Start:
    """Find a start on these rows; and a number of components, if there is none yet."""
    settings = replace(learner.settings, inference=learner.inference, polish=polish and learner.settings.polish)
    if learner.grows:
        return grown_start(cast(Mixture, learner.model), batch, key, settings, learner.n_threads)
    return learner.model.start(batch, key, settings, learner.n_threads)


def rooted(learner: Learner, key: int, start: Start) -> State:
    """Return the state that stands on one summary and nothing else."""
    statistics, size = _kept(learner, start.summary.mean).copy(), start.summary.size  # in the very form that the base holds
    statistics.from_base[...] = 1.0
    folds = size / learner.batch_rows
    progress = Progress(start.summary.rows, size, folds, size, size)
    average = statistics if learner.algorithm.average else None
    begun = _based(State(key, progress=progress), start.prior, statistics, average, growth=start.growth)
    return refreshed(learner, begun)


def opened(learner: Learner, state: State, reference: Any, batch: Batch, counts: bool = True) -> State:
    """Return a state at the beginning of a stream that is to heal: it keeps rows, of which these are the first if they count.

    `reference` are the parameters that its statistics are sums at.
    """
    learner = suited(learner, state)
    if not learner.kept_rows:
        return state
    reservoir = Reservoir(state.key, learner.kept_rows, RESERVOIR_BYTES)
    if counts:
        reservoir = taken(reservoir, batch, 0, _clock(learner, state, 0, len(batch)))
    scores = learner.model.log_likelihood(reference, batch, learner.n_threads)
    healing = Healing().begun(len(batch), scores, batch.row_weights, learner.model.rows_to_learn(learner.width))
    healing = replace(healing, rows=state.progress.rows_seen)
    state = replace(state, reservoir=reservoir, healing=healing, parameters=reference)
    return watching(learner.model, _scheduled(learner, state), learner.adapts, learner.n_threads)


def _keeping(learner: Learner, state: State) -> State:
    """Return a state that keeps rows from now on, if it is to watch for drift and keeps none."""
    if state.healing is not None or not learner.adapts:
        return state
    reservoir = Reservoir(state.key, learner.kept_rows, RESERVOIR_BYTES)
    return _scheduled(learner, replace(state, reservoir=reservoir, healing=Healing(rows=state.rows, expected=NO_PROMISE)))


def plain(learner: Learner, state: State) -> State:
    """Return a state that heals no more, and keeps no rows."""
    if state.healing is None:
        return state
    return refreshed(learner, replace(state, reservoir=None, healing=None, drift=None))


def _clock(learner: Learner, state: State, first: int, rows: int) -> Any:
    """What had been forgotten when rows came, in nats."""
    if state.drift is not None:
        return float(state.drift.clock)
    return 0.0 if learner.half_life is None else (first + np.arange(rows)) * (np.log(2.0) / learner.half_life)


def _scheduled(learner: Learner, state: State) -> State:
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


def _heal_on_the_way(
    take: Callable[..., tuple[State, float]], learner: Learner, state: State, batch: Batch, scores: Array
) -> tuple[State, float]:
    """Learn rows as they come, keep some of them, and heal whenever it is time."""
    at, total = 0, 0.0
    while at < len(batch):
        assert state.reservoir is not None
        place, before = state.rows, state.drift
        room = max(state.healing.next - place, 1)
        if before is not None:  # what is forgotten is decided at the end of a batch
            room = min(room, learner.batch_rows - (state.pending.rows if state.pending else 0))
        part = batch[at : at + room]
        if learner.parts > 1 and not state.parts:
            state = _dealt(learner, state)
        reservoir = taken(cast(Reservoir, state.reservoir), part, place, _clock(learner, state, place, len(part)))
        state, gained = take(learner, state, part, scores[at : at + room])
        state = replace(state, reservoir=reservoir)
        if before is not None and state.pending is None:
            state = calmed(learner.model, state, learner.warm_up_rows, learner.n_threads)
            if state.drift.last > before.last:  # it heals soon
                soon = _scheduled(learner, state).healing.next
                state = replace(state, healing=replace(state.healing, next=min(soon, max(state.healing.next, state.rows + 1))))
        at, total = at + len(part), total + gained
        if state.rows >= state.healing.next:
            allowed = state.healing.allowance(state.rows, learner.warm_up_rows)
            if before is not None and before.alarms:
                allowed += AGAIN * state.rows
            if learner.grows:
                state = _regrown(learner, settle(learner, state), on_the_way=True)
                learner = suited(learner, state)
            if allowed > 0.0 and heals_by(state, learner.warm_up_rows, allowed):
                state = _healed(learner, settle(learner, state), allowed)
            state = _scheduled(learner, state)
    return state, total


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
        settled = _regrown(learner, settled)
        learner = suited(learner, settled)
    return _healed(learner, settled, np.inf)


def _healed(learner: Learner, settled: State, allowed: float) -> State:
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
        recent(settled),
        settled.healing,
        settled.rows,
        settled.key,
        settings.method,
        settings.readout,
        restart if settings.polish and settings.given is None else None,
        not learner.holds(settled),
        not np.isfinite(allowed),
        settled.drift is not None and (settled.drift.clock > 0.0 or len(settled.reservoir) < settled.rows),
        learner.n_threads,
    )
    with one_blas_thread():
        parameters, statistics, healing = healed(patient, allowed)
        base = _transported(learner, settled, parameters)
    state = State(
        settled.key, base=base, parameters=parameters, statistics=statistics, progress=settled.progress,
        reservoir=settled.reservoir, healing=healing, drift=settled.drift,
    )  # fmt: skip
    state = state if learner.holds(state) else refreshed(learner, state)
    return moved(learner.model, settled, state, learner.n_threads) if state.drift is not None else state


def _regrown(learner: Learner, settled: State, on_the_way: bool = False) -> State:
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


def _transported(learner: Learner, settled: State, parameters: Any) -> Base:
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


def planted(learner: Learner, key: int, batch: Batch, weight: float) -> State:
    """Return a state whose warm-up is over, on these rows, which count `weight` times; less than 1: they will come again."""
    start = started(learner, batch, key)
    if weight < 1.0:
        summary = start.summary
        start = replace(start, summary=Summary(summary.statistics.scaled(weight), 0, summary.size * weight))
    return opened(learner, rooted(learner, key, start), start.parameters, batch, weight == 1.0)


def branch(learner: Learner, state: State) -> State:
    """Return a state that has learned the same but calls all of it its base: branches of one state can be merged."""
    return rebased(settle(learner, state))


def rebased(settled: State, ancestors: tuple[str, ...] = ()) -> State:
    """Return a settled state that calls all it has learned its base, beside which it stands on those of others."""
    assert settled.base is not None and settled.statistics is not None
    statistics = settled.statistics.copy()
    average = settled.average.copy() if settled.average is not None else None
    for part in (statistics, average):
        if part is not None:
            part.from_base[...] = 1.0
    own = (*settled.base.ancestors, settled.base.lineage, *ancestors)
    return _based(settled, settled.base.prior, statistics, average, own, settled.base.growth)


def _based(
    state: State,
    prior: Any,
    statistics: Statistics,
    average: Statistics | None,
    ancestors: tuple[str, ...] = (),
    growth: Growth | None = None,
) -> State:
    lineage = fingerprint(state.key, prior, statistics, state.progress, size=8)
    before = tuple(dict.fromkeys(name for name in ancestors if name != lineage))
    held = statistics.copy()  # copies: what is learned next is written beside the base
    kept = None if average is None else held if average is statistics else average.copy()
    base = Base(prior, held, kept, state.progress, lineage, before, growth)
    return replace(state, base=base, statistics=statistics, average=average)


def widened(learner: Learner, state: State) -> State:
    """Return the state for rows of the learner's width, which is more than it had; what was learned stays."""
    model, width = learner.model, learner.width

    def wide(value: Any) -> Any:
        return None if value is None else model.widened(value, width)

    if state.base is None:
        return replace(state, buffer=None if state.buffer is None else state.buffer.widened(width))
    base = replace(
        state.base,
        prior=wide(state.base.prior),
        statistics=wide(state.base.statistics),
        average=wide(state.base.average),
    )
    pending = None if state.pending is None else replace(state.pending, statistics=wide(state.pending.statistics))
    state = replace(
        state, base=base, statistics=wide(state.statistics), average=wide(state.average), pending=pending, reported=None,
        parts=tuple(widened(learner, part) for part in state.parts),
    )  # fmt: skip
    return refreshed(learner, state)


def chosen(learner: Learner, after: Learner, settled: State, components: Any) -> State:
    """Return what a settled state has learned of some components, as a base of its own; `after` is to go on with it."""
    assert settled.base is not None
    model = suited(learner, settled).model
    statistics = model.permuted(settled.statistics, components)
    average = None if settled.average is None else model.permuted(settled.average, components)
    reported = None if settled.reported is None else model.picked(settled.reported, components)
    base = replace(settled.base, prior=model.chosen(settled.base.prior, components), growth=None)
    kept = State(settled.key, base=base, statistics=statistics, average=average, progress=settled.progress)
    return replace(refreshed(after, rebased(kept)), reported=reported)


def closed(state: State, number: int) -> State:
    """Return the state after the end of an open sequence: what comes next is another one."""

    def ended(batch: Batch) -> Batch:
        return replace(batch, sequences=np.where(batch.sequences == number, -1 - number, batch.sequences))

    if state.base is None:
        return replace(state, buffer=None if state.buffer is None else state.buffer.changed(ended))
    waits = any((batch.sequences == number).any() for batch in state.waiting)
    carry = None if state.carry is None else state.carry.closed(number, waits)
    return replace(state, carry=carry, waiting=tuple(ended(batch) for batch in state.waiting), now=None)


def belief(learner: Learner, state: State) -> tuple[Any, Statistics, float]:
    """Return prior, statistics and count of a settled state: what is believed is prior + count * statistics."""
    assert state.base is not None and state.statistics is not None
    if state.average is None:
        return state.base.prior, state.statistics, learner.count(state.progress)
    return state.base.prior, state.average, learner.average_count(state.progress)


def report(learner: Learner, state: State) -> Any:
    """Return the parameters that the user sees."""
    settled = settle(learner, state)
    if settled.reported is not None:
        return settled.reported
    return suited(learner, settled).model.readout(learner.algorithm.report, *belief(learner, settled))


def merge(learner: Learner, states: Sequence[State]) -> State:
    """Add what each state learned since their common base, and count the base once (paper 003, eq. 10)."""
    return combine(learner, states)[0]


def combine(learner: Learner, states: Sequence[State]) -> tuple[State, tuple[int, ...]]:
    """Merge states of one base.

    Returns the components, too, whose sum is no belief, so that the mean of the states took its place.
    """
    settled = _at_one_reference(learner, alike([settle(learner, state) for state in states]))
    learner = suited(learner, settled[0])
    merged, repaired = grown(learner, settled[0], reduce(add, map(since_base, settled)))
    return gathered_healing(learner, merged, settled), repaired


def gathered_healing(learner: Learner, merged: State, settled: Sequence[State], shared: bool = True) -> State:
    """Return a merged state that goes on to heal, by the rows that all of them kept; if one kept none, it does not.

    Of healing it knows what the first does.
    """
    first, reservoirs = settled[0], [state.reservoir for state in settled if state.reservoir is not None]
    if len(reservoirs) < len(settled):
        return plain(learner, merged)
    assert merged.base is not None and first.base is not None
    base = first.base.progress.rows_seen if shared else 0
    after = replace(merged, reservoir=union(reservoirs, base), healing=first.healing, drift=together(merged, settled, shared))
    after = _scheduled(learner, after)
    after = after if learner.holds(after) else refreshed(learner, after)
    return watching(learner.model, after, learner.adapts, learner.n_threads)


def _at_one_reference(learner: Learner, settled: list[State]) -> list[State]:
    """Return states whose statistics are sums at the same parameters, as far as kept rows can tell.

    These are the ones of the state that was healed last, which comes first: the same ones in any tree of merges. If one of them
    cannot be brought there, none heals any more.
    """
    numbers = [suited(learner, state).model.n_components for state in settled]
    holds = learner.holds(settled[0])
    names = [fingerprint(state.parameters, size=16) if holds else str(k) for state, k in zip(settled, numbers, strict=True)]
    tell = all(state.reservoir is not None and len(state.reservoir) for state in settled)
    if any(state.healing is None for state in settled) or (len(set(names)) > 1 and not tell):
        refuse_numbers(numbers)
        return [plain(learner, state) for state in settled]

    def rank(at: int) -> Any:
        return settled[at].healing.rows, names[at], astuple(replace(settled[at].healing, next=0))

    order = sorted(range(len(settled)), key=rank, reverse=True)
    reference, first = settled[order[0]].parameters, settled[order[0]]

    def brought(state: State) -> State:
        if suited(learner, state).model != suited(learner, first).model:
            return _renumbered(learner, state, first)
        statistics = told_at(learner, state, reference)
        return replace(state, base=_transported(learner, state, reference), statistics=statistics, parameters=reference)

    return [settled[at] if names[at] == names[order[0]] else brought(settled[at]) for at in order]


def refuse_numbers(numbers: Sequence[int]) -> None:
    """Refuse to merge states that have grown apart, where no kept rows tell what one says of the components of another."""
    if len(set(numbers)) > 1:
        chosen = " and ".join(map(str, sorted(set(numbers))))
        raise ValueError(
            f"models must have one n_components, got {chosen}, which 'auto' chose: learn again with one of these numbers"
        )


def _renumbered(learner: Learner, state: State, first: State) -> State:
    """Return a state with the components of another one on the same base, as far as the rows that it keeps can tell."""
    assert state.reservoir is not None and state.statistics is not None and state.base is not None and first.base is not None
    own, other = (cast(Mixture, suited(learner, one).model) for one in (state, first))
    moving = Moving(own, other, state.parameters, first.parameters, first.base.prior, learner.n_threads)
    kept, count = state.reservoir, learner.count(state.progress)
    statistics = moving.told(state.statistics, kept.batch, count).writable()
    statistics.from_base[...] = state.statistics.from_base
    rows = np.flatnonzero(kept.places < state.base.progress.rows_seen)
    base = replace(moving.base(state.base, kept.batch, rows), prior=first.base.prior, growth=first.base.growth)
    return replace(state, base=base, statistics=statistics, parameters=first.parameters, reported=None)


def told_at(
    learner: Learner,
    state: State,
    reference: Any,
    prior: Any = None,
    moved: Callable[[Any], Any] = lambda rest: rest,
    renamed: Reservoir | None = None,
) -> Any:
    """Return the statistics that a state would have at other parameters, by the rows it keeps.

    What all rows say beside those that are kept is `moved` to the components, and the prior, of the reference; `renamed` are
    these with labels that name its components.
    """
    model, base = cast(Mixture, learner.model), state.base
    assert state.reservoir is not None and state.statistics is not None and base is not None
    kept = state.reservoir.batch
    old = model.summarize(state.parameters, kept, n_threads=learner.n_threads).mean
    new = model.summarize(reference, kept if renamed is None else renamed.batch, n_threads=learner.n_threads).mean
    beside = moved(state.statistics - old)
    count = learner.count(state.progress)
    prior = base.prior if prior is None else prior
    statistics: Any = corrected(model, prior, count, new, beside, kept.size).writable()
    statistics.from_base[...] = state.statistics.from_base
    return statistics


def learned(learner: Learner, state: State) -> Delta:
    """Return what a state learned since its base; what states of one base learned adds up."""
    return since_base(settle(learner, state))


def grown(learner: Learner, state: State, delta: Delta) -> tuple[State, tuple[int, ...]]:
    """Return the base of a settled state grown by what states on it learned; the state itself, if that is nothing.

    Returns the components, too, whose sum is no belief, so that the mean of the states took its place.
    """
    merged, repaired = grown_by(learner.model, state, delta)
    if merged is state:
        return state, repaired
    if learner.holds(state):
        return replace(merged, parameters=state.parameters, healing=state.healing), repaired
    return refreshed(learner, merged), repaired


def _wait(learner: Learner, state: State, batch: Batch, scores: Array) -> tuple[State, int]:
    """Buffer rows until the warm-up is over; return how many were taken. Scores come from the last milestone."""
    buffer = state.buffer or Buffer()
    state = replace(state, buffer=buffer)
    at, before = 0, buffer.rows
    end, over = rows_to_wait(learner, buffer, batch)
    try:
        while at < end:
            stop = end
            if scores.size:
                stop = min(end, at + (1 << buffer.rows.bit_length()) - buffer.rows)
                if buffer.rows >= UNKNOWN_ROWS and 2 * _tells(learner, buffer) >= UNKNOWN_ROWS:
                    _score_waiting(learner, state, batch[at:stop], scores[at:stop])
            buffer.append(batch[at:stop])
            at = stop
        if not over:
            return state, end
        start = started(learner, buffer.batch(), state.key)
        begun = rooted(learner, state.key, start)
        if learner.model.chained:
            begun = replace(begun, carry=learner.chain.follow(begun.parameters, buffer.batch(), None))
        return opened(learner, begun, start.parameters, buffer.batch()), end
    except BaseException:
        buffer.cut(before)
        raise


def _score_waiting(learner: Learner, state: State, batch: Batch, scores: Array) -> None:
    """Score rows of the warm-up by what was known at the last milestone."""
    parameters = milestone_parameters(learner, state)
    if not learner.model.chained:
        scores[...] = learner.model.log_likelihood(parameters, batch)
        return
    buffer = state.buffer
    assert buffer is not None
    known = buffer.followed if buffer.followed is not None and buffer.followed[0] is parameters else (parameters, 0, None)
    carry = known[2]
    if known[1] < buffer.rows:
        carry = learner.chain.follow(parameters, buffer.batch()[known[1] :], carry)
    carry = learner.chain.follow(parameters, batch, carry, scores)
    buffer.followed = parameters, buffer.rows + len(batch), carry


def _tells(learner: Learner, buffer: Buffer) -> int:
    """Rows of the warm-up at the last power of two that are not missing, as rows that hang together may be."""
    if not learner.model.chained or not buffer.rows:
        return buffer.rows
    return int(np.count_nonzero(~np.isnan(buffer.batch().X[: 1 << (buffer.rows.bit_length() - 1), 0])))


def rows_to_wait(learner: Learner, buffer: Buffer, batch: Batch) -> tuple[int, bool]:
    """Return how many rows of a batch the warm-up still takes, and whether it is over then.

    If some components have been named by labels and others not, it waits for these, for up to four times its rows: a component
    that is named only later has become something else by then.
    """
    least = learner.warm_up_rows
    most = least if learner.warm_up is not None else LONGER * least
    named = np.full(len(batch), len(buffer.named))
    if batch.labels.size:
        labels, places = np.unique(batch.labels, return_index=True)
        new = [place for label, place in zip(labels, places, strict=True) if label >= 0 and int(label) not in buffer.named]
        named += np.bincount(new, minlength=len(batch)).cumsum() if new else 0
    rows = buffer.rows + np.arange(1, len(batch) + 1)
    if learner.model.chained:  # rows that are missing say nothing
        before = np.count_nonzero(~np.isnan(buffer.batch().X[:, 0])) if buffer.rows else 0
        rows = before + np.cumsum(~np.isnan(batch.X[:, 0]))
    over = (rows >= most) | ((rows >= least) & ((named == 0) | (named == learner.model.n_components)))
    return (int(np.argmax(over)) + 1, True) if over.any() else (len(batch), False)


def _dealt(learner: Learner, state: State) -> State:
    """Return the state in as many parts as the learner has, which all stand on what was learned so far."""
    settled = settle(learner, state)
    if learner.parts == 1:
        return settled
    shared: Any = replace(rebased(settled), reported=None)

    def part(number: int) -> State:
        average = shared.average.copy() if shared.average is not None else None
        key = (state.key + number * PART_KEYS) % 2**63  # draws of their own
        own = replace(shared, key=key, statistics=shared.statistics.copy(), average=average, reservoir=None)
        if own.healing is not None:
            return replace(own, healing=replace(own.healing, score=0.0, weight=0.0))
        return refreshed(learner, own)

    return replace(settled, reported=None, parts=tuple(map(part, range(learner.parts))))


def _gathered(learner: Learner, state: State) -> State:
    """Merge the parts; the base is that of the stream again, and what they stood on counts as far as it came from there."""
    merged: Any = merge(learner.alone, state.parts)
    statistics, average = merged.statistics.writable(), merged.average
    statistics.from_base[...] *= state.statistics.from_base  # type: ignore[union-attr]
    if average is not None:
        average = average.writable()
        average.from_base[...] *= state.average.from_base  # type: ignore[union-attr]
    whole = replace(merged, base=state.base, statistics=statistics, average=average)
    if state.healing is None:
        return whole
    scores = [(part.healing.score, part.healing.weight) for part in state.parts]
    healing = state.healing.after(*map(sum, zip(*scores, strict=True)))
    return replace(whole, parameters=state.parameters, reservoir=state.reservoir, healing=healing)


def _deal(learner: Learner, state: State, batch: Batch, scores: Array) -> tuple[State, float]:
    """Deal rows to the parts in turns, by their place in the stream, and let each part learn its own."""
    parts: list[Any] = list(state.parts)
    before = parts[0].base.progress.rows_seen
    dealt = sum(part.rows - before for part in parts)
    owners = (dealt + np.arange(len(batch))) // PART_ROWS % learner.parts

    def work(part: int) -> float:
        rows = np.flatnonzero(owners == part)
        if not len(rows):
            return 0.0
        share = batch[rows]
        own = np.empty(len(rows) if scores.size else 0)
        parts[part], info = advance(learner.alone, parts[part], share, own)
        if scores.size:
            scores[rows] = own
        return info.score * share.size

    with one_blas_thread():
        total = sum(run_tasks(work, range(learner.parts), learner.n_threads))
    progress = replace(state.progress, rows_seen=before + dealt + len(batch))
    return replace(state, parts=tuple(parts), progress=progress), float(total)


def _fold_batches(learner: Learner, state: State, batch: Batch, scores: Array) -> tuple[State, float]:
    at, total = 0, 0.0
    if state.pending is not None:
        state = replace(state, pending=replace(state.pending, statistics=state.pending.statistics.writable()))
    while at < len(batch):
        pending = state.pending
        rows = learner.fold_rows(state)
        room = rows - (pending.rows if pending else 0)
        part = batch[at : at + room]
        if state.drift is None:
            summary = learner.model.summarize(
                state.parameters, part, pending, scores[at : at + room], learner.n_threads,
                learner.drawing(state, pending.rows if pending else 0),
            )  # fmt: skip
        else:
            summary, state = watched(learner.model, state, part, scores[at : at + room], learner.n_threads)
        total += summary.score - (pending.score if pending else 0.0)
        full = summary.rows == rows
        state = fold(learner, state, summary) if full else replace(state, pending=summary)
        at += len(part)
    return state, total


def _fold_chained(learner: Learner, state: State, batch: Batch, scores: Array) -> tuple[State, float]:
    """Fold batches of rows that hang together: each waits for the rows after it that its model looks ahead to."""
    model, rows = learner.chain, len(batch)
    known, total, folded = sum(len(one) for one in state.waiting), 0.0, 0
    now = _now(learner, state) if scores.size else None
    if known + rows < learner.block_rows(state.progress) + model.lag:
        if scores.size:
            now = model.follow(state.parameters, batch, now, scores)
        return replace(state, waiting=appended(state.waiting, batch), now=now, reported=None), 0.0
    batch = joined([*state.waiting, batch]) if known else batch
    at, seen = 0, known
    while True:
        size = learner.block_rows(state.progress)
        stop = min(at + size + model.lag, len(batch))
        if scores.size and stop > seen:
            now = model.follow(state.parameters, batch[seen:stop], now, scores[seen - known : stop - known])
        seen = max(seen, stop)
        if stop - at < size + model.lag:
            break
        summary, carry = model.summarize_open(state.parameters, batch[at:stop], state.carry, size, learner.n_threads)
        state, at = replace(fold(learner, state, summary), carry=carry), at + size
        if scores.size:
            now = model.follow(state.parameters, batch[at:seen], carry)
        total, folded = total + summary.score, folded + size
    waiting = appended((), batch[at:]) if at < len(batch) else ()
    return replace(state, waiting=waiting, now=now, reported=None), total * rows / folded


def _now(learner: Learner, state: State) -> Any:
    """What is known of open sequences after the rows that wait, by the parameters of the next E-step."""
    if state.now is not None or not state.waiting:
        return state.now or state.carry
    return learner.chain.follow(state.parameters, joined(state.waiting), state.carry)


def fold(learner: Learner, state: State, summary: Summary) -> State:
    """Return the state moved towards a summary by the schedule's step, with fresh parameters."""
    assert state.statistics is not None
    if state.drift is not None:
        state, forgot = adapted(
            learner.model, state, summary, learner.width, learner.warm_up_rows, summary.size / learner.batch_rows
        )
        if forgot:
            return state if learner.holds(state) else refreshed(learner, state)
    sizes = np.array([summary.size])
    step = float(learner.schedule(state.progress, sizes, learner.batch_rows)[0])
    statistics = cast(Statistics, state.statistics).toward(_kept(learner, summary.statistics), step, 1.0 / summary.size)
    average = state.average
    if average is not None:
        average = average.averaged(statistics, float(learner.average_gains(state.progress.weight_seen, sizes)[0]))
    progress = state.progress.after(summary.rows, summary.size, step, summary.size / learner.batch_rows)
    after = State(
        state.key, base=state.base, parameters=state.parameters, statistics=statistics, average=average, progress=progress,
        reservoir=state.reservoir, healing=state.healing and state.healing.after(summary.score, summary.size),
        drift=state.drift,
    )  # fmt: skip
    return after if learner.holds(state) else refreshed(learner, after)


def _sweep(learner: Learner, state: State, batch: Batch, scores: Array) -> tuple[State, float]:
    """Fold row by row inside the kernel, in stretches that keep the arrays of steps small."""
    assert state.base is not None
    scores = scores if scores.size else np.empty(len(batch))
    for at in range(0, len(batch), SWEEP_ROWS):
        part = batch[at : at + SWEEP_ROWS]
        sizes, progress = part.row_weights, state.progress
        steps = learner.schedule(progress, sizes, 1.0)
        gains = NO_SCORES if state.average is None else learner.average_gains(progress.weight_seen, sizes)
        options = (
            learner.algorithm.readout, state.base.prior, state.statistics, state.average, progress.n_eff, part, steps,
            gains, scores[at : at + SWEEP_ROWS],
        )  # fmt: skip
        carry = None
        if learner.model.chained:
            statistics, average, n_eff, carry = learner.chain.sweep_open(*options, state.carry)
        else:
            statistics, average, n_eff = learner.model.sweep(*options, learner.algorithm.projection)
        weight = float(sizes.sum())
        progress = Progress(
            rows_seen=progress.rows_seen + len(part),
            weight_seen=progress.weight_seen + weight,
            folds=progress.folds + weight,
            mass=float(sizes[-1] / steps[-1]),
            n_eff=n_eff,
        )
        state = State(state.key, base=state.base, statistics=statistics, average=average, progress=progress, carry=carry)
    return refreshed(learner, state), float(scores @ batch.row_weights)


def _kept(learner: Learner, statistics: Statistics) -> Any:
    return learner.model.kept(learner.algorithm.readout, statistics)


def refreshed(learner: Learner, state: State) -> State:
    """Return the state with the parameters of its next E-step."""
    assert state.base is not None
    learner = suited(learner, state)
    count = learner.count(state.progress)
    readout = learner.model.readout(learner.algorithm.readout, state.base.prior, state.statistics, count)
    return replace(state, parameters=readout)
