"""How a process is stopped by a signal: at once, with nothing half-written left behind.

An exception, which is what Python makes of Ctrl-C, may come up anywhere: within an import it is taken for a broken module,
within a callback of a library it is swallowed, and the run goes on. So nothing is raised; the process clears up and ends.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)
CLEAR_LINE_AND_SHOW_CURSOR = b"\r\x1b[2K\x1b[?25h"

_undo_actions: list[Callable[[], object]] = []


@contextmanager
def undo_on_stop(undo: Callable[[], object]) -> Iterator[None]:
    """Let something be undone if the process is stopped meanwhile."""
    _undo_actions.append(undo)
    try:
        yield
    finally:
        _undo_actions.remove(undo)


def remove_parts_on_stop(path: Path) -> Any:
    """Let what is written beside a file, to take its name in the end, be removed if the process is stopped meanwhile."""
    final = path.resolve()
    before = set(_parts(final))

    def remove() -> None:
        for part in set(_parts(final)) - before:
            part.unlink()

    return undo_on_stop(remove)


def _parts(path: Path) -> Iterator[Path]:
    return path.parent.glob(f".{escape(path.name)}.*.part")


def install_handlers() -> None:
    """Let signals end this process, after what is half-done is undone."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup, or in the background
            signal.signal(number, _stop)


class Stop:
    """A signal that came while it was not to stop the process at once."""

    def __init__(self) -> None:
        self.number: int | None = None
        self.before: dict[int, Any] = {}

    @property
    def asked(self) -> bool:
        """Whether one came."""
        return self.number is not None

    def note(self, number: int, frame: Any) -> None:
        """Take note of a signal; the next one is heard at once."""
        self.number = number
        self.restore()

    def restore(self) -> None:
        """Let signals do what they did before."""
        for number, handler in self.before.items():
            signal.signal(number, handler)
        self.before = {}

    def now(self) -> None:
        """Let the signal that came do what it does."""
        self.restore()
        if self.number is not None:
            signal.raise_signal(self.number)


@contextmanager
def defer_stop() -> Iterator[Stop | None]:
    """Yield what tells of the first signal, which does not stop the process by itself: what was done is kept before."""
    if threading.current_thread() is not threading.main_thread():  # signals are for the main thread alone
        yield None
        return
    stop = Stop()
    for number in SIGNALS:
        handler = signal.getsignal(number)
        if handler not in (signal.SIG_IGN, None) and (number == signal.SIGINT or handler is _stop):
            stop.before[number] = handler
            signal.signal(number, stop.note)
    try:
        yield stop
    finally:
        stop.restore()


def ignore_signals() -> None:
    """Let no signal spoil the end of a command that has done all it was to do."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def clean_up() -> None:
    """Undo what is half-done, and remove copies of pipes, before the process ends without the usual end of Python."""
    for undo in reversed(_undo_actions):
        with suppress(Exception):
            undo()
    copies = sys.modules.get("headwater.io.temporary_copies")  # if nothing was read, there is nothing to remove
    if copies is not None:
        copies.remove_temporary_copies()


def _stop(number: int, frame: Any) -> None:
    ignore_signals()
    clean_up()
    with suppress(OSError):  # by its number: whoever wrote last may hold the lock of the stream
        if sys.stderr is not None and os.isatty(2):
            os.write(2, CLEAR_LINE_AND_SHOW_CURSOR)
        if number == signal.SIGINT:
            os.write(2, b"headwater: interrupted.\n")
    os._exit(128 + number)
