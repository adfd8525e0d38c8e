"""Kept columns: passed along beside the rows with the types of their file, for output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headwater.io.blocks import Block
from headwater.io.read_errors import StreamError, explain_read_errors, one_line_message

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class KeptColumns:
    """Names and types of the columns; a matrix has no types. The first rows fix the types, so that all chunks agree."""

    columns: tuple[tuple[str, pa.DataType | None], ...] = ()

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [name for name, _ in self.columns]

    def types(self) -> dict[str, pa.DataType]:
        """Return how to read the columns of a file that has no types of its own."""
        return dict(self.columns)

    def values(self, blocks: Sequence[Block]) -> dict[str, pa.Array]:
        """Return the columns of some blocks, as arrays of Arrow."""
        return {name: _concatenate([_column(block, name, kind) for block in blocks]) for name, kind in self.columns}


def value_type(kind: pa.DataType | None) -> pa.DataType | None:
    """Return the type of the values. A column whose first rows have no value is kept as text."""
    import pyarrow as pa

    if kind is not None and pa.types.is_dictionary(kind):
        return kind.value_type
    return pa.string() if kind == pa.null() else kind


def _column(block: Block, name: str, kind: pa.DataType | None) -> pa.Array:
    import pyarrow as pa

    with explain_read_errors(block.name):
        if isinstance(block.rows, np.ndarray):
            if block.rows.dtype.kind == "c":
                raise StreamError(f"{block.name} holds complex numbers, which cannot be kept")
            column = block.rows[:, int(name[1:])]
            return pa.array(column.astype(column.dtype.newbyteorder("=")))
        if not hasattr(block.rows, "schema"):
            raise StreamError(f"{block.name} is no table, so that column {name!r} of it cannot be kept")
        column = block.rows.column(name)
        try:
            return column if column.type == kind else column.cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise StreamError(
                f"column {name!r} of {block.name} was {kind} in the first rows: {one_line_message(error)}"
            ) from error


def _concatenate(parts: list[pa.Array]) -> pa.Array:
    import pyarrow as pa

    if len(parts) == 1:
        return parts[0]
    return pa.concat_arrays([part if part.type == parts[0].type else part.cast(parts[0].type, safe=False) for part in parts])
