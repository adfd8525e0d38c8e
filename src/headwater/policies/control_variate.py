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

from dataclasses import dataclass

from headwater.core.batch import Batch
from headwater.core.statistics import Array
from headwater.families.components import ComponentStatistics
from headwater.models.mixture import Mixture
from headwater.models.mixture_records import MixtureParameters, MixturePrior


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


def correct(
    model: Mixture, prior: MixturePrior, count: float, kept: ComponentStatistics, beside: ComponentStatistics, rows: float
) -> ComponentStatistics:
    """Return the statistics of reservoir rows plus the constant of all others, repaired where no rows can have such a sum."""
    totals, sound = (kept + beside).scaled(count), kept.scaled(count)
    return model.mend(prior, totals, sound, min(rows / count, 1.0)).scaled(1.0 / count)
