"""The head of a CSV or TSV file: delimiter, decimal point, names of columns and a few rows."""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.io.byte_streams import HEAD_BYTES, LINE_BYTES_LIMIT
from headwater.io.first_bytes import read_arrived_lines, read_first_lines
from headwater.io.memory_limit import refuse_too_wide
from headwater.io.options import Options
from headwater.io.read_errors import StreamError, explain_read_errors, one_line_message, quote_names
from headwater.io.readers.arrays import column_names
from headwater.io.recipes.arrow_columns import DECIMAL_COMMA
from headwater.io.sources import File, Pipe

if TYPE_CHECKING:
    import pyarrow as pa
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


DELIMITERS = (",", ";", "\t", "|", " ")
THOUSANDS = re.compile(r"\s*[-+]?\d{1,3}(,\d{3})+\s*")
BLOCK_LINES = 4  # lines, as long as the longest of the first ones, that fit into a block of pyarrow


@dataclass(frozen=True)
class Look:
    """The head of a file: names of columns, lines before the first row, the delimiter, and a few rows."""

    names: list[str]
    skip: int
    start: int  # bytes before the first row
    delimiter: str
    decimal: str
    block_size: int
    rows: pa.Table | None  # the columns have no names here, since names may be repeated

    def column(self, name: str) -> pa.Array:
        """Return the first values of a column."""
        assert self.rows is not None
        return self.rows.column(self.names.index(name)).combine_chunks()

    def types(self) -> dict[str, pa.DataType]:
        """Return the types that the first values have."""
        return {} if self.rows is None else dict(zip(self.names, self.rows.schema.types, strict=True))


# The first rows of a wide table take long to parse, so they are parsed once for each source and its options.
_known_looks: weakref.WeakKeyDictionary[File | Pipe, tuple[Options, Look]] = weakref.WeakKeyDictionary()


def look_at_first_rows(source: File | Pipe, options: Options) -> Look:
    """Look at the first rows, or at the first row alone if the options are `brief`."""
    known = _known_looks.get(source)
    if known is None or known[0] != options:
        found = (
            _look_at_pipe(source, options)
            if options.brief
            else _describe_first_rows(source, options, read_first_lines(source, HEAD_BYTES, lines=2))
        )
        assert found is not None
        known = _known_looks[source] = options, found
    return known[1]


def _look_at_pipe(source: File | Pipe, options: Options) -> Look | None:
    """Look at the first row, and at the second only if that is needed to know whether the first holds names."""
    lines = 1
    while True:
        found = read_arrived_lines(source, lines)
        ended = found.lstrip().count(b"\n") < lines
        one = _find_first_row(found)[1]
        two = one + _find_first_row(found[one:])[1]
        if ended or (found[one - 1 : one] == b"\n" and found[one:two].strip() and found[two - 1 : two] == b"\n"):
            return _describe_first_rows(source, options, found[:two])
        if (
            found[one - 1 : one] == b"\n"
            and (look := _describe_first_rows(source, options, found[:one], alone=True)) is not None
        ):
            return look
        lines += 1


def _describe_first_rows(source: File | Pipe, options: Options, found: bytes, alone: bool = False) -> Look | None:
    """Describe some whole lines. With `alone`, there is one row; None means that a second one is needed."""
    if b"\0" in found:
        raise StreamError(f"{source.name} is no text: it holds binary data")
    begin, end = _find_first_row(found)
    with explain_read_errors(source.name), explain_csv_errors(source.name, []):
        first, second = found[begin:end], found[end:][slice(*_find_first_row(found[end:]))]
        delimiter = options.delimiter or ("\t" if options.format == "tsv" else _guess_delimiter(first, second, options.decimal))
        refuse_too_wide(first.count(delimiter.encode()) + 1, source.name)
        cells = _cells(first, delimiter)
        commas = delimiter != "," and options.decimal != "."
        if alone and options.header is None and not all(_is_number(cell, commas) for cell in cells):
            return None
        headed = (
            options.header if options.header is not None else _has_header(cells, found[end:], delimiter, commas, source.name)
        )
        if alone and headed:
            return None
        # Lines are skipped rather than cut off, so that errors count from the first.
        skip = found.count(b"\n", 0, end) if headed else 0
        names = cells if headed else column_names(len(cells))
        some = found[end if headed else begin :].strip(b"\r\n")
        decimal = options.decimal or "."
        table = _parse(found, delimiter, False, names, skip, decimal) if some else None
        if table is not None and options.decimal is None and commas and _has_decimal_commas(table, names, source.name):
            decimal = ","
            table = _parse(found, delimiter, False, names, skip, decimal)
    return Look(names, skip, end if headed else begin, delimiter, decimal, _block_size(found, source.name), table)


def _find_first_row(found: bytes) -> tuple[int, int]:
    """Return where the first row begins and ends, after the mark of UTF-8 and empty lines."""
    body = found.removeprefix(b"\xef\xbb\xbf")
    begin = len(found) - len(body.lstrip(b"\r\n"))
    end = found.find(b"\n", begin)
    while end >= 0 and found.count(b'"', begin, end) % 2:  # a name may go on in the next line
        end = found.find(b"\n", end + 1)
    return begin, len(found) if end < 0 else end + 1


