"""`hw.stream`: chunks of rows from files, tables and generators."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath
from typing import TypeAlias

from headwater.io.formats import MEMORY_LINE_FORMATS, find_format
from headwater.io.options import make_options
from headwater.io.recipes.schemas import schema_of
from headwater.io.source_lookup import find_sources
from headwater.io.source_reader import SourceReader
from headwater.io.stream import Stream

ColumnNames: TypeAlias = str | int | Iterable[str | int]  # names of columns, or their places from 0


def stream(
    source: object,
    *,
    format: str | None = None,
    columns: ColumnNames | None = None,
    exclude: ColumnNames | None = None,
    keep: ColumnNames | None = None,
    target: str | int | None = None,
    weight: str | int | None = None,
    label: str | int | None = None,
    key: str | int | None = None,
    standard_errors: Iterable[str | int] | None = None,
    categories: str = "refuse",
    missing: str = "refuse",
    dates: str = "refuse",
    chunk_rows: int | str = "auto",
    shuffle: int = 0,
    seed: int = 0,
    like: object = None,
    header: bool | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    array: str | None = None,
    width: int | None = None,
    text: str | int | None = None,
    vocabulary: str | int | PurePath | Iterable[str] = "first",
    lowercase: bool = True,
    shortest: int = 1,
    stop_words: str | PurePath | Iterable[str] | None = (),
    symbols: str | PurePath | Iterable[str] | None = None,
    prefetch: bool = True,
) -> Stream:
    """Read rows as chunks that models learn from, in bounded memory; a thread reads ahead while a model learns.

    Parameters
    ----------
    source : str, path, table, matrix, or an iterable of them
        A file, a folder or a glob (in the order of their names), an address that pyarrow or fsspec knows (``s3://...``),
        ``"-"`` for standard input, or several of these; a data frame, Arrow table or reader, matrix or sparse matrix; or
        anything that yields tables or matrices. Compressed files are recognized by their first bytes. With `format="text"` or
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
    standard_errors : list of str or int, optional
        Columns with the standard errors of the columns to learn from, one for each in their order, "-" for one that is exact.
        Their squares are the `noise` of a chunk, for models that take measurement errors (`GaussianMixture`).
    categories : {"refuse", "one-hot", "drop", "keep"}, default="refuse"
        What becomes of text, dates and times: one-hot makes a column of zeros and ones for each value that the first rows
        have, at most 1000; a value that comes later is zero in all of them. "keep" passes all columns on as they are, with
        their gaps, to models of tables, such as `MixedMixture`.
    missing : {"refuse", "drop", "keep", "blank", "zero"}, default="refuse"
        What becomes of a row that lacks a value: "keep" leaves NaN in its place, "blank" makes the whole row NaN (for hidden
        Markov models), "drop" leaves it out, "zero" puts a zero.
    dates : {"refuse", "parts"}, default="refuse"
        What becomes of columns of dates and times: "parts" are hour and weekday as angles
        (sine and cosine) and the day of the year.
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
        The decimal point of a CSV file; found by default, except for values such as 1,500, which are ambiguous.
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
        standard_errors=standard_errors, text=text, categories=categories, missing=missing, dates=dates,
        chunk_rows=chunk_rows, shuffle=shuffle, seed=seed,
        header=header,
        delimiter=delimiter, decimal=decimal, array=array, width=width, vocabulary=vocabulary, lowercase=lowercase,
        shortest=shortest, stop_words=stop_words, symbols=symbols,
    )  # fmt: skip
    if format is not None:
        find_format(format)
    schema = None if like is None else schema_of(like)
    if schema is None and options.vocabulary == "known":
        raise ValueError("vocabulary='known' means the words of a model: name it by like=")
    sources = find_sources(source, any_suffix=format is not None, lines=format in MEMORY_LINE_FORMATS)
    return Stream(SourceReader(sources, options, schema), prefetch)
