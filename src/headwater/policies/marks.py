"""Marks: rows that a person called odd or usual, and how they move the scores of rows like them.

A score is first put on the scale of usual ones, asinh((score - origin) / unit). There a row that was marked usual should lie at
the origin, and one that was marked odd beyond nearly all usual rows. A Gaussian process carries what is missing to rows whose
profiles are near. Far from all marks a score stays what it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.families.row_profile import PROFILE_WIDTH

CAPACITY = 256  # marks that are kept: the newest
REACH = 1.0  # spreads of a column, after compression, over which marks are alike (benchmarks/anomalies.py)
NOISE = 0.1  # variance of a mark: people err, and so does the scale
BEYOND = 1.0  # of the score that one usual row in a hundred passes, where odd rows should lie
USUAL, ODD = -1.0, 1.0
FARTHEST = 1e250
UNKNOWN = 1e250  # stands for NaN in files
SLAB = 4096


@dataclass(frozen=True, eq=False)
class Marks:
    """Marked rows by their profiles, with their scores when they were marked, and the scale of usual rows and scores.

    Rows without a mark have the verdict 0. `times` count the marks of a stream, and are 0 where there is none.
    """

    profiles: Array  # (CAPACITY, PROFILE_WIDTH)
    scores: Array
    verdicts: Array
    times: Array
    centre: Array
    spread: Array
    origin: float
    unit: float
    high: float  # the score that one usual row in a hundred passes

    @classmethod
    def blank(cls) -> Marks:
        """Return no marks."""
        none, columns = np.zeros(CAPACITY), np.zeros(PROFILE_WIDTH)
        return cls(np.zeros((CAPACITY, PROFILE_WIDTH)), none, none, none, columns, columns, 0.0, 0.0, 0.0)

    def __len__(self) -> int:
        return int(np.count_nonzero(self.verdicts))

    def add(self, profiles: Array, scores: Array, odd: NDArray[np.bool_]) -> Marks:
        """Return the marks with more of them; a row that was marked before has its newest mark."""
        times = float(self.times.max()) + 1.0 + np.arange(len(odd))
        profiles = np.where(np.isnan(profiles), UNKNOWN, profiles)
        rows = np.concatenate([self.profiles, profiles]), np.concatenate([self.scores, scores])
        return self._newest(
            *rows, np.concatenate([self.verdicts, np.where(odd, ODD, USUAL)]), np.concatenate([self.times, times])
        )

    def on_scale(self, centre: Array, spread: Array, origin: float, unit: float, high: float) -> Marks:
        """Return the marks with another scale of usual rows and scores."""
        return replace(self, centre=centre, spread=spread, origin=origin, unit=unit, high=high)

    def _newest(self, profiles: Array, scores: Array, verdicts: Array, times: Array) -> Marks:
        """These marks in the order of their times, each row once, as many as there is room for."""
        order = np.lexsort((*profiles.T[::-1], verdicts, -times))  # marks of branches have equal times
        order = order[verdicts[order] != 0.0]
        _, first = np.unique(profiles[order], axis=0, return_index=True)
        kept = order[np.sort(first)][:CAPACITY]

        def fill(values: Array) -> Array:
            found = np.zeros((CAPACITY, *values.shape[1:]))
            found[: len(kept)] = values[kept]
            return found

        return replace(self, profiles=fill(profiles), scores=fill(scores), verdicts=fill(verdicts), times=fill(times))

    # Scores

    def moved(self, profiles: Array, scores: Array) -> Array:
        """Return the scores of rows after the marks."""
        return self._by(profiles, scores, 1.0)

    def unmoved(self, profiles: Array, scores: Array) -> Array:
        """Return the scores that these were before the marks."""
        return self._by(profiles, scores, -1.0)

    def _by(self, profiles: Array, scores: Array, sign: float) -> Array:
        if not len(self):
            return scores
        found = np.empty(len(scores))
        for begin in range(0, len(scores), SLAB):
            part = slice(begin, begin + SLAB)
            near = _likeness(self._places_of(profiles[part]), self._law[0])
            reached = self._score_places(scores[part]) + sign * (near @ self._law[1])
            found[part] = self.origin + self.unit * np.sinh(reached)
        return np.asarray(np.clip(found, -FARTHEST, FARTHEST))

    @cached_property
    def _law(self) -> tuple[Array, Array]:
        """The places of marked rows, and the weight of each."""
        known = self.verdicts != 0.0
        rows, score, odd = (
            self._places_of(self.profiles[known]),
            self._score_places(self.scores[known]),
            self.verdicts[known] > 0.0,
        )
        beyond = max(float(self._score_places(np.array([self.high]))[0]), 0.0)
        missing = np.where(odd, np.maximum(score, beyond) + BEYOND, 0.0) - score
        return rows, np.asarray(np.linalg.solve(_likeness(rows, rows) + NOISE * np.eye(len(rows)), missing), dtype=np.float64)

    def _places_of(self, profiles: Array) -> Array:
        """Profiles in spreads from the centre, which are compressed: far out it is their order of size that counts."""
        used = np.flatnonzero(self.spread)
        scaled = (profiles[:, used] - self.centre[used]) / self.spread[used]
        scaled = np.where(np.isnan(scaled) | (profiles[:, used] >= UNKNOWN), 0.0, scaled)  # a gap is at the centre
        return np.asarray(np.sign(scaled) * np.log1p(np.abs(scaled)) / np.sqrt(max(len(used), 1)))

    def _score_places(self, scores: Array) -> Array:
        return np.asarray(np.arcsinh((scores - self.origin) / self.unit))


def _likeness(rows: Array, others: Array) -> Array:
    """How near rows are to others (n, m), from 1 to 0."""
    squared = (rows**2).sum(axis=1)[:, None] + (others**2).sum(axis=1) - 2.0 * (rows @ others.T)
    return np.asarray(np.exp(-0.5 / REACH**2 * np.maximum(squared, 0.0)))


def scale_of(profiles: Array) -> tuple[Array, Array]:
    """Return the centre and spread of each column of usual rows; the spread is 0 where no row has a column."""
    with np.errstate(over="ignore", invalid="ignore"):
        seen = ~np.isnan(profiles)
        rows = np.maximum(seen.sum(axis=0), 1)
        centre = np.where(seen, profiles, 0.0).sum(axis=0) / rows
        spread = np.sqrt(np.where(seen, (profiles - centre) ** 2, 0.0).sum(axis=0) / rows)
    sound = np.isfinite(centre) & np.isfinite(spread)
    constant = spread <= 4e-16 * np.abs(np.where(sound, centre, 0.0))
    usable = np.where(sound & ~constant, np.minimum(spread, FARTHEST), 1.0)
    return np.where(sound, centre, 0.0), np.asarray(np.where(seen.any(axis=0), usable, 0.0), dtype=np.float64)


def merge_marks(marks: Sequence[Marks]) -> Marks:
    """Return the marks of merged streams, in any order: each row with its newest."""
    first = min(marks, key=lambda one: (one.unit, one.origin, one.high, one.centre.tobytes(), one.spread.tobytes()))
    names = "profiles", "scores", "verdicts", "times"
    return first._newest(*(np.concatenate([getattr(one, name) for one in marks]) for name in names))


def find_problem(marks: Marks) -> str:
    """Return what is wrong with marks that were read from a file, as the end of a sentence; "" if nothing is."""
    verdicts = bool(np.isin(marks.verdicts, (USUAL, 0.0, ODD)).all())
    sound = marks.unit > 0.0 and bool((marks.spread >= 0.0).all() and (marks.times >= 0.0).all())
    return "" if verdicts and sound else "has marks that nobody can have made"
