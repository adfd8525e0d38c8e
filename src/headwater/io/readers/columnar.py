"""Parquet and Arrow's own formats (IPC files and streams, Feather), which know their columns and, mostly, their rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from headwater.io.options import Options
from headwater.io.pieces import Meter, peeked
from headwater.io.read_errors import NoRows, StreamError, reading
from headwater.io.recipes.column_choice import refuse_twice
from headwater.io.recipes.tables import Head, chunk_rows_of

END = b"\xff\xff\xff\xff\0\0\0\0"
FILE, STREAM, PARQUET = b"ARROW1", b"\xff\xff\xff\xff", b"PAR1"
JUMPS = True
BUFFER = 2**18
SAMPLE_ROWS = 65536


def head(piece: Any, options: Options) -> Head:
    """Look at the types of the columns, and at the first rows."""
    import pyarrow as pa

    with reading(piece.name), _opened(piece) as file:
        schema = file.schema
        rows = min(SAMPLE_ROWS, chunk_rows_of(8 * len(schema.names)))
        batch = next((batch for batch in file.batches(None, 0, rows) if batch.num_rows), None)
        if batch is None:
            raise NoRows(f"{piece.name} has columns but no rows")
        sample = pa.Table.from_batches([batch])
        return Head(
            tuple(schema.names), dict(zip(schema.names, schema.types, strict=True)),
            lambda name: sample.column(name).combine_chunks(),
        )  # fmt: skip


def blocks(piece: Any, options: Options, recipe: Any, skip: int, meter: Meter) -> Iterator[Any]:
    """Yield record batches of the columns that are wanted, after the rows to skip."""
    with reading(piece.name), _opened(piece) as file:
        names = file.schema.names
        refuse_twice(names, piece.name)
        yield from file.batches(recipe.wanted(names, piece.name), skip, recipe.chunk_rows)


def count(piece: Any, options: Options) -> int | None:
    """Return the number of rows, where the file says it."""
    with reading(piece.name), _opened(piece) as file:
        found: int | None = file.count()
        return found


def edges(piece: Any, options: Options) -> list[int]:
    """Return the rows that row groups and record batches begin with: to go to any other, those before it have to be read."""
    with reading(piece.name), _opened(piece) as file:
        found: list[int] = np.cumsum([0, *file.sizes()]).tolist()
        return found[:-1]


@contextmanager
def _opened(piece: Any) -> Iterator[Any]:
    beginning = peeked(piece, 8)
    if beginning.startswith(PARQUET):
        from pyarrow.parquet import ParquetFile

        # A row group may be as large as the file, so that it is read bit by bit, and not at once.
        bounded = {"pre_buffer": False, "buffer_size": BUFFER, "page_checksum_verification": True}
        with piece.seekable() as source, ParquetFile(source, **bounded) as file:
            yield _Parquet(file)
    elif beginning.startswith((FILE, STREAM)):
        with piece.seekable() as source:
            yield _Records(source, beginning.startswith(FILE), piece.name)
    else:
        raise StreamError(f"{piece.name} is neither Parquet nor Arrow: it begins with {beginning!r}")


class _Parquet:
    def __init__(self, file: Any) -> None:
        self.file, self.schema = file, file.schema_arrow

    def count(self) -> int:
        return int(self.file.metadata.num_rows)

    def sizes(self) -> list[int]:
        metadata = self.file.metadata
        return [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]

    def batches(self, columns: list[str] | None, skip: int, rows: int) -> Iterator[Any]:
        """Row groups are skipped as a whole. Columns whose names hold dots would be taken for nested ones, hence all."""
        groups = list(range(self.file.metadata.num_row_groups))
        while groups and skip >= (size := self.file.metadata.row_group(groups[0]).num_rows):
            skip -= size
            groups = groups[1:]
        dotted = columns is not None and any("." in name for name in columns)
        chosen = None if dotted else columns
        found = self.file.iter_batches(rows, row_groups=groups, columns=chosen, use_threads=False) if groups else ()
        for batch in _after(skip, found):
            yield batch.select(columns) if dotted else batch


class _Records:
    """Record batches of a file or a stream of Arrow, which are looked through: they are taken as they are, and may lie."""

    def __init__(self, source: Any, random: bool, name: str) -> None:
        self.source, self.random = source, random
        if not random:
            source.seek(max(0, source.size() - len(END)))
            if source.read(len(END)) != END:
                raise StreamError(f"{name} is cut short: it lacks the mark that ends a stream of Arrow")
        self.schema = self._open(None).schema

    def _open(self, places: list[int] | None) -> Any:
        from pyarrow import ipc

        options = ipc.IpcReadOptions(use_threads=False, included_fields=places or [])
        self.source.seek(0)
        return ipc.open_file(self.source, options=options) if self.random else ipc.open_stream(self.source, options=options)

    def count(self) -> int | None:
        """Only a file can be asked, batch by batch; one column is enough."""
        return sum(self.sizes()) if self.random else None

    def sizes(self) -> list[int]:
        reader = self._open([0])
        return [reader.get_batch(index).num_rows for index in range(reader.num_record_batches)] if self.random else []

    def batches(self, columns: list[str] | None, skip: int, rows: int) -> Iterator[Any]:
        at = {name: place for place, name in enumerate(self.schema.names)}
        places = None if columns is None else sorted(at[name] for name in columns)
        reader = self._open(places)
        found = (reader.get_batch(index) for index in range(reader.num_record_batches)) if self.random else reader
        yield from _after(skip, (_valid(batch) for batch in found))


def _after(skip: int, batches: Iterable[Any]) -> Iterator[Any]:
    """Leave out the first rows."""
    for batch in batches:
        if skip < batch.num_rows:
            yield batch.slice(skip)
        skip = max(0, skip - batch.num_rows)


def _valid(batch: Any) -> Any:
    batch.validate(full=True)
    return batch
