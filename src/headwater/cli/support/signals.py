"""How a signal stops the process: at once, without leaving half-written files.

Python turns Ctrl-C into an exception that may be raised anywhere: inside an import it looks like a broken module, inside a
callback of a library it is swallowed and the run continues. So the handlers here raise nothing: they clean up and exit.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from glob import escape
from pathlib import Path
from types import FrameType
from typing import TypeAlias

SIGNALS = (signal.SIGINT, signal.SIGTERM)
CLEAR_LINE_AND_SHOW_CURSOR = b"\r\x1b[2K\x1b[?25h"

_undo_actions: list[Callable[[], object]] = []


@contextmanager
def undo_on_stop(undo: Callable[[], object]) -> Iterator[None]:
    """Call `undo` if the process is stopped meanwhile."""
    _undo_actions.append(undo)
    try:
        yield
    finally:
        _undo_actions.remove(undo)


def remove_parts_on_stop(path: Path) -> AbstractContextManager[None]:
    """Remove unfinished temporary files of a path if the process is stopped meanwhile."""
    final = path.resolve()
    before = set(_parts(final))

    def remove() -> None:
        for part in set(_parts(final)) - before:
            part.unlink()

    return undo_on_stop(remove)


def _parts(path: Path) -> Iterator[Path]:
    return path.parent.glob(f".{escape(path.name)}.*.part")


def install_handlers() -> None:
    """Let signals clean up and end this process."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup, or in the background
            signal.signal(number, _stop)


Handler: TypeAlias = (
    Callable[[int, FrameType | None], object] | int | None
)  # what a signal does; None if it was set outside Python


class Stop:
    """A deferred signal: it is recorded first and takes effect later."""

    def __init__(self) -> None:
        self.number: int | None = None
        self.before: dict[int, Handler] = {}

    @property
    def requested(self) -> bool:
        """Whether a signal has come."""
        return self.number is not None

    def note(self, number: int, frame: object) -> None:
        """Record a signal; a second one takes effect at once."""
        self.number = number
        self.restore()

    def restore(self) -> None:
        """Restore the handlers that were there before."""
        for number, handler in self.before.items():
            signal.signal(number, handler)
        self.before = {}

    def now(self) -> None:
        """Let the recorded signal take effect."""
        self.restore()
        if self.number is not None:
            signal.raise_signal(self.number)


@contextmanager
def defer_stop() -> Iterator[Stop | None]:
    """Yield a record of the first signal, which does not stop the process by itself, so that the caller can save its work."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread may handle signals
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
    """Ignore signals from now on: the command has finished its work."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def clean_up() -> None:
    """Undo unfinished work and remove copies of pipes: needed before `os._exit`, which skips the cleanup of Python."""
    for undo in reversed(_undo_actions):
        with suppress(Exception):
            undo()
    copies = sys.modules.get("headwater.io.temporary_copies")  # if nothing was read, there is nothing to remove
    if copies is not None:
        copies.remove_temporary_copies()


def _stop(number: int, frame: object) -> None:
    ignore_signals()
    clean_up()
    with suppress(OSError):  # by number: another thread may hold the lock of the stream
        if sys.stderr is not None and os.isatty(2):
            os.write(2, CLEAR_LINE_AND_SHOW_CURSOR)
        if number == signal.SIGINT:
            os.write(2, b"headwater: interrupted.\n")
    os._exit(128 + number)
