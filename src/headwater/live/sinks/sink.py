"""What a sink of answers is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from headwater.live.events import Answer


class Undelivered(Exception):
    """The process is to stop, and these answers are not delivered: the next process makes and delivers them again."""


class Sink(ABC):
    """Takes answers. When `write` returns, they are delivered, or will be after `flush`; an answer may come twice.

    A sink that waits for something that is away asks `stopping` meanwhile, and raises `Undelivered` if it is to stop.
    """

    stopping: Callable[[], bool] = staticmethod(lambda: False)

    @abstractmethod
    def write(self, answers: Sequence[Answer]) -> None:
        """Take some answers, in their order."""

    def flush(self) -> None:  # noqa: B027 - most need nothing
        """Return when all answers are delivered."""

    def close(self) -> None:  # noqa: B027 - nor here
        """Let go of files and connections."""
