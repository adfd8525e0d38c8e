"""The demo: one of four stories, each told in less than a minute, with a picture at the end.

Run it with ``python -m headwater.demo``, or ``python -m headwater.demo odd-rows``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from headwater.demo import mixture, odd_rows, regimes, topics
from headwater.demo.story import Story, print_picture

STORIES: dict[str, Story] = {
    "mixture": mixture.STORY, "odd-rows": odd_rows.STORY, "topics": topics.STORY, "regimes": regimes.STORY
}  # fmt: skip


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(prog="python -m headwater.demo", description="Tell a story about a stream, with a picture.")
    made.add_argument(
        "story", nargs="?", choices=list(STORIES), default="mixture", metavar="STORY",
        help=f"one of {', '.join(STORIES)} (default: mixture)",
    )  # fmt: skip
    made.add_argument("--rows", type=int, default=None, help="rows, texts or days of the story")
    made.add_argument("--picture", type=Path, default=None, help="picture to write (default: headwater-demo.png)")
    made.add_argument("--seed", type=int, default=0, help="seed of the truth and of the rows (default: 0)")
    made.add_argument("--quick", action="store_true", help="fewer rows; one process, memory not measured")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; those of the command line by default.

    Returns
    -------
    code : int
        0.
    """
    options = make_parser().parse_args(argv)
    story = STORIES[options.story]
    rows = options.rows if options.rows is not None else story.quick_rows if options.quick else story.rows
    if rows < story.least_rows:
        make_parser().error(f"--rows must be at least {story.least_rows}, got {rows}")
    console = Console(highlight=False)
    tell = story.tell_quick if options.quick and story.tell_quick is not None else story.tell
    draw = tell(console, rows, options.seed)
    print_picture(console, draw, options.picture or default_picture(options.story))
    return 0


def default_picture(story: str) -> Path:
    """Return the picture that a story writes if none is named."""
    return Path("headwater-demo.png" if story == "mixture" else f"headwater-{story}.png")
