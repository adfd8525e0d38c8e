"""Runtime: what an estimator has learned, as one value that never changes, and a cache of what reading made of it.

Only this module looks into a state. An estimator holds one Runtime; learning makes another one, which takes its place in one
assignment, so that those who read on other threads see the one or the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from headwater.core.batch_fit import resumed
from headwater.core.contracts import NO_SCORES, Start
from headwater.core.delta import Delta
from headwater.core.learner import Learner, belief, refreshed, suited
from headwater.core.lineage import chosen, closed, rebased, rooted
from headwater.core.loop import advance, branch, learned, milestone_parameters, planted, report, rows_to_wait, settle, widened
from headwater.core.merge import grown
from headwater.core.state import Batch, Buffer, State, Summary, joined
from headwater.core.statistics import Array
from headwater.diagnostics.health import Health
from headwater.estimators.race import Race
from headwater.io.files.states import holds_rows, without_rows
from headwater.policies.drift_monitor import forgetting
from headwater.policies.growth import Growth
from headwater.policies.refinement_states import contested, plain


class Folded(NamedTuple):
    """What a stream has folded so far, without its partial batch."""

    prior: Any
    statistics: Any  # their running average, if there is one
    last_statistics: Any
    parameters: Any
    n_eff: float


@dataclass(frozen=True)
class Reading:
    """What a user sees: the state as if the stream ended here, with its refinement and growth, and the parameters reported."""

    learner: Learner
    state: State
    parameters: Any

    @property
    def model(self) -> Any:
        """The model, with the number of components that was found."""
        return suited(self.learner, self.state).model

    @property
    def belief(self) -> tuple[Any, Any, float]:
        """Prior, statistics and count: what is believed is prior + count * statistics."""
        return belief(self.learner, self.state)

    @property
    def prior(self) -> Any:
        """The prior that the warm-up ended with."""
        assert self.state.base is not None
        return self.state.base.prior

    @property
    def growth(self) -> Growth | None:
        """How the number of components was found, if it grew."""
        return None if self.state.base is None else self.state.base.growth

    @property
    def ends_passes(self) -> bool:
        """Whether the parameters are those that passes over all rows ended with."""
        return self.state.reported is not None

    @property
    def rows(self) -> int:
        """Rows learned from."""
        return self.state.rows

    @property
    def refinement(self) -> Any:
        """The record of refinement, or None."""
        return self.state.healing

    @property
    def drift(self) -> Any:
        """The record of the drift monitor, or None."""
        return self.state.drift

    def half_lives(self) -> tuple[Array, bool]:
        """Half-lives of the components (K,) by the drift monitor, and whether the weights forget, too."""
        return forgetting(self.state, self.learner.warm_up_rows)

    def reservoir_rows(self, most: int) -> Any:
        """At most so many rows of the reservoir, which are as random as all of them; None if it has none."""
        reservoir = self.state.reservoir
        return None if reservoir is None or not len(reservoir) else reservoir.rows[: min(len(reservoir), most)]


@dataclass
class Cache:
    """What reading made of a Runtime. It may always be thrown away, and a deep copy or a pickle starts without it."""

    reading: Reading | None = None
    quick: tuple[Any, Any] | None = None  # statistics, and what is reported of them
    carry: tuple[Any, int, Any] | None = None  # parameters, rows followed after the last fold, what is known of open sequences
    reader: Runtime | None = None  # of rows that wait for a race
    leader: tuple[int, int] | None = None  # of a race on the first so many rows that wait
    places: tuple[Any, dict[Any, int]] | None = None  # names of columns, and the place of each
    health: tuple[dict[str, Any], Health] | None = None  # attributes of the estimator, and how well it does with them

    def __reduce__(self) -> tuple[Any, ...]:
        return (Cache, ())


@dataclass(frozen=True, eq=False)
class Runtime:
    """A learner, its state, and the parameters of the estimator when the learner was made (`made_with`, in their order).

    Where n_components="auto" holds a race, `rivals` are the Runtimes of those that run; the learner and the state are the
    leader's.
    """

    learner: Learner
    state: State
    made_with: tuple[Any, ...] = ()
    race: Race | None = None
    rivals: tuple[Runtime, ...] = ()
    cache: Cache = field(default_factory=Cache, repr=False)

    # Making one

    @classmethod
    def begin(cls, learner: Learner, key: int, made_with: tuple[Any, ...] = ()) -> Runtime:
        """Return the Runtime of a stream before its first row."""
        return cls(learner, State(key), made_with)

    @classmethod
    def begin_at(cls, learner: Learner, key: int, start: Start, made_with: tuple[Any, ...] = ()) -> Runtime:
        """Return the Runtime of passes over all rows, before the first one: at the parameters of a start."""
        state = replace(rooted(learner, key, start), reported=start.parameters)
        return cls(suited(learner, state), state, made_with)

    @classmethod
    def start_on(cls, learner: Learner, key: int, sample: Batch, weight: float, made_with: tuple[Any, ...]) -> Runtime:
        """Return the Runtime of a stream whose warm-up is over, on a sample that counts `weight` times."""
        state = planted(learner, key, sample, weight)
        return cls(suited(learner, state), state, made_with)

    def with_state(self, state: State, learner: Learner | None = None, made_with: tuple[Any, ...] | None = None) -> Runtime:
        """Return a Runtime with another state; of the cache it has what still holds."""
        old, known = self.cache, state.parts or state.statistics
        cache = Cache(
            quick=old.quick if old.quick is not None and old.quick[0] is known else None,
            carry=None if state.base is None else old.carry,  # which goes on if nothing but more rows waits
            leader=old.leader if state.base is None else None,
            places=old.places,
        )
        return Runtime(
            self.learner if learner is None else learner,
            state,
            self.made_with if made_with is None else made_with,
            self.race,
            self.rivals,
            cache,
        )

    def with_learner(self, learner: Learner, made_with: tuple[Any, ...]) -> Runtime:
        """Return a Runtime that goes on with another learner, whose rows may be wider."""
        if learner is self.learner:
            return self
        state = widened(learner, self.state) if learner.width > self.learner.width else self.state
        return self.with_state(state, learner, made_with)

    def with_race(self, race: Race | None, rivals: tuple[Runtime, ...] = ()) -> Runtime:
        """Return a Runtime with a race, whose leader it is; a winner needs no rivals beside it."""
        running = () if race is None or race.over else rivals
        return replace(self, race=race, rivals=running, cache=replace(self.cache, reader=None))

    def with_growth(self, growth: Growth) -> Runtime:
        """Return a Runtime whose number of components was found by growth on rows at hand, and goes on growing."""
        state = self.state
        if state.base is not None:
            state = replace(state, base=replace(state.base, growth=growth))
        return self.with_state(state, suited(replace(self.learner, grows=True), state))

    # What it is

    @property
    def warming_up(self) -> bool:
        """Whether rows wait for the warm-up to be over."""
        return self.state.base is None

    @property
    def waits_for_race(self) -> bool:
        """Whether rows wait for a race to begin."""
        return self.race is not None and not self.race.over and self.state.base is None

    @property
    def key(self) -> int:
        """The seed of the stream."""
        return self.state.key

    @property
    def rows(self) -> int:
        """Rows learned from, or waiting to be."""
        return self.state.rows

    @property
    def weight_seen(self) -> float:
        """Weight of the rows that were folded."""
        return self.state.progress.weight_seen

    @property
    def n_eff(self) -> float:
        """Rows that the statistics are worth."""
        return float(self.state.progress.n_eff)

    @property
    def lineage(self) -> str | None:
        """The name of the base, by which branches are known; None in a warm-up."""
        return None if self.state.base is None else self.state.base.lineage

    @property
    def prior(self) -> Any:
        """The prior that the warm-up ended with; None before."""
        return None if self.state.base is None else self.state.base.prior

    @property
    def n_components(self) -> int:
        """Number of components of the learner."""
        return int(self.learner.model.n_components)

    @property
    def holds_rows(self) -> bool:
        """Whether rows are kept as they came: in a warm-up, waiting for those after them, or in a reservoir."""
        return holds_rows(self.state)

    @property
    def waiting_rows(self) -> int:
        """Rows that wait for the warm-up to be over."""
        return self.state.buffer.rows if self.warming_up and self.state.buffer is not None else 0

    @property
    def waiting_labels(self) -> frozenset[int]:
        """Components that labels of waiting rows name."""
        return self.state.buffer.named if self.warming_up and self.state.buffer is not None else frozenset()

    def waiting_batch(self, rows: int | None = None) -> Batch:
        """The first rows (all of them by default) that wait for the warm-up to be over."""
        assert self.warming_up and self.state.buffer is not None
        return self.state.buffer.batch(rows)

    @property
    def unlearned_rows(self) -> int:
        """Rows that wait to be learned: for the end of the warm-up, or in open sequences for those after them."""
        states = (self.state, *self.state.parts)
        return self.waiting_rows + sum(len(batch) for state in states for batch in state.waiting)

    def folded(self) -> tuple[Folded, ...]:
        """What was folded so far, of each part of the stream; empty in the warm-up."""
        if self.state.base is None:
            return ()
        return tuple(
            Folded(
                part.base.prior,  # type: ignore[union-attr]
                part.statistics if part.average is None else part.average,
                part.statistics,
                part.parameters,
                part.progress.n_eff,
            )
            for part in self.state.parts or (self.state,)
        )

    # Reading

    def read(self) -> Reading:
        """Return what the user sees, made once. A stream that refines itself, or grows, may search here for a better fit."""
        cache = self.cache
        if cache.reading is None:
            settled = contested(self.learner, settle(self.learner, self.state))
            cache.reading = Reading(self.learner, settled, report(self.learner, settled))
        return cache.reading

    def quick_parameters(self) -> Any:
        """Reported parameters as of the last refresh: what one-row calls read, without ending or folding anything."""
        state, cache = self.state, self.cache
        if state.base is None:
            return milestone_parameters(self.learner, state)
        known = state.parts or state.statistics
        quick = cache.quick
        if quick is None or quick[0] is not known:
            folded = replace(state, pending=None, waiting=(), carry=None)
            quick = cache.quick = (known, report(self.learner, folded))
        return quick[1]

    def parameters_at(self, width: int) -> Any:
        """Reported parameters for rows that are wider than those learned."""
        learner = replace(self.learner, width=width)
        return report(learner, settle(learner, widened(learner, self.state)))

    def position(self) -> tuple[Any, Any]:
        """Parameters of the last refresh, and what is known of open sequences under them."""
        parameters, state, cache = self.quick_parameters(), self.state, self.cache
        rows = [self.waiting_batch()] if state.base is None else [*state.waiting]
        number = sum(map(len, rows))
        known = cache.carry
        if known is None or known[0] is not parameters or known[1] > number:
            known = (parameters, 0, state.carry)
        _, followed, carry = known
        if followed < number:
            carry = self.learner.chain.follow(parameters, joined(rows)[followed:], carry)
            cache.carry = (parameters, number, carry)
        return parameters, carry

    # Learning

    def advance(self, batch: Batch, scores: Array = NO_SCORES, scores_start: bool = True) -> Runtime:
        """Learn a chunk; rows are scored before they are learned if there is room for it (see `loop.advance`)."""
        state, _ = advance(self.learner, self.state, batch, scores, scores_start)
        return self.with_state(state, suited(self.learner, state))

    def wait(self, batch: Batch, reader: Learner, scores: Array = NO_SCORES) -> Runtime:
        """Put rows into the warm-up, however many; they are scored by another learner."""
        state, _ = advance(replace(reader, warm_up=2**62), self.state, batch, scores)
        return self.with_state(state)

    def rows_to_wait(self, batch: Batch, warm_up: int) -> tuple[int, bool]:
        """Return how many rows of a batch a warm-up of this length still takes, and whether it is over then."""
        return rows_to_wait(replace(self.learner, warm_up=warm_up), self.state.buffer or Buffer(), batch)

    def change(self, change: Callable[[Learner, State], State]) -> Runtime:
        """Return a Runtime whose state is changed; those of a race are changed in the same way."""
        if self.rivals:
            assert self.race is not None
            rivals = tuple(rival.change(change) for rival in self.rivals)
            leader = next(rival for rival in rivals if rival.n_components == self.race.leader)
            return self.with_state(leader.state, leader.learner).with_race(self.race, rivals)
        state = change(self.learner, self.state)
        return self.with_state(state, suited(self.learner, state))

    def branch(self) -> Runtime:
        """Return a Runtime that has learned the same, and calls all of it its base; a warm-up is over then."""
        return self.change(branch)

    def close(self, sequence: int) -> Runtime:
        """End an open sequence."""
        closing = self.change(lambda learner, state: closed(state, sequence))
        closing.cache.carry = None
        return closing

    def without_rows(self) -> Runtime:
        """Return a Runtime as if the stream ended here, which keeps no rows as they came."""
        return self.with_state(without_rows(self.learner, self.state))

    def without_refinement(self) -> Runtime:
        """Return a Runtime that goes on without a reservoir."""
        return self.change(plain)

    def select(self, learner: Learner, components: Any, made_with: tuple[Any, ...]) -> Runtime:
        """Return a Runtime with some of the components, as they are read."""
        return Runtime(learner, chosen(self.learner, learner, self.read().state, components), made_with)

    def resume_start(self) -> Start:
        """Return the start of passes over all rows that go on from here."""
        return resumed(self.learner, self.state)

    # Learning on many machines

    def delta(self) -> Delta:
        """Return what was learned since the base."""
        return learned(self.learner, self.state)

    def finalize(self) -> Runtime:
        """Return a Runtime as if the stream ended here, which calls all it has learned its base."""
        return self.with_state(rebased(settle(self.learner, self.state)))

    def grow_by(self, delta: Delta, again: bool = False) -> Runtime:
        """Return a Runtime that has learned what a delta holds; `again`, of rows that it has seen before.

        Parts average what they alone have gone through, so the average goes on from the one before, with the weights that the
        average of one stream would have (`Learner.average_gains`).
        """
        before = self.state
        after, _ = grown(self.learner, before, delta)
        if after.average is not None and before.average is not None:
            share = (before.progress.weight_seen / after.progress.weight_seen) ** 2
            after = replace(after, average=after.average.toward(before.average, share))
        if again:
            after = refreshed(self.learner, replace(after, progress=replace(before.progress, folds=after.progress.folds)))
        return self.with_state(after)

    def part(self, key: int, rows_at_hand: float) -> Runtime:
        """Return a Runtime for a part of the rows: with draws, tables and an average of its own."""
        learner = replace(self.learner, averages_after=self.weight_seen, rows_at_hand=rows_at_hand)
        statistics: Any = self.state.statistics
        average = self.state.average
        state = replace(
            self.state,
            key=key,
            statistics=statistics.copy(),  # other threads learn from the same base
            average=None if average is None else average.copy(),
        )
        return self.with_state(state, learner)

    def restart(self, start: Start) -> Runtime:
        """Return a Runtime that begins at a start, under the same key."""
        return self.with_state(rooted(self.learner, self.key, start))

    def report_parameters(self, parameters: Any) -> Runtime:
        """Return a Runtime that shows these parameters, until more is learned."""
        return self.with_state(replace(self.state, reported=parameters))

    def end_pass(self, key: int, start: Start) -> Runtime:
        """Return a Runtime in the middle of passes over all rows, with the summary of the last one still to be folded."""
        state = rooted(self.learner, key, start)
        return self.with_state(replace(state, reported=start.parameters, pending=start.summary))

    def take_summary(self) -> tuple[Summary | None, Runtime]:
        """Return what is still to be folded, and a Runtime without it."""
        return self.state.pending, self.with_state(replace(self.state, pending=None))

    def with_threads(self, n_threads: int) -> Runtime:
        """Return a Runtime that uses so many threads."""
        return self.with_state(self.state, replace(self.learner, n_threads=n_threads))


def mean_shares(parts: list[Array]) -> Array:
    """Return the shares of the components, on average over the parts of a stream; empty if there are none."""
    if not parts:
        return np.empty(0)
    shares = np.mean(parts, axis=0)
    return np.asarray(shares / max(float(np.sum(shares)), 1e-300))
