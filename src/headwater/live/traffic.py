"""What passed through a live model lately: rates, scores, odd events and latencies, in bounded memory."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headwater.live.events import Answer

if TYPE_CHECKING:
    from headwater.live.scorer import Scorer

SECONDS_KEPT = 600  # of rates
ODD_KEPT = 50  # odd events that the page shows
REFUSED_KEPT = 20
SCORE_BINS = 24
LATENCY_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)  # seconds


class Traffic:
    """Counts of answers. One thread records, any may read.

    Parameters
    ----------
    scorer : Scorer
        The model at the beginning: bins of scores span its usual ones.
    """

    def __init__(self, scorer: Scorer) -> None:
        usual = scorer.usual
        low, high = (float(usual[0]), float(usual[-1])) if len(usual) else (-50.0, 10.0)
        margin = 0.25 * max(high - low, 1.0)
        self.score_bounds: NDArray[np.float64] = np.linspace(low - margin, high + 0.1 * margin, SCORE_BINS - 1)
        self.score_counts = np.zeros(SCORE_BINS, dtype=np.int64)  # those beyond both ends, too
        self.score_total = 0.0
        self.latency_counts = np.zeros(len(LATENCY_BOUNDS) + 1, dtype=np.int64)
        self.latency_total = 0.0
        self.odd: deque[Answer] = deque(maxlen=ODD_KEPT)
        self.refused: deque[Answer] = deque(maxlen=REFUSED_KEPT)
        self.n_odd = 0  # odd events so far, so that a reader knows which of those kept are new
        self._seconds: deque[list[int]] = deque(maxlen=SECONDS_KEPT)  # second, events, odd events
        self._lock = threading.Lock()

    def record(self, answers: Sequence[Answer], seconds: float) -> None:
        """Count answers that were made together in so many seconds."""
        odd = [one for one in answers if one.get("odd") is True]
        refused = [one for one in answers if "error" in one]
        scores = np.array([score for one in answers if isinstance(score := one.get("score"), float)], dtype=np.float64)
        now = int(time.time())
        with self._lock:
            self.score_counts += np.bincount(np.searchsorted(self.score_bounds, scores), minlength=SCORE_BINS)
            self.score_total += float(scores.sum())
            self.latency_counts[np.searchsorted(LATENCY_BOUNDS, seconds)] += 1
            self.latency_total += seconds
            self.odd.extend(odd)
            self.n_odd += len(odd)
            self.refused.extend(refused)
            if not self._seconds or self._seconds[-1][0] != now:
                self._seconds.append([now, 0, 0])
            self._seconds[-1][1] += len(answers)
            self._seconds[-1][2] += len(odd)

    def odd_after(self, number: int) -> tuple[int, list[Answer]]:
        """Return how many odd events there were, and the latest of those after so many."""
        with self._lock:
            new = min(self.n_odd - number, len(self.odd))
            return self.n_odd, list(self.odd)[len(self.odd) - new :] if new > 0 else []

    def rates(self, seconds: int) -> list[tuple[int, int]]:
        """Return events and odd events of each of the last whole seconds, the latest last."""
        with self._lock:
            known = {second: (events, odd) for second, events, odd in self._seconds}
        now = int(time.time())
        return [known.get(second, (0, 0)) for second in range(now - seconds, now)]
