"""History: how a stream went, in bounded memory; points at places that depend on rows alone, and scores of late rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from headwater.core.statistics import Array

FIRST_EVERY = 64  # rows from one point to the next, to begin with
MOST_POINTS = 256
MOST_WEIGHTS = 32  # components whose weights are kept
LEAST_WINDOW = 1024  # scores of the first window
LOWEST = 128  # scores of a window that are kept one by one; above, a score may stand for this part of all below it
TOGETHER = 4096  # scores of a window after which those that lie close are put together
FARTHEST = 1e250  # of a score, so that sums of them are numbers
ROUNDING = 1e-12  # by which means of equal scores may fall, as a part of the largest
FORMAT = 2


@dataclass(frozen=True)
class Point:
    """A moment of a stream.

    `rows` were learned by then; `score` is the mean of `scored` rows since the point before, each scored before it was learned.
    At the ends of chunks `weights` of components are known, `effective_rows`, which the statistics are worth, and the `seconds`
    spent so far; elsewhere they are empty, and NaN. The scored rows have `size` words or symbols in all; 0 if nobody counted.
    """

    rows: int
    score: float
    scored: int
    weights: tuple[float, ...] = ()
    effective_rows: float = math.nan
    seconds: float = math.nan
    size: float = 0.0


@dataclass(frozen=True, eq=False)
class Window:
    """Scores of a stretch of rows, each standing for some of them: the lowest for one, those above for ever more.

    So what is known of a share is as good for small shares as for large ones, relative to them, and what is kept grows with the
    logarithm of the rows. Which scores are put together depends on the rows alone, not on the chunks in which they come.
    """

    start: int = 0
    scored: int = 0
    scores: Array = field(default_factory=lambda: np.empty(0))
    rows: Array = field(default_factory=lambda: np.empty(0))

    @property
    def size(self) -> int:
        """Scores it has in the end: as many as came before it, so that two windows hold half of the stream or more."""
        return max(self.start, LEAST_WINDOW)

    def after(self, scores: Array) -> Window:
        """Return the window with more scores."""
        kept, rows, scored = self.scores, self.rows, self.scored
        while len(scores):
            new, scores = np.split(scores, [min(TOGETHER - scored % TOGETHER, len(scores))])
            kept, rows, scored = np.append(kept, new), np.append(rows, np.ones(len(new))), scored + len(new)
            if scored % TOGETHER == 0:
                kept, rows = together(*_merged(kept[:-TOGETHER], rows[:-TOGETHER], np.sort(kept[-TOGETHER:])))
        return Window(self.start, scored, kept, rows)

    def beside(self, other: Window) -> Window:
        """Return the scores of two stretches as those of one, which begins where this one does."""
        cuts = [len(one.scores) - one.scored % TOGETHER for one in (self, other)]
        single = np.concatenate([one.scores[cut:] for one, cut in zip((self, other), cuts, strict=True)])
        scored = self.scored + other.scored
        ready = len(single) - scored % TOGETHER  # as many as are put together, or none
        scores = np.concatenate([self.scores[: cuts[0]], other.scores[: cuts[1]], single[:ready]])
        rows = np.concatenate([self.rows[: cuts[0]], other.rows[: cuts[1]], np.ones(ready)])
        if len(scores):
            order = np.argsort(scores, kind="stable")
            scores, rows = together(scores[order], rows[order])
        left = single[ready:]
        return Window(self.start, scored, np.append(scores, left), np.append(rows, np.ones(len(left))))


def _merged(scores: Array, rows: Array, new: Array) -> tuple[Array, Array]:
    """Put new scores, of one row each and in rising order, among others in rising order: cheaper than to sort them all."""
    places = np.searchsorted(scores, new, side="right") + np.arange(len(new))
    known = np.ones(len(scores) + len(new), dtype=bool)
    known[places] = False
    merged, counts = np.empty(len(known)), np.ones(len(known))
    merged[places], merged[known], counts[known] = new, scores, rows
    return merged, counts


def together(scores: Array, rows: Array) -> tuple[Array, Array]:
    """Put scores, in rising order, together that lie close to each other, by the number of rows below them."""
    below = np.cumsum(rows) - 0.5 * rows
    # One group for each of the lowest, and then as many for each power of e.
    groups = np.where(below < LOWEST, below, LOWEST * (1.0 + np.log(np.maximum(below, LOWEST) / LOWEST)))
    first = np.flatnonzero(np.diff(np.floor(groups), prepend=-1.0))
    whole = np.add.reduceat(rows, first)
    shares = rows / np.repeat(whole, np.diff(first, append=len(rows)))  # a sum of scores could overflow
    return np.maximum.accumulate(np.add.reduceat(scores * shares, first)), whole  # means of equal scores differ by rounding


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
    size: float = 0.0  # words or symbols of the rows that were scored since the last point

    def __repr__(self) -> str:
        return f"History({self.seen:,} rows, {self.all_scored:,} scored, {len(self.points)} points)"

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

    @property
    def late_scored(self) -> int:
        """Rows of the last half of the stream that were scored."""
        return self.scored + sum(point.scored for point in self._late)

    @property
    def late_score(self) -> float:
        """Mean score of the last half of the stream, each row scored before it was learned; NaN if none was."""
        total = self.total + sum(point.score * point.scored for point in self._late)
        return total / self.late_scored if self.late_scored else math.nan

    @property
    def late_perplexity(self) -> float:
        """Perplexity of a word or symbol in the last half of the stream, exp of minus its mean score; NaN if not known."""
        parts = [(point.score * point.scored, point.size) for point in self._late]
        if self.scored:
            parts.append((self.total, self.size))
        if not parts or min(size for _, size in parts) <= 0.0:
            return math.nan
        return perplexity(math.fsum(total for total, _ in parts), math.fsum(size for _, size in parts))

    @property
    def _late(self) -> list[Point]:
        return [point for point in self.points if point.scored and point.rows > self.seen // 2]

    @property
    def usual(self) -> tuple[Array, Array]:
        """Scores of late rows before they were learned, in rising order, and how many rows each stands for."""
        scores = np.concatenate([self.before.scores, self.now.scores])
        rows = np.concatenate([self.before.rows, self.now.rows])
        order = np.argsort(scores, kind="stable")
        return scores[order], rows[order]

    def threshold(self, rate: float) -> float:
        """Return the score below which this share of late rows fell, before they were learned: an anomaly threshold.

        Parameters
        ----------
        rate : float
            Share of rows that are to be called odd, from 0 (none) to 1 (all). If it is less than one in those that were
            scored, the threshold is the lowest score of them.

        Returns
        -------
        threshold : float
            A score as `score_samples` makes it, of the last half of the stream or more; NaN if nothing was scored. Of sequences
            and documents it is the score divided by the number of symbols or words, since otherwise the long ones were odd.
        """
        return quantile(*self.usual, rate)

    # What happens to it

    def after(self, scores: Array, before: int, after: int, ranked: Array | None = None, sizes: Array | None = None) -> History:
        """Return the history after the rows between these places, which have these scores; NaN says nothing.

        Thresholds are those of `ranked`, where rows are ranked by something else than their scores; `sizes` are their words or
        symbols.

        A point is made wherever `every` divides the number of rows. Where there would be too many, they are thinned first.
        """
        every, points = self.every, self.points
        while after // every > MOST_POINTS:
            every *= 2
            points = thinned(points, every)
        finite, scores = np.isfinite(scores), np.clip(scores, -FARTHEST, FARTHEST)
        numbers = np.concatenate([[0], np.cumsum(finite)])
        totals = np.concatenate([[0.0], np.cumsum(np.where(finite, scores, 0.0))])
        words = np.concatenate([[0.0], np.cumsum(np.zeros(len(scores)) if sizes is None else np.where(finite, sizes, 0.0))])
        total, scored, size, start, made = self.total, self.scored, self.size, 0, list(points)
        for place in range((before // every + 1) * every, after + 1, every):
            stop = len(scores) * (place - before) // (after - before)
            total, scored = total + float(totals[stop] - totals[start]), scored + int(numbers[stop] - numbers[start])
            size += float(words[stop] - words[start])
            made.append(Point(place, total / scored if scored else math.nan, scored, size=size))
            total, scored, size, start = 0.0, 0, 0.0, stop
        total, scored = total + float(totals[-1] - totals[start]), scored + int(numbers[-1] - numbers[start])
        size += float(words[-1] - words[start])
        usual = scores if ranked is None else np.where(np.isfinite(ranked), np.clip(ranked, -FARTHEST, FARTHEST), math.nan)
        old, now = _followed(self.before, self.now, usual[np.isfinite(usual)])
        return replace(
            self, points=tuple(made), every=every, seen=after, total=total, scored=scored, before=old, now=now, size=size
        )  # fmt: skip

    def with_weights(self, shares: Array, effective_rows: float, seconds: float) -> History:
        """Return the history with what is known at its last point; weights of another number of components are forgotten."""
        components, points = self.components, self.points
        shares = shares if np.isfinite(shares).all() else shares[:0]
        if components and len(shares) and _number(components, len(shares)) != len(components):
            components, points = (), tuple(replace(point, weights=()) for point in points)
        if not components and len(shares):
            components = tuple(sorted(np.argsort(-shares, kind="stable")[:MOST_WEIGHTS].tolist()))
        weights = tuple(float(shares[k]) for k in components) if len(shares) else ()
        point = replace(points[-1], weights=weights, effective_rows=effective_rows, seconds=seconds)
        return replace(self, points=(*points[:-1], point), components=components)

    @classmethod
    def of_rounds(cls, rounds: Sequence[tuple[int, float]], usual: Window, before: int) -> History:
        """Return the history of rows that were learned side by side, in rounds of so many rows with such a mean score.

        `usual` has the scores of the last ones, and `before` rows were learned before all of these.
        """
        seen, every, points = before, FIRST_EVERY, []
        for rows, score in rounds:
            seen += rows
            if rows:
                points.append(Point(seen, score, 0 if math.isnan(score) else rows))
        while seen // every > MOST_POINTS:
            every *= 2
        now = replace(usual, start=max(0, seen - usual.scored))
        return cls(thinned(tuple(points), every)[-MOST_POINTS:], every=every, seen=seen, now=now)

    # In words that JSON knows

    def to_dict(self) -> dict[str, Any]:
        """Return the same as dicts, lists and numbers."""
        names = ("rows", "score", "scored", "weights", "effective_rows", "seconds", "size")
        lines = [
            (p.rows, _known(p.score), p.scored, list(p.weights), _known(p.effective_rows), _known(p.seconds), p.size)
            for p in self.points
        ]
        columns = list(zip(*lines, strict=True)) or [()] * len(names)
        return {
            "format": FORMAT,
            "points": {name: list(column) for name, column in zip(names, columns, strict=True)},
            "components": list(self.components),
            "every": self.every,
            "seen": self.seen,
            "seconds": self.seconds,
            "total": self.total,
            "scored": self.scored,
            "size": self.size,
            "windows": [
                {"start": one.start, "scored": one.scored, "scores": one.scores.tolist(), "rows": one.rows.tolist()}
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


def quantile(scores: Array, rows: Array, rate: float) -> float:
    """Return the score below which a new row falls with this probability; scores rise, and stand for some rows each."""
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0.0 <= rate <= 1.0:
        raise ValueError(f"rate must lie between 0 and 1, got {rate!r}")
    if not len(scores):
        return math.nan
    if rate in (0.0, 1.0):
        return -math.inf if rate == 0.0 else math.inf
    # n scores cut the line into n + 1 pieces that are equally probable.
    places = np.cumsum(rows) - 0.5 * (rows - 1.0)
    return float(np.interp(rate * (float(np.sum(rows)) + 1.0), places, scores))


def perplexity(score: float, size: float) -> float:
    """Return exp of minus the score of one word, given the score of so many; infinite if that is too large for a number."""
    try:
        return math.exp(-score / size)
    except OverflowError:
        return math.inf


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
    # Of rows that nobody counted words of, nothing is known of the sum.
    counted = all(point.size > 0.0 for point in (one, other) if point.scored)
    size = one.size + other.size if counted else 0.0
    return Point(other.rows, score, scored, known.weights, known.effective_rows, known.seconds, size)


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


def _reals(values: Any, name: str, most: int | None = None) -> Array:
    if not isinstance(values, list) or (most is not None and len(values) > most):
        raise ValueError(f"{name} must be a list of {'' if most is None else f'at most {most} '}numbers, got {values!r:.40}")
    return np.array([_real(value, name) for value in values])


def _window(found: Any) -> Window:
    window = Window(
        _whole(found, "start"), _whole(found, "scored"), _reals(found["scores"], "scores"), _reals(found["rows"], "rows")
    )  # fmt: skip
    if len(window.scores) != len(window.rows) or np.any(window.rows < 1.0) or window.rows.sum() != window.scored:
        raise ValueError(f"a window of {window.scored} scores must keep some that stand for as many rows")
    cut = len(window.scores) - window.scored % TOGETHER  # the last are not put together yet
    kept, alone = np.split(window.scores, [max(cut, 0)])
    allowed = ROUNDING * float(np.abs(kept).max(initial=0.0))
    if cut < 0 or np.any(np.diff(kept) < -allowed) or np.any(window.rows[cut:] != 1.0):
        raise ValueError("scores of a window that were put together must rise")
    return replace(window, scores=np.append(np.maximum.accumulate(kept), alone))


def _read(found: Any) -> History:
    if not isinstance(found, Mapping):
        raise ValueError(f"it must be a mapping, got {found!r:.40}")
    if found["format"] != FORMAT:
        raise ValueError(f"its format must be {FORMAT}, got {found['format']!r:.40}")
    table = found["points"]
    columns = [table[name] for name in ("rows", "score", "scored", "weights", "effective_rows", "seconds")]
    columns.append(table.get("size", [0.0] * len(table["rows"])))  # files of before have none
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
            _perhaps(effective, "effective_rows"), _perhaps(seconds, "seconds"), _real(size, "size"),
        )
        for rows, score, scored, weights, effective, seconds, size in zip(*columns, strict=True)
    )  # fmt: skip
    if any(len(point.weights) not in (0, len(components)) for point in points):
        raise ValueError(f"a point must have {len(components)} weights or none")
    if any(one.rows >= other.rows for one, other in pairwise(points)):
        raise ValueError("the rows of its points must rise")
    before, now = map(_window, found["windows"])
    return History(
        points, components, _whole(found, "every", 1), _whole(found, "seen"), _real(found["seconds"], "seconds"),
        _real(found["total"], "total"), _whole(found, "scored"), before, now, _real(found.get("size", 0.0), "size"),
    )  # fmt: skip
