"""Policy: what a stream does besides learning, in hooks that the loop calls. The loop knows no policy by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import Batch
from headwater.core.contracts import Model, Start, StartSettings
from headwater.core.state import Stream, Summary
from headwater.core.statistics import Array, Statistics

if TYPE_CHECKING:
    from headwater.core.plan import Plan

NEVER = 2**62  # rows until an event that never comes


class Policy:
    """Base of all policies. Every hook has a default that does nothing.

    What a policy knows is its record in `stream.records[name]`, which the loop passes on without reading it.
    Hooks are pure: a stream in, a stream out. They are called in the order of the plan, and only for streams that have a
    record of the policy; `at_base`, `start`, `adopt`, `align` and `merge` are called for all.
    """

    name: ClassVar[str]

    # Whether it looks at every batch, so that batches must not grow with the stream.
    watches_batches: ClassVar[bool] = False

    # Whether its record says nothing of components, so that it stays when some of them are left out.
    outlives_components: ClassVar[bool] = False

    def sizing_model(self, model: Model) -> Model:
        """Return the model whose size decides warm-up and reservoir, where the number of components is not known yet."""
        return model

    def at_base(self, plan: Plan, stream: Stream, start: Start) -> Stream:
        """A base was made of a start, which is part of the stream's own statistics."""
        return stream

    def start(self, plan: Plan, stream: Stream, start: Start, batch: Batch, counts: bool) -> Stream:
        """The warm-up is over and a stream begins. These were its rows; if they count, they are learned already."""
        return stream

    def adopt(self, plan: Plan, stream: Stream) -> Stream:
        """The stream is about to take rows by this plan, perhaps after another one: begin or end what the plan asks for."""
        return stream

    def rows_until_due(self, plan: Plan, stream: Stream) -> int:
        """Rows after which `after_batch` has something to do. Chunks are cut there, so that cuts of the user change nothing."""
        return NEVER

    def after_fold(self, plan: Plan, before: Stream, stream: Stream, summary: Summary) -> Stream:
        """A batch was folded; parameters are not refreshed yet."""
        return stream

    def after_batch(self, plan: Plan, before: Stream, stream: Stream, part: Batch) -> Stream:
        """These rows were taken; at most one fold has happened since `before`."""
        return stream

    def after_move(self, plan: Plan, before: Stream, stream: Stream) -> Stream:
        """Another policy has moved the reference, or the components."""
        return stream

    def on_read(self, plan: Plan, stream: Stream) -> Stream:
        """Return the finalized stream as it is read. May search; what it returns is not what goes on learning."""
        return stream

    def holds_reference(self, plan: Plan, stream: Stream) -> bool:
        """Whether the parameters of the E-step are held except where this policy moves them."""
        return False

    def align(self, plan: Plan, streams: list[Stream]) -> list[Stream]:
        """Streams of one base are about to be added: bring their statistics to common parameters, so that they can be added."""
        return streams

    def merge(self, plan: Plan, merged: Stream, streams: Sequence[Stream], shared: bool) -> Stream:
        """Streams were added; `merged` has the records of the first. Join the records; neither order nor tree may matter.

        `shared` says whether they have one base.
        """
        return merged

    def at_hand(self) -> Policy:
        """Return the policy for rows that are all in memory: they have no order then, and none is forgotten."""
        return self

    def rows_to_search(self, plan: Plan, n: int) -> int:
        """Return how many of n rows that are all in memory are searched before passes over all of them; 0 for none."""
        return 0

    def search_at_hand(self, plan: Plan, stream: Stream) -> Stream:
        """Return the stream, whose rows are all in memory, as passes over them begin. May search."""
        return stream

    def after_passes(self, plan: Plan, stream: Stream, batch: Batch) -> Stream:
        """Passes over these rows, which are all in memory, have ended in this stream."""
        return stream

    def in_shard(self) -> Policy | None:
        """Return what it does in each shard of a stream; None for nothing."""
        return None

    def begin_shard(self, whole: Stream, shard: Stream) -> Stream:
        """A shard begins, with the records of the whole stream and fresh parameters."""
        return shard

    def gather(self, plan: Plan, before: Stream, whole: Stream, shards: Sequence[Stream]) -> Stream:
        """The shards of a stream were merged into a whole one."""
        return whole

    def widen(self, plan: Plan, stream: Stream) -> Stream:
        """Rows have more columns from now on."""
        return stream

    def blank_record(self, plan: Plan, stream: Stream) -> object | None:
        """Return a record of the right kind and shapes, as a template for reading files; None if files do not hold it."""
        return None

    def find_problem(self, plan: Plan, stream: Stream, record: object) -> str:
        """Return what is wrong with a record that was read by that template, as the end of a sentence; "" if nothing is."""
        return ""


class FindsStart:
    """Capability of a policy: it finds the start of a stream, and the model that a start leads to."""

    def find_start(self, plan: Plan, batch: Batch, key: int, settings: StartSettings) -> Start:
        """Return a start on these rows."""
        raise AssertionError("a policy that finds starts says how")

    def model_for(self, plan: Plan, statistics: Statistics) -> Model:
        """Return the model that has these statistics."""
        raise AssertionError("a policy that finds starts says how")


class Folds:
    """Capability of a policy: it takes the E-step of batches, and moves the statistics, in its own way."""

    def summarize(self, plan: Plan, stream: Stream, part: Batch, scores: Array) -> tuple[Summary, Stream]:
        """Return the summary of a part beside the unfolded rows, and the stream after it."""
        raise AssertionError("a policy that folds says how")

    def move(self, plan: Plan, stream: Stream, summary: Summary) -> Stream:
        """Return the stream with its statistics moved towards a summary; other records and parameters come after it."""
        raise AssertionError("a policy that folds says how")


class Restates:
    """Capability of a policy: it estimates a stream's statistics at the parameters of another one."""

    def can_restate(self, streams: Sequence[Stream]) -> bool:
        """Whether all of these streams keep enough rows for it."""
        raise AssertionError("a policy that restates says how")

    def match_other_size(self, plan: Plan, stream: Stream, first: Stream) -> tuple[Statistics, NDArray[np.int64]]:
        """Restate a stream with another number of components at the parameters of the first; return also the matching."""
        raise AssertionError("a policy that restates says how")

    def restate(self, plan: Plan, stream: Stream, first: Stream, components: NDArray[np.int64]) -> tuple[Statistics, Stream]:
        """Restate a stream whose components were matched at the parameters of the first; return also the reordered stream."""
        raise AssertionError("a policy that restates says how")
