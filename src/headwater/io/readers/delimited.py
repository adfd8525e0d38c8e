"""CSV and TSV, by pyarrow: files by its incremental reader on one thread, pipes by whole rows as they arrive."""

from __future__ import annotations

import re
import time
import weakref
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from headwater.io.byte_streams import HEAD_BYTES, LINE_BYTES_LIMIT, AppendedBytes, ByteStream
from headwater.io.options import Options
from headwater.io.read_errors import NoRows, StreamError, explain_read_errors
from headwater.io.readers.delimited_head import Look, convert_options, explain_csv_errors, look_at_first_rows, parse_options
from headwater.io.recipes.column_choice import refuse_duplicate_names
from headwater.io.recipes.recipe import ColumnRecipe
from headwater.io.recipes.tables import TableHead
from headwater.io.sources import File, Meter, Pipe

if TYPE_CHECKING:
    import pyarrow as pa

RANDOM_ACCESS = False
RELEASE_SECONDS = 0.5  # longest wait for the threads of pyarrow to release a file


def head(source: File | Pipe, options: Options) -> TableHead:
    """Look at the first rows: names and types of the columns."""
    look = look_at_first_rows(source, options)
    if look.rows is None or not look.rows.num_rows:
        raise NoRows(f"{source.name} has names of columns but no rows")
    return TableHead(tuple(look.names), look.types(), look.column, guessed=True)


def blocks(source: File | Pipe, options: Options, recipe: ColumnRecipe, skip: int, meter: Meter) -> Iterator[pa.RecordBatch]:
    """Yield record batches of the columns that are wanted."""
    if isinstance(source, Pipe):
        yield from _pipe_blocks(source, options, recipe, meter)
        return
    from pyarrow import PythonFile, csv

    look = look_at_first_rows(source, options)
    wanted = _columns_to_read(look, recipe, source.name)
    if look.rows is None:
        return
    with explain_read_errors(source.name), source.open(meter) as stream, explain_csv_errors(source.name, wanted):
        followed = AppendedBytes(stream, _sentinel_row(look))
        held = weakref.ref(followed)
        found = csv.open_csv(
            PythonFile(followed, mode="r"),
            csv.ReadOptions(use_threads=False, column_names=look.names, skip_rows=look.skip, block_size=look.block_size),
            parse_options(look.delimiter),
            csv.ConvertOptions(
                include_columns=wanted, column_types=_column_types(look, recipe), **convert_options(look.decimal)
            ),
        )
        del followed
        try:
            yield from _drop_sentinel_row(found, source.name)
        finally:
            del found
            _wait_for_release(held)


def count(source: File | Pipe, options: Options) -> int | None:
    """Return None: the number of rows is known only at the end."""
    return None


def _columns_to_read(look: Look, recipe: ColumnRecipe, name: str) -> list[str]:
    refuse_duplicate_names(look.names, name)
    found: list[str] = recipe.columns_to_read(look.names, name)
    return found


def _column_types(look: Look, recipe: ColumnRecipe) -> dict[str, pa.DataType]:
    """Return the types of the columns: those of the recipe, and booleans where the first rows hold true or false."""
    from pyarrow import bool_
    from pyarrow.types import is_boolean

    types: dict[str, pa.DataType] = recipe.types()
    return types | {name: bool_() for name, kind in look.types().items() if name in types and is_boolean(kind)}


def _pipe_blocks(source: Pipe, options: Options, recipe: ColumnRecipe, meter: Meter) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a pipe as they come: pyarrow's own reader would wait for the block after the next."""
    look = look_at_first_rows(source, options)
    wanted, before = _columns_to_read(look, recipe, source.name), 0
    with explain_read_errors(source.name), source.open(meter) as stream:
        for number, found in enumerate(_whole_rows(stream, look.delimiter, source.name)):
            body = found[look.start :] if number == 0 else found
            lines = before + (found.count(b"\n", 0, look.start) if number == 0 else 0)
            before += found.count(b"\n")
            if body.strip(b"\r\n"):
                with explain_csv_errors(source.name, wanted, lines):
                    table = _convert(body, look, wanted, _column_types(look, recipe))
                yield from table.to_batches()


def _whole_rows(stream: ByteStream, delimiter: str, name: str) -> Iterator[bytes]:
    """Yield the bytes of a stream in blocks that end where a row does; a value in quotation marks may hold line breaks."""
    quoted = re.compile(rb'(?:\A|(?<=[\n\r%b]))"(?:[^"]|"")*+("|\Z)' % re.escape(delimiter.encode()))
    rest = b""
    while part := stream.read(HEAD_BYTES):
        rest += part
        end = len(rest)
        if b'"' in rest:
            end = next((one.start() for one in quoted.finditer(rest) if not one[1]), end)
        end = rest.rfind(b"\n", 0, end) + 1
        if end:
            yield rest[:end]
            rest = rest[end:]
        elif len(rest) > LINE_BYTES_LIMIT:
            raise StreamError(
                f"{name} has a row of more than {LINE_BYTES_LIMIT >> 20} MB, or a quotation mark that is never closed"
            )
    if any(not one[1] for one in quoted.finditer(rest)):
        raise StreamError(f"{name} has a quotation mark that is never closed")
    if rest:
        yield rest


def _convert(body: bytes, look: Look, wanted: list[str], types: dict[str, pa.DataType]) -> pa.Table:
    """Return the table of some rows. Columns of true and false may begin with missing values."""
    from pyarrow import BufferReader, bool_, csv
    from pyarrow.types import is_boolean

    def parse(types: dict[str, pa.DataType]) -> pa.Table:
        return csv.read_csv(
            BufferReader(body),
            csv.ReadOptions(use_threads=False, column_names=look.names, block_size=max(len(body), HEAD_BYTES)),
            parse_options(look.delimiter),
            csv.ConvertOptions(include_columns=wanted, column_types=types, **convert_options(look.decimal)),
        )

    try:
        return parse(types)
    except ValueError:
        found = {name: bool_() for name, kind in zip(wanted, parse({}).schema.types, strict=True) if is_boolean(kind)}
        if not found:
            raise
        return parse(types | {name: kind for name, kind in found.items() if name in types})


def _wait_for_release(held: weakref.ref[AppendedBytes]) -> None:
    """Wait until the threads of pyarrow have released our file: otherwise a process that ends meanwhile would crash."""
    until = time.monotonic() + RELEASE_SECONDS
    while held() is not None and time.monotonic() < until:
        time.sleep(0.001)


def _sentinel_row(look: Look) -> bytes:
    """Return a row of missing values. A file whose last quotation mark is never closed would swallow it."""
    return b"\n" + look.delimiter.join(["NA"] * len(look.names)).encode() + b"\n"


def _drop_sentinel_row(batches: Iterable[pa.RecordBatch], name: str) -> Iterator[pa.RecordBatch]:
    waiting = None
    for batch in batches:
        if not batch.num_rows:
            continue
        if waiting is not None:
            yield waiting
        waiting = batch
    if waiting is None or any(column[-1].is_valid for column in waiting.columns):
        raise StreamError(f"{name} has a quotation mark that is never closed")
    yield waiting.slice(0, waiting.num_rows - 1)
