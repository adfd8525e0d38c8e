"""Restate: estimate the statistics of a stream at other parameters, from its reservoir rows.

The control variate of `control_variate.py`, applied to a whole stream and to its base. Where the number of components changes,
the statistics of rows outside the reservoir pass to the successors of each component.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from headwater.core.batch import Batch
from headwater.core.plan import Plan
from headwater.core.state import Base, Stream
from headwater.core.statistics import Array
from headwater.core.values import Matrix
from headwater.families.components import ComponentStatistics
from headwater.models.mixture import Mixture, mixture_of
from headwater.models.mixture_records import MixtureParameters, MixturePrior
from headwater.policies.control_variate import correct
from headwater.policies.names import RESERVOIR
from headwater.policies.refinement_record import MANY_PARAMETERS
from headwater.policies.reservoir import Reservoir
from headwater.policies.reservoir_climb import find_heirs


def restate_at(
    plan: Plan,
    stream: Stream,
    reference: MixtureParameters,
    prior: MixturePrior | None = None,
    move: Callable[[ComponentStatistics], ComponentStatistics] = lambda rest: rest,
    renamed: Reservoir | None = None,
) -> ComponentStatistics:
    """Return the statistics that a stream would have at other parameters.

    The statistics of rows outside the reservoir are moved to the components and the prior of the reference; `renamed` are the
    reservoir rows with labels that name its components.
    """
    kept, model = stream.records[RESERVOIR].batch, mixture_of(stream)
    old = model.summarize(stream.parameters, kept, n_threads=plan.n_threads).mean
    new = model.summarize(reference, kept if renamed is None else renamed.batch, n_threads=plan.n_threads).mean
    beside, count = move(stream.statistics - old), plan.count(stream.progress)
    prior = stream.base.prior if prior is None else prior
    statistics: ComponentStatistics = correct(model, prior, count, new, beside, kept.size)
    return statistics.with_share_of_base(stream.statistics.from_base)


def restate_base(
    plan: Plan, stream: Stream, parameters: MixtureParameters, statistics: ComponentStatistics | None = None
) -> Base:
    """Return the base of a stream restated at other parameters, from its rows in the reservoir.

    `statistics` are those of the stream at these parameters, if they are known: where the base is all of the stream, its own.
    """
    base, model, reservoir = stream.base, mixture_of(stream), stream.records[RESERVOIR]
    if statistics is not None and base.progress.rows_seen == stream.rows:
        return replace(base, statistics=statistics.copy().with_share_of_base(1.0))
    rows = np.flatnonzero(reservoir.places < base.progress.rows_seen)
    if not len(rows):
        return base
    own = reservoir.batch[rows]
    new: ComponentStatistics = model.summarize(parameters, own, n_threads=plan.n_threads).mean
    count = base.progress.n_eff
    dear = model.rows_to_learn(plan.width) > MANY_PARAMETERS
    if dear and len(own) == base.progress.rows_seen and own.size == count:  # the base is these rows, and nothing else
        statistics = new
    else:
        old = model.summarize(stream.parameters, own, n_threads=plan.n_threads).mean
        statistics = correct(model, base.prior, count, new, base.statistics - old, own.size)
    return replace(base, statistics=statistics.with_share_of_base(1.0))


@dataclass(frozen=True)
class Transfer:
    """From a mixture to another one with other parameters and another number of components.

    `own` is the prior that statistics were gathered under, if it is another, about another origin.
    """

    model: Mixture
    after: Mixture
    old: MixtureParameters
    new: MixtureParameters
    prior: MixturePrior
    n_threads: int | None = None
    own: MixturePrior | None = None

    def responsibilities(self, batch: Batch) -> tuple[Array, Array]:
        """Responsibilities of rows, before and after."""
        before, after = ((self.model, self.old), (self.after, self.new))
        return before[0].posterior_and_scores(before[1], batch, self.n_threads)[0], after[0].posterior_and_scores(
            after[1], batch, self.n_threads
        )[0]

    def restate(self, statistics: ComponentStatistics, batch: Batch, count: float, whole: bool = False) -> ComponentStatistics:
        """Return the statistics of all rows at the new parameters, from reservoir rows; exact if these are all."""
        found = self.after.summarize(self.new, batch, n_threads=self.n_threads).mean
        if whole:
            return found
        before = self.model.summarize(self.old, batch, n_threads=self.n_threads).mean
        rest = statistics - before
        if self.own is not None:
            rest = self.model.move_to_prior(self.prior, self.own, rest)
        beside = self.after.recombine(rest, find_heirs(*self.responsibilities(batch)))
        return correct(self.after, self.prior, count, found, beside, batch.size)

    def restate_base(self, base: Base, batch: Batch, rows: Matrix) -> Base:
        """Return a base restated at the new parameters, from its rows in the reservoir."""
        if len(rows):
            statistics = self.restate(base.statistics, batch[rows], base.progress.n_eff)
        else:  # its statistics follow the reservoir rows of each component
            old, new = self.responsibilities(batch)
            statistics = self.after.recombine(base.statistics, (new.T @ old) / (old.sum(axis=0) + 1e-12))
        return replace(base, statistics=statistics.with_share_of_base(1.0))