def _guess_delimiter(first: bytes, second: bytes, decimal: str | None) -> str:
    """Return the delimiter that makes most cells of the first row, of those that make as many of the second if there are any.

    A comma may be a decimal point instead, and names of columns may hold spaces.
    """
    marks = [mark for mark in DELIMITERS if mark.encode() in first and mark != decimal]
    cells = {mark: _count_cells(first, mark) for mark in marks}
    if decimal is None and b"," in first:
        for mark in (mark for mark in marks if mark not in ", " and cells[mark] > 1):
            if all(_is_number(cell, commas=True) for cell in _cells(first, mark)):
                return mark
    alike = [mark for mark in marks if second.strip() and 1 < cells[mark] == _count_cells(second, mark)]
    alone = decimal == "," and (b"," not in first or DECIMAL_COMMA.fullmatch(first.decode().strip()))  # there is one column
    usual = ";" if alone else ","
    return max([mark for mark in alike if mark != " "] or alike or marks, key=lambda mark: cells[mark], default=usual)


def _has_decimal_commas(table: pa.Table, names: list[str], name: str) -> bool:
    """Whether a column holds numbers with a comma for a decimal point, in the first rows. An ambiguous file is refused."""
    from pyarrow.types import is_string

    for place, column in enumerate(table.columns):
        if not is_string(column.type):
            continue
        found = column.drop_null().to_pylist()
        if found and all(DECIMAL_COMMA.fullmatch(one) or THOUSANDS.fullmatch(one) or _is_number(one) for one in found):
            if all(THOUSANDS.fullmatch(one) or _is_number(one) for one in found):
                shown = next(one for one in found if THOUSANDS.fullmatch(one))
                raise StreamError(
                    f"{name} has {shown!r} in column {names[place]!r}, whose comma may be a decimal point, or not: decimal=',' "
                    f"says that it is, decimal='.' that it is not"
                )
            return True
    return False


def _count_cells(first: bytes, delimiter: str) -> int:
    """Return how many cells a delimiter makes of a row; none, if it cuts through a name that goes on in the next line."""
    try:
        return len(_cells(first, delimiter))
    except ValueError:
        return 0


def _cells(first: bytes, delimiter: str) -> list[str]:
    """Return the values of one row as text. Without quotation marks that is quick, and takes no memory for each column."""
    if b'"' not in first:
        return first.decode().rstrip("\r\n").split(delimiter)
    return [str(column[0].as_py()) for column in _parse(first, delimiter, raw=True).columns]


def _has_header(cells: list[str], rest: bytes, delimiter: str, commas: bool, name: str) -> bool:
    """Whether the first row holds names: none of them is a number, or some stand above one."""
    numbers = [_is_number(cell, commas) for cell in cells]
    counted = len(cells) > 1 and cells == [str(place) for place in range(len(cells))]  # as pandas writes frames without names
    if not counted and (all(numbers) or not any(numbers)):
        return not all(numbers)
    begin, end = _find_first_row(rest)
    below = _cells(rest[begin:end], delimiter) if rest.strip() else []
    if any(_is_number(value, commas) and not number for number, value in zip(numbers, below, strict=False)):
        return True
    raise StreamError(
        f"{name} may have names in its first row, or not, {quote_names(cells, 4)}: say header=True or header=False"
    )


def _is_number(value: str, commas: bool = False) -> bool:
    """Whether a value is a number, or stands for a missing one; `commas`, also with a comma for a decimal point."""
    try:
        float(value)
    except ValueError:
        return (value in MISSING_WORDS and value != "") or (commas and DECIMAL_COMMA.fullmatch(value) is not None)
    return True


def _parse(
    found: bytes, delimiter: str, raw: bool, names: list[str] | None = None, skip: int = 0, decimal: str = "."
) -> pa.Table:
    """Return the table of some rows; `raw`, of one row, as text."""
    from pyarrow import BufferReader, csv, string

    places = None if names is None else [str(place) for place in range(len(names))]  # names may be repeated
    # pyarrow calls columns without names f0, f1, ...; before 25.0 it cannot be told one type for all. Types of columns that
    # are not there do no harm: a delimiter between quotation marks ends no cell.
    texts = {f"f{place}": string() for place in range(found.count(delimiter.encode()) + 1)} if raw else {}
    return csv.read_csv(
        BufferReader(found),
        csv.ReadOptions(
            use_threads=False,
            column_names=places,
            autogenerate_column_names=places is None,
            skip_rows=skip,
            block_size=max(len(found), HEAD_BYTES),
        ),
        parse_options(delimiter),
        csv.ConvertOptions(column_types=texts) if raw else csv.ConvertOptions(**convert_options(decimal)),
    )


def _block_size(found: bytes, name: str) -> int:
    """Return the bytes that are parsed at a time: many rows, however wide they are."""
    line = max(map(len, found.split(b"\n")))
    if line > LINE_BYTES_LIMIT:
        raise StreamError(f"{name} has a line of more than {LINE_BYTES_LIMIT >> 20} MB")
    return max(HEAD_BYTES, BLOCK_LINES * line)
