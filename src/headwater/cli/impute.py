"""headwater impute."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from headwater.cli.support.command import add_command
from headwater.cli.support.failures import usage_error
from headwater.cli.support.options import Data, MessageOptions, ModelFile, ReadOptions, Seed, TableOptions, split_names

EXAMPLES = """
headwater impute trades.hw data.csv -o full.csv
headwater impute trades.hw data.csv --method sample --seed 1 -o drawn.csv
headwater impute trades.hw data.csv --keep id | head
"""

Method = Annotated[
    str, typer.Option("--method", help="What gaps are filled with: mean, mode (most probable values) or sample (a draw).")
]
Keep = Annotated[list[str], typer.Option("--keep", help="Other columns to copy to the output.", show_default="all of them")]


def impute(
    model: ModelFile,
    data: Data,
    reading: ReadOptions,
    messages: MessageOptions,
    table: TableOptions,
    method: Method = "mean",
    keep: Keep = (),  # type: ignore[assignment]
    seed: Seed = 0,
) -> None:
    """Fill the missing values of rows, given their other values.

    Writes the rows in their order, with the columns of the data in theirs. Values that are there are not changed. The number
    of values that were filled is printed.
    """
    from headwater.cli.support.gap_tables import write_imputed

    if reading.shuffle:
        raise usage_error("impute keeps the order of the rows: leave out --shuffle")
    if method not in ("mean", "mode", "sample"):
        raise usage_error(f"--method must be mean, mode or sample, got {method!r}")
    reading = reading if reading.missing is not None else replace(reading, missing="keep")
    kept = split_names(keep)
    write_imputed(model, data, reading, table, messages, kept=None if kept is None else tuple(kept), method=method, seed=seed)


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, impute, examples=EXAMPLES)
