""".npz archives: a matrix, or the sparse one that SciPy saves, read member by member in blocks; nothing is unpickled."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from headwater.io.options import Options
from headwater.io.pieces import Meter, peeked
from headwater.io.read_errors import StreamError, listed, reading, told
from headwater.io.readers.arrays import Layout, column_names, layout_of_header, matrix_head
from headwater.io.recipes.kinds import refuse_kind
from headwater.io.recipes.sparse import SparseHead, SparseRows, check_width
from headwater.io.recipes.tables import Head

JUMPS = False
SPARSE = {"data", "indices", "indptr", "shape", "format"}
LARGEST_WHOLE = 2**30  # bytes of an array that must be read whole, since its columns come one after the other
STEP = 4096


@dataclass
class Member:
    """An array of an archive, read from its beginning to its end."""

    file: Any
    layout: Layout
    name: str

    def take(self, rows: int) -> Any:
        """Return the next rows."""
        size = rows * self.layout.width * self.layout.dtype.itemsize
        found = self.file.read(size)
        if len(found) != size:
            raise StreamError(f"{self.name} is cut short")
        return np.frombuffer(found, self.layout.dtype)

    def finish(self) -> None:
        """Make sure that it ends here: what it was stored with is then checked, too."""
        if self.file.read(1):
            raise StreamError(f"{self.name} has an array that is longer than it says")


def head(piece: Any, options: Options) -> Head | SparseHead:
    """Look at the headers of the arrays."""
    peeked(piece, 4)
    with reading(piece.name), ExitStack() as stack:
        archive = stack.enter_context(zipfile.ZipFile(piece.local()))
        if set(_names(archive)) >= SPARSE:
            rows, width, entries = _sparse_sizes(archive, piece.name, stack)
            return SparseHead(check_width(width, piece.name), row_bytes=max(16, 16 * entries // max(1, rows)))
        layout = _member(archive, _chosen(archive, options, piece.name), piece.name, stack).layout
    return matrix_head(layout.rows, layout.width, layout.dtype, piece.name)


def blocks(piece: Any, options: Options, recipe: Any, skip: int, meter: Meter) -> Iterator[Any]:
    """Yield matrices of some rows."""
    with reading(piece.name), ExitStack() as stack:
        archive = stack.enter_context(zipfile.ZipFile(piece.local()))
        if set(_names(archive)) >= SPARSE:
            refuse_kind(recipe, "sparse", piece.name)
            yield from _sparse_blocks(archive, piece.name, stack)
            return
        refuse_kind(recipe, "tables", piece.name)
        member = _member(archive, _chosen(archive, options, piece.name), piece.name, stack)
        layout = member.layout
        recipe.wanted(column_names(layout.width), piece.name)
        if layout.fortran:
            if layout.rows * layout.width * layout.dtype.itemsize > LARGEST_WHOLE:
                raise StreamError(f"{piece.name} holds a large matrix column by column: save it in the order of rows")
            yield member.take(layout.rows).reshape(layout.width, layout.rows).T
        else:
            for begin in range(0, layout.rows, recipe.chunk_rows):
                yield member.take(min(recipe.chunk_rows, layout.rows - begin)).reshape(-1, layout.width)
        member.finish()


def count(piece: Any, options: Options) -> int | None:
    """Return the number of rows."""
    with reading(piece.name), ExitStack() as stack:
        archive = stack.enter_context(zipfile.ZipFile(piece.local()))
        if set(_names(archive)) >= SPARSE:
            return _sparse_sizes(archive, piece.name, stack)[0]
        return _member(archive, _chosen(archive, options, piece.name), piece.name, stack).layout.rows


def _names(archive: zipfile.ZipFile) -> list[str]:
    return [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]


def _chosen(archive: zipfile.ZipFile, options: Options, name: str) -> str:
    names = _names(archive)
    wanted = options.array or ("X" if "X" in names else names[0] if len(names) == 1 else None)
    if wanted is None or wanted not in names:
        found = "" if wanted is None else f", not {wanted!r}"
        raise StreamError(f"{name} holds the arrays {listed(names)}{found}: name one by array=")
    return wanted


def _member(archive: zipfile.ZipFile, array: str, name: str, stack: ExitStack) -> Member:
    file = stack.enter_context(_opened(archive, array, name))
    return Member(file, layout_of_header(file, name), name)


def _sparse_sizes(archive: zipfile.ZipFile, name: str, stack: ExitStack) -> tuple[int, int, int]:
    kind = _member_values(archive, "format", name)
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


def _member_values(archive: zipfile.ZipFile, array: str, name: str) -> Any:
    with _opened(archive, array, name) as file:
        layout = layout_of_header(file, name, kinds="SU")
        if layout.shape or layout.dtype.itemsize > 64:
            raise StreamError(f"{name} holds a sparse matrix whose {array} is no word")
        return np.frombuffer(file.read(layout.dtype.itemsize), layout.dtype)[0].item()


def _opened(archive: zipfile.ZipFile, array: str, name: str) -> Any:
    try:
        return archive.open(f"{array}.npy")
    except (KeyError, RuntimeError) as error:  # not there, encrypted, or packed in a way that is not known
        raise StreamError(f"{name} cannot be read: {told(error)}") from error


def _sparse_blocks(archive: zipfile.ZipFile, name: str, stack: ExitStack) -> Iterator[SparseRows]:
    rows, width, entries = _sparse_sizes(archive, name, stack)
    data, indices, indptr = (_member(archive, array, name, stack) for array in ("data", "indices", "indptr"))
    done = int(indptr.take(1)[0])
    for begin in range(0, rows, STEP):
        ends = indptr.take(min(STEP, rows - begin)).astype(np.int64)
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
