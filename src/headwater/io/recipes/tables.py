"""Tables: which columns are inputs, which are companions, and how a chunk is made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headwater.core.chunk import Chunk
from headwater.core.values import AnyArray
from headwater.io.blocks import Block
from headwater.io.read_errors import StreamError, column_phrase, explain_read_errors, quote_names
from headwater.io.recipes import arrow_columns
from headwater.io.recipes.companions import Companions, KeptColumns, concatenate_companions, fill_absent_rows
from headwater.io.recipes.date_parts import KINDS, to_parts, type_of_dates
from headwater.io.row_collection import concatenate_chunks, select_rows

if TYPE_CHECKING:
    import pyarrow as pa

    from headwater.io.recipes.companions import Column

CHUNK_BYTES = 2**22  # of a chunk of the default size
MARK_MISSING = "mark"  # rows with a missing value, where all rows are wanted: NaN in every column


@dataclass(frozen=True, eq=False)
class TableHead:
    """The head of a table: names and types of columns, and the first values of each.

    A matrix has no types. `named`: the names were found, not generated. `guessed`: the types were guessed.
    """

    names: tuple[str, ...]
    types: Mapping[str, pa.DataType] = field(default_factory=dict)
    sample: Callable[[str], pa.Array] | None = None
    named: bool = True
    complex: bool = False
    guessed: bool = False


@dataclass(frozen=True)
class Input:
    """An input column. With levels it becomes a column of zeros and ones for each; with dates it becomes their parts."""

    name: str
    levels: tuple[str, ...] | None = None
    dates: str | None = None  # a kind of `date_parts`

    @property
    def labels(self) -> list[str]:
        """Names of the columns that it becomes."""
        if self.dates is not None:
            return [f"{self.name}:{part}" for part in KINDS[self.dates]]
        return [self.name] if self.levels is None else [f"{self.name}={level}" for level in self.levels]

    def schema(self) -> dict[str, object]:
        """Return the column in values that JSON can hold."""
        found: dict[str, object] = {"name": self.name}
        if self.levels is not None:
            found["levels"] = list(self.levels)
        return found if self.dates is None else {**found, "dates": self.dates}

    def column_type(self) -> pa.DataType:
        """Return how to read it from a file that has no types of its own."""
        import pyarrow as pa

        if self.dates is not None:
            return type_of_dates(self.dates)
        return pa.float64() if self.levels is None else pa.string()


@dataclass(frozen=True)
class TableRecipe:
    """How chunks are made of the columns of a table."""

    inputs: tuple[Input, ...]
    companions: Companions = Companions()
    missing: str = "refuse"
    named: bool = True
    complex: bool = False
    others: tuple[str, ...] | None = None  # columns that are left out, if no more than these may come
    kept: KeptColumns = KeptColumns()

    carries_state = False
    kinds = ("tables",)

    @property
    def names(self) -> list[str]:
        """Names of the columns of X."""
        return [label for one in self.inputs for label in one.labels]

    @property
    def chunk_rows(self) -> int:
        """Rows of about 4 MB: a power of two, which depends on the width alone."""
        return rows_per_chunk(len(self.names) * (16 if self.complex else 8))

    @property
    def keeps_every_row(self) -> bool:
        """Whether each row that is read becomes a row of a chunk, so that rows can be skipped without a look at them."""
        return self.missing != "drop"

    def schema(self) -> dict[str, object]:
        """Return the recipe in values that JSON can hold."""
        inputs = [one.schema() for one in self.inputs]
        missing = "drop" if self.missing == MARK_MISSING else self.missing
        found = {"kind": "table", "inputs": inputs, "missing": missing, "named": self.named, **self.companions.schema()}
        return {**found, "complex": True} if self.complex else found

    def columns_to_read(self, names: Sequence[str], place: str) -> list[str]:
        """Return the columns to read from a source with these names, or refuse it."""
        return columns_to_read([one.name for one in self.inputs], self.companions, self.others, self.kept, names, place)

    def types(self) -> dict[str, pa.DataType]:
        """Return how to read the columns of a file that has no types of its own."""
        found = {one.name: one.column_type() for one in self.inputs}
        return self.kept.types() | found | self.companions.types()

    def filter_rows(self, block: Block) -> Block:
        """Leave out rows with missing values, if that is the policy."""
        whole = self._whole(block) if self.missing == "drop" else None
        return block if whole is None else _select_rows(block, whole)

    def _whole(self, block: Block) -> NDArray[np.bool_] | None:
        """Return which rows are complete; None if all are."""
        rows = block.rows
        if isinstance(rows, np.ndarray):
            places = [place for name in self._required_columns() if (place := int(name[1:])) < rows.shape[1]]
            whole = np.asarray(~np.isnan(rows[:, places]).any(axis=1))
            return None if whole.all() else whole
        import pyarrow.compute as pc

        here, find = None, column_finder(rows)
        for name in self._required_columns():
            column = find(name)
            found = None if column is None else arrow_columns.value_mask(column)
            if found is not None:
                here = found if here is None else pc.and_(here, found)
        return None if here is None else np.asarray(here.to_numpy(zero_copy_only=False))

    def _required_columns(self) -> list[str]:
        """Return the columns that must have a value; a label may be missing."""
        found = [*(one.name for one in self.inputs), *self.companions.names]
        return [name for name in dict.fromkeys(found) if name != self.companions.label]

    def chunk_maker(self) -> Callable[[Sequence[Block], int], Chunk]:
        """Return the function that makes chunks, each by itself."""
        names, schema = tuple(self.names), self.schema()

        def make(blocks: Sequence[Block], start: int) -> Chunk:
            X = np.empty((sum(map(len, blocks)), len(names)), dtype=np.complex128 if self.complex else np.float64)
            parts, end = [], 0
            for block in blocks:
                begin, end = end, end + len(block)
                with explain_read_errors(block.name):
                    self._fill(block, X[begin:end])
                    whole = self._whole(block) if self.missing == MARK_MISSING else None
                    self._check(X[begin:end], block)
                    if whole is None:
                        parts.append(self.companions.values(block, column_finder(block.rows)))
                        continue
                    X[begin:end][~whole] = np.nan
                    some = _select_rows(block, whole)
                    parts.append(fill_absent_rows(self.companions.values(some, column_finder(some.rows)), whole))
            return Chunk(
                X,
                names if self.named else None,
                start=start,
                schema=schema,
                kept=self.kept.values(blocks),
                **concatenate_companions(parts),
            )

        return make

    def _fill(self, block: Block, out: AnyArray) -> None:
        if isinstance(block.rows, np.ndarray):
            if block.rows.dtype.kind == "c" and not self.complex:
                raise StreamError(f"{block.name} holds complex numbers, where real ones were before")
            places = [int(one.name[1:]) for one in self.inputs]
            out[:] = block.rows if places == list(range(block.rows.shape[1])) else block.rows[:, places]
            return
        at = 0
        for one in self.inputs:
            column = block.rows.column(one.name)
            if one.dates is not None:
                width = len(one.labels)
                out[:, at : at + width] = to_parts(column, one.dates, f"column {one.name!r} of {block.name}")
                at += width
                continue
            if one.levels is None:
                out[:, at] = arrow_columns.to_numbers(column, f"column {one.name!r} of {block.name}")
                at += 1
                continue
            found, gone = arrow_columns.level_codes(column, one.levels)
            part = out[:, at : at + len(one.levels)]
            part[:] = found[:, None] == np.arange(len(one.levels))
            part[gone] = np.nan
            at += len(one.levels)

    def _check(self, out: AnyArray, block: Block) -> None:
        """Apply the policy for missing values, and refuse infinity."""
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(out.sum()):
                return
        wrong = np.argwhere(np.isinf(out))
        gone = np.isnan(out)
        if len(wrong):
            row, column = wrong[0]
            raise StreamError(f"{block.name} has an infinite value in column {self.names[column]!r}, row {block.number(row)}")
        if self.missing == "zero":
            out[gone] = 0.0
        elif self.missing == "blank":
            out[gone.any(axis=1)] = np.nan
        elif self.missing not in ("keep", MARK_MISSING) and gone.any():
            row, column = np.argwhere(gone)[0]
            raise StreamError(
                f"{block.name} has no value in column {self.names[column]!r}, row {block.number(row)}: missing='drop' leaves "
                f"such rows out, 'zero' puts zeros, 'keep' and 'blank' pass NaN on to models that know it"
            )


def _select_rows(block: Block, here: NDArray[np.bool_]) -> Block:
    """Return some rows of a block."""
    import pyarrow as pa

    rows = block.rows[here] if isinstance(block.rows, np.ndarray) else block.rows.filter(pa.array(here))
    return block.without(rows, here)


def column_finder(rows: pa.RecordBatch | AnyArray) -> Callable[[str], Column | None]:
    """Return the function that finds a column of a record batch or of a matrix by its name."""
    if isinstance(rows, np.ndarray):
        return lambda name: rows[:, int(name[1:])] if name[1:].isdigit() and int(name[1:]) < rows.shape[1] else None
    names = set(rows.schema.names)
    return lambda name: rows.column(name) if name in names else None


def columns_to_read(
    inputs: Sequence[str],
    companions: Companions,
    others: Sequence[str] | None,
    kept: KeptColumns,
    names: Sequence[str],
    place: str,
) -> list[str]:
    """Return the columns to read from a source with these names, or refuse it."""
    present = set(names)
    needed = [*inputs, *kept.names, *(() if companions.optional else companions.names)]
    lost = [name for name in dict.fromkeys(needed) if name not in present]
    if lost:
        raise StreamError(f"{place} lacks the {column_phrase(lost)}; it has {quote_names(names)}")
    known = {*needed, *companions.names, *(others or ())}
    if others is not None and (new := [name for name in names if name not in known]):
        raise StreamError(f"{place} has the {column_phrase(new)}, which the first file does not have: choose by columns=")
    return list(dict.fromkeys([*inputs, *(name for name in companions.names if name in present), *kept.names]))


def rows_per_chunk(bytes_of_row: int) -> int:
    """Return the rows of a chunk of about 4 MB: a power of two, at most 65536, and fewer than 1024 only of rows over 4 kB."""
    return int(2 ** np.clip(np.floor(np.log2(CHUNK_BYTES / max(1, bytes_of_row))), 4, 16))


def whole_sequences(model: Any, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Yield chunks of complete sequences if the model learns from such, and chunks as they are if not."""
    return complete_sequences(chunks) if type(model)._traits.takes_sequences else iter(chunks)


