"""Rows of a table whose columns differ in type: text, numbers, booleans, with gaps; as a stream passes them on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headwater.core.values import Places

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class TableRows:
    """Rows of an Arrow table, taken like those of a matrix."""

    table: pa.Table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return int(self.table.num_rows), int(self.table.num_columns)

    @property
    def ndim(self) -> int:
        """Rows and columns."""
        return 2

    @property
    def nbytes(self) -> int:
        """Memory that they take."""
        return int(self.table.nbytes)

    def __getitem__(self, rows: Places) -> TableRows:
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(len(self))
            return TableRows(self.table.slice(start, max(stop - start, 0)))
        places = np.asarray(rows)
        return TableRows(self.table.take(np.flatnonzero(places) if places.dtype.kind == "b" else places))


def stack_tables(parts: Sequence[TableRows]) -> TableRows:
    """Return rows of several tables of the same columns as one."""
    import pyarrow as pa

    return TableRows(pa.concat_tables([one.table for one in parts], promote_options="permissive"))
