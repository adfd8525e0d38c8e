"""Entries of a sparse matrix, one a line: row, column and value, counted from 1."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from headwater.io.byte_streams import ByteStream
from headwater.io.read_errors import StreamError
from headwater.io.readers.lines import whole_lines
from headwater.io.recipes.sparse import SparseRows

GAPS = re.compile(rb"[ \t\r]+")


def read_entries(
    stream: ByteStream, rows: int, width: int, name: str, before: int, fields: int = 3
) -> Iterator[NDArray[np.float64]]:
    """Yield entries as rows of a matrix, after the bytes that stand before the first. A pattern has no values: all are 1."""
    from pyarrow import BufferReader, csv, float64

    names = ["row", "column", "value"][:fields]
    for number, part in enumerate(whole_lines(stream, name)):
        body = GAPS.sub(b" ", part[before:] if number == 0 else part).replace(b" \n", b"\n").replace(b"\n ", b"\n").strip(b" ")
        if not body.strip():
            continue
        if b"\0" in body:
            raise StreamError(f"{name} is no text: it holds binary data")
        table = csv.read_csv(
            BufferReader(body),
            csv.ReadOptions(use_threads=False, column_names=names, block_size=len(body) + 1),
            csv.ParseOptions(delimiter=" ", quote_char=False),
            csv.ConvertOptions(column_types=dict.fromkeys(names, float64()), null_values=[]),
        )
        found = np.ones((table.num_rows, 3))
        for place, column in enumerate(table.columns):
            found[:, place] = column.to_numpy()
        _check(found, rows, width, name)
        yield found


def to_rows(entries: NDArray[np.float64], begin: int, end: int, width: int) -> SparseRows:
    """Return the rows from one number to another, counted from 0, of which these are the entries."""
    part = entries[(entries[:, 0] > begin) & (entries[:, 0] <= end)]
    places = part[:, 0].astype(np.int64) - 1 - begin, part[:, 1].astype(np.int64) - 1
    return SparseRows(csr_array((part[:, 2], places), shape=(end - begin, width)))


def _check(found: NDArray[np.float64], rows: int, width: int, name: str) -> None:
    for place, (what, most) in enumerate((("row", rows), ("column", width))):
        numbers = found[:, place]
        wrong = ~((numbers >= 1) & (numbers <= most) & (numbers == np.round(numbers)))
        if wrong.any():
            raise StreamError(f"{name} has an entry in {what} {numbers[np.argmax(wrong)]:g}, where there are 1 to {most}")
