"""CSV and TSV, by pyarrow: files by its incremental reader on one thread, pipes by whole rows as they come."""

from __future__ import annotations

import re
import time
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from headwater.io.memory_limit import refuse_too_wide
from headwater.io.options import Options
from headwater.io.pieces import HEAD, LONGEST_LINE, Followed, Meter, Pipe, first_lines, glanced
from headwater.io.read_errors import NoRows, StreamError, listed, reading, told
from headwater.io.readers.arrays import column_names
from headwater.io.recipes.column_choice import refuse_twice
from headwater.io.recipes.tables import Head

JUMPS = False
DELIMITERS = (",", ";", "\t", "|", " ")
PATIENCE = 0.5  # seconds
MISSING = ["", "NA", "N/A", "NaN", "nan", "-nan", "-NaN", "null", "NULL", "None", "n/a", "#N/A", "<NA>", "?"]
# What was looked at is not looked at again: of wide tables that takes long.
_looks: weakref.WeakKeyDictionary[Any, tuple[Options, Look]] = weakref.WeakKeyDictionary()
DECIMAL_COMMA = re.compile(r"\s*[-+]?\d*,\d+([eE][-+]?\d+)?\s*")
THOUSANDS = re.compile(r"\s*[-+]?\d{1,3}(,\d{3})+\s*")


@dataclass(frozen=True)
class Look:
    """What the first bytes of a file tell: names of columns, lines before the first row, the delimiter, and a few rows."""

    names: list[str]
    skip: int
    start: int  # bytes before the first row
    delimiter: str
    decimal: str
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
    look = _look(piece, options)
    if look.rows is None or not look.rows.num_rows:
        raise NoRows(f"{piece.name} has names of columns but no rows")
    return Head(tuple(look.names), look.types(), look.column, guessed=True)


def blocks(piece: Any, options: Options, recipe: Any, skip: int, meter: Meter) -> Iterator[Any]:
    """Yield record batches of the columns that are wanted."""
    if isinstance(piece, Pipe):
        yield from _arriving(piece, options, recipe, meter)
        return
    from pyarrow import PythonFile, csv

    look = _look(piece, options)
    wanted = _wanted(look, recipe, piece.name)
    if look.rows is None:
        return
    with reading(piece.name), piece.open(meter) as stream, _explaining(piece.name, wanted):
        followed = Followed(stream, _last_row(look))
        held = weakref.ref(followed)
        found = csv.open_csv(
            PythonFile(followed, mode="r"),
            csv.ReadOptions(use_threads=False, column_names=look.names, skip_rows=look.skip, block_size=look.block_size),
            _parsing(look.delimiter),
            csv.ConvertOptions(include_columns=wanted, column_types=_types(look, recipe), **_conversion(look.decimal)),
        )
        del followed
        try:
            yield from _without_last_row(found, piece.name)
        finally:
            del found
            _let_go(held)


def _look(piece: Any, options: Options) -> Look:
    """Look at the first rows, or at the first one alone if no more are to be waited for."""
    known = _looks.get(piece)
    if known is None or known[0] != options:
        found = _glance(piece, options) if options.brief else _looked(piece, options, first_lines(piece, HEAD, lines=2))
        known = _looks[piece] = options, found
    return known[1]


def _wanted(look: Look, recipe: Any, name: str) -> list[str]:
    refuse_twice(look.names, name)
    found: list[str] = recipe.wanted(look.names, name)
    return found


def _types(look: Look, recipe: Any) -> dict[str, Any]:
    """Return the types to read columns by: those of the recipe, and of true and false where the first rows have such."""
    from pyarrow import bool_
    from pyarrow.types import is_boolean

    types: dict[str, Any] = recipe.types()
    return types | {name: bool_() for name, kind in look.types().items() if name in types and is_boolean(kind)}


def _arriving(piece: Pipe, options: Options, recipe: Any, meter: Meter) -> Iterator[Any]:
    """Yield the rows of a pipe as they come: pyarrow's own reader would wait for the block after the next."""
    look = _look(piece, options)
    wanted, before = _wanted(look, recipe, piece.name), 0
    with reading(piece.name), piece.open(meter) as stream:
        for number, found in enumerate(_whole_rows(stream, look.delimiter, piece.name)):
            body = found[look.start :] if number == 0 else found
            lines = before + (found.count(b"\n", 0, look.start) if number == 0 else 0)
            before += found.count(b"\n")
            if body.strip(b"\r\n"):
                with _explaining(piece.name, wanted, lines):
                    table = _converted(body, look, wanted, _types(look, recipe))
                yield from table.to_batches()


