"""Matrices of NumPy in .npy files, real or complex, read in blocks of rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from tokenize import TokenError
from typing import IO

import numpy as np
from numpy.lib import format as npy

from headwater.core.values import AnyArray
from headwater.io.options import Options
from headwater.io.read_errors import NoRows, StreamError, explain_read_errors, one_line_message
from headwater.io.recipes.recipe import ColumnRecipe
from headwater.io.recipes.tables import TableHead
from headwater.io.sources import File, Meter, Pipe

RANDOM_ACCESS = True
HEADER_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


@dataclass(frozen=True)
class Layout:
    """The header of a .npy file, and where the numbers begin."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[np.generic]
    offset: int

    @property
    def rows(self) -> int:
        return self.shape[0]

    @property
    def width(self) -> int:
        return self.shape[1] if len(self.shape) == 2 else 1


def head(source: File | Pipe, options: Options) -> TableHead:
    """Look at the header."""
    with explain_read_errors(source.name):
        layout = read_layout(source.local(), source.name)
    return matrix_head(layout.rows, layout.width, layout.dtype, source.name)


def blocks(source: File | Pipe, options: Options, recipe: ColumnRecipe, skip: int, meter: Meter) -> Iterator[AnyArray]:
    """Yield matrices of some rows, after the rows to skip."""
    with explain_read_errors(source.name):
        path = source.local()
        layout = read_layout(path, source.name)
        recipe.columns_to_read(column_names(layout.width), source.name)
        step = recipe.chunk_rows
        with open(path, "rb") as file:
            for begin in range(skip, layout.rows, step):
                yield _read_rows(file, layout, begin, min(begin + step, layout.rows), source.name)


def count(source: File | Pipe, options: Options) -> int | None:
    """Return the number of rows."""
    with explain_read_errors(source.name):
        return read_layout(source.local(), source.name).rows


def read_layout(path: str, name: str) -> Layout:
    """Read and check the header: a matrix of numbers that the file has room for."""
    with open(path, "rb") as file:
        layout = read_header(file, name)
        size = file.seek(0, 2)
    wanted = layout.offset + layout.rows * layout.width * layout.dtype.itemsize
    if size != wanted:
        how = "cut short" if size < wanted else "too long"
        raise StreamError(f"{name} is {how}: {size} bytes, where its header says {wanted}")
    return layout


def read_header(file: IO[bytes], name: str, kinds: str = "biufc") -> Layout:
    """Read and check the header of a .npy file: a vector or a matrix of numbers."""
    version = npy.read_magic(file)
    if version not in HEADER_READERS:
        raise StreamError(f"{name} has version {version} of the .npy format, which is for structured arrays")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            shape, fortran, dtype = HEADER_READERS[version](file)
    except (TokenError, SyntaxError, KeyError, TypeError, AttributeError, RecursionError, Warning) as error:
        raise StreamError(f"{name} has a damaged header: {one_line_message(error)}") from error
    layout = Layout(tuple(shape), fortran, dtype, file.tell())
    if dtype.hasobject or dtype.kind not in kinds:
        raise StreamError(f"{name} must hold numbers, got an array of {dtype}")
    if min(shape, default=0) < 0 or (len(shape) not in (1, 2) and kinds == "biufc"):
        raise StreamError(f"{name} must hold a matrix, got an array of shape {tuple(shape)}")
    return layout


def matrix_head(rows: int, width: int, dtype: np.dtype[np.generic], name: str) -> TableHead:
    """Return the head of a matrix: generated column names, and whether it is complex."""
    if rows == 0 or width == 0:
        raise NoRows(f"{name} is empty: a matrix of {rows} rows and {width} columns")
    return TableHead(tuple(column_names(width)), named=False, complex=dtype.kind == "c")


def column_names(width: int) -> list[str]:
    """Return the names that columns without names have, the ones that tables of models give them."""
    return [f"x{index}" for index in range(width)]


def _read_rows(file: IO[bytes], layout: Layout, begin: int, end: int, name: str) -> AnyArray:
    size = layout.dtype.itemsize
    if not layout.fortran:
        file.seek(layout.offset + begin * layout.width * size)
        found = np.fromfile(file, layout.dtype, (end - begin) * layout.width)
        _check_size(found, (end - begin) * layout.width, name)
        return found.reshape(end - begin, layout.width)
    rows = np.empty((end - begin, layout.width), layout.dtype)
    for column in range(layout.width):
        file.seek(layout.offset + (column * layout.rows + begin) * size)
        found = np.fromfile(file, layout.dtype, end - begin)
        _check_size(found, end - begin, name)
        rows[:, column] = found
    return rows


def _check_size(found: AnyArray, wanted: int, name: str) -> None:
    if len(found) != wanted:
        raise StreamError(f"{name} has become shorter while it was read")
