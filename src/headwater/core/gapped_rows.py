"""Rows with gaps: some values of some rows are missing. The mask is stored, so no kernel has to look for NaN."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.core.values import Index, Places

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class GappedRows:
    """Rows (n, d) of which some values are `missing`; there, `values` hold NaN.

    It is a separate type, so that code for complete rows refuses it and never computes with NaN by accident.
    """

    values: Array
    missing: Mask = field(compare=False)  # follows from the values, so model files do not store it

    @classmethod
    def of(cls, values: Array) -> GappedRows:
        """Return rows in which NaN is a gap."""
        return cls(values, np.isnan(values))

    def __len__(self) -> int:
        return len(self.values)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.values.shape

    @property
    def nbytes(self) -> int:
        """Memory of the values: rows take as much as complete ones, so that a reservoir has room for as many."""
        return self.values.nbytes

    @property
    def itemsize(self) -> int:
        """Memory of a value."""
        return self.values.itemsize

    @property
    def gaps(self) -> NDArray[np.int64]:
        """Number of missing values of each row."""
        return np.count_nonzero(self.missing, axis=1)

    @property
    def is_empty(self) -> Mask:
        """Which rows (n,) have nothing but gaps."""
        missing, width = self.missing, self.missing.shape[1]
        found = (
            missing[:, 0] & missing[:, width // 2] & missing[:, width - 1]
        )  # few rows lack all three: the others are not empty
        lacking = np.flatnonzero(found)
        found[lacking] = missing[lacking].all(axis=1)
        return found

    def __getitem__(self, rows: Places) -> GappedRows:
        if isinstance(rows, slice):
            return GappedRows(np.ascontiguousarray(self.values[rows]), np.ascontiguousarray(self.missing[rows]))
        places = np.asarray(rows)
        if places.dtype.kind == "b":
            places = np.flatnonzero(places)
        return GappedRows(np.take(self.values, places, axis=0), np.take(self.missing, places, axis=0))

    def columns(self, columns: slice | Index) -> GappedRows:
        """Return some of the columns."""
        return GappedRows(np.ascontiguousarray(self.values[:, columns]), np.ascontiguousarray(self.missing[:, columns]))

    def complete(self, rows: NDArray[np.int64]) -> Array:
        """Return the listed rows, which must have no gaps, as a plain matrix."""
        return np.take(self.values, rows, axis=0)

    def filled(self, fill: Array | float) -> Array:
        """Return the values with gaps filled by `fill`: one value, or one for each column."""
        return np.where(self.missing, fill, self.values)

    def copy(self) -> GappedRows:
        """Return a copy of the rows."""
        return GappedRows(self.values.copy(), self.missing.copy())


def find_absent(rows: Array) -> Mask:
    """Return which rows (n,) of a sequence are missing: NaN in all columns. Others may have gaps."""
    absent = np.isnan(rows[:, 0])
    if absent.any() and rows.shape[1] > 1:  # few rows lack the first value, and no other can be missing
        lacking = np.flatnonzero(absent)
        absent[lacking] = np.isnan(rows[lacking]).all(axis=1)
    return absent


def as_gapped(rows: Array) -> Array | GappedRows:
    """Return rows in which NaN is a gap, as such, or as they are if they are complete."""
    return GappedRows.of(rows) if np.isnan(rows.sum()) else rows


def join_gapped(rows: list[Array | GappedRows]) -> GappedRows:
    """Return rows of several chunks, of which some may be complete, as one."""
    values = [one.values if isinstance(one, GappedRows) else one for one in rows]
    masks = [one.missing if isinstance(one, GappedRows) else np.zeros(one.shape, dtype=bool) for one in rows]
    return GappedRows(np.concatenate(values), np.concatenate(masks))
