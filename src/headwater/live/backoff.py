"""Waiting between attempts: short at first, then twice as long each time."""

from __future__ import annotations

import time
from collections.abc import Callable

from headwater.live.learner import Notice

FIRST_SECONDS = 0.1
LONGEST_SECONDS = 15.0


class Backoff:
    """Attempts to reach something that may be away for a while.

    Parameters
    ----------
    name : str
        What is tried, for the journal.
    notice : callable
        Is told of each attempt that failed, and when it is reached again.
    """

    def __init__(self, name: str, notice: Notice) -> None:
        self._name, self._notice = name, notice
        self._failures, self._next = 0, 0.0

    def failed(self, error: object) -> None:
        """Note that an attempt has failed; those that fail before the next one is due are the same failure."""
        if time.monotonic() < self._next:
            return
        seconds = min(FIRST_SECONDS * 2.0**self._failures, LONGEST_SECONDS)
        self._failures += 1
        self._next = time.monotonic() + seconds
        self._notice("retry", name=self._name, reason=str(error)[:200], seconds=seconds)

    def succeeded(self) -> None:
        """Note that an attempt has succeeded."""
        if self._failures:
            self._failures, self._next = 0, 0.0
            self._notice("reached", name=self._name)

    def wait(self, seconds: float) -> bool:
        """Wait until the next attempt, but so many seconds at most; return whether it is time for it."""
        left = self._next - time.monotonic()
        if left > 0.0:
            time.sleep(min(left, seconds))
        return left <= seconds

    def wait_until(self, stopping: Callable[[], bool], seconds: float = 0.2) -> bool:
        """Wait until the next attempt; return False if it was stopped meanwhile. Looks every so many `seconds`."""
        while not stopping():
            if self.wait(seconds):
                return True
        return False
