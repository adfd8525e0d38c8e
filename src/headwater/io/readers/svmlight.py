"""svmlight files (libsvm's format), parsed by scikit-learn in blocks of whole lines."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from headwater.io.options import Options
from headwater.io.pieces import Meter, first_lines, peeked
from headwater.io.read_errors import StreamError, reading
from headwater.io.readers.lines import SAMPLE, whole_lines
from headwater.io.recipes.sparse import SparseHead, SparseRows, check_width, row_bytes

BESIDE = ("label", "qid")
JUMPS = False


def head(piece: Any, options: Options) -> SparseHead:
    """Find the number of columns: in the whole file, if it can be read again and nobody has said it."""
    found = first_lines(piece, SAMPLE)
    sample = _parsed(found, piece.name)
    if not sample.num_rows:
        raise StreamError(f"{piece.name} has no rows")
    first, last = _ends(sample)
    if options.width is None and not piece.once and len(peeked(piece, len(found) + 1)) > len(found):
        with reading(piece.name), piece.open() as stream:
            ends = [_ends(_parsed(part, piece.name)) for part in whole_lines(stream, piece.name)]
        first, last = min(first for first, _ in ends), max(last for _, last in ends)
    base = min(first, 1)
    width = options.width or last + 1 - base
    return SparseHead(check_width(width, piece.name), None, BESIDE, row_bytes(sample.rows), base, open=options.width is None)


def blocks(piece: Any, options: Options, recipe: Any, skip: int, meter: Meter) -> Iterator[SparseRows]:
    """Yield sparse rows with their label and the number of their query."""
    with reading(piece.name), piece.open(meter) as stream:
        for part in whole_lines(stream, piece.name):
            yield _shifted(_parsed(part, piece.name), recipe, piece.name)


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


def _ends(found: SparseRows) -> tuple[int, int]:
    """Return the numbers of the first and the last column that have a value. The format counts from 1, unless there is a 0."""
    indices = found.rows.indices
    return (int(indices.min()), int(indices.max())) if len(indices) else (1, 0)


def _shifted(found: SparseRows, recipe: Any, name: str) -> SparseRows:
    rows, width = found.rows, recipe.width
    indices = rows.indices - recipe.base
    if rows.nnz and indices.min() < 0:
        raise StreamError(f"{name} has a column 0, where columns are counted from 1")
    if rows.nnz and indices.max() >= width:
        raise StreamError(f"{name} has a column {rows.indices.max()}, beyond the {width} of the rows: say more by width=")
    return SparseRows(csr_array((rows.data, indices, rows.indptr), shape=(rows.shape[0], width)), found.beside)
