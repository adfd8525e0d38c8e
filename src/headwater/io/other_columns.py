"""The columns of a source that a stream does not use: kept beside the rows, for output that has them all."""

from __future__ import annotations

from dataclasses import replace

from headwater.io.recipes.tables import TableHead, TableRecipe
from headwater.io.recipes.typed_columns import TypedColumnsRecipe
from headwater.io.source_reader import SourceReader
from headwater.io.stream import Stream


def source_columns(stream: Stream) -> list[str]:
    """Return the names of all columns of the first source, in its order; none if it is no table."""
    _, head = stream._reader._first_head()
    return list(head.names) if isinstance(head, TableHead) else []


def keep_other_columns(stream: Stream) -> Stream:
    """Return a stream that keeps every column which it does not use; the stream itself, if there is none."""
    reader = stream._reader
    recipe = reader.recipe
    if not isinstance(recipe, TableRecipe | TypedColumnsRecipe):
        return stream
    inputs = list(recipe.columns) if isinstance(recipe, TypedColumnsRecipe) else [one.name for one in recipe.inputs]
    used = {*inputs, *recipe.companions.names}
    others = tuple(name for name in source_columns(stream) if name not in used)
    if not others:
        return stream
    options = replace(reader.options, keep=others)
    return Stream(SourceReader(reader.sources, options, reader.like), stream._read_ahead)
