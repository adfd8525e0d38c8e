"""Learner: a model, an algorithm and the settings of a run; and what it reads out of a state."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from headwater.core.algorithms import Algorithm
from headwater.core.contracts import Chained, Inference, Model, StartSettings
from headwater.core.schedules import Schedule, forgetting
from headwater.core.state import Progress, State
from headwater.core.statistics import Array, Statistics
from headwater.models.mixture import Mixture

WARM_UP_BYTES = 2**23
BLOCKS = 8  # a batch that grows holds so many of the first size, at most
USUAL = 8  # components that rows are waited for and kept for, where their number is to be found
RESERVOIR_ROWS = 20_000
RESERVOIR_TIMES = 80  # what moves every parameter
RESERVOIR_BYTES = 2**26
LEAST_KEPT = 25  # rows for each component, below which they say nothing
HEALED_BYTES = 2**24  # of parameters, beyond which nothing is moved: moves hold several copies of them


@dataclass(frozen=True)
class Learner:
    """A model, an algorithm and the settings of a run; holds nothing that is learned."""

    model: Model
    algorithm: Algorithm
    width: int
    settings: StartSettings = StartSettings()
    half_life: float | None = None
    warm_up: int | None = None
    n_threads: int | None = None
    parts: int = 1
    rows_at_hand: float = np.inf  # what `fit` has: rows that come again are not more rows
    averages_after: float = 0.0  # weight that was seen before the running average began
    reservoir: int | None = 0  # rows to keep for healing; None, as many as it takes
    adapts: bool = False  # whether components forget by themselves, when rows come that they did not expect
    grows: bool = False  # whether the number of components is to be found; that of the model is the one so far

    @property
    def chain(self) -> Chained:
        """The model, where rows hang together."""
        return cast(Chained, self.model)

    @cached_property
    def inference(self) -> Inference:
        return self.algorithm.inference(self.model)

    @cached_property
    def sweeps(self) -> bool:
        """Whether rows are folded one by one, in a kernel."""
        return self.batch_rows == 1 and not self.algorithm.counts_rows and self.model.sweeps(self.inference)

    def drawing(self, state: State, after: int = 0) -> Inference:
        """How the next E-step of a state is taken, so many rows after those it has folded."""
        return replace(self.inference, key=state.key, first=state.progress.rows_seen + after)

    def count(self, progress: Progress) -> float:
        """What the statistics are worth beside the prior."""
        if self.algorithm.counts_rows and self.half_life is None:
            return min(progress.weight_seen, self.rows_at_hand)
        return progress.n_eff

    @cached_property
    def alone(self) -> Learner:
        """The learner of one part: parts run side by side, so each has one thread, and each sees but its part of the rows."""
        half_life = None if self.half_life is None else self.half_life / self.parts
        return replace(self, parts=1, n_threads=1, half_life=half_life)

    @cached_property
    def warm_up_rows(self) -> int:
        """Rows to wait for: what the model asks for, at most 8 MB of them."""
        if self.warm_up is not None:
            return self.warm_up
        wanted = self.usual.rows_to_start(self.width)
        return max(2 * self.model.n_components, min(wanted, WARM_UP_BYTES // self.model.row_bytes(self.width)))

    @cached_property
    def usual(self) -> Any:
        """The model, with a usual number of components if that is to be found."""
        return cast(Mixture, self.model).resized(USUAL) if self.grows else self.model

    @cached_property
    def sample_rows(self) -> int:
        """Rows that are enough to heal by, and to grow on."""
        enough, room = self.usual.rows_to_learn(self.width), RESERVOIR_BYTES // self.model.row_bytes(self.width)
        return min(max(RESERVOIR_ROWS, RESERVOIR_TIMES * enough), room)

    @cached_property
    def kept_rows(self) -> int:
        """Rows of a stream that are kept to heal by; 0 if it does not."""
        if not self.algorithm.heals or not isinstance(self.model, Mixture):
            return 0
        if self.usual.n_components == 1 and not self.adapts:
            return 0
        if self.sweeps:  # parameters that follow every row do not stand still until a healing
            return 0
        if self.reservoir is not None:
            return self.reservoir if self.reservoir >= LEAST_KEPT * self.model.n_components else 0
        outweighed = self.sample_rows < self.usual.rows_to_learn(self.width)  # rows that fit say next to nothing
        return 0 if outweighed or 8 * self.usual.n_parameters(self.width) > HEALED_BYTES else self.sample_rows

    def holds(self, state: State) -> bool:
        """Whether the parameters of the E-step stand still until the stream heals."""
        return state.healing is not None and self.half_life is None and not (state.drift is not None and state.drift.following)

    @cached_property
    def batch_rows(self) -> int:
        return self.algorithm.batch_rows(self.model.n_components, self.model.rows_to_learn(self.width))

    def fold_rows(self, state: State) -> int:
        """Rows of the next batch: while parameters stand still they grow with the stream, by which they cost less."""
        if not self.holds(state) or state.drift is not None:  # which is looked for at the end of every batch
            return self.batch_rows
        return self.batch_rows * int(np.clip(state.progress.rows_seen // (32 * self.batch_rows), 1, BLOCKS))

    def block_rows(self, progress: Progress) -> int:
        """Rows of the next batch, where rows hang together: they may grow with the stream, by which they cost less."""
        if not self.algorithm.grows:
            return self.batch_rows
        most = BLOCKS * self.batch_rows
        if self.half_life is not None:  # a batch is forgotten as one
            most = max(16, min(most, int(self.half_life / 8)))
        return int(np.clip(progress.rows_seen // 64, min(self.batch_rows, most), most))

    @cached_property
    def schedule(self) -> Schedule:
        rows = self.model.rows_to_learn(self.width)
        schedule = self.algorithm.schedule(self.model.n_components, rows, self.warm_up_rows)
        return forgetting(schedule, self.half_life)

    def average_gains(self, weight_seen: float, sizes: Array) -> Array:
        """Gains of the running average: 2/n favours later statistics, and no end of the stream need be known."""
        gains = np.minimum(1.0, 2.0 * sizes / (weight_seen - self.averages_after + np.cumsum(sizes)))
        return gains if self.half_life is None else np.maximum(gains, 1.0 - np.exp2(-sizes / self.half_life))

    def average_count(self, progress: Progress) -> float:
        """Rows that averaged statistics are worth: all of them, unless some were forgotten; more at a start that was given."""
        if self.half_life is not None:
            return progress.n_eff
        seen = progress.weight_seen
        if self.settings.given is not None and self.settings.given.locates:
            seen = max(seen, min(progress.n_eff, float(self.model.rows_to_learn(self.width))))
        return min(seen, self.rows_at_hand)


def suited(learner: Learner, state: State) -> Learner:
    """Return the learner of a state: the number of components that is to be found is the one that the state has."""
    if not learner.grows or state.statistics is None:
        return learner
    found = len(cast(Any, state.statistics).count)  # of components
    return learner if found == learner.model.n_components else replace(learner, model=learner.usual.resized(found))


def belief(learner: Learner, state: State) -> tuple[Any, Statistics, float]:
    """Return prior, statistics and count of a settled state: what is believed is prior + count * statistics."""
    assert state.base is not None and state.statistics is not None
    if state.average is None:
        return state.base.prior, state.statistics, learner.count(state.progress)
    return state.base.prior, state.average, learner.average_count(state.progress)


def kept_form(learner: Learner, statistics: Statistics) -> Any:
    """Return statistics in the form that the algorithm keeps."""
    return learner.model.kept(learner.algorithm.readout, statistics)


def refreshed(learner: Learner, state: State) -> State:
    """Return the state with the parameters of its next E-step."""
    assert state.base is not None
    learner = suited(learner, state)
    count = learner.count(state.progress)
    readout = learner.model.readout(learner.algorithm.readout, state.base.prior, state.statistics, count)
    return replace(state, parameters=readout)
