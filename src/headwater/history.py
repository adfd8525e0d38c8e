"""History: how a stream went, in bounded memory; points at places that depend on rows alone, and scores of late rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from headwater.statistics import Array

FIRST_EVERY = 64  # rows from one point to the next, to begin with
MOST_POINTS = 256
MOST_WEIGHTS = 32  # components whose weights are kept
MOST_SCORES = 1024  # of a window, evenly spaced
MOST_LOWEST = 256  # of a window
FORMAT = 1


@dataclass(frozen=True)
class Point:
    """A moment of a stream.

    `rows` were learned by then; `score` is the mean of `scored` rows since the point before, each scored before it was learned.
    At the ends of chunks `weights` of components are known, `effective_rows`, which the statistics are worth, and the `seconds`
    spent so far; elsewhere they are empty, and NaN.
    """

    rows: int
    score: float
    scored: int
    weights: tuple[float, ...] = ()
    effective_rows: float = math.nan
    seconds: float = math.nan


@dataclass(frozen=True, eq=False)
class Window:
    """Scores of a stretch of rows: one in `stride`, and the lowest of all."""

    start: int = 0
    scored: int = 0
    stride: int = 1
    even: Array = field(default_factory=lambda: np.empty(0))
    lowest: Array = field(default_factory=lambda: np.empty(0))

    @property
    def size(self) -> int:
        """Scores it has in the end: as many as came before it, so that two windows hold half of the stream or more."""
        return max(self.start, MOST_SCORES)

    def after(self, scores: Array) -> Window:
        """Return the window with more scores."""
        stride, even = self.stride, np.append(self.even, scores[-self.scored % self.stride :: self.stride])
        while len(even) > MOST_SCORES:
            stride, even = 2 * stride, even[::2]
        low = scores if len(self.lowest) < MOST_LOWEST else scores[scores < self.lowest[-1]]
        lowest = np.sort(np.append(self.lowest, low))[:MOST_LOWEST] if len(low) else self.lowest
        return Window(self.start, self.scored + len(scores), stride, even, lowest)


@dataclass(frozen=True, eq=False)
class History:
    """How a stream went: at most 256 points, and the scores of late rows.

    Attributes
    ----------
    points : tuple of Point
        Moments, evenly spaced by rows; when there are too many, neighbours are joined.
    components : tuple of int
        The components whose weights are kept: all, or the heaviest at the first point.
    every : int
        Rows from one point to the next.
    seen : int
        Rows learned when the history was last added to.
    """

    points: tuple[Point, ...] = ()
    components: tuple[int, ...] = ()
    every: int = FIRST_EVERY
    seen: int = 0
    seconds: float = 0.0
    total: float = 0.0  # of the scores since the last point, and their number
    scored: int = 0
    before: Window = Window()
    now: Window = Window()

    # What was seen

    @property
    def rows(self) -> Array:
        """Rows learned at each point."""
        return np.array([point.rows for point in self.points], dtype=float)

    @property
    def scores(self) -> Array:
        """Mean score of the rows before each point, before they were learned; NaN where none was scored."""
        return np.array([point.score for point in self.points], dtype=float)

    @property
    def weights(self) -> Array:
        """Weights of `components` at each point (n_points, n_components); NaN where they are not known."""
        unknown = (math.nan,) * len(self.components)
        table = [point.weights or unknown for point in self.points]
        return np.array(table, dtype=float).reshape(len(self.points), len(self.components))

    @property
    def all_scored(self) -> int:
        """Rows that were scored so far."""
        return self.now.start + self.now.scored

    @property
    def last_score(self) -> float:
        """Mean score of the last rows, before they were learned; NaN if there is none."""
        if self.scored:
            return self.total / self.scored
        return next((point.score for point in reversed(self.points) if point.scored), math.nan)

    def threshold(self, rate: float) -> float:
        """Return the score below which this share of late rows fell, before they were learned: an anomaly threshold.

        Parameters
        ----------
        rate : float
            Share of rows that are to be called odd, between 0 and 1.

        Returns
        -------
        threshold : float
            A score as `score_samples` makes it, of the last half of the stream or more; NaN if nothing was scored.
        """
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0.0 < rate < 1.0:
            raise ValueError(f"rate must lie between 0 and 1, got {rate!r}")
        windows = [window for window in (self.before, self.now) if window.scored]
        if not windows:
            return math.nan
        scored = sum(window.scored for window in windows)
        lowest = np.sort(np.concatenate([window.lowest for window in windows]))
        # Below the least of the highest that the windows kept, all of the lowest are known.
        known = min(window.lowest[-1] if window.scored > MOST_LOWEST else math.inf for window in windows)
        place = rate * scored
        if place < np.searchsorted(lowest, known, side="right"):
            return float(lowest[int(place)])
        even = np.concatenate([window.even for window in windows])
        shares = np.concatenate([np.full(len(window.even), window.scored / len(window.even)) for window in windows])
        order = np.argsort(even, kind="stable")
        below = np.cumsum(shares[order])
        return float(even[order][min(int(np.searchsorted(below, place)), len(even) - 1)])

    # What happens to it

    def after(self, scores: Array, before: int, after: int) -> History:
        """Return the history after the rows between these places, which have these scores; NaN says nothing.

        A point is made wherever `every` divides the number of rows. Where there would be too many, they are thinned first.
        """
        every, points = self.every, self.points
        while after // every > MOST_POINTS:
            every *= 2
            points = thinned(points, every)
        finite = np.isfinite(scores)
        numbers = np.concatenate([[0], np.cumsum(finite)])
        totals = np.concatenate([[0.0], np.cumsum(np.where(finite, scores, 0.0))])
        total, scored, start, made = self.total, self.scored, 0, list(points)
        for place in range((before // every + 1) * every, after + 1, every):
            stop = len(scores) * (place - before) // (after - before)
            total, scored = total + float(totals[stop] - totals[start]), scored + int(numbers[stop] - numbers[start])
            made.append(Point(place, total / scored if scored else math.nan, scored))
            total, scored, start = 0.0, 0, stop
        total, scored = total + float(totals[-1] - totals[start]), scored + int(numbers[-1] - numbers[start])
        old, now = _followed(self.before, self.now, scores[finite])
        return replace(
            self, points=tuple(made), every=every, seen=after, total=total, scored=scored, before=old, now=now
        )  # fmt: skip

    def with_weights(self, shares: Array, effective_rows: float, seconds: float) -> History:
        """Return the history with what is known at its last point; weights of another number of components are forgotten."""
        components, points = self.components, self.points
        if components and len(shares) and _number(components, len(shares)) != len(components):
            components, points = (), tuple(replace(point, weights=()) for point in points)
        if not components and len(shares):
            components = tuple(sorted(np.argsort(-shares, kind="stable")[:MOST_WEIGHTS].tolist()))
        weights = tuple(float(shares[k]) for k in components) if len(shares) else ()
        point = replace(points[-1], weights=weights, effective_rows=effective_rows, seconds=seconds)
        return replace(self, points=(*points[:-1], point), components=components)

    # In words that JSON knows

    def to_dict(self) -> dict[str, Any]:
        """Return the same as dicts, lists and numbers."""
        columns = list(zip(*((p.rows, _known(p.score), p.scored, list(p.weights), _known(p.effective_rows), _known(p.seconds))
                             for p in self.points), strict=True)) or [()] * 6  # fmt: skip
        names = ("rows", "score", "scored", "weights", "effective_rows", "seconds")
        return {
            "format": FORMAT,
            "points": {name: list(column) for name, column in zip(names, columns, strict=True)},
            "components": list(self.components),
            "every": self.every,
            "seen": self.seen,
            "seconds": self.seconds,
            "total": self.total,
            "scored": self.scored,
            "windows": [
                {"start": one.start, "scored": one.scored, "stride": one.stride, "even": one.even.tolist(),
                 "lowest": one.lowest.tolist()}
                for one in (self.before, self.now)
            ],
        }  # fmt: skip

    @classmethod
    def from_dict(cls, found: Any) -> History:
        """Return the history that `to_dict` wrote, or refuse it in one sentence."""
        try:
            return _read(found)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"this is no history of a stream that can be read: {error}") from error


def _number(components: tuple[int, ...], known: int) -> int:
    """Weights that are kept of so many components, if these are among them."""
    return min(known, MOST_WEIGHTS) if max(components) < known else 0


def _followed(before: Window, now: Window, scores: Array) -> tuple[Window, Window]:
    """The last windows after these scores."""
    while len(scores):
        if now.scored >= now.size:
            before, now = now, Window(now.start + now.scored)
        room = now.size - now.scored
        now, scores = now.after(scores[:room]), scores[room:]
    return before, now


def thinned(points: tuple[Point, ...], every: int) -> tuple[Point, ...]:
    """Join the points that lie in one stretch of so many rows; the last of them stays where it is."""
    kept: list[Point] = []
    for point in points:
        if kept and (kept[-1].rows - 1) // every == (point.rows - 1) // every:
            point = _joined(kept.pop(), point)
        kept.append(point)
    return tuple(kept)


def _joined(one: Point, other: Point) -> Point:
    """A point where the later one is, of the scores of both, with what was known last."""
    scored = one.scored + other.scored
    total = (one.score * one.scored if one.scored else 0.0) + (other.score * other.scored if other.scored else 0.0)
    known = one if math.isnan(other.effective_rows) else other
    score = total / scored if scored else math.nan
    return Point(other.rows, score, scored, known.weights, known.effective_rows, known.seconds)


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _whole(found: Mapping[str, Any], name: str, least: int = 0) -> int:
    value = found[name]
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**63:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r:.40}")
    return value


def _real(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {value!r:.40}")
    return float(value)


def _perhaps(value: Any, name: str) -> float:
    return math.nan if value is None else _real(value, name)


def _reals(values: Any, name: str, most: int) -> Array:
    if not isinstance(values, list) or len(values) > most:
        raise ValueError(f"{name} must be a list of at most {most} numbers, got {values!r:.40}")
    return np.array([_real(value, name) for value in values])


def _window(found: Any) -> Window:
    window = Window(
        _whole(found, "start"), _whole(found, "scored"), _whole(found, "stride", 1),
        _reals(found["even"], "even", MOST_SCORES), _reals(found["lowest"], "lowest", MOST_LOWEST),
    )  # fmt: skip
    wanted = -(-window.scored // window.stride), min(window.scored, MOST_LOWEST)
    if (len(window.even), len(window.lowest)) != wanted or np.any(np.diff(window.lowest) < 0.0):
        raise ValueError(f"a window of {window.scored} scores must keep {wanted[0]} of them and the {wanted[1]} lowest")
    return window


def _read(found: Any) -> History:
    if not isinstance(found, Mapping):
        raise ValueError(f"it must be a mapping, got {found!r:.40}")
    if found["format"] != FORMAT:
        raise ValueError(f"its format must be {FORMAT}, got {found['format']!r:.40}")
    table = found["points"]
    columns = [table[name] for name in ("rows", "score", "scored", "weights", "effective_rows", "seconds")]
    if not all(isinstance(column, list) for column in columns) or len({len(column) for column in columns}) != 1:
        raise ValueError("the columns of its points must be lists of one length")
    if len(columns[0]) > MOST_POINTS:
        raise ValueError(f"it must have at most {MOST_POINTS} points, got {len(columns[0])}")
    components = tuple(found["components"])
    if len(components) > MOST_WEIGHTS or any(isinstance(k, bool) or not isinstance(k, int) or k < 0 for k in components):
        raise ValueError(f"components must be at most {MOST_WEIGHTS} whole numbers, got {components!r:.40}")
    points = tuple(
        Point(
            _whole({"rows": rows}, "rows"), _perhaps(score, "score"),
            _whole({"scored": scored}, "scored"), tuple(_reals(weights, "weights", len(components)).tolist()),
            _perhaps(effective, "effective_rows"), _perhaps(seconds, "seconds"),
        )
        for rows, score, scored, weights, effective, seconds in zip(*columns, strict=True)
    )  # fmt: skip
    if any(len(point.weights) not in (0, len(components)) for point in points):
        raise ValueError(f"a point must have {len(components)} weights or none")
    if any(one.rows >= other.rows for one, other in pairwise(points)):
        raise ValueError("the rows of its points must rise")
    before, now = map(_window, found["windows"])
    return History(
        points, components, _whole(found, "every", 1), _whole(found, "seen"), _real(found["seconds"], "seconds"),
        _real(found["total"], "total"), _whole(found, "scored"), before, now,
    )  # fmt: skip
