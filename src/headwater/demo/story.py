"""Story: what the demo can tell, how many rows it takes, and how its picture is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

Draw = Callable[[Path], None]  # writes the picture; raises ImportError without matplotlib

Tell = Callable[[Console, int, int], Draw]


@dataclass(frozen=True)
class Story:
    """A story: `tell(console, rows, seed)` prints what happens and returns what draws the picture."""

    rows: int
    quick_rows: int
    least_rows: int
    unit: str
    tell: Tell
    tell_quick: Tell | None = None  # with --quick, if that differs by more than the rows


def print_picture(console: Console, draw: Draw, path: Path) -> None:
    """Draw the picture and print where it is; without matplotlib, print what is missing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draw(path)
    except ImportError:
        console.print("\nNo picture was drawn: that needs matplotlib (pip install 'headwater\\[plot]').")
    else:
        console.print(f"\nPicture: {path}", soft_wrap=True)
