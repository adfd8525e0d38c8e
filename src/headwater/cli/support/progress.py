"""Progress on standard error, if it is a terminal: rows, rows per second, held-out score of the last half, time left."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TypedDict

from headwater.cli.support.failures import print_message
from headwater.cli.support.options import MessageOptions

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

    from headwater.distributed.progress import Step
    from headwater.io.stream import Stream


class Watch(Protocol):
    """Called with the rows done so far, and the held-out score of the last half of them."""

    def __call__(
        self, rows: int, score: float | None = None, share: float | None = None, perplexity: float | None = None
    ) -> None: ...


def is_shown(messages: MessageOptions) -> bool:
    """Whether progress is to be shown."""
    return not messages.quiet and sys.stderr.isatty()


@contextmanager
def progress_bar(
    messages: MessageOptions, title: str, total: int | None = None, done: int = 0, unit: str = "rows"
) -> Iterator[Watch]:
    """Yield a function that shows the rows done so far."""
    if not is_shown(messages):
        yield lambda rows, score=None, share=None, perplexity=None: None
        return
    began = time.monotonic()
    with _make_bar() as shown:
        task = shown.add_task(title, total=1.0 if total is None else float(total), counted="", speed="", score="")

        def watch(rows: int, score: float | None = None, share: float | None = None, perplexity: float | None = None) -> None:
            seconds = max(time.monotonic() - began, 1e-9)
            at = rows if total is not None else (share or 0.0)
            fields: Fields = {
                "counted": f"{rows:,} {unit}",
                "speed": f"{format_rate((rows - done) / seconds)} {unit}/s",
            }
            if score is not None and math.isfinite(score):
                each = f", perplexity {perplexity:.4g}" if perplexity is not None and math.isfinite(perplexity) else ""
                fields["score"] = f"held-out score {score:.3f}{each} (last half)"
            shown.update(task, completed=at, **fields)

        yield watch


@contextmanager
def cluster_progress_bar(messages: MessageOptions, title: str) -> Iterator[Callable[[Step], None]]:
    """Yield a function that shows the steps of a cluster; until its first call, the title is shown."""
    if not is_shown(messages):
        yield lambda step: None
        return
    began: tuple[tuple[str, int], float] | None = None
    with _make_bar() as shown:
        task = shown.add_task(title, total=None, counted="", speed="", score="")

        def watch(step: Step) -> None:
            nonlocal began
            place = (step.stage, step.round)
            if began is None or began[0] != place:  # the time left is for one round
                began = (place, time.monotonic())
                shown.reset(task)
            seconds = max(time.monotonic() - began[1], 1e-9)
            round_of = f", round {step.round} of {step.rounds}" if step.rounds else ""
            fields: Fields = {"counted": f"{step.done:,} of {step.parts:,} parts, {step.rows:,} rows"}
            fields["speed"] = f"{format_rate(step.done / seconds)} parts/s" if step.done else ""
            if step.score is not None and math.isfinite(step.score):
                fields["score"] = f"score {step.score:.3f}"
            shown.update(
                task, description=f"{step.stage}{round_of}", total=float(step.parts) or None, completed=step.done, **fields
            )

        yield watch


class Fields(TypedDict, total=False):
    """What a bar shows beside itself."""

    counted: str
    speed: str
    score: str


def _make_bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns: list[ProgressColumn] = [
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
    return Progress(*columns, console=Console(stderr=True), transient=True)


def share_of_bytes_read(stream: Stream) -> float | None:
    """Return the share of the bytes of a stream that is read, if their number is known."""
    return stream.bytes_read / stream.total_bytes if stream.total_bytes else None


def print_left_out(stream: Stream) -> None:
    """Print how many rows of a stream were left out, if any were."""
    if number := stream.rows_left_out:
        print_message(left_out_sentence(number))


def left_out_sentence(number: int) -> str:
    """Return the note about rows that were left out."""
    one = number == 1
    return f"note: {number:,} {'row was' if one else 'rows were'} left out, since {'it lacks' if one else 'they lack'} a value"


def format_rate(rate: float) -> str:
    """Return a rate in a few digits."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if rate >= size:
            return f"{rate / size:.3g} {unit}"
    return f"{rate:.3g}"
