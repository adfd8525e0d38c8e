"""Options for pyarrow's parser of CSV and TSV, and its errors in plain words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from headwater.io.read_errors import StreamError, one_line_message
from headwater.io.recipes.arrow_columns import DECIMAL_COMMA

if TYPE_CHECKING:
    from pyarrow.csv import ParseOptions

MISSING_WORDS = ["", "NA", "N/A", "NaN", "nan", "-nan", "-NaN", "null", "NULL", "None", "n/a", "#N/A", "<NA>", "?"]


def parse_options(delimiter: str) -> ParseOptions:
    """Return how rows are cut into values."""
    from pyarrow import csv

    return csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)


def convert_options(decimal: str) -> dict[str, object]:
    """Return how values become numbers, as arguments of `ConvertOptions`."""
    return {"null_values": MISSING_WORDS, "strings_can_be_null": True, "decimal_point": decimal}


@contextmanager
def explain_csv_errors(name: str, wanted: list[str], before: int = 0) -> Iterator[None]:
    """Rewrite pyarrow's errors about a cell or a row; `before` is the number of lines before the data."""
    try:
        yield
    except StreamError:
        raise
    except ValueError as error:
        raise StreamError(_explanation(name, one_line_message(error), wanted, before)) from error


def _explanation(name: str, message: str, wanted: list[str], before: int) -> str:
    if found := re.search(r"column #(\d+): Row #(\d+): CSV conversion error to (\w+): (.*)", message):
        place, line, kind, what = found.groups()
        column = repr(wanted[int(place)]) if int(place) < len(wanted) else f"number {place}"
        value = what.removeprefix("invalid value ")
        said = f"{value}, which is no number" if kind == "double" else what
        comma = DECIMAL_COMMA.fullmatch(value.strip("'"))
        hint = "; decimal=',' reads a comma as the decimal point" if kind == "double" and comma else ""
        return f"{name} has in column {column}, line {before + int(line)}: {said}{hint}"
    if found := re.search(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)", message):
        line, expected, got = found.groups()
        where = f"line {before + int(line)}" if line else "a line"
        one = expected == "1" and got == "2"
        hint = "; decimal=',' reads a comma as the decimal point" if one else ""
        return f"{name} has {got} values in {where}, where {'one is' if expected == '1' else f'{expected} are'} expected{hint}"
    if "straddling" in message:
        return f"{name} has a row that is too long, or a quotation mark that is never closed"
    return f"{name} cannot be read: {message}"
