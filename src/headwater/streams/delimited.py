"""CSV and TSV, by pyarrow's incremental reader, on one thread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headwater.streams.choosing import refuse_twice
from headwater.streams.options import Options
from headwater.streams.pieces import HEAD, Meter, peeked
from headwater.streams.sentences import StreamError, reading, told
from headwater.streams.tables import Head

JUMPS = False
DELIMITERS = (",", ";", "\t", "|", " ")
LONGEST_LINE = 2**26
MISSING = ["", "NA", "N/A", "NaN", "nan", "-nan", "-NaN", "null", "NULL", "None", "n/a", "#N/A", "<NA>", "?"]


def head(piece: Any, options: Options) -> Head:
    """Look at the first rows: names and types of the columns, as far as they go."""
    found, names, headed, delimiter = _looked(piece, options)
    with reading(piece.name):
        table = _parsed(found, names, headed, delimiter)
    if not table.num_rows:
        raise StreamError(f"{piece.name} has names of columns but no rows")

    def sample(name: str) -> Any:
        return table.column(names.index(name)).combine_chunks()

    return Head(tuple(names), {name: table.schema.field(i).type for i, name in enumerate(names)}, sample)


def blocks(piece: Any, options: Options, recipe: Any, skip: int, meter: Meter) -> Iterator[Any]:
    """Yield record batches of the columns that are wanted."""
    from pyarrow import bool_, csv
    from pyarrow.types import is_boolean

    found, names, headed, delimiter = _looked(piece, options)
    refuse_twice(names, piece.name)
    wanted, types = recipe.wanted(names, piece.name), recipe.types()
    with reading(piece.name):
        first = _parsed(found, names, headed, delimiter)
    types |= {name: bool_() for i, name in enumerate(names) if name in types and is_boolean(first.schema.field(i).type)}
    with reading(piece.name), piece.open(meter) as stream:
        try:
            yield from csv.open_csv(
                stream,
                csv.ReadOptions(
                    use_threads=False, column_names=names, skip_rows=int(headed), block_size=_block_size(found, piece.name)
                ),
                _parsing(delimiter),
                csv.ConvertOptions(include_columns=wanted, column_types=types, **_conversion()),
            )
        except ValueError as error:
            raise StreamError(_explained(piece.name, told(error), wanted)) from error


def count(piece: Any, options: Options) -> int | None:
    """Nobody knows before the end."""
    return None


def _looked(piece: Any, options: Options) -> tuple[bytes, list[str], bool, str]:
    """Return the first bytes, the names of the columns, whether the first row holds them, and the delimiter."""
    found = peeked(piece)
    while b"\n" not in found.strip() and HEAD <= len(found) < LONGEST_LINE:
        longer = peeked(piece, 2 * len(found))
        if len(longer) == len(found):
            break
        found = longer
    with reading(piece.name):
        first = _first_row(found)
        delimiter = options.delimiter or ("\t" if options.format == "tsv" else _sniffed(first, found))
        cells = _parsed(first, None, False, delimiter)
        values = [str(column[0].as_py()) for column in cells.columns]
    headed = options.header if options.header is not None else not all(map(_is_number, values))
    return found, values if headed else [f"c{index}" for index in range(len(values))], headed, delimiter


def _first_row(found: bytes) -> bytes:
    """Return the lines up to the end of the first row."""
    body = found.lstrip(b"\xef\xbb\xbf").lstrip(b"\r\n")
    end = body.find(b"\n")
    while end >= 0 and body[:end].count(b'"') % 2:  # a name may go on in the next line
        end = body.find(b"\n", end + 1)
    return body if end < 0 else body[: end + 1]


def _sniffed(first: bytes, found: bytes) -> str:
    """Return the delimiter that makes most cells of the first row."""
    cells = {mark: _parsed(first, None, False, mark).num_columns for mark in DELIMITERS if mark.encode() in first}
    return max(cells, key=lambda mark: cells[mark], default=",")


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


def _parsed(found: bytes, names: list[str] | None, headed: bool, delimiter: str) -> Any:
    """Return the table of whole rows among some bytes, its columns named by their places."""
    from pyarrow import BufferReader, csv, string

    raw = names is None
    if not raw and len(found) >= HEAD:  # the last row may be cut
        found = found[: found.rfind(b"\n") + 1]
    return csv.read_csv(
        BufferReader(found),
        csv.ReadOptions(
            use_threads=False, autogenerate_column_names=True, skip_rows=int(headed), block_size=max(len(found), HEAD)
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


def _explained(name: str, message: str, wanted: list[str]) -> str:
    """Put what pyarrow says of a cell or a row into our words."""
    import re

    if found := re.search(r"column #(\d+): Row #(\d+): CSV conversion error to (\w+): (.*)", message):
        place, line, kind, what = found.groups()
        column = wanted[int(place)] if int(place) < len(wanted) else place
        value = what.removeprefix("invalid value ")
        said = f"{value}, which is no number" if kind == "double" else what
        return f"{name} has in column {column!r}, line {line}: {said}"
    if found := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", message):
        line, expected, got = found.groups()
        return f"{name} has {got} values in line {line}, where {expected} are expected"
    if "straddling" in message:
        return f"{name} has a row that is too long, or a quotation mark that is never closed"
    return f"{name} cannot be read: {message}"
