"""Options of `score`: the answers for each row."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import typer

from headwater.cli.support.failures import usage_error
from headwater.cli.support.options import split_names


@dataclass(frozen=True)
class ScoreOptions:
    """Which answers are written for each row, and which rows are anomalous ("odd")."""

    rate: Annotated[
        float | None,
        typer.Option("--rate", min=0.0, max=1.0, help="Share of usual rows that may be called odd.", show_default=False),
    ] = None
    fdr: Annotated[
        float | None,
        typer.Option("--fdr", min=0.0, max=1.0, help="Share of the rows called odd that may be usual.", show_default=False),
    ] = None
    threshold: Annotated[
        float | None, typer.Option("--threshold", help="Score below which a row is odd.", show_default=False)
    ] = None
    only_odd: Annotated[bool, typer.Option("--only-odd", help="Write only the odd rows.")] = False
    rank: Annotated[bool, typer.Option("--rank", help="Add the share of usual rows with a lower score.")] = False
    probabilities: Annotated[bool, typer.Option("--probabilities", help="Add the probability of every component.")] = False
    explain: Annotated[bool, typer.Option("--explain", help="Add three reasons why each row is odd.")] = False
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            help="What is usual: rows that were learned, or this data.",
            metavar="learned|data",
            show_default="learned, if known",
        ),
    ] = None
    keep: Annotated[
        list[str], typer.Option("--keep", help="Columns of the data to copy to the output.", show_default=False)
    ] = ()  # type: ignore[assignment]

    def check(self) -> None:
        """Refuse options that contradict each other."""
        if self.rate is not None and self.threshold is not None:
            raise usage_error("--rate and --threshold both say what is odd: give one of them")
        if self.threshold is not None and math.isnan(self.threshold):
            raise usage_error("--threshold must be a number, got nan")
        if self.fdr is not None and (self.rate is not None or self.threshold is not None):
            raise usage_error("--fdr says what is odd, as --rate and --threshold do: give one of them")
        if self.fdr is not None and self.against == "data":
            raise usage_error("--fdr compares rows with those that were learned: leave out --against")
        if self.only_odd and self.rate is None and self.threshold is None and self.fdr is None:
            raise usage_error("--only-odd needs --rate or --threshold, or --fdr, which say what is odd")
        if self.against not in (None, "learned", "data"):
            raise usage_error(f"--against must be learned or data, got {self.against!r}")

    @property
    def kept_columns(self) -> tuple[str, ...]:
        """The names of the columns to copy."""
        return tuple(split_names(self.keep) or ())
