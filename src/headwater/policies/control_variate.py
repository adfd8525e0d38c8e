"""EM on the reservoir rows of a stream, corrected by the statistics of all rows.

The statistics of a stream are sums over all its rows at parameters that were held fixed, the reference. What they would be at
other parameters is not known, but reservoir rows show how much they would differ:

    T(new) = T(reference) + n * (mean over reservoir rows of s(row; new) - s(row; reference))

That is T(reference) with a control variate. It is exact if all rows are in the reservoir. Otherwise its error is the sampling
error of the *difference*, which is small where the two parameters are near each other. So EM continues as if all rows were in
memory, also in slow directions, which no step size of an online algorithm corrects. `beside` is the constant: the statistics
of all rows less those of the reservoir rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from headwater.core.batch import Batch
from headwater.core.statistics import Array
from headwater.families.components import ComponentStatistics
from headwater.models.mixture import Mixture
from headwater.models.mixture_records import MixtureParameters, MixturePrior

LONGEST_STEP = 16.0  # extrapolation
LEAST_STEP = 1e-24  # squared step over squared result, below which a step changes nothing
QUIET_PASSES = 2  # successive passes that gain too little


@dataclass(frozen=True)
class ControlVariate:
    """Rows, the prior, and how many rows the statistics are worth."""

    model: Mixture
    readout: str
    prior: MixturePrior
    batch: Batch
    count: float
    beside: ComponentStatistics | None = None
    n_threads: int | None = None

    def parameters(self, statistics: ComponentStatistics) -> MixtureParameters:
        """Parameters read out of statistics per row."""
        return self.model.readout(self.readout, self.prior, statistics, self.count)

    def look(self, parameters: MixtureParameters) -> tuple[ComponentStatistics, float]:
        """Estimated statistics per row of all rows at these parameters, and the score of the reservoir rows."""
        summary = self.model.summarize(parameters, self.batch, n_threads=self.n_threads)
        found: ComponentStatistics = summary.mean
        if self.beside is not None:
            found = correct(self.model, self.prior, self.count, found, self.beside, summary.size)
        return found, summary.score / summary.size

    def scores(self, parameters: MixtureParameters) -> Array:
        """Scores of the rows."""
        return self.model.log_likelihood(parameters, self.batch, self.n_threads)


@dataclass(frozen=True)
class ClimbEnd:
    """State of a climb: parameters, statistics at them, the score before, and the number of passes."""

    parameters: MixtureParameters
    statistics: ComponentStatistics
    score: float
    passes: int


def correct(
    model: Mixture, prior: MixturePrior, count: float, kept: ComponentStatistics, beside: ComponentStatistics, rows: float
) -> ComponentStatistics:
    """Return the statistics of reservoir rows plus the constant of all others, repaired where no rows can have such a sum."""
    totals, sound = (kept + beside).scaled(count), kept.scaled(count)
    return model.mend(prior, totals, sound, min(rows / count, 1.0)).scaled(1.0 / count)


def climb_rows(kept: ControlVariate, statistics: ComponentStatistics, passes: int, tol: float = 0.0) -> ClimbEnd:
    """Make passes of EM over reservoir rows, with extrapolation (SQUAREM, Varadhan and Roland 2008) where it helps.

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
            with np.errstate(all="ignore"):  # an extrapolation may be invalid: its score is then NaN
                trial = kept.parameters(farther)
                found, value = kept.look(trial)
            made += 1
            if np.isfinite(value) and value > second_score - 1e-9:
                parameters, statistics, before, score = trial, found, value, value
    return ClimbEnd(parameters, statistics, float(score), made)


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
