"""How odd a score is: its place among the scores of rows that were learned, or of the data at hand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwater.diagnostics.history import quantile

# Scores that are kept of a first pass; more than enough for a threshold at a rate of one in ten thousand.
SAMPLE_SIZE = 2**20


@dataclass(frozen=True)
class Reference:
    """Scores to compare with, sorted, each standing for some rows; and where they come from."""

    scores: NDArray[np.float64]
    rows: NDArray[np.float64]
    origin: str

    def ranks(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the share of usual rows whose scores are lower: near 0 is odd, and NaN is for what has no score."""
        below = np.concatenate([[0.0], np.cumsum(self.rows)])
        ranks = below[np.searchsorted(self.scores, scores, side="left")] / below[-1]
        return np.asarray(np.where(np.isnan(scores), np.nan, ranks))

    def threshold(self, rate: float) -> float:
        """Return the score below which so large a share of usual rows lies."""
        return quantile(self.scores, self.rows, rate)

    def rate_warning(self, rate: float) -> str:
        """Return a sentence if a rate is finer than what is known, or nothing."""
        known = int(self.rows.sum())
        if rate == 0.0 or rate * known >= 1.0:
            return ""
        return f"note: --rate {rate:g} is finer than the {known:,} usual scores that are known: odd is what is below them all"


def sample_scores(batches: Iterable[NDArray[np.float64]], origin: str, seed: int = 0) -> Reference:
    """Return the scores of a first pass, or of a random part of it that fits in memory."""
    rng = np.random.default_rng(seed)
    kept, held, seen = np.empty(SAMPLE_SIZE), 0, 0
    for batch in batches:
        scores = batch[np.isfinite(batch)]
        room = min(SAMPLE_SIZE - held, len(scores))
        kept[held : held + room] = scores[:room]
        held += room
        rest = scores[room:]
        # Each later score takes the place of one that is kept, with the probability that keeps the sample even.
        places = rng.integers(0, np.arange(seen + room, seen + len(scores)) + 1)
        kept[places[places < SAMPLE_SIZE]] = rest[places < SAMPLE_SIZE]
        seen += len(scores)
    if not held:
        raise ValueError("the data has no rows that can be scored, so there is nothing to rank them by")
    return Reference(np.sort(kept[:held]), np.ones(held), origin)


def history_reference(model: Any) -> Reference | None:
    """Return the scores that a model keeps of rows as they were before it learned them, if it does."""
    history = getattr(model, "history_", None)
    if history is None or not history.now.scored:
        return None
    scores, rows = history.usual
    return Reference(scores, rows, "learned")
