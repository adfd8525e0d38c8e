"""headwater predict."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from headwater.cli.support.command import add_command
from headwater.cli.support.failures import usage_error
from headwater.cli.support.options import Data, MessageOptions, ModelFile, ReadOptions, TableOptions, split_names

EXAMPLES = """
headwater predict flats.hw flats.csv --column price
headwater predict flats.hw new.csv --column price --keep id -o prices.csv
headwater predict notes.hw notes.csv --column forged --classes 0,1
headwater predict trades.hw new.csv --column country --keep id
"""

Column = Annotated[str, typer.Option("--column", help="Column to predict; its values in the data are not looked at.")]
Level = Annotated[float, typer.Option("--level", help="Probability of the interval.")]
Classes = Annotated[
    list[str],
    typer.Option("--classes", help="The few values of the column, to predict one of them.", show_default=False),
]
Keep = Annotated[list[str], typer.Option("--keep", help="Columns of the data to copy to the output.", show_default=False)]


def predict(
    model: ModelFile,
    data: Data,
    column: Column,
    reading: ReadOptions,
    messages: MessageOptions,
    table: TableOptions,
    level: Level = 0.9,
    classes: Classes = (),  # type: ignore[assignment]
    keep: Keep = (),  # type: ignore[assignment]
) -> None:
    """Predict one column of a model from the others, some of which may be missing.

    Writes for each row its number, the mean of the column given the others, and the ends of an interval that holds with
    probability --level. Of categories, flags, or with --classes, the most probable value and the probability of each.
    """
    from headwater.cli.support.gap_tables import write_predictions

    if reading.shuffle:
        raise usage_error("predict keeps the order of the rows: leave out --shuffle")
    if not 0.0 < level < 1.0:
        raise usage_error(f"--level must lie between 0 and 1, got {level:g}")
    values = split_names(classes)
    reading = reading if reading.missing is not None else replace(reading, missing="keep")
    kept = tuple(split_names(keep) or ())
    write_predictions(model, data, reading, table, messages, kept=kept, column=column, level=level, classes=values)


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, predict, examples=EXAMPLES)
