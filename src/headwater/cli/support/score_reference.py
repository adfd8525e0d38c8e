"""How odd a score is: its rank among the scores of learned rows, or of the data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headwater.diagnostics.history import quantile

if TYPE_CHECKING:
    from headwater.estimators.base import StreamingEstimator


SAMPLE_SIZE = 2**20  # scores of a first pass: a hundred of them lie below a threshold at a rate of one in ten thousand


@dataclass(frozen=True)
class Reference:
    """Sorted scores to compare with, the number of rows that each stands for, and where they come from."""

    scores: NDArray[np.float64]
    rows: NDArray[np.float64]
    origin: str

    def ranks(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the share of usual rows with a lower score: near 0 is odd; NaN for rows without a score."""
        below = np.concatenate([[0.0], np.cumsum(self.rows)])
        ranks = below[np.searchsorted(self.scores, scores, side="left")] / below[-1]
        return np.asarray(np.where(np.isnan(scores), np.nan, ranks))

    def threshold(self, rate: float) -> float:
        """Return the score below which this share of usual rows lies."""
        return quantile(self.scores, self.rows, rate)

    def rate_warning(self, rate: float) -> str:
        """Return a sentence if the rate is too small for the number of scores, or an empty text."""
        known = int(self.rows.sum())
        if rate == 0.0 or rate * known >= 1.0:
            return ""
        return f"note: --rate {rate:g} is finer than the {known:,} usual scores that are known: odd is what is below them all"


def sample_scores(batches: Iterable[NDArray[np.float64]], origin: str, seed: int = 0) -> Reference:
    """Return the scores of a first pass, or a uniform reservoir sample of them."""
    rng = np.random.default_rng(seed)
    kept, held, seen = np.empty(SAMPLE_SIZE), 0, 0
    for batch in batches:
        scores = batch[np.isfinite(batch)]
        room = min(SAMPLE_SIZE - held, len(scores))
        kept[held : held + room] = scores[:room]
        held += room
        rest = scores[room:]
        # Vitter's algorithm R: score number i takes a random place among i, if that is in the sample.
        places = rng.integers(0, np.arange(seen + room, seen + len(scores)) + 1)
        kept[places[places < SAMPLE_SIZE]] = rest[places < SAMPLE_SIZE]
        seen += len(scores)
    if not held:
        raise ValueError("the data has no rows that can be scored, so there is nothing to rank them by")
    return Reference(np.sort(kept[:held]), np.ones(held), origin)


def history_reference(model: StreamingEstimator) -> Reference | None:
    """Return the kept scores of learned rows, each from before the row was learned; None if the model keeps none."""
    history = getattr(model, "history_", None)
    if history is None or not history.now.scored:
        return None
    scores, rows = history.usual
    return Reference(scores, rows, "learned")
