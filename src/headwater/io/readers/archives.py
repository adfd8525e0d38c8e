""".npz archives: a matrix, or the sparse one that SciPy saves, read member by member in blocks; nothing is unpickled."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO

import numpy as np
from scipy.sparse import csr_array

from headwater.core.values import AnyArray
from headwater.io.first_bytes import read_first_bytes
from headwater.io.options import Options
from headwater.io.read_errors import StreamError, explain_read_errors, one_line_message, quote_names
from headwater.io.readers.arrays import Layout, column_names, matrix_head, read_header
from headwater.io.recipes.recipe import ColumnRecipe
from headwater.io.recipes.row_kinds import refuse_kind
from headwater.io.recipes.sparse import SparseHead, SparseRows, check_width
from headwater.io.recipes.tables import TableHead
from headwater.io.sources import File, Meter, Pipe

RANDOM_ACCESS = False
SPARSE_ARRAYS = {"data", "indices", "indptr", "shape", "format"}
FORTRAN_BYTES_LIMIT = 2**30  # of a matrix in column order, which must be read whole
ROWS_PER_BLOCK = 4096  # of a sparse matrix


@dataclass
class Member:
    """An array of an archive, read from its beginning to its end."""

    file: IO[bytes]
    layout: Layout
    name: str

    def take(self, rows: int) -> AnyArray:
        """Return the next rows."""
        size = rows * self.layout.width * self.layout.dtype.itemsize
        found = self.file.read(size)
        if len(found) != size:
            raise StreamError(f"{self.name} is cut short")
        return np.frombuffer(found, self.layout.dtype)

    def finish(self) -> None:
        """Check that the array ends here, which also verifies its checksum."""
        if self.file.read(1):
            raise StreamError(f"{self.name} has an array that is longer than it says")


def head(source: File | Pipe, options: Options) -> TableHead | SparseHead:
    """Look at the headers of the arrays."""
    read_first_bytes(source, 4)
    with explain_read_errors(source.name), ExitStack() as stack:
        archive = stack.enter_context(zipfile.ZipFile(source.local()))
        if set(_names(archive)) >= SPARSE_ARRAYS:
            rows, width, entries = _sparse_sizes(archive, source.name, stack)
            return SparseHead(check_width(width, source.name), row_bytes=max(16, 16 * entries // max(1, rows)))
        layout = _member(archive, _choose_array(archive, options, source.name), source.name, stack).layout
    return matrix_head(layout.rows, layout.width, layout.dtype, source.name)


def blocks(
    source: File | Pipe, options: Options, recipe: ColumnRecipe, skip: int, meter: Meter
) -> Iterator[AnyArray | SparseRows]:
    """Yield matrices of some rows."""
    with explain_read_errors(source.name), ExitStack() as stack:
        archive = stack.enter_context(zipfile.ZipFile(source.local()))
        if set(_names(archive)) >= SPARSE_ARRAYS:
            refuse_kind(recipe, "sparse", source.name)
            yield from _sparse_blocks(archive, source.name, stack)
            return
        refuse_kind(recipe, "tables", source.name)
        member = _member(archive, _choose_array(archive, options, source.name), source.name, stack)
        layout = member.layout
        recipe.columns_to_read(column_names(layout.width), source.name)
        if layout.fortran:
            if layout.rows * layout.width * layout.dtype.itemsize > FORTRAN_BYTES_LIMIT:
                raise StreamError(
                    f"{source.name} holds a large matrix column by column: save np.ascontiguousarray(X), which goes row by row"
                )
            yield member.take(layout.rows).reshape(layout.width, layout.rows).T
        else:
            for begin in range(0, layout.rows, recipe.chunk_rows):
                yield member.take(min(recipe.chunk_rows, layout.rows - begin)).reshape(-1, layout.width)
        member.finish()


def count(source: File | Pipe, options: Options) -> int | None:
    """Return the number of rows."""
    with explain_read_errors(source.name), ExitStack() as stack:
        archive = stack.enter_context(zipfile.ZipFile(source.local()))
        if set(_names(archive)) >= SPARSE_ARRAYS:
            return _sparse_sizes(archive, source.name, stack)[0]
        return _member(archive, _choose_array(archive, options, source.name), source.name, stack).layout.rows


def _names(archive: zipfile.ZipFile) -> list[str]:
    return [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]


def _choose_array(archive: zipfile.ZipFile, options: Options, name: str) -> str:
    names = _names(archive)
    wanted = options.array or ("X" if "X" in names else names[0] if len(names) == 1 else None)
    if wanted is None or wanted not in names:
        found = "" if wanted is None else f", not {wanted!r}"
        raise StreamError(f"{name} holds the arrays {quote_names(names)}{found}: name one by array=")
    return wanted


def _member(archive: zipfile.ZipFile, array: str, name: str, stack: ExitStack) -> Member:
    file = stack.enter_context(_open_member(archive, array, name))
    return Member(file, read_header(file, name), name)


def _sparse_sizes(archive: zipfile.ZipFile, name: str, stack: ExitStack) -> tuple[int, int, int]:
    kind = _read_word(archive, "format", name)
    if kind not in ("csr", b"csr"):
        raise StreamError(f"{name} holds a sparse matrix in the format {kind!r}, where 'csr' is read: save matrix.tocsr()")
    shape = _member(archive, "shape", name, stack)
    rows, width = (int(size) for size in shape.take(2))
    entries = _member(archive, "data", name, stack).layout.rows
    if rows < 1 or _member(archive, "indptr", name, stack).layout.rows != rows + 1:
        raise StreamError(f"{name} holds a sparse matrix of {rows} rows, which its arrays do not have")
    if _member(archive, "indices", name, stack).layout.rows != entries:
        raise StreamError(f"{name} holds a sparse matrix whose arrays do not fit together")
    return rows, width, entries


def _read_word(archive: zipfile.ZipFile, array: str, name: str) -> str | bytes:
    with _open_member(archive, array, name) as file:
        layout = read_header(file, name, kinds="SU")
        if layout.shape or layout.dtype.itemsize > 64:
            raise StreamError(f"{name} holds a sparse matrix whose {array} is no word")
        return np.frombuffer(file.read(layout.dtype.itemsize), layout.dtype)[0].item()


def _open_member(archive: zipfile.ZipFile, array: str, name: str) -> IO[bytes]:
    try:
        return archive.open(f"{array}.npy")
    except (KeyError, RuntimeError) as error:  # missing, encrypted, or compressed in an unknown way
        raise StreamError(f"{name} cannot be read: {one_line_message(error)}") from error


def _sparse_blocks(archive: zipfile.ZipFile, name: str, stack: ExitStack) -> Iterator[SparseRows]:
    rows, width, entries = _sparse_sizes(archive, name, stack)
    data, indices, indptr = (_member(archive, array, name, stack) for array in ("data", "indices", "indptr"))
    done = int(indptr.take(1)[0])
    for begin in range(0, rows, ROWS_PER_BLOCK):
        ends = indptr.take(min(ROWS_PER_BLOCK, rows - begin)).astype(np.int64)
        steps = np.diff(ends, prepend=done)
        if steps.min() < 0 or ends[-1] > entries:
            raise StreamError(f"{name} holds a sparse matrix whose rows do not follow each other")
        columns = indices.take(int(ends[-1] - done)).astype(np.int64)
        values = data.take(int(ends[-1] - done))
        if columns.size and (columns.min() < 0 or columns.max() >= width):
            raise StreamError(f"{name} holds a sparse matrix with a column outside of its {width}")
        pointers = np.concatenate([[0], np.cumsum(steps)])
        yield SparseRows(csr_array((values.astype(np.float64), columns, pointers), shape=(len(ends), width)))
        done = int(ends[-1])
    if done != entries:
        raise StreamError(f"{name} holds a sparse matrix with {entries} values, of which its rows have {done}")
    for member in (data, indices, indptr):
        member.finish()
