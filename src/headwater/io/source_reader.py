"""Reading the sources of a stream: the format of each, the recipe that all of them share, and blocks of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from headwater.io.blocks import Block
from headwater.io.first_bytes import read_arrived_lines, read_first_bytes
from headwater.io.formats import (
    ANY_KIND,
    MEMORY_FORMAT,
    MEMORY_LINE_FORMATS,
    Format,
    find_format,
    recognize_format,
    suffix_format,
)
from headwater.io.options import Options
from headwater.io.read_errors import NoRows, StreamError
from headwater.io.recipes.column_choice import add_kept_columns
from headwater.io.recipes.recipe import Recipe
from headwater.io.recipes.row_kinds import plan_recipe, refuse_kind
from headwater.io.recipes.schemas import recipe_like
from headwater.io.recipes.sparse import SparseHead, merge_heads
from headwater.io.recipes.tables import MARK_MISSING, TableRecipe
from headwater.io.schema_fields import Schema
from headwater.io.sources import File, InMemory, Meter, Pipe, Source

if TYPE_CHECKING:
    from headwater.io.recipes.recipe import Head

FORMAT_BYTES = 4096  # first bytes by which a format is recognized


@dataclass
class SourceReader:
    """The sources of a stream, with the options of the user and the schema of `like`, if there is one.

    With `mark_missing`, rows that `missing="drop"` would leave out are there, and NaN in every column. `known_recipe` is used
    in place of the one that the first rows tell.
    """

    sources: list[Source]
    options: Options
    like: Schema | None = None
    mark_missing: bool = False
    known_recipe: Recipe | None = None
    formats: dict[int, Format] = field(default_factory=dict)

    @cached_property
    def recipe(self) -> Recipe:
        """How chunks are made. The first rows are read once for this."""
        found = self.known_recipe or self._plan()
        if self.mark_missing and isinstance(found, TableRecipe) and found.missing == "drop":
            return replace(found, missing=MARK_MISSING)
        return found

    def _plan(self) -> Recipe:
        if self.like is not None and not self.options.keep:
            return recipe_like(self.like, self.options)
        index, head = self._first_head()
        name = self.sources[index].name
        if isinstance(head, SparseHead) and head.open and len(self.sources) > 1:
            head = merge_heads([self._sparse_head(at) for at in range(len(self.sources))])
        if self.like is None:
            found = plan_recipe(self.format(index), head, self.options, name)
        else:
            found = recipe_like(self.like, self.options)
        return add_kept_columns(found, head, self.options_for(index), name) if self.options.keep else found

    def _first_head(self) -> tuple[int, Head]:
        """Look at the first source that has rows; return its index as well."""
        for index in range(len(self.sources)):
            try:
                return index, self._head(index)
            except NoRows:
                if index + 1 == len(self.sources):
                    raise
        raise AssertionError("a stream has at least one source")

    def _head(self, index: int) -> Head:
        return self.format(index).load_reader().head(self.sources[index], self.options_for(index))

    def _sparse_head(self, index: int) -> SparseHead:
        found = self._head(index)
        assert isinstance(found, SparseHead)
        return found

    def format(self, index: int) -> Format:
        """Return the format of a source: as the user named it, by the ending of its name, or by its first bytes."""
        if index not in self.formats:
            source, named = self.sources[index], self.options.format
            if isinstance(source, InMemory):
                found = MEMORY_LINE_FORMATS.get(named or "", MEMORY_FORMAT)
            elif named is not None:
                found = find_format(named)
            else:
                found = suffix_format(source.bare) or _recognize(source)
            self.formats[index] = found
        return self.formats[index]

    def options_for(self, index: int) -> Options:
        """Return the options with the format of a source, without shuffling, which comes after reading.

        Rows of a pipe that are read like others do not wait for more.
        """
        brief = self.like is not None and isinstance(self.sources[index], Pipe)
        return replace(self.options, format=self.format(index).name, brief=brief, shuffle=0, seed=0)

    def count(self, index: int) -> int | None:
        """Return the number of rows of a source, if it is known without reading them."""
        return self.format(index).load_reader().count(self.sources[index], self.options_for(index))

    def skips_rows(self, index: int = 0) -> bool:
        """Whether a source can be read from any row on, without those before it."""
        return self.format(index).load_reader().RANDOM_ACCESS and self.recipe.keeps_every_row

    def block_starts(self, index: int = 0) -> list[int] | None:
        """Return the rows at which a source can be entered cheaply, or None if it does not say."""
        find = getattr(self.format(index).load_reader(), "block_starts", None)
        return None if find is None else find(self.sources[index], self.options_for(index))

    def blocks(self, skip: int, meter: Meter) -> Iterator[Block]:
        """Yield blocks of rows, after so many rows. Sources that know their number of rows are skipped without reading."""
        recipe, before = self.recipe, 0
        for index, source in enumerate(self.sources):
            form = self.format(index)
            reader, options = form.load_reader(), self.options_for(index)
            if form.kind != ANY_KIND:
                refuse_kind(recipe, form.kind, source.name)
            size = reader.count(source, options) if skip and recipe.keeps_every_row and reader.RANDOM_ACCESS else None
            if size is not None and skip >= size:
                skip, before = skip - size, before + size
                meter.finish(source.size)
                continue
            here = skip if size is not None else 0
            read = [here]
            found = self._number(reader.blocks(source, options, recipe, here, meter), source, before, read, meter)
            skip -= here
            for block in found:
                if skip and skip >= len(block):
                    skip -= len(block)
                    continue
                yield block.part(skip, len(block)) if skip else block
                skip = 0
            before += read[0]
            meter.finish(source.size)

    def _number(self, found: Iterable[object], source: Source, before: int, read: list[int], meter: Meter) -> Iterator[Block]:
        """Number the rows by their place in the file, before any are left out; `read` counts them."""
        for rows in found:
            block = Block(rows, source.name, read[0], before=before)
            read[0] += len(block)
            kept = self.recipe.filter_rows(block)
            if kept.numbers is not None:  # comments and empty lines between sequences are not rows
                meter.rows_left_out += len(block) - len(kept)
            yield kept
            if isinstance(source, Pipe) and source.pauses():
                yield Block([], source.name, read[0], before=before, pause=True)


def _recognize(source: File | Pipe) -> Format:
    """Return the format that the first bytes of a source look like; those of a pipe are read line by line."""
    if not isinstance(source, Pipe):
        return recognize_format(source.name, read_first_bytes(source, FORMAT_BYTES))
    lines = 1
    while True:
        found = read_arrived_lines(source, lines)
        first = found.lstrip().split(b"\n", lines)
        try:
            return recognize_format(source.name, b"\n".join(first[:lines])[:FORMAT_BYTES] + b"\n")
        except StreamError:
            if len(first) <= lines or len(found) >= FORMAT_BYTES:
                raise
        lines += 1
