"""Windows of scores in bounded memory: exact for the lowest scores, and ever coarser above."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from headwater.core.statistics import Array

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
