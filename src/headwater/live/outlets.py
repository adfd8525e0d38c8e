"""Which answers go to which sinks: all, those of odd events, and those of events that were refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headwater.live.events import Answer
from headwater.live.sinks.sink import Sink


@dataclass(frozen=True)
class Outlets:
    """Sinks by what they take. Refused events go with the others, unless there are sinks for them alone."""

    sinks: Sequence[Sink] = ()
    alarms: Sequence[Sink] = ()
    dead_letters: Sequence[Sink] = ()

    def begin(self, stopping: Callable[[], bool]) -> None:
        """Let all sinks know whom to ask whether to stop."""
        for sink in (*self.sinks, *self.alarms, *self.dead_letters):
            sink.stopping = stopping

    def write(self, answers: Sequence[Answer]) -> None:
        """Return when all answers are delivered."""
        refused = [answer for answer in answers if "error" in answer]
        odd = [answer for answer in answers if answer.get("odd") is True]
        usual = answers if not (refused and self.dead_letters) else [one for one in answers if "error" not in one]
        for sinks, those in ((self.sinks, usual), (self.alarms, odd), (self.dead_letters, refused)):
            for sink in sinks:
                if those:
                    sink.write(those)
                    sink.flush()

    def close(self) -> None:
        """Close all sinks."""
        for sink in (*self.sinks, *self.alarms, *self.dead_letters):
            sink.close()