def _glance(piece: Pipe, options: Options) -> Look:
    """Look at the first row, and at the one after it if it takes that to know whether the first holds names."""
    lines = 1
    while True:
        found = glanced(piece, lines)
        ended = found.lstrip().count(b"\n") < lines
        one = _first_row(found)[1]
        two = one + _first_row(found[one:])[1]
        if ended or (found[one - 1 : one] == b"\n" and found[one:two].strip() and found[two - 1 : two] == b"\n"):
            return _looked(piece, options, found[:two])
        if found[one - 1 : one] == b"\n" and (look := _looked(piece, options, found[:one], alone=True)) is not None:
            return look
        lines += 1


def _whole_rows(stream: Any, delimiter: str, name: str) -> Iterator[bytes]:
    """Yield the bytes of a stream in blocks that end where a row does; a value in quotation marks may hold line breaks."""
    quoted = re.compile(rb'(?:\A|(?<=[\n\r%b]))"(?:[^"]|"")*+("|\Z)' % re.escape(delimiter.encode()))
    rest = b""
    while part := stream.read(HEAD):
        rest += part
        end = len(rest)
        if b'"' in rest:
            end = next((one.start() for one in quoted.finditer(rest) if not one[1]), end)
        end = rest.rfind(b"\n", 0, end) + 1
        if end:
            yield rest[:end]
            rest = rest[end:]
        elif len(rest) > LONGEST_LINE:
            raise StreamError(
                f"{name} has a row of more than {LONGEST_LINE >> 20} MB, or a quotation mark that is never closed"
            )
    if any(not one[1] for one in quoted.finditer(rest)):
        raise StreamError(f"{name} has a quotation mark that is never closed")
    if rest:
        yield rest


def _converted(body: bytes, look: Look, wanted: list[str], types: dict[str, Any]) -> Any:
    """Return the table of some rows. Columns of true and false may begin with missing values, so that no glance tells."""
    from pyarrow import BufferReader, bool_, csv
    from pyarrow.types import is_boolean

    def parsed(types: dict[str, Any]) -> Any:
        return csv.read_csv(
            BufferReader(body),
            csv.ReadOptions(use_threads=False, column_names=look.names, block_size=max(len(body), HEAD)),
            _parsing(look.delimiter),
            csv.ConvertOptions(include_columns=wanted, column_types=types, **_conversion(look.decimal)),
        )

    try:
        return parsed(types)
    except ValueError:
        found = {name: bool_() for name, kind in zip(wanted, parsed({}).schema.types, strict=True) if is_boolean(kind)}
        if not found:
            raise
        return parsed(types | {name: kind for name, kind in found.items() if name in types})


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


def _looked(piece: Any, options: Options, found: bytes, alone: bool = False) -> Any:
    """Return what some whole lines tell; `alone`, None if it takes a second row."""
    if b"\0" in found:
        raise StreamError(f"{piece.name} is no text: it holds binary data")
    begin, end = _first_row(found)
    with reading(piece.name), _explaining(piece.name, []):
        first = found[begin:end]
        delimiter = options.delimiter or ("\t" if options.format == "tsv" else _sniffed(first, options.decimal))
        refuse_too_wide(first.count(delimiter.encode()) + 1, piece.name)
        cells = _cells(first, delimiter)
        commas = delimiter != "," and options.decimal != "."
        if alone and options.header is None and not all(_is_number(cell, commas) for cell in cells):
            return None
        headed = options.header if options.header is not None else _headed(cells, found[end:], delimiter, commas, piece.name)
        if alone and headed:
            return None
        # Lines are skipped rather than cut off, so that errors count from the first.
        skip = found.count(b"\n", 0, end) if headed else 0
        names = cells if headed else column_names(len(cells))
        some = found[end if headed else begin :].strip(b"\r\n")
        decimal = options.decimal or "."
        table = _parsed(found, delimiter, False, names, skip, decimal) if some else None
        if table is not None and options.decimal is None and commas and _has_decimal_commas(table, names, piece.name):
            decimal = ","
            table = _parsed(found, delimiter, False, names, skip, decimal)
    return Look(names, skip, end if headed else begin, delimiter, decimal, _block_size(found, piece.name), table)


