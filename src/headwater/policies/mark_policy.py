"""Carry the marks of a person through a stream, its files and its merges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from headwater.core.batch import Batch, SparseRows
from headwater.core.gapped_rows import GappedRows
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
    """Return the anomaly scores of rows, moved by the marks of a stream if it has any; NaN for rows that say nothing."""
    marks: Marks | None = stream.records.get(MARKS)
    moved = scores if marks is None else marks.moved(cast(Any, stream.model).family.profile(batch.X), scores)
    return scores_of_values(batch, moved, scores)


def scores_of_values(batch: Batch, scores: Array, densities: Array) -> Array:
    """Return scores, NaN for rows without a value, and for rows with gaps whose density is that of no value."""
    if isinstance(batch.X, SparseRows):
        return scores
    if isinstance(batch.X, GappedRows):
        gaps = np.flatnonzero(batch.X.missing.any(axis=1))
        values: Array = batch.X.values[gaps]
    else:
        gaps = np.flatnonzero(np.isnan(np.asarray(batch.X).sum(axis=1)))
        values = np.asarray(batch.X)[gaps]
    silent = gaps[np.isnan(values).all(axis=1) | (densities[gaps] == 0.0)]
    if not len(silent):
        return scores
    scores = np.array(scores)
    scores[silent] = np.nan
    return scores
