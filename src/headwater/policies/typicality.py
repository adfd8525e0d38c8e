"""Typicality: how usual a row is under a mixture that has learned some anomalies, too; and a policy that keeps such scores.

Components that anomalies have made call them usual, so light components are left out. What is left is looked at twice: as the
components it is made of, and as the one component that their statistics add up to. The score of a row is the lower of its two
log-densities: a row between the components is odd by the first, a row far from all that is usual by the second, even where a
narrow component found it.

The policy scores rows before they are learned, all of the first ones and one batch in so many of the others. P-values and
thresholds are made of these scores.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import local
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import NO_LABELS, Batch, SparseRows
from headwater.core.contracts import Start
from headwater.core.plan import Plan
from headwater.core.policy import Policy
from headwater.core.row_keys import row_key
from headwater.core.state import Stream
from headwater.core.statistics import Array, Statistics
from headwater.core.steps import belief, report_parameters
from headwater.families.components import ComponentStatistics
from headwater.models.chain_records import ChainParameters
from headwater.models.hidden_markov import HiddenMarkov
from headwater.models.mixture import Mixture, mixture_of
from headwater.models.mixture_records import MixtureParameters, MixturePrior
from headwater.policies.mark_policy import scores_with_marks
from headwater.policies.names import DRIFT, SCORES
from headwater.policies.reservoir_policy import clock
from headwater.policies.score_sketch import ScoreSketch, is_sound, merge_sketches

EXPECTED_RATE = 0.05  # of anomalies among learned rows: components that are lighter may be made of them
FARTHEST = 1e250  # of a score, so that sums of them are numbers
MOST_LEFT_OUT = 4.0  # times that rate, of all components that are left out together: many light ones are a finer description
ALL_ROWS = 4096  # first rows of a stream, all of which are scored; of later batches, one in so many
ONE_IN = 16
PASS_ROWS = 2**15  # of rows in memory that are scored after passes over them
LARGE = 2**16  # parameters: a readout is dear, and with so many times as many, so many times fewer batches are scored


@dataclass(frozen=True)
class Typicality:
    """The laws by which a row is usual: of the components that are kept, and the single one they add up to."""

    laws: tuple[tuple[Mixture, MixtureParameters], ...]
    kept: NDArray[np.int64]

    def scores(self, batch: Batch, n_threads: int | None = None) -> Array:
        """Return the lower of the log-densities (n,) of every row, whatever its label: that may be a component left out."""
        rows = replace(batch, labels=NO_LABELS)
        found = [model.log_likelihood(parameters, rows, n_threads) for model, parameters in self.laws]
        return np.asarray(np.minimum.reduce(found))


def limited(scores: Array) -> Array:
    """Return scores as numbers: a row beyond all reach of the components has the highest there is."""
    return np.asarray(np.clip(np.where(np.isnan(scores), FARTHEST, scores), -FARTHEST, FARTHEST))


def per_size(scores: Array, batch: Batch) -> Array:
    """Return the scores of one word or symbol of rows of counts; NaN for an empty row."""
    rows = batch.X
    if isinstance(rows, SparseRows):
        within = slice(rows.indptr[0], rows.indptr[-1])
        below = np.concatenate([[0.0], np.cumsum(rows.data[within])])
        sizes = np.diff(below[rows.indptr - rows.indptr[0]])
    else:
        sizes = np.asarray(rows).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(sizes > 0.0, scores / sizes, np.nan))


def kept_components(weights: Array, rate: float) -> NDArray[np.int64]:
    """Return the components that are not lighter than a rate of anomalies; the lightest are left out first.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater.policies.typicality import kept_components
    >>> kept_components(np.array([0.5, 0.02, 0.45, 0.03]), rate=0.05)
    array([0, 2])
    >>> len(kept_components(np.full(100, 0.01), rate=0.05))  # all are light: only some can be anomalies
    80
    """
    shares = weights / max(float(weights.sum()), 1e-300)
    order = np.argsort(shares, kind="stable")
    together = np.cumsum(shares[order]) * (1.0 - 1e-9)  # rounding
    light = order[(shares[order] < rate) & (together <= MOST_LEFT_OUT * rate) & (np.arange(len(order)) < len(order) - 1)]
    return np.setdiff1d(np.arange(len(shares)), light)


def typicality_of(
    model: Mixture,
    parameters: MixtureParameters,
    belief: tuple[MixturePrior, ComponentStatistics, float],
    readout: str,
    rate: float = EXPECTED_RATE,
) -> Typicality:
    """Return what is usual under a mixture: its parameters without light components, and those of the sum of the others.

    `belief` has prior, statistics and count, of which the named readout makes the parameters of the sum.
    """
    kept = kept_components(np.exp(parameters.log_weights), rate)
    log_weights = parameters.log_weights[kept]
    components = model.family.select_parameters(parameters.components, kept)
    with np.errstate(invalid="ignore"):  # statistics that are not finite are refused after the chunk
        several = MixtureParameters(log_weights - np.logaddexp.reduce(log_weights), components)
    laws: list[tuple[Mixture, MixtureParameters]] = [(model.part(len(kept)), several)]
    prior, statistics, count = belief
    if len(kept) > 1 and model.family.adds_up and readout in model.family.readouts - {"match_moments"}:
        everything = np.arange(model.n_components)
        summed = kept if model.has_own_moments else everything  # of a covariance that all share no part can be taken off
        matrix = np.zeros((model.n_components, model.n_components))
        matrix[kept[0], summed] = 1.0
        try:
            whole = model.readout(readout, prior, model.recombine(statistics, matrix), count)
        except np.linalg.LinAlgError:  # without a prior, components that gave their rows away have no parameters
            return Typicality(tuple(laws), kept)
        one = MixtureParameters(np.zeros(1), model.family.select_parameters(whole.components, kept[:1]))
        laws.append((model.part(1), one))
    return Typicality(tuple(laws), kept)


def usual_chain(
    model: HiddenMarkov, parameters: ChainParameters, shares: Array, rate: float = EXPECTED_RATE
) -> tuple[HiddenMarkov, ChainParameters]:
    """Return a chain without its light states; the chain itself, if the others cannot do without them."""
    if not model.spares_states:
        return model, parameters
    kept = kept_components(shares, rate)
    start, steps = parameters.start[kept], parameters.transitions[np.ix_(kept, kept)]
    if len(kept) == len(shares) or start.sum() <= 0.0 or steps.sum(axis=1).min() <= 0.0:
        return model, parameters
    smaller = replace(
        model, n_components=len(kept), family=model.family.resize(len(kept)), start_prior=None, steps_prior=None, hold=None
    )
    return smaller, model.select_parameters(parameters, kept)


class _Latest(local):
    """What was usual by the statistics of the latest batch, which stay as they are until a batch is folded."""

    statistics: Callable[[], Statistics | None] = staticmethod(lambda: None)
    plan: Plan | None = None
    usual: Typicality | None = None

    def of(self, plan: Plan, stream: Stream) -> Typicality | None:
        """Return what is usual by the statistics of a stream, if these were the latest."""
        return self.usual if self.statistics() is stream.statistics and self.plan is plan else None

    def keep(self, plan: Plan, stream: Stream, usual: Typicality) -> Typicality:
        """Remember what is usual by the statistics of a stream, and return it."""
        self.statistics, self.plan, self.usual = weakref.ref(stream.statistics), plan, usual
        return usual


_latest = _Latest()


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
        if not isinstance(before.model, Mixture):  # a chain that goes on after passes
            scores = self.scores(plan, before, part)
            return stream.with_record(SCORES, sketch.add(scores, part.row_weights * _left(plan, stream, part), fade))
        usual = _latest.of(plan, before)
        if usual is None:  # made here, and not by a function of its own: a chunk's way to the kernels is short
            parameters, known = report_parameters(plan, before), belief(plan, before)
            usual = _latest.keep(plan, before, typicality_of(mixture_of(before), parameters, known, plan.algorithm.report))
        scores = self._as_scores(before, usual.scores(part, plan.n_threads), part)
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
            return scores_with_marks(stream, batch, limited(-_chain_scores(plan, stream, batch)))
        usual = typicality_of(mixture_of(stream), report_parameters(plan, stream), belief(plan, stream), plan.algorithm.report)
        return self._as_scores(stream, usual.scores(batch, plan.n_threads), batch)

    def _as_scores(self, stream: Stream, log_densities: Array, batch: Batch) -> Array:
        scores = limited(-log_densities)
        return scores_with_marks(stream, batch, per_size(scores, batch) if self.sized else scores)

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
