"""Keep a reservoir: a bounded uniform sample of the rows of a stream, which searches and drift read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headwater.core.batch import Batch
from headwater.core.contracts import Model, Start
from headwater.core.plan import Plan
from headwater.core.policy import Policy
from headwater.core.state import Stream
from headwater.core.statistics import Array
from headwater.models.mixture import Mixture
from headwater.policies.names import DRIFT, RESERVOIR
from headwater.policies.reservoir import Reservoir, add_rows, resize
from headwater.policies.reservoir import merge_reservoirs as union

RESERVOIR_ROWS = 20_000  # kept by default
ROWS_PER_PARAMETER = 80  # times the rows that estimate every parameter, if that is more
SEARCHED_ROWS_PER_PARAMETER = 20  # the same where passes over all rows follow
LEAST_SEARCHED = 2000  # rows below which these passes begin at a start
RESERVOIR_BYTES = 2**26  # at most
LEAST_ROWS_EACH = 25  # for each component; a smaller sample is of no use
SEARCHED_BYTES = 2**24  # of parameters; models with more are not searched, since a search holds several copies


@dataclass(frozen=True)
class ReservoirPolicy(Policy):
    """Keeps `rows` rows; None, as many as a search takes. `always` keeps them for a single component, too."""

    rows: int | None = None
    always: bool = False

    name = RESERVOIR

    def capacity(self, plan: Plan, model: Model) -> int:
        """Rows of a stream that are kept for a model; 0 if none are."""
        if not plan.algorithm.refines or not isinstance(model, Mixture):
            return 0
        sizing = plan.sizing_model
        if sizing.n_components == 1 and not self.always:
            return 0
        if plan.sweeps:  # parameters that follow every row are not held between searches
            return 0
        if self.rows is not None:
            return self.rows if self.rows >= LEAST_ROWS_EACH * model.n_components else 0
        outweighed = sample_rows(plan) < sizing.rows_to_learn(plan.width)  # too few rows fit
        return 0 if outweighed or 8 * sizing.n_parameters(plan.width) > SEARCHED_BYTES else sample_rows(plan)

    def start(self, plan: Plan, stream: Stream, start: Start, batch: Batch, counts: bool) -> Stream:
        rows = self.capacity(plan, stream.model)
        if not rows:
            return stream
        reservoir = Reservoir(stream.key, rows, RESERVOIR_BYTES)
        if counts:
            reservoir = add_rows(reservoir, batch, 0, clock(plan, stream, 0, len(batch)))
        return stream.with_record(RESERVOIR, reservoir)

    def adopt(self, plan: Plan, stream: Stream) -> Stream:
        """Keep as many rows as this plan asks for; if none, `SearchPolicy` ends the searches and the reservoir."""
        rows, reservoir = kept_rows(plan, stream.model), stream.records.get(RESERVOIR)
        if reservoir is None or not rows or rows == reservoir.capacity_rows:
            return stream
        return stream.with_record(RESERVOIR, resize(reservoir, rows))

    def after_batch(self, plan: Plan, before: Stream, stream: Stream, part: Batch) -> Stream:
        place = before.rows
        reservoir = add_rows(before.records[RESERVOIR], part, place, clock(plan, before, place, len(part)))
        return stream.with_record(RESERVOIR, reservoir)

    def rows_to_search(self, plan: Plan, n: int) -> int:
        enough = max(RESERVOIR_ROWS, SEARCHED_ROWS_PER_PARAMETER * plan.sizing_model.rows_to_learn(plan.width))
        return min(self.capacity(plan, plan.model), enough) if n >= LEAST_SEARCHED else 0

    def in_shard(self) -> Policy:
        """The whole stream keeps rows; a shard knows only how many."""
        return self

    def begin_shard(self, whole: Stream, shard: Stream) -> Stream:
        return shard.without(RESERVOIR)

    def merge(self, plan: Plan, merged: Stream, streams: Sequence[Stream], shared: bool) -> Stream:
        reservoirs = [stream.records[RESERVOIR] for stream in streams if RESERVOIR in stream.records]
        if len(reservoirs) < len(streams) or (not shared and not all(len(one) for one in reservoirs)):
            return merged.without(RESERVOIR)
        rows = streams[0].base.progress.rows_seen if shared else 0
        return merged.with_record(RESERVOIR, union(reservoirs, rows))


def kept_rows(plan: Plan, model: Model) -> int:
    """Rows that streams of a plan keep for a model."""
    known, k = plan.capacities, model.n_components
    if k not in known:
        known[k] = next((one.capacity(plan, model) for one in plan.policies if isinstance(one, ReservoirPolicy)), 0)
    return known[k]


def sample_rows(plan: Plan) -> int:
    """Rows that are enough to search by."""
    enough, room = plan.sizing_model.rows_to_learn(plan.width), RESERVOIR_BYTES // plan.model.row_bytes(plan.width)
    return int(min(max(RESERVOIR_ROWS, ROWS_PER_PARAMETER * enough), room))


def clock(plan: Plan, stream: Stream, first: int, rows: int) -> float | Array:
    """What had been forgotten when rows came, in nats."""
    if DRIFT in stream.records:
        return float(stream.records[DRIFT].clock)
    return 0.0 if plan.half_life is None else (first + np.arange(rows)) * (np.log(2.0) / plan.half_life)


def has_rows(stream: Stream) -> bool:
    """Whether a stream keeps rows, and has any."""
    return RESERVOIR in stream.records and len(stream.records[RESERVOIR]) > 0
