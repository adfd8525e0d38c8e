"""svmlight files (libsvm's format), parsed by scikit-learn in blocks of whole lines."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from headwater.streams.lines import SAMPLE, whole_lines
from headwater.streams.options import Options
from headwater.streams.pieces import Meter, peeked
from headwater.streams.sentences import StreamError, reading
from headwater.streams.sparse import SparseHead, SparseRows, check_width, row_bytes

BESIDE = ("label", "qid")
JUMPS = False


def head(piece: Any, options: Options) -> SparseHead:
    """Find the number of columns: in the whole file, if it can be read again and nobody has said it."""
    found = peeked(piece, SAMPLE)
    sample = _parsed(found if len(found) < SAMPLE else found[: found.rfind(b"\n") + 1], piece.name)
    if not sample.num_rows:
        raise StreamError(f"{piece.name} has no rows")
    width = options.width
    if width is None:
        last = _last(sample)
        if not piece.once and len(found) == SAMPLE:
            with reading(piece.name), piece.open() as stream:
                last = max(_last(_parsed(part, piece.name)) for part in whole_lines(stream, piece.name))
        width = last + (1 if _zero_based(sample) else 0)
    return SparseHead(check_width(width, piece.name), None, BESIDE, row_bytes(sample.rows))


def blocks(piece: Any, options: Options, recipe: Any, skip: int, meter: Meter) -> Iterator[SparseRows]:
    """Yield sparse rows with their label and the number of their query."""
    zero_based: bool | None = None
    with reading(piece.name), piece.open(meter) as stream:
        for part in whole_lines(stream, piece.name):
            found = _parsed(part, piece.name)
            if zero_based is None:
                zero_based = _zero_based(found)
            yield _shifted(found, recipe.width, zero_based, piece.name)


def count(piece: Any, options: Options) -> int | None:
    """Nobody knows before the end."""
    return None


def _parsed(part: bytes, name: str) -> SparseRows:
    """Return the rows of some lines, their columns by the numbers that the file has."""
    from sklearn.datasets import load_svmlight_file

    with reading(name):
        if b"\0" in part:
            raise StreamError(f"{name} is no svmlight file: it holds binary data")
        rows, labels, queries = load_svmlight_file(BytesIO(part), zero_based=True, query_id=True)
    beside = {"label": labels}
    if len(queries) == len(labels):
        beside["qid"] = queries.astype(np.float64)
    return SparseRows(rows, beside)


def _last(found: SparseRows) -> int:
    return int(found.rows.indices.max()) if found.rows.nnz else 0


def _zero_based(found: SparseRows) -> bool:
    """Whether columns are counted from 0: the format counts from 1, and says nothing if it does not."""
    return bool((found.rows.indices == 0).any())


def _shifted(found: SparseRows, width: int, zero_based: bool, name: str) -> SparseRows:
    rows = found.rows
    indices = rows.indices if zero_based else rows.indices - 1
    if rows.nnz and indices.min() < 0:
        raise StreamError(f"{name} counts columns from 1 in its first rows, and has a column 0 in a later one")
    if rows.nnz and indices.max() >= width:
        raise StreamError(f"{name} has a column {rows.indices.max()}, beyond the {width} of the rows: say more by width=")
    return SparseRows(csr_array((rows.data, indices, rows.indptr), shape=(rows.shape[0], width)), found.beside)
