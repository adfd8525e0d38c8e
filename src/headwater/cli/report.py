"""headwater report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headwater.cli.command import command
from headwater.cli.display import print_json
from headwater.cli.models import load
from headwater.cli.options import ModelFile, Reading, Talk
from headwater.cli.writing import atomically, check_output

EXAMPLES = """
headwater report trades.hw -o trades.html                   # what was learned, and how it went
headwater report trades.hw trades.parquet -o trades.html    # and which rows are odd
"""

Page = Annotated[Path, typer.Option("--output", "-o", help="Where to write the page.")]
Rows = Annotated[
    list[str] | None, typer.Argument(help="Data to look for odd rows in.", metavar="[DATA]...", show_default=False)
]


def report(model: ModelFile, reading: Reading, talk: Talk, data: Rows = None, output: Page = Path("report.html")) -> None:
    """Write a page about a model: what was learned, how it went, how sure it is, what is odd.

    It is one file, and needs no network.
    """
    check_output(output)
    learned = load(model)
    write_report(learned, reading.stream(data, like=learned) if data else None, output)
    if talk.json:
        print_json({"output": str(output), "bytes": output.stat().st_size})
    else:
        print(f"Report: {output}")


def write_report(model: object, rows: object, output: Path) -> None:
    """Write the page of a model, in one piece."""
    import headwater

    with atomically(output) as place:
        headwater.report(model, rows, path=place)


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    command(app, report, examples=EXAMPLES)
