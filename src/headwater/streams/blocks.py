"""Blocks: rows as a reader has them, cut anew into groups of a given number of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, eq=False)
class Block:
    """Rows as they were read: a record batch, a matrix, dense or sparse, or a list; where from, and the place of the first."""

    rows: Any
    name: str
    first: int

    def __len__(self) -> int:
        return count_rows(self.rows)

    def part(self, begin: int, end: int) -> Block:
        """Return the rows from one place to another."""
        if begin == 0 and end >= len(self):
            return self
        rows = self.rows.slice(begin, end - begin) if hasattr(self.rows, "slice") else self.rows[begin:end]
        return replace(self, rows=rows, first=self.first + begin)


def count_rows(rows: Any) -> int:
    """Return how many rows there are."""
    if hasattr(rows, "num_rows"):
        return int(rows.num_rows)
    return int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)


def grouped(blocks: Iterable[Block], size: int) -> Iterator[list[Block]]:
    """Yield blocks in groups of exactly `size` rows, but for the last one."""
    waiting: list[Block] = []
    missing = size
    for block in blocks:
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
