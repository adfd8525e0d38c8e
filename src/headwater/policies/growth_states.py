"""Growth on the rows of a warm-up, on rows in memory, and on the reservoir rows of a stream."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from headwater.core.batch import Batch
from headwater.core.climb import climb
from headwater.core.contracts import Model, Start, StartSettings
from headwater.core.plan import Plan
from headwater.core.policy import FindsStart, Policy
from headwater.core.row_keys import proposes, row_keys
from headwater.core.state import Stream
from headwater.core.statistics import Statistics
from headwater.families.components import ComponentStatistics
from headwater.kernels.parallel import one_blas_thread
from headwater.models.extrapolation import climb_rows
from headwater.models.mixture import Mixture, mixture_of
from headwater.policies.control_variate import ControlVariate
from headwater.policies.growth import Growth
from headwater.policies.growth_search import LEAST_JUDGES, grow_components
from headwater.policies.growth_stages import SearchRows, Stage
from headwater.policies.names import GROWTH, REFINEMENT, RESERVOIR
from headwater.policies.restate import Transfer
from headwater.policies.search_context import Budget
from headwater.policies.search_settings import LEAST_PASS_GAIN
from headwater.policies.split_merge import seed_method

MOST_PASSES = 30  # passes over all rows of a warm-up


def grow_on_rows(
    model: Mixture, batch: Batch, key: int, settings: StartSettings, n_threads: int | None = None
) -> tuple[Stage, Growth]:
    """Grow a mixture from one component; the seed and the places of rows decide which propose and which judge."""
    keys = row_keys(key, np.arange(len(batch)))
    order = np.argsort(keys, kind="stable")
    first, others = order[proposes(keys[order])], order[~proposes(keys[order])]
    few = min(len(first), len(others)) < LEAST_JUDGES
    with one_blas_thread():
        geometry = model.family.geometry(batch)
        propose, judge = (batch, None) if few else (batch[first], batch[others])
        ground = _ground(propose, judge, key, settings, geometry, n_threads)
        rng = np.random.default_rng(np.random.SeedSequence((key, len(batch))))
        stage, steps = grow_components(ground, Stage.first(model, ground), rng, Budget(np.inf), len(batch))
    return stage, Growth().after(steps)


def _ground(
    propose: Batch, judge: Batch | None, key: int, settings: StartSettings, geometry: object, n_threads: int | None
) -> SearchRows:
    def restart(model: Mixture, batch: Batch) -> Start:
        return model.start(batch, (key + model.n_components) % 2**63, settings, n_threads)

    return SearchRows(
        propose,
        judge,
        settings.readout,
        seed_method(settings.method),
        geometry,
        restart if settings.polish else None,
        n_threads,
    )


def find_grown_start(model: Mixture, batch: Batch, key: int, settings: StartSettings, n_threads: int | None = None) -> Start:
    """Find a number of components, and a start with it: the grown mixture, or the winner of a tournament if that is better."""
    stage, growth = grow_on_rows(model, batch, key, settings, n_threads)
    after = stage.model
    start = replace(after.start(batch, key, settings, n_threads), records={GROWTH: growth})
    if not settings.polish or after.n_components == 1:
        return start
    with one_blas_thread():
        parameters = stage.reached.parameters
        summary = after.summarize(parameters, batch, n_threads=n_threads)
        end = climb(
            after,
            settings.readout,
            start.prior,
            parameters,
            summary,
            batch,
            MOST_PASSES,
            LEAST_PASS_GAIN,
            n_threads,
            penalised=False,
        )
    if end.trace[-1] <= start.summary.score / start.summary.size:
        return start
    return replace(start, parameters=end.parameters, summary=end.summary)


def regrow(plan: Plan, stream: Stream, on_the_way: bool) -> tuple[Stream, bool]:
    """Return a finalized stream that has grown, or lost components, on its reservoir rows, and whether it had to end too soon.

    On the way of a stream the cost is bounded, and what it does not allow is left to the next search, or to a reader.

    The statistics of components that stay are kept; those of others are estimated from the reservoir.
    """
    growth = stream.base.records.get(GROWTH) or Growth()
    allowed = growth.allowance(stream.rows, plan.warm_up_rows) if on_the_way else np.inf
    model, settings, n_threads = mixture_of(stream), plan.learner.settings, plan.n_threads
    base, reservoir, budget = stream.base, stream.records[RESERVOIR], Budget(allowed)
    batch, halves = reservoir.batch, reservoir.proposes
    propose, judge = (batch[np.flatnonzero(half)] for half in (halves, ~halves))
    few = min(len(propose), len(judge)) < LEAST_JUDGES
    ground = _ground(batch if few else propose, None if few else judge, stream.key + stream.rows, settings, None, n_threads)
    rng = np.random.default_rng(np.random.SeedSequence((stream.key, stream.rows, 1)))
    some = ground.part(model.rows_to_learn(batch.X.shape[1]))
    kept = ControlVariate(model, ground.readout, base.prior, some.propose, some.propose.size, None, n_threads)
    standing = climb_rows(kept, kept.look(stream.parameters)[0], 1)
    stage, steps = grow_components(ground, Stage(model, base.prior, standing), rng, budget, stream.rows)
    growth = growth.after(steps, budget.spent if np.isfinite(allowed) else 0.0)
    if not any(step.accepted for step in steps):
        return replace(stream, base=base.with_record(GROWTH, growth)), budget.short
    after, parameters = stage.model, stage.reached.parameters
    prior = after.refine_prior(stage.prior, parameters, after.family.geometry(some.propose))
    transfer = Transfer(model, after, stream.parameters, parameters, prior, n_threads)
    whole = reservoir.holds_all and plan.half_life is None
    statistics = transfer.restate(stream.statistics, batch, plan.count(stream.progress), whole)
    statistics = statistics.with_share_of_base(stream.statistics.from_base)
    scores = after.log_likelihood(parameters, some.judges, n_threads)
    known = replace(stream.records[REFINEMENT], content=False)  # it was about other components
    record = known.begin_at(stream.rows, scores, some.judges.row_weights, after.rows_to_learn(some.width))
    rows = np.flatnonzero(reservoir.places < base.progress.rows_seen)
    base = replace(transfer.restate_base(base, batch, rows), prior=prior).with_record(GROWTH, growth)
    stream = replace(stream, model=after, base=base, parameters=parameters, statistics=statistics)
    return stream.with_record(REFINEMENT, record), budget.short


COMMON_SIZE = 8  # components that warm-up and reservoir are sized for, if their number is to be found


@dataclass(frozen=True)
class GrowthPolicy(Policy, FindsStart):
    """Finds the number of components: on the rows of the warm-up here, and in a stream by the searches of `SearchPolicy`."""

    name = GROWTH

    def sizing_model(self, model: Model) -> Model:
        return cast(Mixture, model).resize(COMMON_SIZE)

    def find_start(self, plan: Plan, batch: Batch, key: int, settings: StartSettings) -> Start:
        return find_grown_start(cast(Mixture, plan.model), batch, key, settings, plan.n_threads)

    def model_for(self, plan: Plan, statistics: Statistics) -> Model:
        return cast(Mixture, plan.sizing_model).resize(len(cast(ComponentStatistics, statistics).count))

    def in_shard(self) -> Policy:
        return self
