"""Runtime: what an estimator has learned, as one value that never changes, and a cache of what reading made of it.

Only this module reads the fields of a state. An estimator holds one Runtime; learning makes another one, which replaces it in
one assignment, so that readers on other threads see the one or the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, cast

from headwater.core.average import AVERAGE, share_of_average
from headwater.core.batch import Batch, join_batches
from headwater.core.batch_fit import resume_start
from headwater.core.contracts import NO_SCORES, Start, chain_of
from headwater.core.delta import Delta
from headwater.core.fit_result import FIT_RESULT
from headwater.core.learner import Learner
from headwater.core.lineage import rebase, root_stream, select_components
from headwater.core.loop import advance, branch, finalize, read, report, widen
from headwater.core.merge import delta_of, grow
from headwater.core.plan import Plan
from headwater.core.sequences import OpenRows, close_sequence, open_rows
from headwater.core.shards import Shards
from headwater.core.state import State, Stream, Summary, WarmUp
from headwater.core.statistics import Array, Params, Prior, Stats
from headwater.core.steps import EMPTY, Partial, refresh, report_parameters
from headwater.core.values import Index
from headwater.core.warm_up import milestone_parameters, plant, rows_to_wait
from headwater.estimators.race import Race
from headwater.estimators.reading import Cache, Folded, Reading
from headwater.io.files.states import holds_rows, without_rows
from headwater.policies.growth import Growth
from headwater.policies.growth_states import GrowthPolicy
from headwater.policies.names import GROWTH
from headwater.policies.search_policy import stop_search

NO_PARAMETERS: Mapping[str, object] = {}


@dataclass(frozen=True, eq=False)
class Runtime(Generic[Prior, Stats, Params]):
    """A learner, its state, and the parameters of the estimator when the learner was made, `made_with`.

    Where n_components="auto" holds a race, `rivals` are the Runtimes of those that run; the learner and the state are the
    leader's.
    """

    learner: Learner
    state: WarmUp | Stream[Prior, Stats, Params]
    made_with: Mapping[str, Any] = field(default_factory=dict)
    race: Race | None = None
    rivals: tuple[Runtime, ...] = ()
    cache: Cache[Params] = field(default_factory=Cache, repr=False)

    # Making one

    @classmethod
    def begin(cls, learner: Learner, key: int, made_with: Mapping[str, object] = NO_PARAMETERS) -> Runtime:
        """Return the Runtime of a stream before its first row."""
        return cls(learner, WarmUp(key), made_with)

    @classmethod
    def begin_at(cls, learner: Learner, key: int, start: Start, made_with: Mapping[str, object] = NO_PARAMETERS) -> Runtime:
        """Return the Runtime of passes over all rows, before the first one: at the parameters of a start."""
        state = root_stream(learner.plan, key, start).with_record(FIT_RESULT, start.parameters)
        return cls(learner.for_state(state), state, made_with)

    @classmethod
    def start_on(cls, learner: Learner, key: int, sample: Batch, weight: float, made_with: Mapping[str, object]) -> Runtime:
        """Return the Runtime of a stream whose warm-up is over, on a sample that counts `weight` times."""
        state = plant(learner.plan, key, sample, weight)
        return cls(learner.for_state(state), state, made_with)

    def with_state(
        self, state: State, learner: Learner | None = None, made_with: Mapping[str, object] | None = None
    ) -> Runtime:
        """Return a Runtime with another state; of the cache it has what still holds."""
        old, known = self.cache, _folded_part(state)
        cache = Cache(
            quick=old.quick if old.quick is not None and old.quick[0] is known else None,
            folded=old.folded if old.folded is not None and old.folded[0] is known else None,
            carry=None if isinstance(state, WarmUp) else old.carry,  # which goes on if nothing but more rows waits
            leader=old.leader if isinstance(state, WarmUp) else None,
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

    def after(self, state: State) -> Runtime:
        """Return the Runtime that the loop has left in a state, whose number of components may have been found."""
        return self.with_state(state, self.learner.for_state(state))

    def with_learner(self, learner: Learner, made_with: Mapping[str, object]) -> Runtime:
        """Return a Runtime that goes on with another learner, whose rows may be wider; what the old one read is gone."""
        if learner is self.learner:
            return self
        state = widen(learner.plan, self.state) if learner.width > self.learner.width else self.state
        if isinstance(state, WarmUp):
            state = replace(state, buffer=state.buffer.without_starts())
        runtime = self.with_state(state, learner, made_with)
        runtime.cache.leader = None
        return runtime

    def with_race(self, race: Race | None, rivals: tuple[Runtime, ...] = ()) -> Runtime:
        """Return a Runtime with a race, whose leader it is; a winner needs no rivals beside it."""
        running = () if race is None or race.over else rivals
        return replace(self, race=race, rivals=running, cache=replace(self.cache, reader=None))

    def with_growth(self, growth: Growth) -> Runtime:
        """Return a Runtime whose number of components was found by growth on rows in memory, and goes on growing."""
        state = self.state
        if isinstance(state, Stream):
            state = replace(state, base=state.base.with_record(GROWTH, growth))
        return self.with_state(state, self.learner.with_policy(GrowthPolicy()).for_state(state))

    # What it is

    @property
    def warming_up(self) -> bool:
        """Whether rows wait for the warm-up to be over."""
        return isinstance(self.state, WarmUp)

    @property
    def waits_for_race(self) -> bool:
        """Whether rows wait for a race to begin."""
        return self.race is not None and not self.race.over and self.warming_up

    @property
    def grows(self) -> bool:
        """Whether the number of components is found by growth, so that a reading may have another one."""
        return self.learner.has(GROWTH)

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
        return self.state.progress.weight_seen if isinstance(self.state, Stream) else 0.0

    @property
    def n_eff(self) -> float:
        """Effective number of rows of the statistics."""
        return float(self.state.progress.n_eff) if isinstance(self.state, Stream) else 0.0

    @property
    def lineage(self) -> str | None:
        """The name of the base, by which branches are known; None in a warm-up."""
        return self.state.base.lineage if isinstance(self.state, Stream) else None

    @property
    def prior(self) -> Prior | None:
        """The prior that the warm-up ended with; None before."""
        return self.state.base.prior if isinstance(self.state, Stream) else None

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
        return self.state.rows if isinstance(self.state, WarmUp) else 0

    @property
    def waiting_labels(self) -> frozenset[int]:
        """Components that labels of waiting rows name."""
        return self.state.buffer.named if isinstance(self.state, WarmUp) else frozenset()

    def waiting_batch(self, rows: int | None = None) -> Batch:
        """The first rows (all of them by default) that wait for the warm-up to be over."""
        assert isinstance(self.state, WarmUp)
        return self.state.buffer.batch(rows)

    @property
    def unlearned_rows(self) -> int:
        """Rows that wait to be learned: for the end of the warm-up, or in open sequences for those after them."""
        unfolded = getattr(self.state, "unfolded", None)
        return self.waiting_rows + (unfolded.rows if isinstance(unfolded, OpenRows) else 0)

    def folded(self) -> tuple[Folded[Prior, Stats, Params], ...]:
        """What was folded so far, of each part of the stream; empty in the warm-up."""
        if isinstance(self.state, WarmUp):
            return ()
        return tuple(
            Folded(
                part.base.prior,
                part.records.get(AVERAGE, part.statistics),
                part.statistics,
                part.parameters,
                part.progress.n_eff,
            )
            for part in _shards(self.state) or (self.state,)
        )

    # Reading

    def read(self) -> Reading[Prior, Stats, Params]:
        """Return what the user sees, made once. A stream that refines itself, or grows, may search here for a better fit."""
        cache = self.cache
        if cache.reading is None:
            plan = self.learner.plan
            stream = read(plan, self.state)
            cache.reading = Reading(plan, stream, report_parameters(plan, stream))
        return cache.reading

    def quick_parameters(self) -> Params:
        """Reported parameters as of the last refresh: what one-row calls read, without ending or folding anything."""
        state, cache = self.state, self.cache
        if isinstance(state, WarmUp):
            return cast(Params, milestone_parameters(self.learner.plan, state))
        known = _folded_part(state)
        quick = cache.quick
        if quick is None or quick[0] is not known:
            folded = state if _shards(state) else replace(state, unfolded=EMPTY)
            quick = cache.quick = (known, report(self.learner.plan, folded))
        return quick[1]

    def without_search(self) -> Runtime:
        """Return a Runtime that is read as of the last fold: no answer of it folds waiting rows or searches."""
        state, cache = self.state, self.cache
        if isinstance(state, WarmUp):
            return self
        known, plan = _folded_part(state), self.learner.plan
        if cache.folded is None or cache.folded[0] is not known:
            stream = finalize(plan, state if _shards(state) else replace(state, unfolded=EMPTY))
            cache.folded = (known, Reading(plan, stream, report_parameters(plan, stream)))
        reading = cache.folded[1]
        return replace(self, cache=replace(cache, reading=reading, quick=(known, reading.parameters), health=None))

    def parameters_at(self, width: int) -> Params:
        """Reported parameters for rows that are wider than those learned."""
        plan = replace(self.learner, width=width).plan
        return report(plan, widen(plan, self.state))

    def position(self) -> tuple[Params, object]:
        """Parameters of the last refresh, and what is known of open sequences under them."""
        parameters, state, cache = self.quick_parameters(), self.state, self.cache
        opened = open_rows(state)
        rows = [self.waiting_batch()] if isinstance(state, WarmUp) else [*opened.waiting]
        number = sum(map(len, rows))
        known = cache.carry
        if known is None or known[0] is not parameters or known[1] > number:
            known = (parameters, 0, opened.carry)
        _, followed, carry = known
        if followed < number:
            carry = chain_of(self.learner.model).follow(parameters, join_batches(rows)[followed:], carry)
            cache.carry = (parameters, number, carry)
        return parameters, carry

    # Learning

    def advance(self, batch: Batch, scores: Array = NO_SCORES, scores_start: bool = True) -> Runtime:
        """Learn a chunk; rows are scored before they are learned if there is room for it (see `loop.advance`)."""
        state, _ = advance(self.learner.plan, self.state, batch, scores, scores_start)
        return self.after(state)

    def wait(self, batch: Batch, reader: Learner, scores: Array = NO_SCORES) -> Runtime:
        """Put rows into the warm-up, however many; they are scored by another learner."""
        state, _ = advance(replace(reader, warm_up=2**62).plan, self.state, batch, scores)
        return self.with_state(state)

    def rows_to_wait(self, batch: Batch, warm_up: int) -> tuple[int, bool]:
        """Return how many rows of a batch a warm-up of this length still takes, and whether it is over then."""
        assert isinstance(self.state, WarmUp)
        return rows_to_wait(replace(self.learner, warm_up=warm_up).plan, self.state.buffer, batch)

    def change(self, change: Callable[[Plan, State], State]) -> Runtime:
        """Return a Runtime whose state is changed; those of a race are changed in the same way."""
        if self.rivals:
            assert self.race is not None
            rivals = tuple(rival.change(change) for rival in self.rivals)
            leader = next(rival for rival in rivals if rival.n_components == self.race.leader)
            return self.with_state(leader.state, leader.learner).with_race(self.race, rivals)
        state = change(self.learner.plan, self.state)
        return self.with_state(state, self.learner.for_state(state))

    def with_record(self, name: str, record: object, ended: bool = False) -> Runtime:
        """Return a Runtime with what a policy knows. What was read still holds, unless the stream is to be `ended` first."""
        known = self.cache.reading
        changed = self.change(
            lambda plan, state: cast(Stream, finalize(plan, state) if ended else state).with_record(name, record)
        )
        if known is not None and not ended:
            changed.cache.reading = replace(known, stream=known.stream.with_record(name, record))
        return changed

    def branch(self) -> Runtime:
        """Return a Runtime that has learned the same, and calls all of it its base; a warm-up is over then."""
        return self.change(branch)

    def close(self, sequence: int) -> Runtime:
        """End an open sequence."""
        closing = self.change(lambda _, state: close_sequence(state, sequence))
        closing.cache.carry = None
        return closing

    def without_rows(self) -> Runtime:
        """Return a Runtime as if the stream ended here, which keeps no rows as they came."""
        return self.with_state(without_rows(self.learner, self.state))

    def without_refinement(self) -> Runtime:
        """Return a Runtime that goes on without a reservoir."""
        return self.change(lambda plan, state: stop_search(plan, state) if isinstance(state, Stream) else state)

    def select(self, learner: Learner, components: Index, made_with: Mapping[str, object]) -> Runtime:
        """Return a Runtime with some of the components, as they are read."""
        return Runtime(learner, select_components(learner.plan, self.read().stream, components), made_with)

    def resume_start(self) -> Start:
        """Return the start of passes over all rows that go on from here."""
        return resume_start(self.learner.plan, self.state)

    # Learning on many machines

    def delta(self) -> Delta:
        """Return what was learned since the base."""
        return delta_of(self.learner.plan, self.state)

    def finalize(self) -> Runtime:
        """Return a Runtime as if the stream ended here, which calls all it has learned its base."""
        return self.with_state(rebase(finalize(self.learner.plan, self.state)))

    def grow_by(self, delta: Delta, again: bool = False) -> Runtime:
        """Return a Runtime that has learned what a delta holds; `again`, of rows that it has seen before.

        Parts average what they alone have gone through, so the average goes on from the one before, with the weights that the
        average of one stream would have (`average_gains`).
        """
        before, plan = self.state, self.learner.plan
        assert isinstance(before, Stream)
        after, _ = grow(plan, before, delta)
        if AVERAGE in after.records and AVERAGE in before.records:
            share = share_of_average(plan, before.progress, after.progress)
            after = after.with_record(AVERAGE, after.records[AVERAGE].toward(before.records[AVERAGE], share))
        if again:
            after = refresh(plan, replace(after, progress=replace(before.progress, folds=after.progress.folds)))
        return self.with_state(after)

    def part(self, key: int, rows_at_hand: float) -> Runtime:
        """Return a Runtime for a part of the rows: with draws, tables and an average of its own."""
        learner = replace(self.learner, averages_after=self.weight_seen, rows_at_hand=rows_at_hand)
        assert isinstance(self.state, Stream)
        average = self.state.records.get(AVERAGE)
        state = replace(self.state, key=key, statistics=self.state.statistics.copy())  # other threads learn from the same base
        return self.with_state(state.with_record(AVERAGE, None if average is None else average.copy()), learner)

    def restart(self, start: Start) -> Runtime:
        """Return a Runtime that begins at a start, under the same key."""
        return self.with_state(root_stream(self.learner.plan, self.key, start))

    def report_parameters(self, parameters: object) -> Runtime:
        """Return a Runtime that shows these parameters, until more is learned."""
        assert isinstance(self.state, Stream)
        return self.with_state(self.state.with_record(FIT_RESULT, parameters))

    def end_pass(self, key: int, start: Start) -> Runtime:
        """Return a Runtime in the middle of passes over all rows, with the summary of the last one still to be folded."""
        state = root_stream(self.learner.plan, key, start).with_record(FIT_RESULT, start.parameters)
        return self.with_state(replace(state, unfolded=Partial(start.summary)))

    def take_summary(self) -> tuple[Summary | None, Runtime]:
        """Return what is still to be folded, and a Runtime without it."""
        assert isinstance(self.state, Stream)
        return getattr(self.state.unfolded, "summary", None), self.with_state(replace(self.state, unfolded=EMPTY))

    def with_threads(self, n_threads: int) -> Runtime:
        """Return a Runtime that uses so many threads."""
        return self.with_state(self.state, replace(self.learner, n_threads=n_threads))


def _shards(stream: Stream) -> tuple[Stream, ...]:
    return stream.unfolded.streams if isinstance(stream.unfolded, Shards) else ()


def _folded_part(state: State) -> object:
    """What changes when something is folded: the statistics, or the shards that have theirs."""
    return None if isinstance(state, WarmUp) else _shards(state) or state.statistics
