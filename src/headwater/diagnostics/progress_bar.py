"""A progress bar in a notebook or on a terminal. Elsewhere nothing is printed."""

from __future__ import annotations

import sys
import time
from html import escape
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

SECONDS_BETWEEN = 0.2  # updates; more are not seen


class Display(Protocol):
    """Where a bar is drawn: `show` is called with the share that is done, if it is known, and a line of text."""

    def show(self, share: float | None, text: str) -> None:
        """Draw the bar."""

    def close(self) -> None:
        """Leave the last state."""


class ProgressBar:
    """Shows how far a stream was learned; a context manager. It is drawn a few times a second at most."""

    def __init__(self, title: str) -> None:
        self.title, self._display, self._last, self._began = title, find_display(), 0.0, time.monotonic()
        self._state: tuple[float | None, str] = (None, title)

    def __enter__(self) -> Self:
        return self

    def update(self, rows: int, share: float | None = None, score: float | None = None) -> None:
        """Take note of the rows learned so far, the share of the stream that they are, and the score of the last ones."""
        now = time.monotonic()
        speed = rows / max(now - self._began, 1e-9)
        parts = [f"{self.title}: {rows:,} rows", f"{speed:,.0f} rows/s", *([] if score is None else [f"score {score:.4g}"])]
        self._state = (share, ", ".join(parts))
        if self._display is not None and now - self._last >= SECONDS_BETWEEN:
            self._last = now
            self._display.show(*self._state)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._display is not None:
            share, text = self._state
            self._display.show(1.0 if kind is None else share, text + ("" if kind is None else " (stopped)"))
            self._display.close()


def find_display() -> Display | None:
    """Return where to show a bar: in a notebook or on a terminal; None elsewhere."""
    shell = sys.modules.get("IPython")
    running = None if shell is None else shell.get_ipython()
    if running is not None and hasattr(running, "kernel"):
        return NotebookDisplay()
    return TerminalDisplay() if sys.stderr.isatty() else None


class NotebookDisplay:
    """A bar of HTML beneath the cell, which is replaced as it grows."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, share: float | None, text: str) -> None:
        """Draw the bar."""
        from IPython.display import HTML, display

        value = "" if share is None else f' value="{share:.4f}"'
        page = HTML(f'<progress max="1"{value}></progress> {escape(text)}')
        if self._handle is None:
            self._handle = display(page, display_id=True)
        else:
            self._handle.update(page)

    def close(self) -> None:
        """Leave the last state."""


class TerminalDisplay:
    """A bar on standard error, which is cleared at the end."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        columns: list[ProgressColumn] = [BarColumn(bar_width=24), TextColumn("{task.description}")]
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._bar.start()
        self._task = self._bar.add_task("", total=None)

    def show(self, share: float | None, text: str) -> None:
        """Draw the bar."""
        self._bar.update(self._task, description=text, total=None if share is None else 1.0, completed=share or 0.0)

    def close(self) -> None:
        """Clear the bar."""
        self._bar.stop()
