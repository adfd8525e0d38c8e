"""headwater report."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.support.command import add_command
from headwater.cli.support.display import print_json
from headwater.cli.support.failures import usage_error
from headwater.cli.support.model_arguments import load_with_commands
from headwater.cli.support.options import MessageOptions, ModelFile, ReadOptions, split_names
from headwater.cli.support.output_files import check_output, write_atomically
from headwater.cli.support.progress import print_left_out

if TYPE_CHECKING:
    from headwater.estimators.base import StreamingEstimator
    from headwater.io.stream import Stream

EXAMPLES = """
headwater report trades.hw -o trades.html
headwater report trades.hw trades.parquet -o trades.html   # with odd rows
headwater report trades.hw trades.parquet --keep id        # and their ids
headwater report heat.hw heat.csv --keep day       # a chain, with dates
headwater report digits.hw --image-shape 8x8 --title Digits
"""

Page = Annotated[Path, typer.Option("--output", "-o", help="HTML file to write.")]
Rows = Annotated[
    list[str] | None, typer.Argument(help="Data in which to look for odd rows.", metavar="[DATA]", show_default=False)
]
Keep = Annotated[
    list[str], typer.Option("--keep", help="Columns of the data to show beside odd rows, such as an id.", show_default=False)
]
Title = Annotated[str | None, typer.Option("--title", help="Headline of the report.", show_default="the name of the data")]
Shape = Annotated[
    str | None, typer.Option("--image-shape", help="Rows x columns of an image, if columns are pixels.", show_default=False)
]


def report(
    model: ModelFile,
    reading: ReadOptions,
    messages: MessageOptions,
    data: Rows = None,
    output: Page = Path("report.html"),
    keep: Keep = (),  # type: ignore[assignment]
    title: Title = None,
    image_shape: Shape = None,
) -> None:
    """Write a page about a model: odd rows, components, intervals.

    The page is one HTML file that needs no network.
    """
    check_output(output)
    shape = _parse_shape(image_shape)
    if reading.shuffle:
        raise usage_error("report keeps the order of the rows: leave out --shuffle")
    learned, commands = load_with_commands(model)
    kept = tuple(split_names(keep) or ())
    if kept and not data:
        raise usage_error("--keep names columns of the data, and no data is given")
    rows = reading.with_gaps(learned).open_stream(data, like=learned, keep=kept) if data else None
    headline = title or (None if data else model.stem)
    write_report(learned, rows, output, commands, data or (), title=headline, image_shape=shape)
    if rows is not None:
        print_left_out(rows)
    if messages.json:
        left_out = 0 if rows is None else rows.rows_left_out
        print_json({"output": str(output), "bytes": output.stat().st_size, "rows_left_out": left_out})
    else:
        print(f"Report: {output}")


def _parse_shape(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d+)x(\d+)", text)
    if found is None:
        raise usage_error(f"--image-shape must be rows x columns, such as 8x8, got {text!r}")
    return int(found[1]), int(found[2])


def write_report(
    model: StreamingEstimator,
    rows: Stream | None,
    output: Path,
    commands: Sequence[str] = (),
    data: Sequence[str] = (),
    title: str | None = None,
    image_shape: tuple[int, int] | None = None,
) -> None:
    """Write the report of a model to a file."""
    import headwater

    command, source = " && ".join(commands) or None, ", ".join(data) or None
    with write_atomically(output) as place:
        page = headwater.report(model, rows, title=title or None, command=command, source=source, image_shape=image_shape)
        place.write_text(page, encoding="utf-8")


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, report, examples=EXAMPLES)
