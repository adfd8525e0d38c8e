"""Growth where there are rows to grow on: those of a warm-up, those at hand, and those that a stream keeps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headwater.core.contracts import Start, StartSettings
from headwater.core.row_keys import proposes, row_keys
from headwater.core.state import Base, Batch, State
from headwater.core.statistics import Array
from headwater.kernels.parallel import one_blas_thread
from headwater.models.mixture import Mixture
from headwater.models.start import climb
from headwater.policies.control_variate import Kept, climbed, corrected
from headwater.policies.growth import Growth
from headwater.policies.growth_search import FEW, grown
from headwater.policies.growth_stages import Ground, Stage
from headwater.policies.refinement import Purse, heirs
from headwater.policies.split_merge import seeds_of

POLISH = 30  # passes over all rows of a warm-up
CONTENT = 1e-5  # nats a row that the last of them gains


def found_on(
    model: Mixture, batch: Batch, key: int, settings: StartSettings, n_threads: int | None = None
) -> tuple[Stage, Growth]:
    """Grow a mixture from one component on rows, of which the seed and their places decide who propose and who judge."""
    keys = row_keys(key, np.arange(len(batch)))
    order = np.argsort(keys, kind="stable")
    first, others = order[proposes(keys[order])], order[~proposes(keys[order])]
    few = min(len(first), len(others)) < FEW
    with one_blas_thread():
        geometry = model.family.geometry(batch)
        propose, judge = (batch, None) if few else (batch[first], batch[others])
        ground = _ground(propose, judge, key, settings, geometry, n_threads)
        rng = np.random.default_rng(np.random.SeedSequence((key, len(batch))))
        stage, steps = grown(ground, Stage.first(model, ground), rng, Purse(np.inf), len(batch))
    return stage, Growth().after(steps)


def _ground(
    propose: Batch, judge: Batch | None, key: int, settings: StartSettings, geometry: Any, n_threads: int | None
) -> Ground:
    def restart(model: Mixture, batch: Batch) -> Start:
        return model.start(batch, (key + model.n_components) % 2**63, settings, n_threads)

    return Ground(
        propose, judge, settings.readout, seeds_of(settings.method), geometry, restart if settings.polish else None, n_threads
    )


def grown_start(model: Mixture, batch: Batch, key: int, settings: StartSettings, n_threads: int | None = None) -> Start:
    """Find a number of components, and a start with it: the grown mixture, or the winner of a tournament if that is better."""
    stage, growth = found_on(model, batch, key, settings, n_threads)
    after = stage.model
    start = replace(after.start(batch, key, settings, n_threads), growth=growth)
    if not settings.polish or after.n_components == 1:
        return start
    with one_blas_thread():
        parameters = stage.reached.parameters
        summary = after.summarize(parameters, batch, n_threads=n_threads)
        end = climb(
            after, settings.readout, start.prior, parameters, summary, batch, POLISH, CONTENT, n_threads, penalised=False
        )
    if end.trace[-1] <= start.summary.score / start.summary.size:
        return start
    return replace(start, parameters=end.parameters, summary=end.summary)


def regrown(
    model: Mixture, settled: State, count: float, settings: StartSettings, forgets: bool, allowed: float, n_threads: int | None
) -> State:
    """Return a settled state that has grown, or fallen, on the rows it keeps, at no more than is allowed, in rows looked at.

    What all rows say of components that stay is kept; what they say of others is told by the kept rows.
    """
    base, reservoir, purse = settled.base, settled.reservoir, Purse(allowed)
    assert base is not None and reservoir is not None and settled.statistics is not None
    batch, halves = reservoir.batch, reservoir.proposes
    propose, judge = (batch[np.flatnonzero(half)] for half in (halves, ~halves))
    few = min(len(propose), len(judge)) < FEW
    ground = _ground(batch if few else propose, None if few else judge, settled.key + settled.rows, settings, None, n_threads)
    rng = np.random.default_rng(np.random.SeedSequence((settled.key, settled.rows, 1)))
    some = ground.part(model.rows_to_learn(batch.X.shape[1]))
    kept = Kept(model, ground.readout, base.prior, some.propose, some.propose.size, None, n_threads)
    standing = climbed(kept, kept.look(settled.parameters)[0], 1)
    stage, steps = grown(ground, Stage(model, base.prior, standing), rng, purse, settled.rows)
    growth = (base.growth or Growth()).after(steps, purse.spent if np.isfinite(allowed) else 0.0)
    if not any(step.accepted for step in steps):
        return replace(settled, base=replace(base, growth=growth))
    after, parameters = stage.model, stage.reached.parameters
    prior = after.refined(stage.prior, parameters, after.family.geometry(some.propose))
    moving = Moving(model, after, settled.parameters, parameters, prior, n_threads)
    whole = not np.isfinite(reservoir.limit) and not forgets
    statistics = moving.told(settled.statistics, batch, count, whole).writable()
    statistics.from_base[...] = settled.statistics.from_base
    scores = after.log_likelihood(parameters, some.judges, n_threads)
    known = replace(settled.healing, content=False)  # of other components
    healing = known.begun(settled.rows, scores, some.judges.row_weights, after.rows_to_learn(some.width))
    rows = np.flatnonzero(reservoir.places < base.progress.rows_seen)
    grounded = replace(moving.base(base, batch, rows), prior=prior, growth=growth)
    return replace(settled, base=grounded, parameters=parameters, statistics=statistics, reported=None, healing=healing)


@dataclass(frozen=True)
class Moving:
    """From a mixture at some parameters to another one, of another number of components, at others.

    `own` is the prior that statistics were gathered under, if it is another, about another origin.
    """

    model: Mixture
    after: Mixture
    old: Any
    new: Any
    prior: Any
    n_threads: int | None = None
    own: Any = None

    def shares(self, batch: Batch) -> tuple[Array, Array]:
        """Responsibilities of rows, before and after."""
        before, after = ((self.model, self.old), (self.after, self.new))
        return before[0].looked_at(before[1], batch, self.n_threads)[0], after[0].looked_at(after[1], batch, self.n_threads)[0]

    def told(self, statistics: Any, batch: Batch, count: float, whole: bool = False) -> Any:
        """Return what all rows say at the new parameters, by some that are kept; or by these alone, if they are all."""
        found = self.after.summarize(self.new, batch, n_threads=self.n_threads).mean
        if whole:
            return found
        before = self.model.summarize(self.old, batch, n_threads=self.n_threads).mean
        rest = statistics - before
        if self.own is not None:
            rest = self.model.brought(self.prior, self.own, rest)
        beside = self.after.recombined(rest, heirs(*self.shares(batch)))
        return corrected(self.after, self.prior, count, found, beside, batch.size)

    def base(self, base: Base, batch: Batch, rows: Any) -> Base:
        """Return a base as it would be at the new parameters, by those of its rows that are kept."""
        if len(rows):
            statistics = self.told(base.statistics, batch[rows], base.progress.n_eff).writable()
        else:  # what it says of a component goes where the kept rows of that go
            old, new = self.shares(batch)
            statistics = self.after.recombined(base.statistics, (new.T @ old) / (old.sum(axis=0) + 1e-12)).writable()
        statistics.from_base[...] = 1.0
        return replace(base, statistics=statistics)
