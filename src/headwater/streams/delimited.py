"""CSV and TSV, by pyarrow's incremental reader, on one thread."""

from __future__ import annotations

import re
import time
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from headwater.streams.arrays import column_names
from headwater.streams.choosing import refuse_twice
from headwater.streams.options import Options
from headwater.streams.pieces import HEAD, Followed, Meter, peeked
from headwater.streams.sentences import NoRows, StreamError, listed, reading, told
from headwater.streams.tables import Head

JUMPS = False
DELIMITERS = (",", ";", "\t", "|", " ")
LONGEST_LINE = 2**26
PATIENCE = 0.5  # seconds
MISSING = ["", "NA", "N/A", "NaN", "nan", "-nan", "-NaN", "null", "NULL", "None", "n/a", "#N/A", "<NA>", "?"]


@dataclass(frozen=True)
class Look:
    """What the first bytes of a file tell: names of columns, lines before the first row, the delimiter, and a few rows."""

    names: list[str]
    skip: int
    delimiter: str
    block_size: int
    rows: Any  # a table whose columns have no names, or None

    def column(self, name: str) -> Any:
        """Return the first values of a column."""
        return self.rows.column(self.names.index(name)).combine_chunks()

    def types(self) -> dict[str, Any]:
        """Return the types that the first values have."""
        return {} if self.rows is None else dict(zip(self.names, self.rows.schema.types, strict=True))


def head(piece: Any, options: Options) -> Head:
    """Look at the first rows: names and types of the columns, as far as they go."""
    look = _looked(piece, options)
    if look.rows is None or not look.rows.num_rows:
        raise NoRows(f"{piece.name} has names of columns but no rows")
    return Head(tuple(look.names), look.types(), look.column, guessed=True)


def blocks(piece: Any, options: Options, recipe: Any, skip: int, meter: Meter) -> Iterator[Any]:
    """Yield record batches of the columns that are wanted."""
    from pyarrow import PythonFile, bool_, csv
    from pyarrow.types import is_boolean

    look = _looked(piece, options)
    refuse_twice(look.names, piece.name)
    wanted, types = recipe.wanted(look.names, piece.name), recipe.types()
    types |= {name: bool_() for name, kind in look.types().items() if name in types and is_boolean(kind)}
    if look.rows is None:
        return
    with reading(piece.name), piece.open(meter) as stream, _explaining(piece.name, wanted):
        followed = Followed(stream, _last_row(look))
        held = weakref.ref(followed)
        found = csv.open_csv(
            PythonFile(followed, mode="r"),
            csv.ReadOptions(use_threads=False, column_names=look.names, skip_rows=look.skip, block_size=look.block_size),
            _parsing(look.delimiter),
            csv.ConvertOptions(include_columns=wanted, column_types=types, **_conversion()),
        )
        del followed
        try:
            yield from _without_last_row(found, piece.name)
        finally:
            del found
            _let_go(held)


def _let_go(held: weakref.ref[Any]) -> None:
    """Wait until pyarrow's own threads have let go of a file of ours: they would take a process down that ends meanwhile."""
    until = time.monotonic() + PATIENCE
    while held() is not None and time.monotonic() < until:
        time.sleep(0.001)


def _last_row(look: Look) -> bytes:
    """Return a row of missing values. A file whose last quotation mark is never closed would swallow it."""
    return b"\n" + look.delimiter.join(["NA"] * len(look.names)).encode() + b"\n"


def _without_last_row(batches: Iterable[Any], name: str) -> Iterator[Any]:
    waiting = None
    for batch in batches:
        if not batch.num_rows:
            continue
        if waiting is not None:
            yield waiting
        waiting = batch
    if waiting is None or any(column[-1].is_valid for column in waiting.columns):
        raise StreamError(f"{name} has a quotation mark that is never closed")
    yield waiting.slice(0, waiting.num_rows - 1)


def count(piece: Any, options: Options) -> int | None:
    """Nobody knows before the end."""
    return None


def _looked(piece: Any, options: Options) -> Look:
    found = peeked(piece)
    while b"\n" not in found.strip() and HEAD <= len(found) < LONGEST_LINE:
        longer = peeked(piece, 2 * len(found))
        if len(longer) == len(found):
            break
        found = longer
    if b"\0" in found:
        raise StreamError(f"{piece.name} is no text: it holds binary data")
    begin, end = _first_row(found)
    with reading(piece.name), _explaining(piece.name, []):
        first = found[begin:end]
        delimiter = options.delimiter or ("\t" if options.format == "tsv" else _sniffed(first))
        cells = [str(column[0].as_py()) for column in _parsed(first, delimiter, raw=True).columns]
        headed = options.header if options.header is not None else _headed(cells, found[end:], delimiter, piece.name)
        # Lines are skipped rather than cut off, so that errors count from the first.
        skip = found.count(b"\n", 0, end) if headed else 0
        whole = found.rfind(b"\n") + 1 if len(found) >= HEAD else len(found)
        names = cells if headed else column_names(len(cells))
        some = found[end if headed else begin : whole].strip(b"\r\n")
        table = _parsed(found[:whole], delimiter, False, names, skip) if some else None
    return Look(names, skip, delimiter, _block_size(found, piece.name), table)


