"""headwater demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headwater.cli.support.command import add_command
from headwater.cli.support.display import print_json
from headwater.cli.support.options import MessageOptions, Seed

EXAMPLES = """
headwater demo            # learn a million rows and show the progress
headwater demo --quick    # the same with fewer rows
headwater demo --file     # path of the data file that comes with headwater
headwater fit gaussian "$(headwater demo --file)" --exclude digit -k 10
"""

File = Annotated[bool, typer.Option("--file", help="Print the path of the data file that comes with headwater, and stop.")]
Rows = Annotated[int | None, typer.Option("--rows", min=1, help="Rows of the stream.", show_default="1000000; quick: 20000")]
Picture = Annotated[Path, typer.Option("--picture", help="Picture to write.")]
Quick = Annotated[bool, typer.Option("--quick", help="Fewer rows, one process, memory not measured.")]


def demo(
    messages: MessageOptions,
    file: File = False,
    rows: Rows = None,
    picture: Picture = Path("headwater-demo.png"),
    quick: Quick = False,
    seed: Seed = 0,
) -> None:
    """Learn a stream of rows and show the progress; then compare with the truth and with scikit-learn."""
    if file:
        from headwater import datasets

        found = datasets.path("digits")
        if messages.json:
            print_json({"file": str(found), "licence": datasets.licence("digits")})
        else:
            print(found)
        return
    from headwater.demo import main

    arguments = ["--picture", str(picture), "--seed", str(seed), *(["--quick"] if quick else [])]
    raise typer.Exit(main([*arguments, *([] if rows is None else ["--rows", str(rows)])]))


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, demo, examples=EXAMPLES)
