"""Blocks of rows as a reader yields them, and their regrouping into chunks of a given number of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from headwater.core.values import Matrix


@dataclass(frozen=True, eq=False)
class Block:
    """Rows as they were read, the name of their source, and the place of the first row in it.

    Where rows between them were left out, `numbers` holds the place of each. `before` counts the rows of earlier sources.
    """

    rows: Matrix  # a record batch, a matrix, sparse rows, or an array of lines
    name: str
    first: int
    numbers: NDArray[np.int64] | None = None
    before: int = 0
    pause: bool = False  # whether this is an empty block that marks a pause of a pipe

    def __len__(self) -> int:
        return count_rows(self.rows)

    def number(self, row: int) -> int:
        """Return the place that a row has in its file, counted from 0."""
        return int(self.first + row if self.numbers is None else self.numbers[row])

    @property
    def places(self) -> NDArray[np.int64]:
        """The place of each row among those of all files."""
        return self.before + (self.first + np.arange(len(self)) if self.numbers is None else self.numbers)

    def without(self, rows: object, here: NDArray[np.bool_]) -> Block:
        """Return a block with the selected rows; `here` selects them."""
        return replace(self, rows=rows, numbers=self.first + np.flatnonzero(here))

    def part(self, begin: int, end: int) -> Block:
        """Return the rows from one place to another."""
        if begin == 0 and end >= len(self):
            return self
        rows = self.rows.slice(begin, end - begin) if hasattr(self.rows, "slice") else self.rows[begin:end]
        numbers = None if self.numbers is None else self.numbers[begin:end]
        return replace(self, rows=rows, first=self.first + begin, numbers=numbers)


def count_rows(rows: Matrix) -> int:
    """Return how many rows there are."""
    if hasattr(rows, "num_rows"):
        return int(rows.num_rows)
    return int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)


def first_rows(blocks: Iterable[Block], rows: int | None) -> Iterator[Block]:
    """Yield blocks up to so many rows; all of them if no number is given."""
    for block in blocks:
        if rows is None:
            yield block
            continue
        if rows > 0:
            yield block.part(0, rows)
        rows -= len(block)
        if rows <= 0:
            return


def group_rows(blocks: Iterable[Block], size: int, hurry: bool = False) -> Iterator[list[Block]]:
    """Yield groups of exactly `size` rows, but for the last one; with `hurry`, a shorter group where a pipe pauses."""
    waiting: list[Block] = []
    missing = size
    for block in blocks:
        if block.pause and hurry and waiting:
            yield waiting
            waiting, missing = [], size
        begin = 0
        while begin < len(block):
            part = block.part(begin, begin + missing)
            waiting.append(part)
            begin += len(part)
            missing -= len(part)
            if missing == 0:
                yield waiting
                waiting, missing = [], size
    if waiting:
        yield waiting