def _first_row(found: bytes) -> tuple[int, int]:
    """Return where the first row begins and ends, after the mark of UTF-8 and empty lines."""
    body = found.removeprefix(b"\xef\xbb\xbf")
    begin = len(found) - len(body.lstrip(b"\r\n"))
    end = found.find(b"\n", begin)
    while end >= 0 and found.count(b'"', begin, end) % 2:  # a name may go on in the next line
        end = found.find(b"\n", end + 1)
    return begin, len(found) if end < 0 else end + 1


def _sniffed(first: bytes) -> str:
    """Return the delimiter that makes most cells of the first row."""
    cells = {mark: _width(first, mark) for mark in DELIMITERS if mark.encode() in first}
    return max(cells, key=lambda mark: cells[mark], default=",")


def _width(first: bytes, delimiter: str) -> int:
    """Return how many cells a delimiter makes of a row; none, if it cuts through a name that goes on in the next line."""
    try:
        return int(_parsed(first, delimiter, raw=True).num_columns)
    except ValueError:
        return 0


def _headed(cells: list[str], rest: bytes, delimiter: str, name: str) -> bool:
    """Whether the first row holds names: none of them is a number, or some stand above one."""
    numbers = list(map(_is_number, cells))
    counted = len(cells) > 1 and cells == [str(place) for place in range(len(cells))]  # as frames without names are written
    if not counted and (all(numbers) or not any(numbers)):
        return not all(numbers)
    begin, end = _first_row(rest)
    below = [str(column[0].as_py()) for column in _parsed(rest[begin:end], delimiter, raw=True).columns] if rest.strip() else []
    if any(_is_number(value) and not number for number, value in zip(numbers, below, strict=False)):
        return True
    raise StreamError(f"{name} may have names in its first row, or not, {listed(cells, 4)}: say header=True or header=False")


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return value in MISSING and value != ""
    return True


def _parsing(delimiter: str) -> Any:
    from pyarrow import csv

    return csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)


def _conversion() -> dict[str, Any]:
    return {"null_values": MISSING, "strings_can_be_null": True}


def _parsed(found: bytes, delimiter: str, raw: bool, names: list[str] | None = None, skip: int = 0) -> Any:
    """Return the table of some rows; `raw`, as text."""
    from pyarrow import BufferReader, csv, string

    places = None if names is None else [str(place) for place in range(len(names))]  # names may come twice
    return csv.read_csv(
        BufferReader(found),
        csv.ReadOptions(
            use_threads=False,
            column_names=places,
            autogenerate_column_names=places is None,
            skip_rows=skip,
            block_size=max(len(found), HEAD),
        ),
        _parsing(delimiter),
        csv.ConvertOptions(default_column_type=string()) if raw else csv.ConvertOptions(**_conversion()),
    )


def _block_size(found: bytes, name: str) -> int:
    """Return the bytes that are parsed at a time: many rows, however wide they are."""
    line = max(map(len, found.split(b"\n")))
    if line > LONGEST_LINE:
        raise StreamError(f"{name} has a row of more than {LONGEST_LINE >> 20} MB")
    return max(HEAD, 4 * line)


@contextmanager
def _explaining(name: str, wanted: list[str]) -> Iterator[None]:
    """Put what pyarrow says of a cell or a row into our words."""
    try:
        yield
    except StreamError:
        raise
    except ValueError as error:
        raise StreamError(_explained(name, told(error), wanted)) from error


def _explained(name: str, message: str, wanted: list[str]) -> str:
    if found := re.search(r"column #(\d+): Row #(\d+): CSV conversion error to (\w+): (.*)", message):
        place, line, kind, what = found.groups()
        column = repr(wanted[int(place)]) if int(place) < len(wanted) else f"number {place}"
        value = what.removeprefix("invalid value ")
        said = f"{value}, which is no number" if kind == "double" else what
        return f"{name} has in column {column}, line {line}: {said}"
    if found := re.search(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)", message):
        line, expected, got = found.groups()
        return f"{name} has {got} values in {f'line {line}' if line else 'a line'}, where {expected} are expected"
    if "straddling" in message:
        return f"{name} has a row that is too long, or a quotation mark that is never closed"
    return f"{name} cannot be read: {message}"