def _first_row(found: bytes) -> tuple[int, int]:
    """Return where the first row begins and ends, after the mark of UTF-8 and empty lines."""
    body = found.removeprefix(b"\xef\xbb\xbf")
    begin = len(found) - len(body.lstrip(b"\r\n"))
    end = found.find(b"\n", begin)
    while end >= 0 and found.count(b'"', begin, end) % 2:  # a name may go on in the next line
        end = found.find(b"\n", end + 1)
    return begin, len(found) if end < 0 else end + 1


def _sniffed(first: bytes, decimal: str | None) -> str:
    """Return the delimiter that makes most cells of the first row; a comma may be a decimal point instead."""
    marks = [mark for mark in DELIMITERS if mark.encode() in first and mark != decimal]
    cells = {mark: _width(first, mark) for mark in marks}
    if decimal is None and b"," in first:
        for mark in (mark for mark in marks if mark not in ", " and cells[mark] > 1):
            if all(_is_number(cell, commas=True) for cell in _cells(first, mark)):
                return mark
    return max(cells, key=lambda mark: cells[mark], default=",")


def _has_decimal_commas(table: Any, names: list[str], name: str) -> bool:
    """Whether a column holds numbers with a comma for a decimal point, in the first rows; not sure is refused."""
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


def _width(first: bytes, delimiter: str) -> int:
    """Return how many cells a delimiter makes of a row; none, if it cuts through a name that goes on in the next line."""
    try:
        return len(_cells(first, delimiter))
    except ValueError:
        return 0


def _cells(first: bytes, delimiter: str) -> list[str]:
    """Return the values of one row as text. Without quotation marks that is quick, and takes no memory for each column."""
    if b'"' not in first:
        return first.decode().rstrip("\r\n").split(delimiter)
    return [str(column[0].as_py()) for column in _parsed(first, delimiter, raw=True).columns]


def _headed(cells: list[str], rest: bytes, delimiter: str, commas: bool, name: str) -> bool:
    """Whether the first row holds names: none of them is a number, or some stand above one."""
    numbers = [_is_number(cell, commas) for cell in cells]
    counted = len(cells) > 1 and cells == [str(place) for place in range(len(cells))]  # as frames without names are written
    if not counted and (all(numbers) or not any(numbers)):
        return not all(numbers)
    begin, end = _first_row(rest)
    below = _cells(rest[begin:end], delimiter) if rest.strip() else []
    if any(_is_number(value, commas) and not number for number, value in zip(numbers, below, strict=False)):
        return True
    raise StreamError(f"{name} may have names in its first row, or not, {listed(cells, 4)}: say header=True or header=False")


def _is_number(value: str, commas: bool = False) -> bool:
    """Whether a value is a number, or stands for a missing one; `commas`, also with a comma for a decimal point."""
    try:
        float(value)
    except ValueError:
        return (value in MISSING and value != "") or (commas and DECIMAL_COMMA.fullmatch(value) is not None)
    return True


def _parsing(delimiter: str) -> Any:
    from pyarrow import csv

    return csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)


def _conversion(decimal: str) -> dict[str, Any]:
    return {"null_values": MISSING, "strings_can_be_null": True, "decimal_point": decimal}


def _parsed(found: bytes, delimiter: str, raw: bool, names: list[str] | None = None, skip: int = 0, decimal: str = ".") -> Any:
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
        csv.ConvertOptions(default_column_type=string()) if raw else csv.ConvertOptions(**_conversion(decimal)),
    )


def _block_size(found: bytes, name: str) -> int:
    """Return the bytes that are parsed at a time: many rows, however wide they are."""
    line = max(map(len, found.split(b"\n")))
    if line > LONGEST_LINE:
        raise StreamError(f"{name} has a line of more than {LONGEST_LINE >> 20} MB")
    return max(HEAD, 4 * line)


@contextmanager
def _explaining(name: str, wanted: list[str], before: int = 0) -> Iterator[None]:
    """Put what pyarrow says of a cell or a row into our words; so many lines were read before."""
    try:
        yield
    except StreamError:
        raise
    except ValueError as error:
        raise StreamError(_explained(name, told(error), wanted, before)) from error


def _explained(name: str, message: str, wanted: list[str], before: int) -> str:
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
        return f"{name} has {got} values in {where}, where {expected} are expected"
    if "straddling" in message:
        return f"{name} has a row that is too long, or a quotation mark that is never closed"
    return f"{name} cannot be read: {message}"
