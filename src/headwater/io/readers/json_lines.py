"""JSON lines: one object a line, by pyarrow, in blocks of whole lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from headwater.io.options import Options
from headwater.io.pieces import HEAD, Meter, first_lines, glanced
from headwater.io.read_errors import StreamError, reading, told
from headwater.io.readers.lines import whole_lines
from headwater.io.recipes.column_choice import refuse_twice
from headwater.io.recipes.tables import Head

JUMPS = False
DEEPEST = 500  # values within values; pyarrow fails at some thousand, by the stack that a thread has
MOST_FIELDS = 50_000  # of a line; the time that pyarrow takes grows faster than they do
TEXT = re.compile(rb'"(?:[^"\\]|\\.)*+"')


def head(piece: Any, options: Options) -> Head:
    """Look at the fields of the first objects."""
    table = _looked(piece, options)
    return Head(
        tuple(table.schema.names),
        dict(zip(table.schema.names, table.schema.types, strict=True)),
        lambda name: table.column(name).combine_chunks(),
    )


def blocks(piece: Any, options: Options, recipe: Any, skip: int, meter: Meter) -> Iterator[Any]:
    """Yield record batches of the fields that are wanted."""
    import pyarrow as pa

    schema = _looked(piece, options).schema
    refuse_twice(schema.names, piece.name)
    types = recipe.types()
    known = schema.names
    if options.brief:  # objects after the first may have what it lacks
        known = list(dict.fromkeys([*known, *(name for name in types if name not in recipe.companions.names)]))
    wanted = recipe.wanted(known, piece.name)
    bools = {name for name in wanted if name in schema.names and pa.types.is_boolean(schema.field(name).type)}
    explicit = {name: pa.bool_() if name in bools else types[name] for name in wanted}
    row = 0
    with reading(piece.name), piece.open(meter) as stream:
        for found in whole_lines(stream, piece.name):
            if not found.strip():
                continue
            try:
                table = _converted(found, explicit, piece.name)
            except StreamError:
                raise
            except ValueError as error:
                raise StreamError(_sentence(piece.name, told(error), row)) from error
            row += table.num_rows
            yield from table.select(wanted).to_batches()


def _sentence(name: str, said: str, before: int) -> str:
    """Return what is wrong with a file, whose row pyarrow counts from the first one of a block."""
    numbered = re.fullmatch(r"(.* in row )(\d+)", said)
    if numbered is None:
        return f"{name} cannot be read after row {before}: {said}"
    return f"{name} cannot be read: {numbered[1]}{before + int(numbered[2])}"


def _converted(found: bytes, types: dict[str, Any], name: str) -> Any:
    """Return the table of some objects. True and false may come after missing values, so that no look tells of them."""
    import pyarrow as pa

    try:
        return _parsed(found, pa.schema(list(types.items())), name)
    except StreamError:
        raise
    except ValueError as error:
        seen = _parsed(found, None, name).schema
        bools = {one: pa.bool_() for one in types if one in seen.names and pa.types.is_boolean(seen.field(one).type)}
        if not bools or set(bools.items()) <= set(types.items()):
            raise error from None
        return _parsed(found, pa.schema(list((types | bools).items())), name)


def count(piece: Any, options: Options) -> int | None:
    """Nobody knows before the end."""
    return None


def _looked(piece: Any, options: Options) -> Any:
    if options.brief:
        found = glanced(piece)
        found = found[: len(found) - len(found.lstrip())] + found.lstrip().split(b"\n")[0]
    else:
        found = first_lines(piece, HEAD)
    with reading(piece.name):
        return _parsed(found, None, piece.name)


def _parsed(found: bytes, schema: Any, name: str) -> Any:
    from pyarrow import BufferReader, json

    _refuse_extremes(found, name)
    return json.read_json(
        BufferReader(found),
        json.ReadOptions(use_threads=False, block_size=len(found) + 1),
        json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer" if schema is None else "ignore"),
    )


def _refuse_extremes(found: bytes, name: str) -> None:
    """Refuse values within values that are so deep that pyarrow, which calls itself for each, would end the process.

    And objects of so many fields that it would take for ever.
    """
    letters = np.frombuffer(found, np.uint8)
    opening = np.flatnonzero((letters | 0x20) == ord("{"))  # and "[", which differs in this bit alone
    ends = np.append(np.flatnonzero(letters == ord("\n")), len(letters))
    opened = np.diff(np.searchsorted(opening, ends), prepend=0)
    for line in np.flatnonzero(opened > DEEPEST):
        begin = ends[line - 1] if line else 0
        marks = np.frombuffer(TEXT.sub(b"", found[begin : ends[line]]), np.uint8) | 0x20
        depth = np.cumsum((marks == ord("{")).astype(np.int64) - (marks == ord("}")))
        if depth.max(initial=0) > DEEPEST:
            raise StreamError(f"{name} has values within values, {depth.max()} deep, where at most {DEEPEST} are read")
    colons = np.flatnonzero(letters == ord(":"))
    if (fields := int(np.diff(np.searchsorted(colons, ends), prepend=0).max())) > MOST_FIELDS:
        raise StreamError(
            f"{name} has a line of {fields:,} fields, where at most {MOST_FIELDS:,} are read: store it as .npy or .npz, or as "
            f".svm if most values are zero"
        )
