"""Sparse rows: their head, and how they become chunks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.sparse import csr_array, vstack

from headwater.core.chunk import Chunk
from headwater.core.values import AnyArray, Keywords
from headwater.io.blocks import Block
from headwater.io.options import Options
from headwater.io.read_errors import StreamError, explain_read_errors
from headwater.io.recipes.column_choice import resolve_column
from headwater.io.recipes.companions import ROLES, Companions, concatenate_companions, refuse_absent
from headwater.io.recipes.tables import rows_per_chunk

ROW_BYTES_GUESS = 1024  # bytes of a row, if none was seen
WIDTH_LIMIT = 2**31 - 1  # columns, whose indices are 32-bit integers


@dataclass(frozen=True, eq=False)
class SparseHead:
    """The head of sparse rows: width, names of columns if there are any, and companion columns."""

    width: int
    names: tuple[str, ...] | None = None
    beside: tuple[str, ...] = ()
    row_bytes: int = ROW_BYTES_GUESS
    base: int = 1  # the number of the first column, in formats that number them
    open: bool = False  # other files may be wider


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Some rows, and their companion columns by name."""

    rows: csr_array
    beside: Mapping[str, AnyArray] = field(default_factory=dict)

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return int(self.rows.shape[0])

    def slice(self, begin: int, length: int) -> SparseRows:
        """Return some of the rows."""
        part = slice(begin, begin + length)
        return SparseRows(self.rows[part], {name: values[part] for name, values in self.beside.items()})


@dataclass(frozen=True)
class SparseRecipe:
    """How chunks are made of sparse rows."""

    width: int
    vocabulary: tuple[str, ...] | None = None
    companions: Companions = Companions()
    chunk_rows: int = rows_per_chunk(ROW_BYTES_GUESS)
    base: int = 1

    kinds = ("sparse",)
    carries_state = False
    keeps_every_row = True

    @property
    def named(self) -> bool:
        """Whether columns have names."""
        return self.vocabulary is not None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.vocabulary or ()

    def schema(self) -> dict[str, object]:
        """Return the recipe in values that JSON can hold."""
        found = {"kind": "sparse", "width": self.width, "base": self.base, **self.companions.schema()}
        return found if self.vocabulary is None else {**found, "vocabulary": list(self.vocabulary)}

    def filter_rows(self, block: Block) -> Block:
        """Return the block as it is: absent entries are zeros, so nothing is missing."""
        return block

    def chunk_maker(self) -> Callable[[Sequence[Block], int], Chunk]:
        """Return the function that makes chunks."""
        schema = self.schema()

        def make(blocks: Sequence[Block], start: int) -> Chunk:
            parts = []
            for block in blocks:
                with explain_read_errors(block.name):
                    self._check(block)
                    refuse_absent(self.companions, tuple(block.rows.beside), block.name)
                    parts.append(self.companions.values(block, block.rows.beside.get))
            rows = [csr_array(block.rows.rows, dtype=np.float64) for block in blocks]
            X = rows[0] if len(rows) == 1 else csr_array(vstack(rows, format="csr"))
            return Chunk(X, self.vocabulary, start=start, schema=schema, **concatenate_companions(parts))

        return make

    def _check(self, block: Block) -> None:
        rows = block.rows.rows
        if rows.shape[1] != self.width:
            raise StreamError(f"{block.name} has rows of {rows.shape[1]} columns, where {self.width} are expected")
        finite = np.isfinite(rows.data)
        if not finite.all():
            at = int(np.argmin(finite))
            row = int(np.searchsorted(rows.indptr, at, side="right")) - 1
            raise StreamError(
                f"{block.name} has a value that is not finite in column {rows.indices[at]}, row {block.number(row)}"
            )


def plan_sparse(head: SparseHead, options: Options, place: str) -> SparseRecipe:
    """Return the recipe of sparse rows. Their columns cannot be selected."""
    if options.columns is not None or options.exclude:
        raise StreamError(f"{place} holds sparse rows, of which columns= and exclude= choose none")
    roles: Keywords = {role: resolve_column(getattr(options, role), head.beside, place, role) for role in ROLES}
    return SparseRecipe(head.width, head.names, Companions(**roles), rows_per_chunk(head.row_bytes), head.base)


def merge_heads(heads: Sequence[SparseHead]) -> SparseHead:
    """Return the head of all files together: the largest width, and columns from 0 if one file has a column 0."""
    base = min(head.base for head in heads)
    last = max(head.width + head.base for head in heads)
    return replace(heads[0], width=last - base, base=base)


def check_width(width: int, place: str) -> int:
    """Return a width that rows can have, or refuse it."""
    if not 0 < width <= WIDTH_LIMIT:
        raise StreamError(f"{place} has {width} columns, where 1 to {WIDTH_LIMIT} are possible")
    return width


def row_bytes(rows: csr_array) -> int:
    """Return the bytes of a row on average."""
    return max(16, int(16 * rows.nnz / max(1, rows.shape[0])))
