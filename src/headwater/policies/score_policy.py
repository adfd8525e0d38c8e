"""Keep the anomaly scores of rows from before they were learned, of which p-values and thresholds are made."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import local
from typing import Any, cast

import numpy as np

from headwater.core.batch import Batch
from headwater.core.contracts import Start
from headwater.core.plan import Plan
from headwater.core.policy import Policy
from headwater.core.row_keys import row_key
from headwater.core.state import Stream
from headwater.core.statistics import Array
from headwater.core.steps import belief, report_parameters
from headwater.models.chain_records import ChainParameters
from headwater.models.hidden_markov import HiddenMarkov
from headwater.models.mixture import Mixture, mixture_of
from headwater.models.typicality import Typicality, limited, per_size, typicality_of, usual_chain
from headwater.policies.names import DRIFT, SCORES
from headwater.policies.reservoir_policy import clock
from headwater.policies.score_sketch import ScoreSketch, is_sound, merge_sketches

ALL_ROWS = 4096  # first rows of a stream, all of which are scored; of later batches, one in so many
ONE_IN = 16
PASS_ROWS = 2**15  # of rows in memory that are scored after passes over them
LARGE = 2**16  # parameters: a readout is dear, and with so many times as many, so many times fewer batches are scored

_latest = local()  # the statistics of the last batch, and what was usual by them


@dataclass(frozen=True)
class ScorePolicy(Policy):
    """Keeps scores; `sized` rows, such as documents, have theirs by the word."""

    sized: bool = False

    name = SCORES

    def start(self, plan: Plan, stream: Stream, start: Start, batch: Batch, counts: bool) -> Stream:
        """The rows of the warm-up are scored by the start that was found on them."""
        if plan.sweeps or not isinstance(stream.model, Mixture):
            return stream
        some = _some(batch)
        scores = self.scores(plan, stream, some) if len(some) else np.empty(0)
        sketch = ScoreSketch.on_grid_of(scores, stream.base.lineage)
        if counts and len(some):
            sketch = sketch.add(scores, some.row_weights)
            sketch = replace(sketch, at_base=sketch.since, since=np.zeros_like(sketch.since))
        return stream.with_record(SCORES, sketch)

    def adopt(self, plan: Plan, stream: Stream) -> Stream:
        if SCORES in stream.records or plan.sweeps or not isinstance(stream.model, Mixture):
            return stream
        return stream.with_record(SCORES, replace(ScoreSketch.blank(), lineage=stream.base.lineage))

    def after_batch(self, plan: Plan, before: Stream, stream: Stream, part: Batch) -> Stream:
        if plan.learner.shards > 1 or plan.sweeps:
            return stream
        sketch: ScoreSketch = before.records[SCORES].on_base(stream.base.lineage)
        fade = _fade(plan, before, stream, part)
        if not _is_scored(plan, before):
            faded = sketch if fade == 1.0 else sketch.add(np.empty(0), np.empty(0), fade)
            return stream if faded is before.records[SCORES] else stream.with_record(SCORES, faded)
        scores = self.scores(plan, before, part)
        return stream.with_record(SCORES, sketch.add(scores, part.row_weights * _left(plan, stream, part), fade))

    def after_passes(self, plan: Plan, stream: Stream, batch: Batch) -> Stream:
        if SCORES in stream.records or not isinstance(stream.model, Mixture | HiddenMarkov):
            return stream
        return stream.with_record(SCORES, self.sketch_of(plan, stream, batch))

    def sketch_of(self, plan: Plan, stream: Stream, batch: Batch) -> ScoreSketch:
        """Return the sketch of rows as they score now."""
        some = _some(batch)
        scores = self.scores(plan, stream, some)
        sketch = ScoreSketch.on_grid_of(scores, stream.base.lineage)
        sketch = sketch.add(scores, some.row_weights)
        return replace(sketch, at_base=sketch.since, since=np.zeros_like(sketch.since))

    def scores(self, plan: Plan, stream: Stream, batch: Batch) -> Array:
        """Return the anomaly score of each row by what was folded so far."""
        if isinstance(stream.model, HiddenMarkov):
            return limited(-_chain_scores(plan, stream, batch))
        found = limited(-_usual(plan, stream).scores(batch, plan.n_threads))
        return per_size(found, batch) if self.sized else found

    def merge(self, plan: Plan, merged: Stream, streams: Sequence[Stream], shared: bool) -> Stream:
        sketches = [stream.records[SCORES] for stream in streams if SCORES in stream.records]
        if not sketches:
            return merged
        return merged.with_record(SCORES, merge_sketches(sketches, merged.base.lineage, shared))

    def in_shard(self) -> Policy:
        return self

    def begin_shard(self, whole: Stream, shard: Stream) -> Stream:
        if SCORES not in shard.records:
            return shard
        sketch = shard.records[SCORES].on_base(shard.base.lineage)
        return shard.with_record(SCORES, sketch)

    def gather(self, plan: Plan, before: Stream, whole: Stream, shards: Sequence[Stream]) -> Stream:
        sketches = [shard.records[SCORES] for shard in shards if SCORES in shard.records]
        if not sketches:
            return whole
        merged = merge_sketches(sketches, shards[0].base.lineage, shared=True)
        known: ScoreSketch = before.records[SCORES].on_base(whole.base.lineage)
        if not known.unit:
            return whole.with_record(SCORES, replace(merged, lineage=whole.base.lineage))
        merged, left = merged.regrid(known.origin, known.unit), float(merged.at_base.sum()) / max(known.rows, 1e-300)
        return whole.with_record(SCORES, replace(known, at_base=left * known.at_base, since=left * known.since + merged.since))

    def blank_record(self, plan: Plan, stream: Stream) -> ScoreSketch:
        return ScoreSketch.blank()

    def find_problem(self, plan: Plan, stream: Stream, record: object) -> str:
        assert isinstance(record, ScoreSketch)
        return "" if is_sound(record) else "has fewer than no rows"


def _usual(plan: Plan, stream: Stream) -> Typicality:
    """Return what is usual by the statistics of a stream, which stay as they are until a batch is folded."""
    known = getattr(_latest, "known", None)
    if known is not None and known[0]() is stream.statistics and known[1] is plan:
        found: Typicality = known[2]
        return found
    parameters = report_parameters(plan, stream)
    found = typicality_of(mixture_of(stream), parameters, belief(plan, stream), plan.algorithm.report)
    _latest.known = weakref.ref(stream.statistics), plan, found
    return found


def _chain_scores(plan: Plan, stream: Stream, batch: Batch) -> Array:
    """Return the log-density of each row given those before it, by the states that are not light."""
    parameters = cast(ChainParameters, report_parameters(plan, stream))
    shares = np.maximum(cast(Any, belief(plan, stream)[1]).emissions.count, 0.0)
    model, parameters = usual_chain(cast(HiddenMarkov, stream.model), parameters, shares)
    return model.log_likelihood(parameters, batch, plan.n_threads)


def _some(batch: Batch) -> Batch:
    """Return every so many-th row, so that no more than enough are left; of sequences the first rows."""
    if batch.sequences.size:
        return batch[:PASS_ROWS]
    return batch if len(batch) <= PASS_ROWS else batch[:: -(-len(batch) // PASS_ROWS)]


def _is_scored(plan: Plan, stream: Stream) -> bool:
    """Whether the rows of the next batch are scored, which depends on its place in the stream alone."""
    begun = stream.progress.rows_seen
    tables = stream.model.n_components * plan.width // LARGE
    if begun < ALL_ROWS and not tables:
        return True
    return row_key(stream.key, begun) % (ONE_IN * (1 + tables)) == 0


def _left(plan: Plan, stream: Stream, part: Batch) -> Array | float:
    """Return what is left of each row of a part at its end."""
    if plan.half_life is None or DRIFT in stream.records:
        return 1.0
    after = part.size - np.cumsum(part.row_weights)
    return np.asarray(np.exp2(-after / plan.half_life))


def _fade(plan: Plan, before: Stream, stream: Stream, part: Batch) -> float:
    """Return what is left of earlier rows after a part."""
    if DRIFT in stream.records:
        return float(np.exp(min(clock(plan, before, 0, 1) - clock(plan, stream, 0, 1), 0.0)))
    return 1.0 if plan.half_life is None else float(np.exp2(-part.size / plan.half_life))
