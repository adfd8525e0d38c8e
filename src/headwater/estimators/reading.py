"""What is read of a stream: as if it ended here (`Reading`), or as far as it was folded (`Folded`); kept in a `Cache`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NamedTuple

import numpy as np

from headwater.core.contracts import Model
from headwater.core.fit_result import FIT_RESULT
from headwater.core.plan import Plan
from headwater.core.state import Stream
from headwater.core.statistics import Array, Params, Prior, Stats
from headwater.core.steps import belief
from headwater.core.values import Matrix
from headwater.diagnostics.health import Health
from headwater.policies.drift import Drift
from headwater.policies.drift_monitor import half_lives
from headwater.policies.growth import Growth
from headwater.policies.names import DRIFT, GROWTH, REFINEMENT, RESERVOIR
from headwater.policies.refinement_record import Refinement

if TYPE_CHECKING:
    from headwater.estimators.runtime import Runtime


class Folded(NamedTuple, Generic[Prior, Stats, Params]):
    """What a stream has folded so far, without its partial batch."""

    prior: Prior
    statistics: Stats  # their running average, if there is one
    last_statistics: Stats
    parameters: Params
    n_eff: float


@dataclass(frozen=True)
class Reading(Generic[Prior, Stats, Params]):
    """What a user sees: the state as if the stream ended here, with its refinement and growth, and the parameters reported."""

    plan: Plan
    stream: Stream[Prior, Stats, Params]
    parameters: Params

    @property
    def model(self) -> Model[Prior, Stats, Params]:
        """The model, with the number of components that was found."""
        return self.stream.model

    @property
    def belief(self) -> tuple[Prior, Stats, float]:
        """Prior, statistics and count: what is believed is prior + count * statistics."""
        return belief(self.plan, self.stream)

    @property
    def prior(self) -> Prior:
        """The prior that the warm-up ended with."""
        return self.stream.base.prior

    @property
    def growth(self) -> Growth | None:
        """How the number of components was found, if it grew."""
        return self.stream.base.records.get(GROWTH)

    @property
    def ends_passes(self) -> bool:
        """Whether the parameters are those that passes over all rows ended with."""
        return FIT_RESULT in self.stream.records

    @property
    def rows(self) -> int:
        """Rows learned from."""
        return self.stream.rows

    @property
    def refinement(self) -> Refinement | None:
        """The record of refinement, or None."""
        return self.stream.records.get(REFINEMENT)

    @property
    def drift(self) -> Drift | None:
        """The record of the drift monitor, or None."""
        return self.stream.records.get(DRIFT)

    def half_lives(self) -> tuple[Array, bool]:
        """Half-lives of the components (K,) by the drift monitor, and whether the weights forget."""
        return half_lives(self.stream, self.plan.warm_up_rows)

    def reservoir_rows(self, most: int) -> Matrix | None:
        """At most so many rows of the reservoir, which are as random as all of them; None if it has none."""
        reservoir = self.stream.records.get(RESERVOIR)
        return None if reservoir is None or not len(reservoir) else reservoir.rows[: min(len(reservoir), most)]


def mean_shares(parts: list[Array]) -> Array:
    """Return the shares of the components, on average over the parts of a stream; empty if there are none."""
    if not parts:
        return np.empty(0)
    shares = np.mean(parts, axis=0)
    return np.asarray(shares / max(float(np.sum(shares)), 1e-300))


@dataclass
class Cache(Generic[Params]):
    """What reading made of a Runtime. It may always be thrown away, and a deep copy or a pickle starts without it."""

    reading: Reading | None = None
    quick: tuple[object, Params] | None = None  # statistics, and what is reported of them
    folded: tuple[object, Reading] | None = None  # statistics, and what is read of them alone
    carry: tuple[object, int, object] | None = None  # parameters, rows followed since the last fold, what is known of sequences
    reader: Runtime | None = None  # of rows that wait for a race
    leader: tuple[int, int] | None = None  # of a race on the first so many rows that wait
    places: tuple[object, dict[object, int]] | None = None  # names of columns, and the place of each
    health: tuple[dict[str, object], Health] | None = None  # attributes of the estimator, and how well it does with them

    def __reduce__(self) -> tuple[object, ...]:
        return (Cache, ())
