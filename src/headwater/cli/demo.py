"""headwater demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from headwater.cli.support.command import add_command
from headwater.cli.support.display import print_json
from headwater.cli.support.options import MessageOptions, Seed

EXAMPLES = """
headwater demo            # learn a million rows and show the progress
headwater demo odd-rows   # find faulty readings; also: topics, regimes
headwater demo --quick    # fewer rows
headwater demo --file     # path of the data file that comes with headwater
headwater fit gaussian "$(headwater demo --file)" --exclude digit -k 10
"""

Stories = Literal["mixture", "odd-rows", "topics", "regimes"]
Story = Annotated[Stories, typer.Argument(metavar="[STORY]", help="mixture, odd-rows, topics or regimes.")]
File = Annotated[bool, typer.Option("--file", help="Print the path of the data file that comes with headwater, and stop.")]
Rows = Annotated[int | None, typer.Option("--rows", min=1, help="Rows, texts or days to learn.", show_default="by the demo")]
Picture = Annotated[
    Path | None, typer.Option("--picture", help="Picture to write.", show_default="headwater-demo.png, or by the demo")
]
Quick = Annotated[bool, typer.Option("--quick", help="Fewer rows; one process, memory not measured.")]


def demo(
    messages: MessageOptions,
    story: Story = "mixture",
    file: File = False,
    rows: Rows = None,
    picture: Picture = None,
    quick: Quick = False,
    seed: Seed = 0,
) -> None:
    """Run one of four demos, each less than a minute long.

    Each ends with a picture.

    mixture: a million rows, beside the truth and scikit-learn. odd-rows: faulty readings of a pump, with the reason. topics:
    texts that keep coming, with new words. regimes: calm and volatile weeks of a market.
    """
    if file:
        from headwater import datasets

        found = datasets.path("digits")
        if messages.json:
            print_json({"file": str(found), "licence": datasets.licence("digits")})
        else:
            print(found)
        return
    from headwater.demo import main

    arguments = [story, "--seed", str(seed), *(["--quick"] if quick else [])]
    arguments += [] if picture is None else ["--picture", str(picture)]
    raise typer.Exit(main([*arguments, *([] if rows is None else ["--rows", str(rows)])]))


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, demo, examples=EXAMPLES)
