"""headwater label."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater.cli.support.command import add_command
from headwater.cli.support.failures import usage_error
from headwater.cli.support.options import Data, MessageOptions, ModelFile, Output, ReadOptions

EXAMPLES = """
# look at the oddest rows, say which are odd, and look again:
headwater score trades.hw new.csv --rate 0.01 --only-odd --keep id
headwater label trades.hw looked_at.csv --column odd
headwater label trades.hw looked_at.csv --column verdict -o marked.hw
"""

Column = Annotated[
    str,
    typer.Option("--column", help="Column that says 1 or 0, yes or no, odd or usual; or nothing."),
]


def label(
    model: ModelFile, data: Data, column: Column, reading: ReadOptions, messages: MessageOptions, output: Output = None
) -> None:
    """Mark rows as odd or usual: scores of rows like them move.

    Nothing is learned or forgotten. The model file is replaced, unless --output names another one.
    """
    from headwater.cli.support.marked_rows import write_marked

    if reading.shuffle:
        raise usage_error("label keeps the order of the rows: leave out --shuffle")
    write_marked(model, data, column, reading, messages, output)


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, label, examples=EXAMPLES)
