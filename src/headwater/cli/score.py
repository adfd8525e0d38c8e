"""headwater score."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from headwater.cli.support.command import add_command
from headwater.cli.support.failures import usage_error
from headwater.cli.support.options import Data, MessageOptions, ModelFile, Output, ReadOptions, split_names

EXAMPLES = """
headwater score trades.hw new.csv | head           # row, score and cluster
# and whether it is among the oddest 1 percent:
headwater score trades.hw new.csv --rate 0.01 -o scores.parquet
headwater score trades.hw new.csv --rate 0.001 --only-odd --keep id
headwater score trades.hw new.csv --probabilities --rank -o scores.jsonl
"""

Format = Annotated[
    str | None, typer.Option("--output-format", help="csv, tsv, jsonl, parquet or arrow.", show_default="by its name")
]
Rate = Annotated[
    float | None,
    typer.Option("--rate", min=0.0, max=1.0, help="Share of usual rows that may be called odd.", show_default=False),
]
Threshold = Annotated[float | None, typer.Option("--threshold", help="Score below which a row is odd.", show_default=False)]
OnlyOdd = Annotated[bool, typer.Option("--only-odd", help="Write the odd rows alone.")]
Rank = Annotated[bool, typer.Option("--rank", help="Add the share of usual rows that are odder.")]
Probabilities = Annotated[bool, typer.Option("--probabilities", help="Add the probability of every component, or its weight.")]
Against = Annotated[
    str | None,
    typer.Option(
        "--against",
        help="What is usual: the rows that were learned, or this data, which is then read twice.",
        metavar="learned|data",
        show_default="learned, if the model kept their scores",
    ),
]
Keep = Annotated[str | None, typer.Option("--keep", help="Columns of the data to write as they are.", show_default=False)]


def score(
    model: ModelFile,
    data: Data,
    reading: ReadOptions,
    talk: MessageOptions,
    output: Output = None,
    output_format: Format = None,
    rate: Rate = None,
    threshold: Threshold = None,
    only_odd: OnlyOdd = False,
    rank: Rank = False,
    probabilities: Probabilities = False,
    against: Against = None,
    keep: Keep = None,
) -> None:
    """Say of each row how probable it is, how odd, and where it belongs.

    Writes one line for each row, chunk by chunk: its number, its score (log-density; low is odd), the cluster it belongs
    to, and what else is asked for. Documents and sequences also have their length and their score per word or symbol, by
    which --rate, --threshold and --rank go: otherwise the long ones were the odd ones.
    """
    from headwater.cli.support.score_table import ScoreOptions, write_scores

    if rate is not None and threshold is not None:
        raise usage_error("--rate and --threshold both say what is odd: give one of them")
    if threshold is not None and math.isnan(threshold):
        raise usage_error("--threshold must be a number, got nan")
    if only_odd and rate is None and threshold is None:
        raise usage_error("--only-odd needs --rate or --threshold, which say what is odd")
    if against not in (None, "learned", "data"):
        raise usage_error(f"--against must be learned or data, got {against!r}")
    if reading.shuffle:
        raise usage_error("score keeps the order of the rows: leave out --shuffle")
    asked = ScoreOptions(rate, threshold, only_odd, rank, probabilities, against, tuple(split_names(keep) or ()))
    write_scores(model, data, reading, asked, output, output_format, talk)


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, score, examples=EXAMPLES)
