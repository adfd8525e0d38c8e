"""What commands print: tables for people, JSON for programs."""

from __future__ import annotations

import io
import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

FILE_WIDTH = 10_000  # characters: a table in a file is never wrapped
NUMBER_PATTERN = re.compile(r"-?[\d.,]*(e[-+]?\d+)?|nan|-?inf")


def to_json_value(value: object) -> object:
    """Return a value in the types of JSON; numbers that are not finite become null."""
    if isinstance(value, Mapping):
        return {str(name): to_json_value(one) for name, one in value.items()}
    if isinstance(value, str) or value is None or isinstance(value, bool):
        return value
    if isinstance(value, complex):
        return [to_json_value(value.real), to_json_value(value.imag)]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, int):
        return value
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):
        return to_json_value(value.tolist())
    if isinstance(value, (Sequence, set, frozenset)):
        return [to_json_value(one) for one in value]
    return str(value)


def print_json(value: object) -> None:
    """Print a value as JSON to standard output."""
    sys.stdout.write(json.dumps(to_json_value(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def replace_control_characters(text: str) -> str:
    """Return text without control characters: column names come from files, and a terminal would obey them."""
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)


def escape_markup(text: str) -> str:
    """Return text for rich, without control characters and with markup escaped."""
    from rich.markup import escape

    return escape(replace_control_characters(text))


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table to standard output; columns of numbers are aligned to the right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title=escape_markup(title) if title else None, title_justify="left", box=box.SIMPLE_HEAD, title_style="")
    for place, column in enumerate(columns):
        left = place == 0 or not all(NUMBER_PATTERN.fullmatch(row[place]) for row in rows)
        table.add_column(escape_markup(column), justify="left" if left else "right")
    for row in rows:
        table.add_row(*(escape_markup(cell) for cell in row))
    console = Console(file=sys.stdout, highlight=False)
    if console.is_terminal:
        console.print(table)
        return
    # In a file, lines may be of any length, and trailing spaces are removed.
    text = io.StringIO()
    console = Console(file=text, highlight=False, width=FILE_WIDTH)
    console.width = console.measure(table).maximum
    console.print(table)
    sys.stdout.write("".join(line.rstrip() + "\n" for line in text.getvalue().splitlines()))
