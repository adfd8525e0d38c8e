"""Events from standard input: CSV with a header, or JSON lines."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Sequence

from headwater.live.events import Event
from headwater.live.sources.source import Source
from headwater.live.text_events import LINE_BYTES, LineReader

READ_BYTES = 2**16


class StandardInput(Source):
    """Hands over lines as they come. What was read cannot be read again."""

    name = "stdin"
    replays = False

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor, self._rest, self._ended = descriptor, b"", False
        self._lines = LineReader("standard input")

    def fetch(self, seconds: float) -> Sequence[Event] | None:
        if self._ended:
            return None
        if sys.platform != "win32" and not select.select([self._descriptor], [], [], seconds)[0]:
            return ()
        found = os.read(self._descriptor, READ_BYTES)
        self._ended = not found
        *lines, self._rest = (self._rest + found).split(b"\n")
        if self._ended and self._rest:
            lines.append(self._rest)
        elif len(self._rest) > LINE_BYTES:  # it is refused, and so is what follows until the line ends
            lines.append(self._rest)
            self._rest = b""
        if lines and not self._lines.begun and self._lines.begin(lines[0]):
            lines = lines[1:]
        return self._lines.events(lines, [None] * len(lines))
