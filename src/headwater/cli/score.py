"""headwater score."""

from __future__ import annotations

import typer

from headwater.cli.support.command import add_command
from headwater.cli.support.failures import usage_error
from headwater.cli.support.options import Data, MessageOptions, ModelFile, ReadOptions, TableOptions
from headwater.cli.support.score_options import ScoreOptions

EXAMPLES = """
headwater score trades.hw new.csv | head           # row, score and cluster
# and whether it is among the oddest 1 percent:
headwater score trades.hw new.csv --rate 0.01 -o scores.parquet
headwater score trades.hw new.csv --only-odd --rate 0.001 --explain
headwater score trades.hw new.csv --probabilities --rank -o scores.jsonl
"""


def score(
    model: ModelFile,
    data: Data,
    reading: ReadOptions,
    messages: MessageOptions,
    options: ScoreOptions,
    table: TableOptions,
) -> None:
    """Score each row: how odd it is, and its cluster.

    Writes one line for each row: its number, its score (log-density; low is odd), its cluster, and what else is asked for.
    Documents and sequences are compared by their score per word or symbol, which is also written.
    """
    from headwater.cli.support.score_table import write_scores

    options.check()
    if reading.shuffle:
        raise usage_error("score keeps the order of the rows: leave out --shuffle")
    write_scores(model, data, reading, options, table, messages)


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, score, examples=EXAMPLES)
