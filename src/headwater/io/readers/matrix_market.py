"""Sparse matrices in Matrix Market files: entries are in any order, so files are read whole, up to a limit."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from headwater.io.byte_streams import HEAD_BYTES
from headwater.io.first_bytes import read_first_bytes
from headwater.io.options import Options
from headwater.io.read_errors import StreamError, explain_read_errors
from headwater.io.readers.entries import read_entries, to_rows
from headwater.io.recipes.recipe import Recipe
from headwater.io.recipes.sparse import SparseHead, SparseRows, check_width
from headwater.io.sources import File, Meter, Pipe

RANDOM_ACCESS = False
ENTRY_LIMIT = 2**25  # entries, which are all held in memory
FIELDS_PER_ENTRY = {b"real": 3, b"integer": 3, b"pattern": 2}
BANNER = re.compile(rb"%%MatrixMarket[ \t]+matrix[ \t]+(\w+)[ \t]+(\w+)[ \t]+(\S+)[ \t\r]*\n", re.IGNORECASE)
SIZE_LINE = re.compile(rb"(?:[ \t\r]*(?:%[^\n]*)?\n)*[ \t]*(\d{1,18})[ \t]+(\d{1,18})[ \t]+(\d{1,18})[ \t\r]*(?:\n|$)")


def head(source: File | Pipe, options: Options) -> SparseHead:
    """Look at the sizes."""
    rows, width, entries, _, _ = _sizes(source)
    return SparseHead(width, row_bytes=max(16, 16 * entries // rows))


def blocks(source: File | Pipe, options: Options, recipe: Recipe, skip: int, meter: Meter) -> Iterator[SparseRows]:
    """Yield the matrix."""
    rows, width, entries, before, fields = _sizes(source)
    parts, seen = [np.empty((0, 3))], 0
    with explain_read_errors(source.name), source.open(meter) as stream:
        for found in read_entries(stream, rows, width, source.name, before, fields):
            parts.append(found)
            seen += len(found)
            if seen > entries:
                break
        if seen != entries:
            raise StreamError(
                f"{source.name} holds {'more' if seen > entries else seen} entries, where its head says {entries}"
            )
    yield to_rows(np.concatenate(parts), 0, rows, width)


def count(source: File | Pipe, options: Options) -> int | None:
    """Return the number of rows."""
    return _sizes(source)[0]


def _sizes(source: File | Pipe) -> tuple[int, int, int, int, int]:
    """Return rows, columns and entries, the bytes before the entries, and the number of fields of an entry."""
    found = read_first_bytes(source, HEAD_BYTES)
    start = BANNER.match(found)
    if start is None:
        raise StreamError(f"{source.name} is no Matrix Market file: it begins with {found[:40]!r}")
    layout, values, form = (word.lower() for word in start.groups())
    if layout != b"coordinate" or values not in FIELDS_PER_ENTRY or form != b"general":
        said = b" ".join((layout, values, form)).decode(errors="replace")
        raise StreamError(f"{source.name} holds a matrix that is {said:.60}, where 'coordinate real general' is read")
    sizes = SIZE_LINE.match(found, start.end())
    if sizes is None:
        raise StreamError(f"{source.name} does not say how many rows, columns and entries it has")
    rows, width, entries = map(int, sizes.groups())
    if rows < 1 or entries > ENTRY_LIMIT or rows > 10 * entries + 1000:
        raise StreamError(
            f"{source.name} speaks of {rows} rows and {entries} entries, too many for a format that is read whole"
        )
    return rows, check_width(width, source.name), entries, sizes.end(), FIELDS_PER_ENTRY[values]
