"""JSON lines: one object a line, by pyarrow, in blocks of whole lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headwater.streams.choosing import refuse_twice
from headwater.streams.lines import whole_lines
from headwater.streams.options import Options
from headwater.streams.pieces import HEAD, Meter, peeked
from headwater.streams.sentences import StreamError, reading, told
from headwater.streams.tables import Head

JUMPS = False


def head(piece: Any, options: Options) -> Head:
    """Look at the fields of the first objects."""
    table = _looked(piece)
    return Head(
        tuple(table.schema.names),
        dict(zip(table.schema.names, table.schema.types, strict=True)),
        lambda name: table.column(name).combine_chunks(),
    )


def blocks(piece: Any, options: Options, recipe: Any, skip: int, meter: Meter) -> Iterator[Any]:
    """Yield record batches of the fields that are wanted."""
    import pyarrow as pa

    schema = _looked(piece).schema
    refuse_twice(schema.names, piece.name)
    types = recipe.types()
    wanted = recipe.wanted(schema.names, piece.name)
    bools = {name for name in wanted if pa.types.is_boolean(schema.field(name).type)}
    explicit = pa.schema([(name, pa.bool_() if name in bools else types[name]) for name in wanted])
    row = 0
    with reading(piece.name), piece.open(meter) as stream:
        for found in whole_lines(stream, piece.name):
            if not found.strip():
                continue
            try:
                table = _parsed(found, explicit)
            except ValueError as error:
                raise StreamError(f"{piece.name} cannot be read after row {row}: {told(error)}") from error
            row += table.num_rows
            yield from table.select(wanted).to_batches()


def count(piece: Any, options: Options) -> int | None:
    """Nobody knows before the end."""
    return None


def _looked(piece: Any) -> Any:
    found = peeked(piece)
    if len(found) >= HEAD and b"\n" in found:
        found = found[: found.rfind(b"\n") + 1]
    with reading(piece.name):
        return _parsed(found, None)


def _parsed(found: bytes, schema: Any) -> Any:
    from pyarrow import BufferReader, json

    return json.read_json(
        BufferReader(found),
        json.ReadOptions(use_threads=False, block_size=len(found) + 1),
        json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer" if schema is None else "ignore"),
    )
