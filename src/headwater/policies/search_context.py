"""The input of a search: a mixture in a stream, its reservoir in proposing and judging rows, and a budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import Batch
from headwater.core.contracts import Start
from headwater.core.statistics import Array
from headwater.families.components import ComponentStatistics
from headwater.models.mixture import Mixture
from headwater.models.mixture_records import MixtureParameters, MixturePrior
from headwater.policies.control_variate import ControlVariate
from headwater.policies.refinement_record import LEAST_CLIMB_GAIN, LEAST_PASS_GAIN, MANY_PARAMETERS, Refinement
from headwater.policies.reservoir import Reservoir

LEAST_GAIN_SHARE = 1e-3  # of the expected loss by noise, that a pass must gain
MOST_NATS = 10.0  # that a row counts for at most when contenders are compared, so that outliers do not decide


@dataclass(frozen=True)
class SearchContext:
    """A mixture in a stream: its belief, the reference, and the rows that are kept."""

    model: Mixture
    readout: str
    prior: MixturePrior
    statistics: ComponentStatistics
    parameters: MixtureParameters
    count: float
    reservoir: Reservoir
    record: Refinement
    rows: int
    key: int
    method: str = "kmeans"
    start_readout: str = "mode"
    restart: Callable[[Batch, int], Start] | None = None
    forgets: bool = False
    thorough: bool = False  # whether only a reader waits for it
    forgot: bool = False  # whether some rows were forgotten
    at_hand: bool = False  # whether all rows are in memory, and passes over them follow
    n_threads: int | None = None

    @cached_property
    def enough(self) -> int:
        """Rows that it takes to estimate every parameter."""
        return self.model.rows_to_learn(self.reservoir.batch.X.shape[1])

    @cached_property
    def proposing(self) -> Batch:
        """All rows that propose."""
        return self.reservoir.batch[np.flatnonzero(self.reservoir.proposes)]

    @cached_property
    def judging(self) -> Batch:
        """All rows that judge."""
        return self.reservoir.batch[self.judging_places]

    def judges(self, most: int) -> Batch:
        """The first rows that judge."""
        return self.reservoir.batch[self.judging_places[:most]]

    @cached_property
    def judging_places(self) -> NDArray[np.intp]:
        """Places of the rows that judge."""
        return np.flatnonzero(~self.reservoir.proposes)

    @cached_property
    def named(self) -> frozenset[int]:
        """Components that labels name."""
        labels = self.reservoir.batch.labels
        return frozenset(np.unique(labels[labels >= 0]).tolist())

    @cached_property
    def whole(self) -> bool:
        """Whether all rows are kept, and count alike."""
        return self.reservoir.holds_all and not self.forgets and not self.forgot

    @property
    def is_dear(self) -> bool:
        """Whether passes are dear. The start then made its own exchanges (`models/start.py`)."""
        return self.enough > MANY_PARAMETERS

    @property
    def content(self) -> float:
        """Nats a row that a pass has to gain: a small part of the expected loss by noise, p / (2 rows)."""
        wanted = max(LEAST_CLIMB_GAIN, LEAST_GAIN_SHARE * self.enough / max(self.rows, 1))
        return min(wanted, LEAST_PASS_GAIN) if self.thorough and not self.is_dear else wanted

    def beside(self, batch: Batch) -> ControlVariate:
        """Climbs on some reservoir rows, with the control variate if these are not all rows."""
        alone = ControlVariate(self.model, self.readout, self.prior, batch, self.count, None, self.n_threads)
        if self.whole and len(batch) == len(self.reservoir.batch):
            return alone
        return replace(alone, beside=self.statistics - alone.look(self.parameters)[0])

    def on(self, batch: Batch) -> ControlVariate:
        """Comparisons on some rows alone, by the readout that starts climb by."""
        return ControlVariate(self.model, self.start_readout, self.prior, batch, batch.size, None, self.n_threads)


@dataclass
class Budget:
    """What may be spent, what was, and whether it fell short of what was wanted."""

    allowed: float
    spent: float = 0.0
    short: bool = False

    def pay(self, rows: float) -> None:
        self.spent += rows

    def affords(self, rows: float) -> bool:
        self.short |= self.spent + rows > self.allowed
        return self.spent + rows <= self.allowed

    def passes(self, rows: int) -> int:
        """Passes over `rows` rows that the budget affords."""
        return int(min((self.allowed - self.spent) / max(rows, 1), 1e6))


@dataclass(frozen=True)
class Verdict:
    """How a contender did on rows that judge: nats a row gained, and that in standard errors."""

    gain: float
    z: float


def compare_scores(contender: Array, incumbent: Array, weights: Array) -> Verdict:
    """Compare scores of the same rows; an outlier counts for a few nats at most."""
    difference = np.clip(contender - incumbent, -MOST_NATS, MOST_NATS)
    total = weights.sum()
    gain = float(weights @ difference / total)
    spread = float(weights**2 @ (difference - gain) ** 2) ** 0.5 / total
    return Verdict(gain, gain / (spread + 1e-12)) if np.isfinite(gain) else Verdict(-np.inf, -np.inf)
