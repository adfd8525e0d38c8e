"""headwater groups."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater.cli.support.command import add_command
from headwater.cli.support.failures import usage_error
from headwater.cli.support.options import Data, MessageOptions, ModelFile, ReadOptions, TableOptions

EXAMPLES = """
headwater groups trades.hw new.csv --by customer
headwater groups trades.hw new.csv --by host --window 100 -o hosts.csv
headwater groups trades.hw new.csv --window 500
"""

By = Annotated[str | None, typer.Option("--by", help="Column with the group of each row.", show_default=False)]
Window = Annotated[
    int | None, typer.Option("--window", help="Rows of a group to judge together.", show_default="all of them", min=1)
]


def groups(
    model: ModelFile,
    data: Data,
    reading: ReadOptions,
    messages: MessageOptions,
    table: TableOptions,
    by: By = None,
    window: Window = None,
) -> None:
    """Judge groups of rows, such as customers, or windows of rows.

    Writes one line for each group, the oddest first: its p-value among the learned rows, among the rows of the same group
    before its window, and among the rows of the other groups.
    """
    from headwater.cli.support.group_table import write_groups

    if by is None and window is None:
        raise usage_error("groups needs a column of groups or windows of rows: give --by COLUMN, --window ROWS, or both")
    if reading.shuffle:
        raise usage_error("groups keeps the order of the rows: leave out --shuffle")
    write_groups(model, data, by, window, reading, table, messages)


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, groups, examples=EXAMPLES)
