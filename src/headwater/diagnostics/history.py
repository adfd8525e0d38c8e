"""History: how a stream went, in bounded memory; points at places that depend on rows alone, and scores of late rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import escape

import numpy as np

from headwater.core.statistics import Array
from headwater.diagnostics.display import html_curve

FIRST_WINDOW_SCORES = 1024  # of the first window; each later one has as many as all before it
EXACT_SCORES = 128  # the lowest of a window, which are kept one by one; above, a score stands for this share of all below it
COMPRESSION_SCORES = 4096  # after which close scores are put together
ROUNDING_ERROR = 1e-12  # by which means of equal scores may fall, as a share of the largest


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
        return max(self.start, FIRST_WINDOW_SCORES)

    def after(self, scores: Array) -> Window:
        """Return the window with more scores."""
        kept, rows, scored = self.scores, self.rows, self.scored
        while len(scores):
            new, scores = np.split(scores, [min(COMPRESSION_SCORES - scored % COMPRESSION_SCORES, len(scores))])
            kept, rows, scored = np.append(kept, new), np.append(rows, np.ones(len(new))), scored + len(new)
            if scored % COMPRESSION_SCORES == 0:
                kept, rows = compress_scores(
                    *_merge_sorted(kept[:-COMPRESSION_SCORES], rows[:-COMPRESSION_SCORES], np.sort(kept[-COMPRESSION_SCORES:]))
                )
        return Window(self.start, scored, kept, rows)

    def beside(self, other: Window) -> Window:
        """Return the scores of two stretches as those of one, which begins where this one does."""
        cuts = [len(one.scores) - one.scored % COMPRESSION_SCORES for one in (self, other)]
        single = np.concatenate([one.scores[cut:] for one, cut in zip((self, other), cuts, strict=True)])
        scored = self.scored + other.scored
        ready = len(single) - scored % COMPRESSION_SCORES  # as many as are put together, or none
        scores = np.concatenate([self.scores[: cuts[0]], other.scores[: cuts[1]], single[:ready]])
        rows = np.concatenate([self.rows[: cuts[0]], other.rows[: cuts[1]], np.ones(ready)])
        if len(scores):
            order = np.argsort(scores, kind="stable")
            scores, rows = compress_scores(scores[order], rows[order])
        left = single[ready:]
        return Window(self.start, scored, np.append(scores, left), np.append(rows, np.ones(len(left))))


def _merge_sorted(scores: Array, rows: Array, new: Array) -> tuple[Array, Array]:
    """Put new scores, of one row each and in rising order, among others in rising order: cheaper than to sort them all."""
    places = np.searchsorted(scores, new, side="right") + np.arange(len(new))
    known = np.ones(len(scores) + len(new), dtype=bool)
    known[places] = False
    merged, counts = np.empty(len(known)), np.ones(len(known))
    merged[places], merged[known], counts[known] = new, scores, rows
    return merged, counts


def compress_scores(scores: Array, rows: Array) -> tuple[Array, Array]:
    """Put scores, in rising order, together that lie close to each other, by the number of rows below them."""
    below = np.cumsum(rows) - 0.5 * rows
    # One group for each of the lowest, and then as many for each power of e.
    groups = np.where(
        below < EXACT_SCORES, below, EXACT_SCORES * (1.0 + np.log(np.maximum(below, EXACT_SCORES) / EXACT_SCORES))
    )
    first = np.flatnonzero(np.diff(np.floor(groups), prepend=-1.0))
    whole = np.add.reduceat(rows, first)
    shares = rows / np.repeat(whole, np.diff(first, append=len(rows)))  # a sum of scores could overflow
    return np.maximum.accumulate(np.add.reduceat(scores * shares, first)), whole  # means of equal scores differ by rounding


def add_scores(before: Window, now: Window, scores: Array) -> tuple[Window, Window]:
    """The last windows after these scores."""
    while len(scores):
        if now.scored >= now.size:
            before, now = now, Window(now.start + now.scored)
        room = now.size - now.scored
        now, scores = now.after(scores[:room]), scores[room:]
    return before, now


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


FIRST_SPACING = 64  # rows from one point to the next, to begin with
POINT_LIMIT = 256  # points of a history
WEIGHT_LIMIT = 32  # components whose weights are kept
IMPOSSIBLE = 1e4  # nats below the best late rows: as far as 140 standard deviations of one column
SCORE_LIMIT = 1e250  # of a score, so that sums of them are numbers


@dataclass(frozen=True)
class Point:
    """A moment of a stream.

    `rows` were learned by then; `score` is the mean of `scored` rows since the point before, each scored before it was learned.
    At the ends of chunks `weights` of components are known, `effective_rows`, which the statistics are worth, and the `seconds`
    spent so far; elsewhere they are empty, and NaN. The scored rows have `size` words or symbols in all; 0 if unknown.
    """

    rows: int
    score: float
    scored: int
    weights: tuple[float, ...] = ()
    effective_rows: float = math.nan
    seconds: float = math.nan
    size: float = 0.0


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

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rows = np.random.default_rng(0).normal(size=(5000, 2))
    >>> model = hw.Monitor(hw.GaussianMixture(1, random_state=0)).learn(rows)
    >>> model.history_
    History(5,000 rows, 3,000 scored, 78 points)
    """

    points: tuple[Point, ...] = ()
    components: tuple[int, ...] = ()
    every: int = FIRST_SPACING
    seen: int = 0
    seconds: float = 0.0
    total: float = 0.0  # of the scores since the last point, and their number
    scored: int = 0
    before: Window = Window()
    now: Window = Window()
    size: float = 0.0  # words or symbols of the rows that were scored since the last point

    def __repr__(self) -> str:
        return f"History({self.seen:,} rows, {self.all_scored:,} scored, {len(self.points)} points)"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>{html_curve(self.scores.tolist(), 'mean score of the rows before each point')}"

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

    @property
    def late_parts(self) -> tuple[float, float, float, float]:
        """Mean score and number of late rows, and those of late rows that were next to impossible before they were learned.

        One such row among many makes the mean of all say nothing: a column that had held one value takes another. Rows are next
        to impossible if they score 10,000 nats less than the best tenth, or ten times as far from 0.
        """
        scores, rows = self.usual
        high = quantile(scores, rows, 0.9)
        far = scores < high - max(IMPOSSIBLE, 10.0 * abs(high))
        near, kept = _mean(scores[~far], rows[~far])
        impossible, lost = _mean(scores[far], rows[far])
        return near, kept, impossible, lost

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
        while after // every > POINT_LIMIT:
            every *= 2
            points = thin_points(points, every)
        finite, scores = np.isfinite(scores), np.clip(scores, -SCORE_LIMIT, SCORE_LIMIT)
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
        usual = (
            scores if ranked is None else np.where(np.isfinite(ranked), np.clip(ranked, -SCORE_LIMIT, SCORE_LIMIT), math.nan)
        )
        old, now = add_scores(self.before, self.now, usual[np.isfinite(usual)])
        return replace(
            self, points=tuple(made), every=every, seen=after, total=total, scored=scored, before=old, now=now, size=size
        )  # fmt: skip

    def with_weights(self, shares: Array, effective_rows: float, seconds: float) -> History:
        """Return the history with what is known at its last point; weights of another number of components are forgotten."""
        components, points = self.components, self.points
        shares = shares if np.isfinite(shares).all() else shares[:0]
        if components and len(shares) and _kept_weights(components, len(shares)) != len(components):
            components, points = (), tuple(replace(point, weights=()) for point in points)
        if not components and len(shares):
            components = tuple(sorted(np.argsort(-shares, kind="stable")[:WEIGHT_LIMIT].tolist()))
        weights = tuple(float(shares[k]) for k in components) if len(shares) else ()
        point = replace(points[-1], weights=weights, effective_rows=effective_rows, seconds=seconds)
        return replace(self, points=(*points[:-1], point), components=components)

    @classmethod
    def of_rounds(cls, rounds: Sequence[tuple[int, float]], usual: Window, before: int) -> History:
        """Return the history of rows that were learned side by side, in rounds of so many rows with such a mean score.

        `usual` has the scores of the last ones, and `before` rows were learned before all of these.
        """
        seen, every, points = before, FIRST_SPACING, []
        for rows, score in rounds:
            seen += rows
            if rows:
                points.append(Point(seen, score, 0 if math.isnan(score) else rows))
        while seen // every > POINT_LIMIT:
            every *= 2
        now = replace(usual, start=max(0, seen - usual.scored))
        return cls(thin_points(tuple(points), every)[-POINT_LIMIT:], every=every, seen=seen, now=now)

    # As values that JSON can hold

    def to_dict(self) -> dict[str, object]:
        """Return the same as dicts, lists and numbers."""
        from headwater.diagnostics.history_file import history_to_dict  # it imports this file

        return history_to_dict(self)

    @classmethod
    def from_dict(cls, found: object) -> History:
        """Return the history that `to_dict` wrote, or refuse it in one sentence."""
        from headwater.diagnostics.history_file import read_history

        try:
            return read_history(found)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"this is no history of a stream that can be read: {error}") from error


