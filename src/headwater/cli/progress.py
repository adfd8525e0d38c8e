"""Progress on standard error: rows, rows per second, the held-out score of the last half, time left; for terminals alone."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from headwater.cli.options import Talk


class Watch(Protocol):
    """Takes note of the rows done so far, and of how well those of the last half were foretold."""

    def __call__(self, rows: int, score: float | None = None, share: float | None = None) -> None: ...


def wanted(talk: Talk) -> bool:
    """Whether anybody looks."""
    return not talk.quiet and sys.stderr.isatty()


@contextmanager
def progress(talk: Talk, title: str, total: int | None = None, done: int = 0, unit: str = "rows") -> Iterator[Watch]:
    """Yield a function that shows how far things are."""
    if not wanted(talk):
        yield lambda rows, score=None, share=None: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns: list[Any] = [
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[counted]}"),
        TextColumn("{task.fields[speed]}"),
        TextColumn("{task.fields[score]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    ]
    began = time.monotonic()
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(title, total=1.0 if total is None else float(total), counted="", speed="", score="")

        def watch(rows: int, score: float | None = None, share: float | None = None) -> None:
            seconds = max(time.monotonic() - began, 1e-9)
            at = rows if total is not None else (share or 0.0)
            fields: dict[str, Any] = {"counted": f"{rows:,} {unit}", "speed": f"{per_second((rows - done) / seconds)} {unit}/s"}
            if score is not None and math.isfinite(score):
                fields["score"] = f"held-out score {score:.3f} (last half)"
            shown.update(task, completed=at, **fields)

        yield watch


def share_read(stream: Any) -> float | None:
    """Return how much of the bytes of a stream is read, if it is known how many there are."""
    return stream.bytes_read / stream.total_bytes if stream.total_bytes else None


def per_second(rate: float) -> str:
    """Return a rate in a few digits."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if rate >= size:
            return f"{rate / size:.3g} {unit}"
    return f"{rate:.3g}"
