"""Columns that are kept: passed along beside the rows, with the types of their file, for whoever writes them again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headwater.io.blocks import Block
from headwater.io.read_errors import StreamError, reading, told


@dataclass(frozen=True)
class Kept:
    """Names and types of the columns; a matrix has no types. The first rows settle them, so that all chunks agree."""

    columns: tuple[tuple[str, Any], ...] = ()

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [name for name, _ in self.columns]

    def types(self) -> dict[str, Any]:
        """Return how to read the columns of a file that has no types of its own."""
        return dict(self.columns)

    def values(self, blocks: Sequence[Block]) -> dict[str, Any]:
        """Return the columns of some blocks, as arrays of Arrow."""
        return {name: _joined([_column(block, name, kind) for block in blocks]) for name, kind in self.columns}


def plain(kind: Any) -> Any:
    """Return the type of the values. A column that begins without any may go on with whatever can be written."""
    import pyarrow as pa

    if kind is not None and pa.types.is_dictionary(kind):
        return kind.value_type
    return pa.string() if kind == pa.null() else kind


def _column(block: Block, name: str, kind: Any) -> Any:
    import pyarrow as pa

    with reading(block.name):
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
            raise StreamError(f"column {name!r} of {block.name} was {kind} in the first rows: {told(error)}") from error


def _joined(parts: list[Any]) -> Any:
    import pyarrow as pa

    if len(parts) == 1:
        return parts[0]
    return pa.concat_arrays([part if part.type == parts[0].type else part.cast(parts[0].type, safe=False) for part in parts])
