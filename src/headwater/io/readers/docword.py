"""Bags of words in the format of the UCI repository: documents, words and entries in the head; then document, word, count."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from headwater.io.byte_streams import CODECS
from headwater.io.first_bytes import read_first_bytes
from headwater.io.options import Options
from headwater.io.read_errors import StreamError, explain_read_errors
from headwater.io.readers.entries import read_entries, to_rows
from headwater.io.recipes.recipe import Recipe
from headwater.io.recipes.sparse import SparseHead, SparseRows, check_width
from headwater.io.sources import File, Meter, Pipe

RANDOM_ACCESS = False
DOCUMENTS_PER_BLOCK = 65536  # documents of a block at most


def head(source: File | Pipe, options: Options) -> SparseHead:
    """Read the first three lines, and the words beside the file if there are any."""
    documents, width, entries, _ = _sizes(source)
    names = options.vocabulary if isinstance(options.vocabulary, tuple) else _words_beside(source)
    if names is not None and len(names) != width:
        raise StreamError(f"{source.name} has {width} words, but the vocabulary holds {len(names)}")
    return SparseHead(width, names, (), max(16, 16 * entries // documents))


def blocks(source: File | Pipe, options: Options, recipe: Recipe, skip: int, meter: Meter) -> Iterator[SparseRows]:
    """Yield the documents, those without words included."""
    documents, width, entries, before = _sizes(source)
    done, seen, waiting = 0, 0, np.empty((0, 3))
    with explain_read_errors(source.name), source.open(meter) as stream:
        for found in read_entries(stream, documents, width, source.name, before):
            _check(found, done, source.name)
            seen += len(found)
            waiting = np.concatenate([waiting, found])
            last = int(found[-1, 0]) - 1  # the last document may go on in the next block
            for begin in range(done, last, DOCUMENTS_PER_BLOCK):
                yield to_rows(waiting, begin, min(begin + DOCUMENTS_PER_BLOCK, last), width)
            waiting, done = waiting[waiting[:, 0] > last], last
        if seen != entries:
            raise StreamError(f"{source.name} holds {seen} entries, where its head says {entries}")
        for begin in range(done, documents, DOCUMENTS_PER_BLOCK):
            yield to_rows(waiting, begin, min(begin + DOCUMENTS_PER_BLOCK, documents), width)


def count(source: File | Pipe, options: Options) -> int | None:
    """Return the number of documents."""
    return _sizes(source)[0]


def _sizes(source: File | Pipe) -> tuple[int, int, int, int]:
    """Return documents, words and entries, and the bytes that stand before the entries."""
    lines = read_first_bytes(source, 4096).split(b"\n")[:3]
    try:
        documents, width, entries = (int(line) for line in lines)
    except ValueError:
        raise StreamError(f"{source.name} is no docword file: its first three lines must be numbers") from None
    if documents < 1 or entries < 0 or documents > 10 * entries + 1000:
        raise StreamError(f"{source.name} speaks of {documents} documents with {entries} entries, which cannot be")
    return documents, check_width(width, source.name), entries, sum(len(line) + 1 for line in lines)


def _check(found: NDArray[np.float64], done: int, name: str) -> None:
    if found[0, 0] <= done or np.any(np.diff(found[:, 0]) < 0):
        raise StreamError(f"{name} has documents that are not in the order of their numbers")
    if found[:, 2].min() < 0:
        raise StreamError(f"{name} has a count of {found[:, 2].min():g}")


def _words_beside(source: File | Pipe) -> tuple[str, ...] | None:
    """Return the words of vocab.x.txt beside docword.x.txt, if there is such a file."""
    if not isinstance(source, File):
        return None
    folder, base = os.path.split(source.path)
    if not base.startswith("docword."):
        return None
    stem = base.removeprefix("docword.")
    for ending in CODECS:
        stem = stem.removesuffix(ending)
    path = os.path.join(folder, f"vocab.{stem}")
    if not source.filesystem.get_file_info(path).is_file:
        return None
    with explain_read_errors(path), source.filesystem.open_input_stream(path) as file:
        return tuple(file.read().decode().split())
