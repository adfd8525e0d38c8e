"""What a sink of answers is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from headwater.live.events import Answer


class Sink(ABC):
    """Takes answers. When `write` returns, they are delivered, or will be after `flush`; an answer may come twice."""

    @abstractmethod
    def write(self, answers: Sequence[Answer]) -> None:
        """Take some answers, in their order."""

    def flush(self) -> None:  # noqa: B027 - most need nothing
        """Return when all answers are delivered."""

    def close(self) -> None:  # noqa: B027 - nor here
        """Let go of files and connections."""