def complete_sequences(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Yield chunks of complete sequences: rows of one key that follow one another, with their lengths in place of the key."""
    waiting: list[Chunk] = []  # parts of a sequence that may continue in the next chunk
    ended: set[str | int] = set()
    for chunk in chunks:
        if chunk.key is None:
            if chunk.start and chunk.lengths is None and chunk.shape[1:] in ((), (1,)):
                raise ValueError(
                    "the stream has one column of symbols and no key, so that all rows are one sequence, which does not fit in "
                    "a chunk: name the column that tells sequences apart by key=, or raise chunk_rows"
                )
            yield chunk
            continue
        key = np.asarray(chunk.key)
        others = np.flatnonzero(key[1:] != key[:-1]) + 1
        if waiting and not len(others) and np.asarray(waiting[0].key)[-1] == key[0]:
            waiting.append(chunk)
            continue
        last = int(others[-1]) if len(others) else 0
        done = [*waiting, select_rows(chunk, slice(0, last))] if last else waiting
        if done:
            yield _with_lengths(concatenate_chunks(done), ended)
        waiting = [replace(select_rows(chunk, slice(last, len(chunk))), start=chunk.start + last)]
    if waiting:
        yield _with_lengths(concatenate_chunks(waiting), ended)


def _with_lengths(chunk: Chunk, ended: set[str | int]) -> Chunk:
    key = np.asarray(chunk.key)
    edges = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1], [True]]))
    names = key[edges[:-1]]
    for name in names.tolist():
        if name in ended:
            raise ValueError(f"rows of the sequence {name!r} are not together: sort the data by its key")
        ended.add(name)
    return replace(chunk, key=None, lengths=np.diff(edges), kept={"key": names})
