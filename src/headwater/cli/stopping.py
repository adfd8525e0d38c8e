"""How a process is stopped by a signal: at once, with nothing half-written left behind.

An exception, which is what Python makes of Ctrl-C, may come up anywhere: within an import it is taken for a broken module,
within a callback of a library it is swallowed, and the run goes on. So nothing is raised; the process clears up and ends.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)
CLEAR_LINE_AND_SHOW_CURSOR = b"\r\x1b[2K\x1b[?25h"

_to_undo: list[Callable[[], object]] = []


@contextmanager
def undone_when_stopped(undo: Callable[[], object]) -> Iterator[None]:
    """Let something be undone if the process is stopped meanwhile."""
    _to_undo.append(undo)
    try:
        yield
    finally:
        _to_undo.remove(undo)


def parts_removed(path: Path) -> Any:
    """Let what is written beside a file, to take its name in the end, be removed if the process is stopped meanwhile."""
    final = path.resolve()
    before = set(_parts(final))

    def remove() -> None:
        for part in set(_parts(final)) - before:
            part.unlink()

    return undone_when_stopped(remove)


def _parts(path: Path) -> Iterator[Path]:
    return path.parent.glob(f".{escape(path.name)}.*.part")


def stop_at_once() -> None:
    """Let signals end this process, after what is half-done is undone."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup, or in the background
            signal.signal(number, _stop)


def _stop(number: int, frame: Any) -> None:
    for one in SIGNALS:
        signal.signal(one, signal.SIG_IGN)
    for undo in reversed(_to_undo):
        with suppress(Exception):
            undo()
    with suppress(OSError):  # by its number: whoever wrote last may hold the lock of the stream
        if sys.stderr is not None and os.isatty(2):
            os.write(2, CLEAR_LINE_AND_SHOW_CURSOR)
        if number == signal.SIGINT:
            os.write(2, b"headwater: interrupted.\n")
    os._exit(128 + number)
