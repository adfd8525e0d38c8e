"""svmlight files (libsvm's format), parsed by scikit-learn in blocks of whole lines."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO

import numpy as np
from scipy.sparse import csr_array

from headwater.io.first_bytes import read_first_bytes, read_first_lines
from headwater.io.options import Options
from headwater.io.read_errors import StreamError, explain_read_errors
from headwater.io.readers.lines import SAMPLE_BYTES, whole_lines
from headwater.io.recipes.sparse import SparseHead, SparseRecipe, SparseRows, check_width, row_bytes
from headwater.io.sources import File, Meter, Pipe

COMPANION_COLUMNS = ("label", "qid")
RANDOM_ACCESS = False


def head(source: File | Pipe, options: Options) -> SparseHead:
    """Find the number of columns: in the whole file, if it can be read again and `width` was not given."""
    found = read_first_lines(source, SAMPLE_BYTES)
    sample = _parse(found, source.name)
    if not sample.num_rows:
        raise StreamError(f"{source.name} has no rows")
    first, last = _column_range(sample)
    if options.width is None and not source.once and len(read_first_bytes(source, len(found) + 1)) > len(found):
        with explain_read_errors(source.name), source.open() as stream:
            ends = [_column_range(_parse(part, source.name)) for part in whole_lines(stream, source.name)]
        first, last = min(first for first, _ in ends), max(last for _, last in ends)
    base = min(first, 1)
    width = options.width or last + 1 - base
    return SparseHead(
        check_width(width, source.name), None, COMPANION_COLUMNS, row_bytes(sample.rows), base, open=options.width is None
    )


def blocks(source: File | Pipe, options: Options, recipe: SparseRecipe, skip: int, meter: Meter) -> Iterator[SparseRows]:
    """Yield sparse rows with their label and the number of their query."""
    with explain_read_errors(source.name), source.open(meter) as stream:
        for part in whole_lines(stream, source.name):
            yield _shift_columns(_parse(part, source.name), recipe, source.name)


def count(source: File | Pipe, options: Options) -> int | None:
    """Return None: the number of rows is known only at the end."""
    return None


def _parse(part: bytes, name: str) -> SparseRows:
    """Return the rows of some lines, with the column numbers of the file."""
    from sklearn.datasets import load_svmlight_file

    with explain_read_errors(name):
        if b"\0" in part:
            raise StreamError(f"{name} is no svmlight file: it holds binary data")
        rows, labels, queries = load_svmlight_file(BytesIO(part), zero_based=True, query_id=True)
    beside = {"label": labels}
    if len(queries) == len(labels):
        beside["qid"] = queries.astype(np.float64)
    return SparseRows(rows, beside)


def _column_range(found: SparseRows) -> tuple[int, int]:
    """Return the numbers of the first and the last column that have a value. The format counts from 1, unless there is a 0."""
    indices = found.rows.indices
    return (int(indices.min()), int(indices.max())) if len(indices) else (1, 0)


def _shift_columns(found: SparseRows, recipe: SparseRecipe, name: str) -> SparseRows:
    rows, width = found.rows, recipe.width
    indices = rows.indices - recipe.base
    if rows.nnz and indices.min() < 0:
        raise StreamError(f"{name} has a column 0, where columns are counted from 1")
    if rows.nnz and indices.max() >= width:
        raise StreamError(f"{name} has a column {rows.indices.max()}, beyond the {width} of the rows: say more by width=")
    return SparseRows(csr_array((rows.data, indices, rows.indptr), shape=(rows.shape[0], width)), found.beside)