def _mean(scores: Array, rows: Array) -> tuple[float, float]:
    number = float(rows.sum())
    return (float(scores @ (rows / number)) if number else math.nan), number


def perplexity(score: float, size: float) -> float:
    """Return exp of minus the score of one word, given the score of so many; infinite if that is too large for a number."""
    try:
        return math.exp(-score / size)
    except OverflowError:
        return math.inf


def _kept_weights(components: tuple[int, ...], known: int) -> int:
    """Weights that are kept of so many components, if these are among them."""
    return min(known, WEIGHT_LIMIT) if max(components) < known else 0


def thin_points(points: tuple[Point, ...], every: int) -> tuple[Point, ...]:
    """Join the points that lie in one stretch of so many rows; the last of them stays where it is."""
    kept: list[Point] = []
    for point in points:
        if kept and (kept[-1].rows - 1) // every == (point.rows - 1) // every:
            point = _join_points(kept.pop(), point)
        kept.append(point)
    return tuple(kept)


def _join_points(one: Point, other: Point) -> Point:
    """A point where the later one is, of the scores of both, with what was known last."""
    scored = one.scored + other.scored
    total = (one.score * one.scored if one.scored else 0.0) + (other.score * other.scored if other.scored else 0.0)
    known = one if math.isnan(other.effective_rows) else other
    score = total / scored if scored else math.nan
    # The sum is unknown if the words of some rows are.
    counted = all(point.size > 0.0 for point in (one, other) if point.scored)
    size = one.size + other.size if counted else 0.0
    return Point(other.rows, score, scored, known.weights, known.effective_rows, known.seconds, size)
