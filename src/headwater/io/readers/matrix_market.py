"""Sparse matrices in Matrix Market files: entries come in any order, so they are read whole, if they are not too many."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from headwater.io.options import Options
from headwater.io.pieces import HEAD, Meter, peeked
from headwater.io.read_errors import StreamError, reading
from headwater.io.readers.entries import read_entries, rows_of
from headwater.io.recipes.sparse import SparseHead, SparseRows, check_width

JUMPS = False
MOST_ENTRIES = 2**25
FIELDS = {b"real": 3, b"integer": 3, b"pattern": 2}
START = re.compile(rb"%%MatrixMarket[ \t]+matrix[ \t]+(\w+)[ \t]+(\w+)[ \t]+(\S+)[ \t\r]*\n", re.IGNORECASE)
SIZES = re.compile(rb"(?:[ \t\r]*(?:%[^\n]*)?\n)*[ \t]*(\d{1,18})[ \t]+(\d{1,18})[ \t]+(\d{1,18})[ \t\r]*(?:\n|$)")


def head(piece: Any, options: Options) -> SparseHead:
    """Look at the sizes."""
    rows, width, entries, _, _ = _sizes(piece)
    return SparseHead(width, row_bytes=max(16, 16 * entries // rows))


def blocks(piece: Any, options: Options, recipe: Any, skip: int, meter: Meter) -> Iterator[SparseRows]:
    """Yield the matrix."""
    rows, width, entries, before, fields = _sizes(piece)
    parts, seen = [np.empty((0, 3))], 0
    with reading(piece.name), piece.open(meter) as stream:
        for found in read_entries(stream, rows, width, piece.name, before, fields):
            parts.append(found)
            seen += len(found)
            if seen > entries:
                break
        if seen != entries:
            raise StreamError(f"{piece.name} holds {'more' if seen > entries else seen} entries, where its head says {entries}")
    yield rows_of(np.concatenate(parts), 0, rows, width)


def count(piece: Any, options: Options) -> int | None:
    """Return the number of rows."""
    return _sizes(piece)[0]


def _sizes(piece: Any) -> tuple[int, int, int, int, int]:
    """Return rows, columns and entries, the bytes that stand before the entries, and the fields that each has."""
    found = peeked(piece, HEAD)
    start = START.match(found)
    if start is None:
        raise StreamError(f"{piece.name} is no Matrix Market file: it begins with {found[:40]!r}")
    layout, values, form = (word.lower() for word in start.groups())
    if layout != b"coordinate" or values not in FIELDS or form != b"general":
        said = b" ".join((layout, values, form)).decode(errors="replace")
        raise StreamError(f"{piece.name} holds a matrix that is {said:.60}, where 'coordinate real general' is read")
    sizes = SIZES.match(found, start.end())
    if sizes is None:
        raise StreamError(f"{piece.name} does not say how many rows, columns and entries it has")
    rows, width, entries = map(int, sizes.groups())
    if rows < 1 or entries > MOST_ENTRIES or rows > 10 * entries + 1000:
        raise StreamError(f"{piece.name} speaks of {rows} rows and {entries} entries, too many for a format that is read whole")
    return rows, check_width(width, piece.name), entries, sizes.end(), FIELDS[values]
