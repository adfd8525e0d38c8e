"""Carry the marks of a person through a stream, its files and its merges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from headwater.core.batch import Batch
from headwater.core.plan import Plan
from headwater.core.policy import Policy
from headwater.core.state import Stream
from headwater.core.statistics import Array
from headwater.policies.marks import Marks, find_problem, merge_marks
from headwater.policies.names import MARKS


@dataclass(frozen=True)
class MarkPolicy(Policy):
    """Marks are of rows and not of components, so that nothing that is learned or searched changes them."""

    name = MARKS
    outlives_components = True

    def merge(self, plan: Plan, merged: Stream, streams: Sequence[Stream], shared: bool) -> Stream:
        known = [stream.records[MARKS] for stream in streams if MARKS in stream.records]
        return merged.with_record(MARKS, merge_marks(known)) if known else merged

    def blank_record(self, plan: Plan, stream: Stream) -> Marks:
        return Marks.blank()

    def find_problem(self, plan: Plan, stream: Stream, record: object) -> str:
        return find_problem(cast(Marks, record))


def scores_with_marks(stream: Stream, batch: Batch, scores: Array) -> Array:
    """Return the anomaly scores of rows, moved by the marks of a stream if it has any."""
    marks: Marks | None = stream.records.get(MARKS)
    return scores if marks is None else marks.moved(cast(Any, stream.model).family.profile(batch.X), scores)
