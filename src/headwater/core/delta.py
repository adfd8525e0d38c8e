"""Delta: what was learned since a base. Deltas of states that share a base add up; base plus sum is the merged state."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headwater.core.average import AVERAGE
from headwater.core.fit_result import FIT_RESULT
from headwater.core.state import Progress, Stream
from headwater.core.statistics import Statistics


@dataclass(frozen=True)
class Delta:
    """What one or more states learned since the base that they share (paper 003, eq. 10).

    Deltas of one base add up in any order and in any tree, up to rounding. Each state is written as a multiple of the base
    plus a rest; entries that no row since the base has touched, such as most words of a large table, are zero in the rest.

    Attributes
    ----------
    lineage : str
        The name of the base.
    parts : int
        How many states.
    rows, weight, folds : int, float, float
        Rows, weight and folds since the base.
    statistics : Statistics
        The sum of their totals, less all multiples of the base.
    kept : float
        The sum of these multiples, in rows.
    beyond : float
        How much of that exceeds the base itself: steps may be smaller than those of equal weights.
    least : float
        The smallest share of the base that is left in any of them, in rows: what one forgot is forgotten.
    n_eff : float
        Rows that the statistics are worth, without those of the base.
    pace : float
        The smallest `mass / n_eff` of any of them.
    average : Statistics or None
        The sum of their averages, each times the weight it saw since the base, less all multiples of the average and the
        statistics of the base.
    of_average, of_statistics : float
        The sums of these multiples.
    """

    lineage: str
    parts: int
    rows: int
    weight: float
    folds: float
    statistics: Statistics
    kept: float
    beyond: float
    least: float
    n_eff: float
    pace: float
    average: Statistics | None = None
    of_average: float = 0.0
    of_statistics: float = 0.0

    def __add__(self, other: Delta) -> Delta:
        if other.lineage != self.lineage:
            raise ValueError(f"deltas must stand on one base to add up, got {self.lineage} and {other.lineage}")
        averages = self.average, other.average
        return Delta(
            lineage=self.lineage,
            parts=self.parts + other.parts,
            rows=self.rows + other.rows,
            weight=self.weight + other.weight,
            folds=self.folds + other.folds,
            statistics=self.statistics + other.statistics,
            kept=self.kept + other.kept,
            beyond=self.beyond + other.beyond,
            least=min(self.least, other.least),
            n_eff=self.n_eff + other.n_eff,
            pace=min(self.pace, other.pace),
            average=None if averages[0] is None or averages[1] is None else averages[0] + averages[1],
            of_average=self.of_average + other.of_average,
            of_statistics=self.of_statistics + other.of_statistics,
        )

    @property
    def empty(self) -> bool:
        """Whether nothing was learned."""
        return self.rows == 0 and self.weight == 0.0 and self.folds == 0.0


def since_base(settled: Stream) -> Delta:
    """Return what a finalized stream learned since its base."""
    base, progress = settled.base, settled.progress
    multiple, rest = settled.statistics.since(base.statistics)
    kept = progress.n_eff * multiple
    share = min(kept, base.progress.n_eff)
    delta = Delta(
        lineage=base.lineage,
        parts=1,
        rows=progress.rows_seen - base.progress.rows_seen,
        weight=progress.weight_seen - base.progress.weight_seen,
        folds=progress.folds - base.progress.folds,
        statistics=rest.scaled(progress.n_eff),
        kept=kept,
        beyond=kept - share,
        least=share,
        n_eff=progress.n_eff - share,
        pace=progress.mass / progress.n_eff,
    )
    average, at_base = settled.records.get(AVERAGE), base.records.get(AVERAGE)
    if average is None or at_base is None:
        return delta
    # The share of the base in an average cannot be subtracted by a count; averages are averaged again, by their own weights.
    of_average, of_statistics, beside = average.average_since(at_base, base.statistics, rest)
    return replace(
        delta,
        average=beside.scaled(delta.weight),
        of_average=of_average * delta.weight,
        of_statistics=of_statistics * delta.weight,
    )


def grow_base(settled: Stream, delta: Delta) -> tuple[Stream, tuple[int, ...]]:
    """Return the base of a finalized stream grown by a delta; the parameters are still to be read out.

    Also returns the components whose sum is not a valid belief. Their mean takes its place: each part is a valid belief on the
    prior of the base, so the mean is one, too.
    """
    base, model = settled.base, settled.model
    if delta.lineage != base.lineage:
        raise ValueError(f"a delta must stand on the base that it is added to, {base.lineage}, got one of {delta.lineage}")
    if delta.empty:
        return settled, ()
    n_eff = delta.least + delta.n_eff
    total = base.statistics.scaled(delta.least + delta.beyond) + delta.statistics
    repaired: tuple[int, ...] = ()
    if ("exact", "match_moments") in model.ways:  # all others have beliefs made of prior and counts, which always add
        mean = (base.statistics.scaled(delta.kept) + delta.statistics).scaled(1.0 / delta.parts)
        total, repaired = model.repair(base.prior, total, [mean])
    total = total.scaled(1.0 / n_eff)
    total.from_base[...] = delta.least / n_eff
    average: Statistics | None = base.records.get(AVERAGE)
    if delta.average is not None and average is not None and delta.weight:
        own = average.scaled(delta.of_average) + base.statistics.scaled(delta.of_statistics)
        average = (own + delta.average).scaled(1.0 / delta.weight)
    progress = Progress(
        rows_seen=base.progress.rows_seen + delta.rows,
        weight_seen=base.progress.weight_seen + delta.weight,
        folds=base.progress.folds + delta.folds,
        mass=n_eff * delta.pace,
        n_eff=n_eff,
    )
    merged = replace(settled, statistics=total, progress=progress).without(FIT_RESULT)
    return merged.with_record(AVERAGE, average), repaired
