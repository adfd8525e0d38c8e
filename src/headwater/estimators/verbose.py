"""What `verbose` prints of a fit."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.estimators.base import StreamingEstimator

import numpy as np

from headwater.core.climb import Climb


def watch_of(model: StreamingEstimator) -> Watch | None:
    """Return what prints the passes of a fit, if the model is to."""
    return Watch(int(model.verbose), int(model.verbose_interval)) if model.verbose else None


class Watch:
    """What `verbose` prints of a fit: where each start begins, the passes at intervals and the last one, and how it ended.

    Of 2 and more it prints what each pass gained, too, and the seconds.
    """

    def __init__(self, verbose: int, interval: int) -> None:
        self._more, self._interval = verbose > 1, interval
        self._starts, self._last, self._line = 0, -np.inf, ""
        self._began, self._number = time.perf_counter(), 0

    def __call__(self, number: int, value: float) -> None:
        """Take note of a pass."""
        if number == 1:
            self._rest()
            print(f"Initialization {self._starts}")
            self._starts, self._last = self._starts + 1, -np.inf
        elif number != self._number + 1:
            self._rest()
            print(f"A start with {number - 1} passes goes on")
            self._last = -np.inf
        self._number = number
        gain = f"\t gain {value - self._last:.5f}" if self._more and np.isfinite(self._last) else ""
        self._line, self._last = f"  pass {number}\t objective {value:.5f}{gain}", value
        if number % self._interval == 0:
            self._rest()

    def end(self, end: Climb) -> None:
        """Say how it ended; of a stream that was learned in one pass, what it scored."""
        if not self._starts and end.trace:
            self(1, end.trace[-1])
        self._rest()
        seconds = f"\t time {time.perf_counter() - self._began:.2f} s" if self._more else ""
        number = f"{len(end.trace)} pass{'es' * (len(end.trace) != 1)}"
        print(f"Initialization {'converged' if end.converged else 'did not converge'} after {number}.{seconds}")

    def _rest(self) -> None:
        """Print the last pass, if it was not."""
        if self._line:
            print(self._line)
        self._line = ""
