"""Parquet and Arrow's own formats (IPC files and streams, Feather), which know their columns and, mostly, their rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headwater.streams.choosing import refuse_twice
from headwater.streams.options import Options
from headwater.streams.pieces import Meter, peeked
from headwater.streams.sentences import StreamError, reading
from headwater.streams.tables import Head, chunk_rows_of

END = b"\xff\xff\xff\xff\0\0\0\0"
FILE, STREAM, PARQUET = b"ARROW1", b"\xff\xff\xff\xff", b"PAR1"
JUMPS = True
SAMPLE_ROWS = 65536


def head(piece: Any, options: Options) -> Head:
    """Look at the types of the columns, and at the first rows."""
    import pyarrow as pa

    with reading(piece.name), _opened(piece) as file:
        schema = file.schema
        rows = min(SAMPLE_ROWS, chunk_rows_of(8 * len(schema.names)))
        batch = next((batch for batch in file.batches(None, 0, rows) if batch.num_rows), None)
        if batch is None:
            raise StreamError(f"{piece.name} has columns but no rows")
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
        rows: int | None = file.rows
        return rows


@contextmanager
def _opened(piece: Any) -> Iterator[Any]:
    beginning = peeked(piece, 8)
    if beginning.startswith(PARQUET):
        from pyarrow.parquet import ParquetFile

        with piece.seekable() as source, ParquetFile(source, page_checksum_verification=True) as file:
            yield _Parquet(file)
    elif beginning.startswith(FILE):
        from pyarrow import ipc

        with piece.seekable() as source, ipc.open_file(source) as reader:
            yield _Records(reader)
    elif beginning.startswith(STREAM):
        from pyarrow import ipc

        with piece.seekable() as source:
            source.seek(max(0, source.size() - len(END)))
            if source.read(len(END)) != END:
                raise StreamError(f"{piece.name} is cut short: it lacks the mark that ends a stream of Arrow")
            source.seek(0)
            stream = ipc.open_stream(source)
            yield _RecordStream(stream)
    else:
        raise StreamError(f"{piece.name} is neither Parquet nor Arrow: it begins with {beginning!r}")


class _Parquet:
    def __init__(self, file: Any) -> None:
        self.file, self.schema, self.rows = file, file.schema_arrow, int(file.metadata.num_rows)

    def batches(self, columns: list[str] | None, skip: int, rows: int) -> Iterator[Any]:
        """Row groups are skipped as a whole. Columns whose names hold dots would be taken for nested ones, hence all."""
        groups = list(range(self.file.metadata.num_row_groups))
        while groups and skip >= (size := self.file.metadata.row_group(groups[0]).num_rows):
            skip -= size
            groups = groups[1:]
        chosen = None if columns is None or any("." in name for name in columns) else columns
        found = self.file.iter_batches(rows, row_groups=groups, columns=chosen, use_threads=False) if groups else ()
        for batch in found:
            if skip >= batch.num_rows:
                skip -= batch.num_rows
                continue
            yield batch.slice(skip)
            skip = 0


def _valid(batch: Any) -> Any:
    """Look through the places that a batch speaks of: Arrow's own formats are taken as they are, and may lie."""
    batch.validate(full=True)
    return batch


class _Records:
    def __init__(self, reader: Any) -> None:
        self.reader, self.schema = reader, reader.schema
        self.rows = sum(reader.get_batch(index).num_rows for index in range(reader.num_record_batches))

    def batches(self, columns: list[str] | None, skip: int, rows: int) -> Iterator[Any]:
        for index in range(self.reader.num_record_batches):
            batch = _valid(self.reader.get_batch(index))
            if skip >= batch.num_rows:
                skip -= batch.num_rows
                continue
            yield batch.slice(skip)
            skip = 0


class _RecordStream:
    rows = None

    def __init__(self, reader: Any) -> None:
        self.reader, self.schema = reader, reader.schema

    def batches(self, columns: list[str] | None, skip: int, rows: int) -> Iterator[Any]:
        for batch in self.reader:
            yield _valid(batch)
