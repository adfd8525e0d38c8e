"""What a source of events is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from headwater.live.events import Answer, Event

MOST_EVENTS = 1024  # that a source hands over at a time: they are scored by the same model


class Source(ABC):
    """Hands over events, in batches. A thread of its own calls `fetch`; the others are called by the engine's thread.

    `name` is by which positions are saved. A source that `replays` can be read again from any position; of others, events are
    logged before they are answered.
    """

    name: str
    replays: bool = True
    waits: bool = True  # for the model to learn the events before; if not, for long queues alone
    owner: str = ""  # what reads it, such as a folder of snapshots: names what a broker keeps for it

    def seek(self, places: Mapping[str, object]) -> None:  # noqa: B027 - what cannot be read again goes nowhere
        """Go to where the events of an earlier process ended; called once, before the first `fetch`."""

    @abstractmethod
    def fetch(self, seconds: float) -> Sequence[Event] | None:
        """Return the next events, waiting for so many seconds at most; empty if there are none yet, None at the end."""

    def answered(self, events: Sequence[Event], answers: Sequence[Answer]) -> None:  # noqa: B027 - most need not know
        """Take note that events were answered, and will not be lost."""

    def failed(self, events: Sequence[Event], error: OSError) -> None:
        """Take note that events could not be taken, such as on a full disk: the end, unless someone waits for an answer."""
        raise error

    def lag(self) -> float | None:
        """How many events, or bytes, wait to be read; None if that is not known."""
        return None

    def close(self) -> None:  # noqa: B027 - some have nothing open
        """Let go of files and connections."""
