"""A stream: chunks of rows of one source or several, in passes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from headwater.core.chunk import Chunk, Chunks
from headwater.io.blocks import first_rows, group_rows
from headwater.io.options import Options
from headwater.io.prefetch import prefetch
from headwater.io.read_errors import NoRows
from headwater.io.recipes.schemas import recipe_like, schema_of
from headwater.io.recipes.tables import complete_sequences
from headwater.io.row_collection import collect_rows
from headwater.io.shuffle import permute_rows
from headwater.io.source_reader import SourceReader
from headwater.io.sources import Meter, Source

DIGEST_LETTERS = 200  # letters; a longer option is replaced by its digest


class Stream(Chunks):
    """Rows as chunks; made by `headwater.stream`. Each iteration is one pass; some sources can be read only once.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> stream = hw.stream(np.zeros((250, 3)), chunk_rows=100)
    >>> [len(chunk) for chunk in stream], stream.total_rows
    ([100, 100, 50], 250)
    """

    def __init__(self, reader: SourceReader, read_ahead: bool) -> None:
        self._reader, self._read_ahead = reader, read_ahead
        self._begun = False
        self._parts: list[Stream] = []  # streams of some of the files, made by `of`
        self._meter = Meter()

    @property
    def _options(self) -> Options:
        return self._reader.options

    # What is known of it

    @property
    def has_chosen_columns(self) -> bool:
        """Whether the user, or the model that rows are read like, says which columns to learn from."""
        return self._options.columns is not None or self._reader.like is not None

    @property
    def schema(self) -> dict[str, object]:
        """How rows are made of what is read, in values that JSON can hold. `like=` reads other files in the same way."""
        return self._reader.recipe.schema()

    @property
    def columns(self) -> list[str] | None:
        """Names of the columns of X, where there are any."""
        return list(self._reader.recipe.names) if self._reader.recipe.named else None

    @property
    def chunk_rows(self) -> int:
        """Rows of each chunk but the last."""
        return self._options.chunk_rows or int(self._reader.recipe.chunk_rows)

    @cached_property
    def total_rows(self) -> int | None:
        """Rows of one pass, if that is known without reading them."""
        if not self._reader.recipe.keeps_every_row:
            return None
        counts = [self._reader.count(index) for index in range(len(self._reader.sources))]
        return None if None in counts else sum(counts)  # type: ignore[arg-type]

    @property
    def skips_rows(self) -> bool:
        """Whether the first file can be read from any row on, without those before it."""
        return self._reader.skips_rows()

    @property
    def block_starts(self) -> list[int] | None:
        """Rows of the first file at which reading can begin cheaply, such as those of row groups; None if it has none."""
        return self._reader.block_starts()

    @property
    def total_bytes(self) -> int | None:
        """Bytes of all files together, as they are stored."""
        sizes = [source.size for source in self._reader.sources]
        return None if None in sizes else sum(sizes)  # type: ignore[arg-type]

    @property
    def bytes_read(self) -> int:
        """Bytes read so far in the last pass; somewhat more than those of the chunks, since reading runs ahead."""
        return self._meter.read()

    @property
    def left_out(self) -> int:
        """Words that were left out so far in the last pass, since the vocabulary does not have them.

        Those of stop words and of words that are too short are not counted. After a pass, the number is that of all its rows.
        """
        return self._meter.left_out

    @property
    def rows_left_out(self) -> int:
        """Rows that were left out so far in the last pass, since they lack a value (`missing="drop"`)."""
        return self._meter.rows_left_out + sum(part.rows_left_out for part in self._parts)

    @property
    def once(self) -> bool:
        """Whether the source can be read only once, as standard input and generators can."""
        return any(source.once for source in self._reader.sources)

    @property
    def files(self) -> list[Source]:
        """The sources in the order of reading. Each has a name; a file has a size and a time of change."""
        return list(self._reader.sources)

    def of(self, files: Sequence[Source], learned: object = None, anew: bool = False) -> Stream:
        """Return the stream of some of the files, read by the recipe of this stream, or by their own with `anew`.

        `learned` is a model that knows more words than the first files have.
        """
        recipe = None
        if not anew:
            recipe = self._reader.recipe
            if recipe.carries_state and learned is not None:
                recipe = recipe_like(schema_of(learned), replace(self._options, columns=None))
        found = Stream(SourceReader(list(files), self._options, self._reader.like, known_recipe=recipe), self._read_ahead)
        self._parts.append(found)
        return found

    def fingerprint(self) -> dict[str, object]:
        """Return what identifies a pass: names, sizes and times of files, and the options."""
        sources = [[source.name, source.size, source.changed] for source in self._reader.sources]
        return {"sources": sources, **self.ways()}

    def ways(self) -> dict[str, object]:
        """Return what identifies the way in which files are read."""
        like = self._reader.like
        said = {name: _digest(value) for name, value in self._options.non_defaults().items()}
        return {"options": said, "like": None if like is None else _digest(dict(like))}

    def describe(self) -> str:
        """Return one line about the stream."""
        names = [source.name for source in self._reader.sources]
        shown = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
        parts = [shown]
        if self.total_bytes is not None:
            parts.append(f"{self.total_bytes:,} bytes")
        if said := self._options.non_defaults():
            parts += [f"{name}={value!r:.60}" for name, value in said.items()]
        return ", ".join(parts)

    def __repr__(self) -> str:
        return f"Stream({self.describe()})"

    # One pass

    def __iter__(self) -> Iterator[Chunk]:
        return self.chunks()

    def whole_sequences(self) -> Iterator[Chunk]:
        """Make one pass in which rows of one key are a complete sequence, with `lengths` in place of keys."""
        return complete_sequences(self)

    def at_once(self) -> Chunk:
        """Return all rows as one chunk, or refuse if they do not fit in memory."""
        return collect_rows(self)

    def in_file_order(self) -> Stream:
        """Return the stream of the same files without shuffling. Its first rows are not looked at again."""
        if not self._options.shuffle:
            return self
        reader = replace(self._reader, options=replace(self._options, shuffle=0), known_recipe=self._reader.recipe)
        return Stream(reader, self._read_ahead)

    def marked(self) -> Stream:
        """Return a stream of all rows, in which those that `missing="drop"` leaves out are NaN in every column."""
        reader = SourceReader(self._reader.sources, self._options, self._reader.like, mark_missing=True)
        return Stream(reader, self._read_ahead)

    def arriving(self) -> Generator[Chunk, None, None]:
        """Make one pass in which a chunk is shorter where a pipe pauses, so that rows that have arrived do not wait."""
        return self._pass(0, hurry=not self._options.shuffle)

    def chunks(self, start_row: int = 0) -> Generator[Chunk, None, None]:
        """Make one pass, or the rest of one: the same chunks that a whole pass yields from this row on.

        Parameters
        ----------
        start_row : int, default=0
            A place where a chunk begins: `chunk.start` of it, or `position(chunk)` of the one before.
        """
        if start_row < 0 or start_row % self.chunk_rows:
            raise ValueError(
                f"start_row must be where a chunk begins, a multiple of chunk_rows = {self.chunk_rows}, got {start_row}"
            )
        return self._pass(start_row)

    def _pass(self, start_row: int, hurry: bool = False) -> Generator[Chunk, None, None]:
        if self.once and self._begun:
            raise ValueError(
                f"{self._reader.sources[0].name} can be read only once, and has been: keep what it gave, or read a file"
            )
        self._reader.recipe  # noqa: B018, what is wrong with the first rows is said at once
        self._begun = True
        self._meter = meter = Meter()
        made = self._refuse_empty(self._make_chunks(start_row, meter, hurry=hurry), start_row)
        return prefetch(made) if self._read_ahead else made

    def stretch(self, start: int, rows: int) -> Generator[Chunk, None, None]:
        """Yield some rows from a given row on, in chunks counted from there: one reader's part of a file that several share.

        Parameters
        ----------
        start : int
            The first row.
        rows : int
            How many rows there are to be.
        """
        return self._make_chunks(start, Meter(), rows)

    @staticmethod
    def position(chunk: Chunk) -> int:
        """Return the row after a chunk, at which a pass can resume. Sequences are counted, not their symbols."""
        return chunk.start + (len(chunk) if chunk.lengths is None else len(chunk.lengths))

    def _refuse_empty(self, made: Iterator[Chunk], start: int) -> Generator[Chunk, None, None]:
        """Refuse a pass without a single row."""
        empty = start == 0
        for chunk in made:
            empty = False
            yield chunk
        if empty:
            raise NoRows(f"{self._reader.sources[0].name} has no rows that could be used")

    def _make_chunks(
        self, start: int, meter: Meter, rows: int | None = None, hurry: bool = False
    ) -> Generator[Chunk, None, None]:
        recipe, size = self._reader.recipe, self.chunk_rows
        make = recipe.chunk_maker()
        if not self._options.shuffle:
            begin = 0 if recipe.carries_state else start
            for group in group_rows(first_rows(self._reader.blocks(begin, meter), rows), size, hurry):
                chunk = make(group, begin)
                if meter.rows_left_out:  # including those of whole blocks that are in no group
                    chunk = replace(chunk, places=np.concatenate([block.places for block in group]))
                meter.left_out = getattr(make, "left_out", 0)
                begin = self.position(chunk)
                if chunk.start >= start:
                    yield chunk
                del group, chunk
            return
        # Whole chunks are shuffled together, so that a pass can begin at any of them.
        span = -(-self._options.shuffle // size) * size
        begin = 0 if recipe.carries_state else start // span * span
        for group in group_rows(self._reader.blocks(begin, meter), span):
            whole = make(group, begin)
            meter.left_out = getattr(make, "left_out", 0)
            following = self.position(whole)
            for chunk in permute_rows(whole, size, self._options.seed, begin // span):
                if chunk.start >= start:
                    yield chunk
            begin = following


def _digest(value: object) -> object:
    """Return a short value as it is, and a long one as its digest."""
    text = json.dumps(value, sort_keys=True)
    return value if len(text) <= DIGEST_LETTERS else hashlib.sha256(text.encode()).hexdigest()
