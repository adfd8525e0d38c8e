"""Passes of EM over the same rows with extrapolation (SQUAREM, Varadhan and Roland 2008), and races between such climbs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from headwater.core.batch import Batch
from headwater.core.state import Summary
from headwater.families.components import ComponentStatistics

if TYPE_CHECKING:
    from headwater.models.mixture import Mixture
    from headwater.models.mixture_records import MixtureParameters, MixturePrior

LONGEST_STEP = 16.0  # extrapolation
LEAST_STEP = 1e-24  # squared step over squared result, below which a step changes nothing
QUIET_PASSES = 2  # successive passes that gain too little
FEW_ROWS = 1000  # below which a pass of a kernel takes less time than calling it
STAGE_PASSES = 3  # of every climb between two looks at who may still win: an extrapolation
DISTINCT_NATS = 1e-3  # a row, by which a climb must be able to overtake the best: others end at the same optimum
HORIZON = 8.0  # stages that are looked ahead: gains of a climb that leaves a plateau do not fall


class RowPasses(Protocol):
    """Rows to make passes over: parameters from statistics, and statistics and mean score from parameters."""

    def parameters(self, statistics: ComponentStatistics) -> MixtureParameters: ...

    def look(self, parameters: MixtureParameters) -> tuple[ComponentStatistics, float]: ...


@dataclass(frozen=True)
class ClimbEnd:
    """State of a climb: parameters, statistics at them, their score, and the number of passes."""

    parameters: MixtureParameters
    statistics: ComponentStatistics
    score: float
    passes: int


@dataclass(frozen=True)
class PlainPasses:
    """Passes over rows that are all there are; statistics are totals."""

    model: Mixture
    readout: str
    prior: MixturePrior
    batch: Batch
    n_threads: int | None = None

    def parameters(self, statistics: ComponentStatistics) -> MixtureParameters:
        """Parameters read out of totals."""
        return self.model.readout(self.readout, self.prior, statistics, 1.0)

    def look(self, parameters: MixtureParameters) -> tuple[ComponentStatistics, float]:
        """Totals at these parameters, and the mean score."""
        summary = self.model.summarize(parameters, self.batch, n_threads=self.n_threads)
        return summary.statistics, summary.score / summary.size

    def climb(self, statistics: ComponentStatistics, passes: int, tol: float) -> ClimbEnd:
        """Go on from totals: in one kernel if rows are few and the family has one, or else with extrapolation."""
        batch = self.batch
        if len(batch) < FEW_ROWS:
            begin = Summary(statistics, len(batch), batch.size)
            end = self.model.climb(self.readout, self.prior, begin, batch, passes, tol, -np.inf)
            if end is not None:
                summary, parameters, trace, _ = end
                return ClimbEnd(parameters, summary.statistics, float(trace[-1]), len(trace))
        return climb_rows(self, statistics, passes, tol)


def climb_rows(kept: RowPasses, statistics: ComponentStatistics, passes: int, tol: float = 0.0) -> ClimbEnd:
    """Make passes of EM over rows, with extrapolation where it helps.

    Ends after `passes` passes, or when two successive ones gain less than tol.
    """
    made, quiet, before = 0, 0, -np.inf
    parameters, score = kept.parameters(statistics), -np.inf
    while made < passes and quiet < QUIET_PASSES:
        parameters = kept.parameters(statistics)
        after, score = kept.look(parameters)
        made += 1
        quiet = quiet + 1 if abs(score - before) < tol else 0
        before = score
        if made + 2 > passes or quiet == QUIET_PASSES:
            statistics = after
            continue
        second_parameters = kept.parameters(after)
        second, second_score = kept.look(second_parameters)
        made += 1
        parameters, before, score = second_parameters, second_score, second_score
        farther = _extrapolate(statistics, after, second)
        statistics = second
        if farther is not None:
            trial, found, value = _look_ahead(kept, farther, second_parameters)
            made += 1
            if np.isfinite(value) and value > second_score - 1e-9:
                parameters, statistics, before, score = trial, found, value, value
    return ClimbEnd(parameters, statistics, float(score), made)


def _look_ahead(
    kept: RowPasses, farther: ComponentStatistics, parameters: MixtureParameters
) -> tuple[MixtureParameters, ComponentStatistics, float]:
    """Return parameters, statistics and score of an extrapolation; where no rows could have made it, its score is NaN."""
    try:
        with np.errstate(all="ignore"):
            parameters = kept.parameters(farther)
            return parameters, *kept.look(parameters)
    except np.linalg.LinAlgError:  # a covariance that is singular
        return parameters, farther, np.nan


def race(
    ends: list[ClimbEnd], go_on: Callable[[ClimbEnd, int], ClimbEnd], passes: int, tol: float, stage: int = STAGE_PASSES
) -> ClimbEnd:
    """Let climbs go on side by side, `stage` passes at a time; drop those that will not overtake the best, and return the last.

    What a climb may still gain is the rest of a geometric series, by its last two stages, but no more than it would gain in
    `HORIZON` such stages; of the first two stages that alone is looked at. A race ends when one climb is left, after `passes`
    passes of each, or when no climb gains `tol` a pass any more.
    """
    last: list[float] = []
    for made in range(0, passes, stage):
        if len(ends) == 1:
            break
        after = [go_on(end, stage) for end in ends]
        gains = [max(one.score - end.score, 0.0) for one, end in zip(after, ends, strict=True)]
        best = max(one.score for one in after)
        if made >= stage:
            rates = [gain / max(before, 1e-300) if made > stage else 1.0 for gain, before in zip(gains, last, strict=True)]
            times = [min(rate / (1.0 - rate), HORIZON) if rate < 1.0 else HORIZON for rate in rates]
            hopes = [one.score + gain * more for one, gain, more in zip(after, gains, times, strict=True)]
            left = [at for at, one in enumerate(after) if one.score == best or hopes[at] > best + DISTINCT_NATS]
            after, gains = [after[at] for at in left], [gains[at] for at in left]
        ends, last = after, gains
        if max(gains) < tol * stage:
            break
    return max(ends, key=lambda end: end.score)


def _extrapolate(
    start: ComponentStatistics, first: ComponentStatistics, second: ComponentStatistics
) -> ComponentStatistics | None:
    """Statistics extrapolated from two steps of EM; None if the steps are too small."""
    if not all(isinstance(array, np.ndarray) for array in start.to_arrays().values()):
        return None  # a table of words, whose counts would become negative
    step = first - start
    turn = second - first - step
    length, bend, size = (_squares(one) for one in (step, turn, second))
    if not length > LEAST_STEP * size or not length > bend or not bend > 0.0:
        return None
    factor = min(np.sqrt(length / bend), LONGEST_STEP)
    farther = start + step.scaled(2.0 * factor) + turn.scaled(factor * factor)
    if not (farther.count > 0.2 * second.count).all():
        return None
    return replace(farther, from_base=second.from_base)


def _squares(statistics: ComponentStatistics) -> float:
    """The sum of the squares of all numbers except the share of the base."""
    arrays = statistics.to_arrays().items()
    return sum(float(np.vdot(array, array)) for name, array in arrays if not name.endswith("from_base"))
