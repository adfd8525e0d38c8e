"""`hw.stream`: chunks of rows, from wherever they are."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from headwater.core.chunk import Chunk, Chunks
from headwater.io.all_rows import gathered
from headwater.io.blocks import Block, first_rows, grouped
from headwater.io.formats import ANY, IN_MEMORY, MEMORY, Format, find_format, sniffed, suffix_format
from headwater.io.options import Options, make_options
from headwater.io.pieces import Held, Meter, Pipe, glanced, peeked
from headwater.io.read_ahead import ahead
from headwater.io.read_errors import NoRows, StreamError
from headwater.io.recipes.column_choice import keeping
from headwater.io.recipes.kinds import plan, refuse_kind
from headwater.io.recipes.schemas import recipe_like, schema_of
from headwater.io.recipes.sparse import widest
from headwater.io.recipes.table_sequences import complete_sequences
from headwater.io.recipes.tables import MARK
from headwater.io.shuffle import permuted
from headwater.io.sources import Piece, find_pieces

LOOK = 4096  # bytes by which a format is told


class Stream(Chunks):
    """Rows as chunks; made by `headwater.stream`. Each iteration is one pass, wherever the source can be read again."""

    def __init__(self, pieces: list[Piece], options: Options, schema: Mapping[str, Any] | None, prefetch: bool) -> None:
        self._pieces, self._options, self._like, self._prefetch = pieces, options, schema, prefetch
        self._formats: dict[int, Format] = {}
        self._begun = False
        self._marks = False
        self._parts: list[Stream] = []  # of which each reads some of the files
        self._meter = Meter()

    # What is known of it

    @cached_property
    def _recipe(self) -> Any:
        """How chunks are made, which a look at the first rows tells."""
        found = self._planned()
        return replace(found, missing=MARK) if self._marks and getattr(found, "missing", None) == "drop" else found

    def _planned(self) -> Any:
        if self._like is not None and not self._options.keep:
            return recipe_like(self._like, self._options)
        at, head = self._first_head()
        one, first = self._format(at), self._pieces[at]
        if getattr(head, "open", False) and len(self._pieces) > 1:
            head = widest([self._format(at).read().head(piece, self._said(at)) for at, piece in enumerate(self._pieces)])
        found = plan(one, head, self._options, first.name) if self._like is None else recipe_like(self._like, self._options)
        return keeping(found, head, self._said(at), first.name) if self._options.keep else found

    def _first_head(self) -> tuple[int, Any]:
        """Look at the first piece that has rows."""
        for at, piece in enumerate(self._pieces):
            try:
                return at, self._format(at).read().head(piece, self._said(at))
            except NoRows:
                if at + 1 == len(self._pieces):
                    raise
        raise AssertionError("a stream has at least one piece")

    def _format(self, index: int) -> Format:
        """Return the format of a piece: as named, by its ending, or by its first bytes."""
        if index not in self._formats:
            piece, named = self._pieces[index], self._options.format
            if isinstance(piece, Held):
                found = IN_MEMORY.get(named or "", MEMORY)
            elif named is not None:
                found = find_format(named)
            else:
                found = suffix_format(piece.bare) or _recognized(piece)
            self._formats[index] = found
        return self._formats[index]

    def _said(self, index: int) -> Options:
        """Return the options with the format of a piece. Rows of a pipe that are read like others do not wait for more."""
        brief = self._like is not None and isinstance(self._pieces[index], Pipe)
        return replace(self._options, format=self._format(index).name, brief=brief)

    @property
    def schema(self) -> dict[str, Any]:
        """How rows are made of what is read, in words that JSON knows: `like=` it, another file is read in the same way."""
        found: dict[str, Any] = self._recipe.schema()
        return found

    @property
    def columns(self) -> list[str] | None:
        """Names of the columns of X, where there are any."""
        return list(self._recipe.names) if self._recipe.named else None

    @property
    def chunk_rows(self) -> int:
        """Rows of each chunk but the last."""
        return self._options.chunk_rows or int(self._recipe.chunk_rows)

    @cached_property
    def total_rows(self) -> int | None:
        """Rows of one pass, if that is known without reading them."""
        if not self._recipe.counted:
            return None
        counts = [self._count(index) for index in range(len(self._pieces))]
        return None if None in counts else sum(counts)  # type: ignore[arg-type]

    def _count(self, index: int) -> int | None:
        found: int | None = self._format(index).read().count(self._pieces[index], self._said(index))
        return found

    @property
    def total_bytes(self) -> int | None:
        """Bytes of all files together, as they are stored."""
        sizes = [piece.size for piece in self._pieces]
        return None if None in sizes else sum(sizes)  # type: ignore[arg-type]

    @property
    def bytes_read(self) -> int:
        """Bytes read so far in the pass that began last; somewhat ahead of the chunks, since reading is."""
        return self._meter.read()

    @property
    def left_out(self) -> int:
        """Words that were left out so far in the pass that began last, since the vocabulary does not have them.

        Those of stop words and of words that are too short are not counted. After a pass, the number is that of all its rows.
        """
        return self._meter.left_out

    @property
    def rows_left_out(self) -> int:
        """Rows that were left out so far in the pass that began last, since they lack a value (`missing="drop"`)."""
        return self._meter.rows_left_out + sum(part.rows_left_out for part in self._parts)

    @property
    def once(self) -> bool:
        """Whether there is only one pass: of standard input and of generators."""
        return any(piece.once for piece in self._pieces)

    @property
    def files(self) -> list[Piece]:
        """What is read, in this order: each has a name, and a size and a time of change if it is a file."""
        return list(self._pieces)

    def of(self, files: Sequence[Piece], learned: Any = None, anew: bool = False) -> Stream:
        """Return the stream of some of the files, read as all of these are, or as the first of them says (`anew`).

        `learned` is a model that knows more words than the first files have.
        """
        found = Stream(list(files), self._options, self._like, self._prefetch)
        if not anew:
            recipe = self._recipe
            if recipe.remembers and learned is not None:
                recipe = recipe_like(schema_of(learned), replace(self._options, columns=None))
            found.__dict__["_recipe"] = recipe
        self._parts.append(found)
        return found

    def fingerprint(self) -> dict[str, Any]:
        """Return what must be the same for a pass to be the same: names, sizes and times of files, and the options."""
        pieces = [[piece.name, piece.size, piece.changed] for piece in self._pieces]
        return {"sources": pieces, **self.ways()}

    def ways(self) -> dict[str, Any]:
        """Return what must be the same for files to be read in the same way."""
        said = {name: _digest(value) for name, value in self._options.said().items()}
        return {"options": said, "like": None if self._like is None else _digest(dict(self._like))}

    def describe(self) -> str:
        """Return one line about it."""
        names = [piece.name for piece in self._pieces]
        shown = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
        parts = [shown]
        if self.total_bytes is not None:
            parts.append(f"{self.total_bytes:,} bytes")
        if said := self._options.said():
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
        return gathered(self)

    def marked(self) -> Stream:
        """Return a stream of all rows: those that `missing="drop"` would leave out are there, and NaN in every column."""
        found = Stream(self._pieces, self._options, self._like, self._prefetch)
        found._marks = True
        return found

    def arriving(self) -> Generator[Chunk, None, None]:
        """Make one pass over chunks that are shorter where a pipe pauses: what has come is not held back until more comes."""
        return self._pass(0, hurry=not self._options.shuffle)

    def chunks(self, start_row: int = 0) -> Generator[Chunk, None, None]:
        """Make one pass, or the rest of one: the very chunks that a whole pass yields from this row on.

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
            raise ValueError(f"{self._pieces[0].name} can be read only once, and has been: keep what it gave, or read a file")
        self._recipe  # noqa: B018, what is wrong with the first rows is said at once
        self._begun = True
        self._meter = meter = Meter()
        made = self._some(self._made(start_row, meter, hurry=hurry), start_row)
        return ahead(made) if self._prefetch else made

    def stretch(self, start: int, rows: int) -> Generator[Chunk, None, None]:
        """Yield some rows from any place on, cut into chunks from there: what one of several readers of a file reads.

        Parameters
        ----------
        start : int
            The first row.
        rows : int
            How many rows there are to be.
        """
        return self._made(start, Meter(), rows)

    @staticmethod
    def position(chunk: Chunk) -> int:
        """Return the row after a chunk: where to go on from. Sequences are counted, not their symbols."""
        return chunk.start + (len(chunk) if chunk.lengths is None else len(chunk.lengths))

    def _some(self, made: Iterator[Chunk], start: int) -> Generator[Chunk, None, None]:
        """Refuse a pass without a single row."""
        empty = start == 0
        for chunk in made:
            empty = False
            yield chunk
        if empty:
            raise NoRows(f"{self._pieces[0].name} has no rows that could be used")

    def _made(self, start: int, meter: Meter, rows: int | None = None, hurry: bool = False) -> Generator[Chunk, None, None]:
        recipe, size = self._recipe, self.chunk_rows
        make = recipe.maker()
        if not self._options.shuffle:
            begin = 0 if recipe.remembers else start
            for group in grouped(first_rows(self._blocks(begin, meter), rows), size, hurry):
                chunk = make(group, begin)
                if meter.rows_left_out:  # also those of whole blocks, which are in no group
                    chunk = replace(chunk, places=np.concatenate([block.places for block in group]))
                meter.left_out = getattr(make, "left_out", 0)
                begin = self.position(chunk)
                if chunk.start >= start:
                    yield chunk
                del group, chunk
            return
        # Whole chunks are shuffled together, so that a pass can begin at any of them.
        span = -(-self._options.shuffle // size) * size
        begin = 0 if recipe.remembers else start // span * span
        for group in grouped(self._blocks(begin, meter), span):
            whole = make(group, begin)
            meter.left_out = getattr(make, "left_out", 0)
            following = self.position(whole)
            for chunk in permuted(whole, size, self._options.seed, begin // span):
                if chunk.start >= start:
                    yield chunk
            begin = following

    def _blocks(self, skip: int, meter: Meter) -> Iterator[Block]:
        """Yield what was read, after so many rows: files that know their rows are not read for it."""
        recipe, before = self._recipe, 0
        for index, piece in enumerate(self._pieces):
            form = self._format(index)
            reader, options = form.read(), self._said(index)
            if form.kind != ANY:
                refuse_kind(recipe, form.kind, piece.name)
            size = reader.count(piece, options) if skip and recipe.counted and reader.JUMPS else None
            if size is not None and skip >= size:
                skip, before = skip - size, before + size
                meter.finish(piece.size)
                continue
            here = skip if size is not None else 0
            read = [here]
            found = self._numbered(reader.blocks(piece, options, recipe, here, meter), piece, before, read, meter)
            skip -= here
            for block in found:
                if skip and skip >= len(block):
                    skip -= len(block)
                    continue
                yield block.part(skip, len(block)) if skip else block
                skip = 0
            before += read[0]
            meter.finish(piece.size)

    def _numbered(self, found: Iterator[Any], piece: Piece, before: int, read: list[int], meter: Meter) -> Iterator[Block]:
        """Number rows as the file does, before any are left out; `read` counts them."""
        for rows in found:
            block = Block(rows, piece.name, read[0], before=before)
            read[0] += len(block)
            whole = self._recipe.filtered(block)
            if whole.numbers is not None:  # comments and empty lines between sequences are no rows
                meter.rows_left_out += len(block) - len(whole)
            yield whole
            if isinstance(piece, Pipe) and piece.pauses():
                yield Block([], piece.name, read[0], before=before, pause=True)


def _recognized(piece: Piece) -> Format:
    """Return the format that the first bytes of a piece look like; those of a pipe are asked line by line."""
    if not isinstance(piece, Pipe):
        return sniffed(piece.name, peeked(piece, LOOK))
    lines = 1
    while True:
        found = glanced(piece, lines)
        first = found.lstrip().split(b"\n", lines)
        try:
            return sniffed(piece.name, b"\n".join(first[:lines])[:LOOK] + b"\n")
        except StreamError:
            if len(first) <= lines or len(found) >= LOOK:
                raise
        lines += 1


def _digest(value: Any) -> Any:
    """Return a short value as it is, and what stands for a long one."""
    text = json.dumps(value, sort_keys=True)
    return value if len(text) <= 200 else hashlib.sha256(text.encode()).hexdigest()


def stream(
    source: Any,
    *,
    format: str | None = None,
    columns: Any = None,
    exclude: Any = None,
    keep: Any = None,
    target: str | int | None = None,
    weight: str | int | None = None,
    label: str | int | None = None,
    key: str | int | None = None,
    categories: str = "refuse",
    missing: str = "refuse",
    chunk_rows: int | str = "auto",
    shuffle: int = 0,
    seed: int = 0,
    like: Any = None,
    header: bool | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    array: str | None = None,
    width: int | None = None,
    text: str | int | None = None,
    vocabulary: Any = "first",
    lowercase: bool = True,
    shortest: int = 1,
    stop_words: Any = (),
    symbols: Any = None,
    prefetch: bool = True,
) -> Stream:
    """Read rows as chunks that models learn from, in bounded memory, while what was read before is learned.

    Parameters
    ----------
    source : str, path, table, matrix, or an iterable of them
        A file, a folder or a glob (in the order of their names), an address that pyarrow or fsspec knows (``s3://...``),
        ``"-"`` for standard input, or several of these; a data frame, Arrow table or reader, matrix or sparse matrix; or
        anything that yields tables or matrices. Compressed files are told by their first bytes. With `format="text"` or
        `"sequences"` a list, a series or a generator may hold the texts themselves: strings of a list are names of files if
        all of them are written like names or name what is there.
    format : str, optional
        The format, if neither the ending of the name nor the first bytes tell it.
    columns, exclude : list of str or int, optional
        Columns to learn from, or to leave out, by name or by place; all by default.
    keep : list of str or int, optional
        Columns of a table that are passed along as `chunk.kept`, with the types of their file. They are not learned from,
        unless `columns` names them, too, or the model that the rows are read like has learned from them.
    target, weight, label, key : str or int, optional
        Columns that become `y`, `sample_weight`, `labels` and `key` of a chunk.
    categories : {"refuse", "one-hot", "drop"}, default="refuse"
        What becomes of text, dates and times: one-hot makes a column of zeros and ones for each value that the first rows
        have, at most 1000; a value that comes later is zero in all of them.
    missing : {"refuse", "drop", "keep", "blank", "zero"}, default="refuse"
        What becomes of a row that lacks a value: "keep" leaves NaN in its place, "blank" makes the whole row NaN (for hidden
        Markov models), "drop" leaves it out, "zero" puts a zero.
    chunk_rows : int or "auto", default="auto"
        Rows of a chunk; "auto" is about 4 MB.
    shuffle : int, default=0
        Rows that are shuffled together, rounded up to whole chunks; 0 keeps the order of the file.
    seed : int, default=0
        Seed of the shuffling.
    like : model, mapping or Stream, optional
        Read in the way of the stream that a model learned from: its columns, levels and words. Unknown words are left out,
        unless the model has an open vocabulary, which then goes on growing; companions may be absent.
    header : bool, optional
        Whether the first row of a CSV file holds names; found out by default: names are no numbers.
    delimiter : str, optional
        What stands between the values of a CSV file; found out by default.
    decimal : {".", ","}, optional
        The decimal point of a CSV file; found out by default, but for values such as 1,500, of which nobody can tell.
    array : str, optional
        Name of the array in an .npz file that holds several.
    width : int, optional
        Number of columns of an svmlight file, which is otherwise looked for in the whole file.
    text : str or int, optional
        Column of a table that holds documents, to be counted like those of a text file.
    vocabulary : {"first", "open", "known"}, int or list of str, default="first"
        Words of documents: those of the first documents (8 MB of them), all of them as they come (for a model with an open
        vocabulary), a number of columns that words are hashed to, or the words, in a list or a file. With `like`, "known"
        leaves out words that a model with an open vocabulary does not know, since it is only asked and does not learn.
    lowercase : bool, default=True
        Whether words are made lower-case.
    shortest : int, default=1
        Letters that a word has at least.
    stop_words : list of str, optional
        Words to leave out.
    symbols : list of str, optional
        Symbols of sequences; those of the first sequences (8 MB of them) by default.
    prefetch : bool, default=True
        Whether a thread reads ahead.

    Returns
    -------
    stream : Stream
        An iterable of `headwater.core.chunk.Chunk`; each iteration is one pass.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rows = np.random.default_rng(0).normal(size=(5000, 3))
    >>> model = hw.GaussianMixture(2, random_state=0)
    >>> for chunk in hw.stream(rows, chunk_rows=1000):
    ...     model = model.partial_fit(**chunk)
    >>> model.n_samples_seen_
    5000
    """
    options = make_options(
        format=format, columns=columns, exclude=exclude, keep=keep, target=target, weight=weight, label=label, key=key,
        text=text, categories=categories, missing=missing, chunk_rows=chunk_rows, shuffle=shuffle, seed=seed, header=header,
        delimiter=delimiter, decimal=decimal, array=array, width=width, vocabulary=vocabulary, lowercase=lowercase,
        shortest=shortest, stop_words=stop_words, symbols=symbols,
    )  # fmt: skip
    if format is not None:
        find_format(format)
    schema = None if like is None else schema_of(like)
    if schema is None and options.vocabulary == "known":
        raise ValueError("vocabulary='known' means the words of a model: name it by like=")
    pieces = find_pieces(source, any_suffix=format is not None, lines=format in IN_MEMORY)
    return Stream(pieces, options, schema, prefetch)
