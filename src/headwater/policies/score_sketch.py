"""A sketch of anomaly scores: counts on a fixed grid, which add up when streams are merged and fade when rows are forgotten.

Beyond the scores that are too few to count stands a tail, a generalised Pareto law.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array

TAIL_SHARE = 0.05  # of the scores, of which the law is estimated; at least
LEAST_TAIL, MOST_TAIL = 25.0, 500.0  # rows, if there are as many, and at most
GRID = 30  # values of Zhang and Stephens' profile, beside the square root of the number of scores
PRIOR_SHAPE, PRIOR_ROWS = 0.05, 10.0  # towards exponential tails, which densities of light-tailed components have
LARGEST_SHAPE = 2.0
LEAST_PROBABILITY = 1e-300


@dataclass(frozen=True)
class Tail:
    """P(score > s) = share * (1 + shape * (s - level) / scale) ** (-1 / shape) beyond a level."""

    level: float
    share: float
    scale: float
    shape: float

    def probability(self, scores: Array) -> Array:
        """Return the probability of a score beyond each of these, which lie beyond the level."""
        beyond = np.maximum(scores - self.level, 0.0) / self.scale
        nats = beyond if self.shape < 1e-9 else np.log1p(self.shape * beyond) / self.shape
        return np.maximum(self.share * np.exp(-nats), LEAST_PROBABILITY)

    def score(self, probability: float) -> float:
        """Return the score that is passed with this probability, which is no more than the share."""
        nats = math.log(self.share / max(probability, LEAST_PROBABILITY))
        beyond = nats if self.shape < 1e-9 else math.expm1(min(self.shape * nats, 700.0)) / self.shape
        return self.level + self.scale * beyond


def tail_of(scores: Array, edges: Array, weights: Array, join: float) -> Tail | None:
    """Return the tail of scores that rise, each of which stands for some rows below an edge; None if all are alike.

    It is estimated of the highest twentieth, and begins at the edge above which fewer than `join` rows lie.
    """
    n = float(weights.sum())
    above = n - np.cumsum(weights)  # rows beyond each edge
    rows = min(max(TAIL_SHARE * n, LEAST_TAIL), MOST_TAIL, 0.5 * n)
    first = max(int(np.count_nonzero(above >= rows * (1.0 - 1e-9))) - 1, 0)
    level, exceeding, each = float(edges[first]), scores[first + 1 :] - edges[first], weights[first + 1 :]
    if not len(exceeding) or exceeding[-1] <= 0.0:
        return None
    scale, shape = pareto_of(np.maximum(exceeding, 0.0), each)
    start = max(int(np.count_nonzero(above + weights >= join * (1.0 - 1e-9))) - 1, first)
    at, left = float(edges[start]), float(above[start])
    if left < 1e-9 * n:  # many rows are equally odd, and none is odder
        return None
    return Tail(at, left / n, scale + shape * (at - level), shape)


def pareto_of(exceeding: Array, weights: Array) -> tuple[float, float]:
    """Return scale and shape of a generalised Pareto law (Zhang and Stephens 2009), shape at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater.policies.score_sketch import pareto_of
    >>> draws = np.sort(np.random.default_rng(0).pareto(4.0, size=5000))
    >>> [round(one, 1) for one in pareto_of(draws, np.ones(5000))]
    [0.2, 0.3]
    """
    n = float(weights.sum())
    places = np.cumsum(weights) - 0.5 * weights
    quarter = float(np.interp(n / 4.0 + 0.5, places, exceeding))
    values = GRID + int(math.sqrt(n))
    grid = 1.0 - np.sqrt(values / (np.arange(1, values + 1) - 0.5))
    thetas = 1.0 / exceeding[-1] + grid / (3.0 * max(quarter, 1e-12 * exceeding[-1]))
    thetas = thetas[thetas < 0.0]  # of shapes above 0: no score is impossible
    if not len(thetas):
        return float(weights @ exceeding) / n, 0.0
    shapes = np.log1p(-thetas[:, None] * exceeding) @ weights / n
    heights = n * (np.log(-thetas / shapes) - shapes - 1.0)
    theta = float(thetas @ (np.exp(heights - heights.max()) / np.exp(heights - heights.max()).sum()))
    shape = float(np.log1p(-theta * exceeding) @ weights / n)
    scale = -shape / theta
    shape = min((n * shape + PRIOR_ROWS * PRIOR_SHAPE) / (n + PRIOR_ROWS), LARGEST_SHAPE)
    return scale, shape


BINS = 1024
BINS_PER_UNIT = 40.0  # at the origin; far from it a bin is a fortieth of the distance
FIRST = -4.0  # units below the origin, on the scale of the grid; it ends at 21.6, which is a billion units
JOIN_ROWS = 25.0  # above a score, below which the tail takes the place of counts: they are known to a fifth
LEAST_UNIT = 1e-9


@dataclass(frozen=True)
class ScoreSketch:
    """How many rows had which anomaly score before they were learned.

    Bins are those of asinh((score - origin) / unit), of equal width. `at_base` holds the rows of the base that streams to be
    merged have in common, `since` those after it, and `lineage` is the name of that base. `unit` is 0 before the first score.
    """

    origin: float
    unit: float
    at_base: Array
    since: Array
    lineage: str = ""

    @classmethod
    def blank(cls) -> ScoreSketch:
        """Return a sketch without rows."""
        return cls(0.0, 0.0, np.zeros(BINS), np.zeros(BINS))

    @classmethod
    def on_grid_of(cls, scores: Array, lineage: str = "") -> ScoreSketch:
        """Return a sketch without rows, whose grid suits these scores."""
        scores = scores[np.isfinite(scores)]
        if not len(scores):
            return replace(cls.blank(), lineage=lineage)
        low, origin, high = (float(one) for one in np.quantile(scores, [0.25, 0.5, 0.75]))
        unit = max(high - low, LEAST_UNIT * max(abs(origin), 1.0)) if len(scores) > 1 else 1.0
        return replace(cls.blank(), origin=origin, unit=unit, lineage=lineage)

    @property
    def counts(self) -> Array:
        """Rows of each bin."""
        return self.at_base + self.since

    @property
    def rows(self) -> float:
        """Rows that it knows, less what was forgotten."""
        return float(self.counts.sum())

    def places(self, scores: Array) -> Array:
        """Return the place of each score on the grid, in bins."""
        with np.errstate(over="ignore"):
            far = np.clip((scores - self.origin) / self.unit, -1e300, 1e300)
        return np.clip((np.arcsinh(far) - FIRST) * BINS_PER_UNIT, 0.0, BINS - 1e-6)

    def scores_at(self, places: Array) -> Array:
        """Return the score at each place of the grid."""
        return np.asarray(self.origin + self.unit * np.sinh(places / BINS_PER_UNIT + FIRST), dtype=np.float64)

    def add(self, scores: Array, weights: Array, fade: float = 1.0) -> ScoreSketch:
        """Return the sketch with more scores, after what it knows has faded."""
        known = np.isfinite(scores)
        if not known.all():
            scores, weights = scores[known], weights[known]
        if not self.unit and len(scores):
            grid = self.on_grid_of(scores[:1])
            return replace(self, origin=grid.origin, unit=grid.unit).add(scores, weights)
        new = np.bincount(self.places(scores).astype(np.int64), weights, BINS) if len(scores) else 0.0
        return replace(self, at_base=fade * self.at_base, since=fade * self.since + new)

    def on_base(self, lineage: str) -> ScoreSketch:
        """Return the sketch of a stream on this base: all that an older base had, and what came after it, is part of it."""
        if lineage == self.lineage:
            return self
        return replace(self, at_base=self.counts, since=np.zeros(BINS), lineage=lineage)

    def regrid(self, origin: float, unit: float) -> ScoreSketch:
        """Return the sketch on another grid: the rows of a bin are spread evenly over the bins that it covers."""
        if (origin, unit) == (self.origin, self.unit) or not self.unit:
            return replace(self, origin=origin, unit=unit)
        other = replace(self.blank(), origin=origin, unit=unit)
        edges = other.places(self.scores_at(np.arange(BINS + 1.0)))
        edges[0], edges[-1] = 0.0, BINS

        def spread(counts: Array) -> Array:
            below = np.concatenate([[0.0], np.cumsum(counts)])
            grown, first = np.unique(edges, return_index=True)
            last = np.append(first[1:], len(edges)) - 1  # bins that fall on one place
            ends = np.interp(np.arange(BINS + 1.0), grown, below[last])
            return np.diff(np.concatenate([[0.0], ends[1:]]))

        return replace(other, at_base=spread(self.at_base), since=spread(self.since), lineage=self.lineage)

    # Reading

    def pvalues(self, scores: Array, uniforms: Array) -> Array:
        """Return P(a score at least as high) of rows like those of the sketch; ties are broken by uniform numbers.

        (1 + rows above) / (1 + all rows) where rows above are many enough to count, the tail beyond.
        """
        counts, n = self.counts, self.rows
        above = np.concatenate([np.cumsum(counts[::-1])[::-1][1:], [0.0]])
        bins = self.places(np.where(np.isnan(scores), 0.0, scores)).astype(np.int64)
        found = (above[bins] + uniforms * (counts[bins] + 1.0)) / (n + 1.0)
        tail = self.tail()
        if tail is not None:
            far = bins > round(float(self.places(np.array([tail.level]))[0])) - 1
            found[far] = np.minimum(tail.probability(scores[far]), 1.0)
        return np.asarray(np.where(np.isnan(scores), np.nan, np.maximum(found, LEAST_PROBABILITY)))

    def threshold(self, rate: float) -> float:
        """Return the score that a row like those of the sketch passes with this probability."""
        tail = self.tail()
        if tail is not None and rate <= tail.share:
            return tail.score(rate)
        above = np.concatenate([np.cumsum(self.counts[::-1])[::-1], [0.0]]) / max(self.rows, 1e-300)
        place = float(np.interp(-rate, -above, np.arange(BINS + 1.0)))
        return float(self.scores_at(np.array([place]))[0])

    def tail(self) -> Tail | None:
        """Return the law of the highest scores."""
        bins = np.flatnonzero(self.counts > 0.0)
        if len(bins) < 3:
            return None
        places = bins.astype(np.float64)
        return tail_of(self.scores_at(places + 0.5), self.scores_at(places + 1.0), self.counts[bins], JOIN_ROWS)


def merge_sketches(sketches: list[ScoreSketch], lineage: str, shared: bool) -> ScoreSketch:
    """Return the sketch of merged streams, in any order: a common base counts once, as the one that forgot most of it."""
    known = [one for one in sketches if one.unit]
    if not known:
        return replace(ScoreSketch.blank(), lineage=lineage)
    origin, unit = min((one.origin, one.unit) for one in known)
    ready = [one.on_base(lineage if shared else one.lineage).regrid(origin, unit) for one in known]
    if shared:
        base = ready[0].at_base if len(ready) == 1 else np.minimum.reduce([one.at_base for one in ready])
        since = sum((one.since for one in ready[1:]), ready[0].since)
        return ScoreSketch(origin, unit, base, since, lineage)
    counts = sum((one.counts for one in ready[1:]), ready[0].counts)
    return ScoreSketch(origin, unit, counts, np.zeros(BINS), lineage)


def is_sound(sketch: ScoreSketch) -> bool:
    """Whether a sketch that was read from a file can be one."""
    arrays: tuple[NDArray[np.float64], ...] = sketch.at_base, sketch.since
    return sketch.unit >= 0.0 and all(bool((one >= 0.0).all()) for one in arrays)
