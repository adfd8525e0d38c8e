"""Options that several commands share, as records: how data is read, where a table goes, what a command prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, Unpack

import typer

from headwater.cli.support.failures import usage_error
from headwater.cli.support.model_arguments import parse_assignments

if TYPE_CHECKING:
    from headwater.estimators.base import StreamingEstimator
    from headwater.io.stream import Stream

# Options that the schema of a fitted model fixes.
SCHEMA_OPTIONS = (
    "columns",
    "exclude",
    "target",
    "weight",
    "label",
    "key",
    "standard_errors",
    "categories",
    "dates",
    "vocabulary",
)


class OptionRules(TypedDict, total=False):
    """What else an option of the command line may say of its value."""

    metavar: str
    min: float
    max: float


def option(*flags: str, text: str, panel: str, **rules: Unpack[OptionRules]) -> object:
    """Return an option in a panel of the help."""
    return typer.Option(*flags, help=text, rich_help_panel=panel, show_default=False, **rules)


def _read_option(flag: str, text: str, **rules: Unpack[OptionRules]) -> object:
    return option(flag, text=text, panel="Reading data", **rules)


def _message_option(*flags: str, text: str) -> object:
    return option(*flags, text=text, panel="Messages")


@dataclass(frozen=True)
class MessageOptions:
    """What a command prints beside its result."""

    json: Annotated[bool, _message_option("--json", text="Print JSON, and nothing else, to standard output.")] = False
    quiet: Annotated[bool, _message_option("--quiet", "-q", text="Show no progress.")] = False
    debug: Annotated[bool, _message_option("--debug", text="Show the traceback of an error.")] = False


@dataclass(frozen=True)
class TableOptions:
    """Where a table is written, and in which format."""

    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write.", show_default=False)] = None
    output_format: Annotated[
        str | None,
        typer.Option("--output-format", help="csv, tsv, jsonl, parquet or arrow.", show_default="by the ending of its name"),
    ] = None


@dataclass(frozen=True)
class ReadOptions:
    """How data is read: the options of `headwater.stream`."""

    format: Annotated[str | None, _read_option("--format", "Format of the data, if its name does not tell.")] = None
    columns: Annotated[list[str], _read_option("--columns", "Columns to use: names, separated by commas.")] = ()  # type: ignore[assignment]
    exclude: Annotated[list[str], _read_option("--exclude", "Columns to leave out.")] = ()  # type: ignore[assignment]
    target: Annotated[str | None, _read_option("--target", "Column to predict, for regressions.")] = None
    weight: Annotated[str | None, _read_option("--weight", "Column with the weight of a row.")] = None
    label: Annotated[str | None, _read_option("--label", "Column with the component of a row; -1 if not known.")] = None
    key: Annotated[str | None, _read_option("--key", "Column that says which sequence a row belongs to.")] = None
    standard_errors: Annotated[
        list[str], _read_option("--standard-errors", "Columns with the standard errors of the columns, in order; - for none.")
    ] = ()  # type: ignore[assignment]
    text: Annotated[str | None, _read_option("--text", "Column of text, whose words are counted.")] = None
    categories: Annotated[str | None, _read_option("--categories", "Columns of words: refuse, one-hot, drop or keep.")] = None
    missing: Annotated[str | None, _read_option("--missing", "Missing values: refuse, drop, keep, blank or zero.")] = None
    dates: Annotated[str | None, _read_option("--dates", "Dates and times: refuse, or parts of them as numbers.")] = None
    vocabulary: Annotated[str | None, _read_option("--vocabulary", "Words of texts: first, open, or a number to hash to.")] = (
        None
    )
    chunk_rows: Annotated[int | None, _read_option("--chunk-rows", "Rows to read at a time.", min=1)] = None
    shuffle: Annotated[int | None, _read_option("--shuffle", "Shuffle in a buffer of this many rows.", min=0)] = None
    read: Annotated[list[str], _read_option("--read", "Any other option of headwater.stream.", metavar="NAME=VALUE")] = ()  # type: ignore[assignment]

    def arguments(self) -> dict[str, object]:
        """Return the options that were given, as arguments of `headwater.stream`."""
        given = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "read"}
        for name in ("columns", "exclude", "standard_errors"):
            given[name] = split_names(given[name])
        if given["vocabulary"] is not None and given["vocabulary"].isdecimal():
            given["vocabulary"] = int(given["vocabulary"])
        given = {name: value for name, value in given.items() if value is not None}
        return {**given, **parse_assignments(self.read, "--read")}

    def with_gaps(self, model: StreamingEstimator, otherwise: str | None = None) -> ReadOptions:
        """Return the options with missing values passed on to a model that takes them, unless something else was asked for.

        For other models, `otherwise` is the policy for rows with a missing value.
        """
        known = (getattr(model, "schema_", None) or {}).get("missing", "refuse")
        if self.missing is not None or known != "refuse" or any(one.startswith("missing=") for one in self.read):
            return self
        policy = "keep" if model._takes_gaps or model._traits.takes_tables else otherwise
        return self if policy is None else replace(self, missing=policy)

    def open_stream(
        self,
        sources: Sequence[str],
        *,
        seed: int = 0,
        like: object = None,
        learns: bool = False,
        keep: Sequence[str] = (),
        tables: bool = False,
    ) -> Stream:
        """Open the data, in the shape of the model `like` if there is one; `learns` lets an open vocabulary grow.

        For a model of `tables`, columns are passed on as they are.
        """
        import headwater
        from headwater.io.read_errors import StreamError
        from headwater.io.source_lookup import FileNames

        arguments = self.stream_arguments(seed=seed, like=like, learns=learns, tables=tables)
        if keep:
            arguments.setdefault("keep", keep)
        try:
            return headwater.stream(sources[0] if len(sources) == 1 else FileNames(sources), **arguments)
        except (StreamError, OSError):
            raise
        except (ValueError, TypeError) as error:
            raise usage_error(str(error)) from None

    def stream_arguments(
        self, *, seed: int = 0, like: object = None, learns: bool = False, tables: bool = False
    ) -> dict[str, Any]:
        """Return all arguments of `headwater.stream` but the data, for this process or for workers."""
        import headwater

        arguments = self.arguments()
        if like is not None and getattr(like, "schema_", None) is not None:
            for name in SCHEMA_OPTIONS:
                if name in arguments:
                    raise usage_error(f"the model knows what it was learned from: leave out --{name.replace('_', '-')}")
            arguments["like"] = like
            if not learns:
                arguments["vocabulary"] = "known"
        elif like is not None and hasattr(like, "feature_names_in_"):
            arguments.setdefault("columns", list(like.feature_names_in_))
        if tables and "like" not in arguments:
            arguments.setdefault("categories", "keep")
        known = list(signature(headwater.stream).parameters)[1:]
        for name in arguments:
            if name not in known:
                raise usage_error(f"--read takes what headwater.stream does, which has no {name!r}; it has {', '.join(known)}")
        if "shuffle" in arguments:
            arguments.setdefault("seed", seed)
        return arguments


Data = Annotated[
    list[str],
    typer.Argument(help="Files, directories, globs or addresses; - is standard input.", metavar="DATA", show_default=False),
]
ModelFile = Annotated[Path, typer.Argument(help="A model file.", metavar="MODEL.hw", show_default=False)]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="File to write.", show_default=False)]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of all random draws.")]


def split_names(names: str | Sequence[str] | None) -> list[str] | None:
    """Return names that are separated by commas, or given one by one, as a list; None if none were given."""
    if names is None or names in ([], ()):
        return None
    parts = [names] if isinstance(names, str) else names
    return [name.strip() for part in parts for name in part.split(",") if name.strip()]
