"""JSON lines: one object a line, by pyarrow, in blocks of whole lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from headwater.io.byte_streams import HEAD_BYTES
from headwater.io.first_bytes import read_arrived_lines, read_first_lines
from headwater.io.options import Options
from headwater.io.read_errors import StreamError, explain_read_errors, one_line_message
from headwater.io.readers.lines import whole_lines
from headwater.io.recipes.column_choice import refuse_duplicate_names
from headwater.io.recipes.recipe import ColumnRecipe
from headwater.io.recipes.tables import TableHead
from headwater.io.sources import File, Meter, Pipe

if TYPE_CHECKING:
    import pyarrow as pa

RANDOM_ACCESS = False
DEPTH_LIMIT = 500  # levels of nesting; pyarrow overflows the stack of a thread at some thousand
FIELD_LIMIT = 50_000  # of a line; the time of pyarrow grows faster than their number
STRING_LITERAL = re.compile(rb'"(?:[^"\\]|\\.)*+"')


def head(source: File | Pipe, options: Options) -> TableHead:
    """Look at the fields of the first objects."""
    table = _look(source, options)
    return TableHead(
        tuple(table.schema.names),
        dict(zip(table.schema.names, table.schema.types, strict=True)),
        lambda name: table.column(name).combine_chunks(),
    )


def blocks(source: File | Pipe, options: Options, recipe: ColumnRecipe, skip: int, meter: Meter) -> Iterator[pa.RecordBatch]:
    """Yield record batches of the fields that are wanted."""
    import pyarrow as pa

    schema = _look(source, options).schema
    refuse_duplicate_names(schema.names, source.name)
    types = recipe.types()
    known = schema.names
    if options.brief:  # later objects may have further fields
        known = list(dict.fromkeys([*known, *(name for name in types if name not in recipe.companions.names)]))
    wanted = recipe.columns_to_read(known, source.name)
    bools = {name for name in wanted if name in schema.names and pa.types.is_boolean(schema.field(name).type)}
    explicit = {name: pa.bool_() if name in bools else types[name] for name in wanted}
    row = 0
    with explain_read_errors(source.name), source.open(meter) as stream:
        for found in whole_lines(stream, source.name):
            if not found.strip():
                continue
            try:
                table = _convert(found, explicit, source.name)
            except StreamError:
                raise
            except ValueError as error:
                raise StreamError(_explanation(source.name, one_line_message(error), row)) from error
            row += table.num_rows
            yield from table.select(wanted).to_batches()


def _explanation(name: str, said: str, before: int) -> str:
    """Explain what is wrong with a file; pyarrow counts rows from the first one of a block."""
    numbered = re.fullmatch(r"(.* in row )(\d+)", said)
    if numbered is None:
        return f"{name} cannot be read after row {before}: {said}"
    return f"{name} cannot be read: {numbered[1]}{before + int(numbered[2])}"


def _convert(found: bytes, types: dict[str, pa.DataType], name: str) -> pa.Table:
    """Return the table of some objects. True and false may first come after missing values."""
    import pyarrow as pa

    try:
        return _parse(found, pa.schema(list(types.items())), name)
    except StreamError:
        raise
    except ValueError as error:
        seen = _parse(found, None, name).schema
        bools = {one: pa.bool_() for one in types if one in seen.names and pa.types.is_boolean(seen.field(one).type)}
        if not bools or set(bools.items()) <= set(types.items()):
            raise error from None
        return _parse(found, pa.schema(list((types | bools).items())), name)


def count(source: File | Pipe, options: Options) -> int | None:
    """Return None: the number of rows is known only at the end."""
    return None


def _look(source: File | Pipe, options: Options) -> pa.Table:
    if options.brief:
        found = read_arrived_lines(source)
        found = found[: len(found) - len(found.lstrip())] + found.lstrip().split(b"\n")[0]
    else:
        found = read_first_lines(source, HEAD_BYTES)
    with explain_read_errors(source.name):
        return _parse(found, None, source.name)


def _parse(found: bytes, schema: pa.Schema | None, name: str) -> pa.Table:
    from pyarrow import BufferReader, json

    _refuse_extremes(found, name)
    return json.read_json(
        BufferReader(found),
        json.ReadOptions(use_threads=False, block_size=len(found) + 1),
        json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer" if schema is None else "ignore"),
    )


def _refuse_extremes(found: bytes, name: str) -> None:
    """Refuse values that are nested so deep that pyarrow, which recurses, would crash the process.

    Refuse objects with so many fields that reading would take too long.
    """
    letters = np.frombuffer(found, np.uint8)
    opening = np.flatnonzero((letters | 0x20) == ord("{"))  # and "[", which differs in this bit alone
    ends = np.append(np.flatnonzero(letters == ord("\n")), len(letters))
    opened = np.diff(np.searchsorted(opening, ends), prepend=0)
    for line in np.flatnonzero(opened > DEPTH_LIMIT):
        begin = ends[line - 1] if line else 0
        marks = np.frombuffer(STRING_LITERAL.sub(b"", found[begin : ends[line]]), np.uint8) | 0x20
        depth = np.cumsum((marks == ord("{")).astype(np.int64) - (marks == ord("}")))
        if depth.max(initial=0) > DEPTH_LIMIT:
            raise StreamError(f"{name} has values within values, {depth.max()} deep, where at most {DEPTH_LIMIT} are read")
    colons = np.flatnonzero(letters == ord(":"))
    if (fields := int(np.diff(np.searchsorted(colons, ends), prepend=0).max())) > FIELD_LIMIT:
        raise StreamError(
            f"{name} has a line of {fields:,} fields, where at most {FIELD_LIMIT:,} are read: store it as .npy or .npz, or as "
            f".svm if most values are zero"
        )
