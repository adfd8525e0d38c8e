"""Parquet and Arrow's own formats (IPC files and streams, Feather), which know their columns and, mostly, their rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from headwater.io.first_bytes import read_first_bytes
from headwater.io.options import Options
from headwater.io.read_errors import NoRows, StreamError, explain_read_errors
from headwater.io.recipes.column_choice import refuse_duplicate_names
from headwater.io.recipes.recipe import ColumnRecipe
from headwater.io.recipes.tables import TableHead, rows_per_chunk
from headwater.io.sources import File, Meter, Pipe

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

STREAM_END = b"\xff\xff\xff\xff\0\0\0\0"
FILE_MAGIC, STREAM_MAGIC, PARQUET_MAGIC = b"ARROW1", b"\xff\xff\xff\xff", b"PAR1"
RANDOM_ACCESS = True
BUFFER_BYTES = 2**18  # of one column of a Parquet file
SAMPLE_ROWS = 65536  # of the first look, at most


def head(source: File | Pipe, options: Options) -> TableHead:
    """Look at the types of the columns, and at the first rows."""
    import pyarrow as pa

    with explain_read_errors(source.name), _open(source) as file:
        schema = file.schema
        rows = min(SAMPLE_ROWS, rows_per_chunk(8 * len(schema.names)))
        batch = next((batch for batch in file.batches(None, 0, rows) if batch.num_rows), None)
        if batch is None:
            raise NoRows(f"{source.name} has columns but no rows")
        sample = pa.Table.from_batches([batch])
        return TableHead(
            tuple(schema.names), dict(zip(schema.names, schema.types, strict=True)),
            lambda name: sample.column(name).combine_chunks(),
        )  # fmt: skip


def blocks(source: File | Pipe, options: Options, recipe: ColumnRecipe, skip: int, meter: Meter) -> Iterator[pa.RecordBatch]:
    """Yield record batches of the columns that are wanted, after the rows to skip."""
    with explain_read_errors(source.name), _open(source) as file:
        names = file.schema.names
        refuse_duplicate_names(names, source.name)
        yield from file.batches(recipe.columns_to_read(names, source.name), skip, recipe.chunk_rows)


def count(source: File | Pipe, options: Options) -> int | None:
    """Return the number of rows, if the file has it."""
    with explain_read_errors(source.name), _open(source) as file:
        return file.count()


def block_starts(source: File | Pipe, options: Options) -> list[int]:
    """Return the first rows of row groups and record batches: any other row can only be reached by reading those before it."""
    with explain_read_errors(source.name), _open(source) as file:
        found: list[int] = np.cumsum([0, *file.sizes()]).tolist()
        return found[:-1]


@contextmanager
def _open(source: File | Pipe) -> Iterator[_Parquet | _Records]:
    beginning = read_first_bytes(source, 8)
    if beginning.startswith(PARQUET_MAGIC):
        from pyarrow.parquet import ParquetFile

        # A row group may be as large as the file, so it is read piece by piece.
        bounded = {"pre_buffer": False, "buffer_size": BUFFER_BYTES, "page_checksum_verification": True}
        with source.seekable() as opened, ParquetFile(opened, **bounded) as file:
            yield _Parquet(file)
    elif beginning.startswith((FILE_MAGIC, STREAM_MAGIC)):
        with source.seekable() as opened:
            yield _Records(opened, beginning.startswith(FILE_MAGIC), source.name)
    else:
        raise StreamError(f"{source.name} is neither Parquet nor Arrow: it begins with {beginning!r}")


class _Parquet:
    def __init__(self, file: ParquetFile) -> None:
        self.file, self.schema = file, file.schema_arrow

    def count(self) -> int:
        return int(self.file.metadata.num_rows)

    def sizes(self) -> list[int]:
        metadata = self.file.metadata
        return [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]

    def batches(self, columns: list[str] | None, skip: int, rows: int) -> Iterator[pa.RecordBatch]:
        """Skip row groups as a whole. Column names with dots would be taken for nested columns; then all columns are read."""
        groups = list(range(self.file.metadata.num_row_groups))
        while groups and skip >= (size := self.file.metadata.row_group(groups[0]).num_rows):
            skip -= size
            groups = groups[1:]
        dotted = columns is not None and any("." in name for name in columns)
        chosen = None if dotted else columns
        found = self.file.iter_batches(rows, row_groups=groups, columns=chosen, use_threads=False) if groups else ()
        for batch in _skip_rows(skip, found):
            yield batch.select(columns) if dotted else batch


class _Records:
    """Record batches of an Arrow file or stream. Each is validated, since Arrow itself trusts the file."""

    def __init__(self, file: pa.NativeFile, random: bool, name: str) -> None:
        self.file, self.random = file, random
        if not random:
            file.seek(max(0, file.size() - len(STREAM_END)))
            if file.read(len(STREAM_END)) != STREAM_END:
                raise StreamError(f"{name} is cut short: it lacks the mark that ends a stream of Arrow")
        self.schema = self._open(None).schema

    def _open(self, places: list[int] | None) -> pa.RecordBatchFileReader | pa.RecordBatchStreamReader:
        from pyarrow import ipc

        options = ipc.IpcReadOptions(use_threads=False, included_fields=places or [])
        self.file.seek(0)
        return ipc.open_file(self.file, options=options) if self.random else ipc.open_stream(self.file, options=options)

    def count(self) -> int | None:
        """Count the rows of a file, batch by batch; one column is enough. A stream cannot be counted."""
        return sum(self.sizes()) if self.random else None

    def sizes(self) -> list[int]:
        reader = self._open([0])
        return [reader.get_batch(index).num_rows for index in range(reader.num_record_batches)] if self.random else []

    def batches(self, columns: list[str] | None, skip: int, rows: int) -> Iterator[pa.RecordBatch]:
        at = {name: place for place, name in enumerate(self.schema.names)}
        places = None if columns is None else sorted(at[name] for name in columns)
        reader = self._open(places)
        found = (reader.get_batch(index) for index in range(reader.num_record_batches)) if self.random else reader
        yield from _skip_rows(skip, (_validate(batch) for batch in found))


def _skip_rows(skip: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Leave out the first rows."""
    for batch in batches:
        if skip < batch.num_rows:
            yield batch.slice(skip)
        skip = max(0, skip - batch.num_rows)


def _validate(batch: pa.RecordBatch) -> pa.RecordBatch:
    batch.validate(full=True)
    return batch
