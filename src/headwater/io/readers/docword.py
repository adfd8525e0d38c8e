"""Bags of words as the UCI repository has them: three numbers (documents, words, entries), then document, word and count."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from headwater.io.options import Options
from headwater.io.pieces import CODECS, File, Meter, peeked
from headwater.io.read_errors import StreamError, reading
from headwater.io.readers.entries import read_entries, rows_of
from headwater.io.recipes.sparse import SparseHead, SparseRows, check_width

JUMPS = False
STEP = 65536  # documents of a block at most


def head(piece: Any, options: Options) -> SparseHead:
    """Look at the first three lines, and for the words beside the file."""
    documents, width, entries, _ = _sizes(piece)
    names = options.vocabulary if isinstance(options.vocabulary, tuple) else _beside(piece)
    if names is not None and len(names) != width:
        raise StreamError(f"{piece.name} has {width} words, but the vocabulary holds {len(names)}")
    return SparseHead(width, names, (), max(16, 16 * entries // documents))


def blocks(piece: Any, options: Options, recipe: Any, skip: int, meter: Meter) -> Iterator[SparseRows]:
    """Yield the documents, those without words included."""
    documents, width, entries, before = _sizes(piece)
    done, seen, waiting = 0, 0, np.empty((0, 3))
    with reading(piece.name), piece.open(meter) as stream:
        for found in read_entries(stream, documents, width, piece.name, before):
            _check(found, done, piece.name)
            seen += len(found)
            waiting = np.concatenate([waiting, found])
            last = int(found[-1, 0]) - 1  # the last document may go on in the next block
            for begin in range(done, last, STEP):
                yield rows_of(waiting, begin, min(begin + STEP, last), width)
            waiting, done = waiting[waiting[:, 0] > last], last
        if seen != entries:
            raise StreamError(f"{piece.name} holds {seen} entries, where its head says {entries}")
        for begin in range(done, documents, STEP):
            yield rows_of(waiting, begin, min(begin + STEP, documents), width)


def count(piece: Any, options: Options) -> int | None:
    """Return the number of documents."""
    return _sizes(piece)[0]


def _sizes(piece: Any) -> tuple[int, int, int, int]:
    """Return documents, words and entries, and the bytes that stand before the entries."""
    lines = peeked(piece, 4096).split(b"\n")[:3]
    try:
        documents, width, entries = (int(line) for line in lines)
    except ValueError:
        raise StreamError(f"{piece.name} is no docword file: its first three lines must be numbers") from None
    if documents < 1 or entries < 0 or documents > 10 * entries + 1000:
        raise StreamError(f"{piece.name} speaks of {documents} documents with {entries} entries, which cannot be")
    return documents, check_width(width, piece.name), entries, sum(len(line) + 1 for line in lines)


def _check(found: Any, done: int, name: str) -> None:
    if found[0, 0] <= done or np.any(np.diff(found[:, 0]) < 0):
        raise StreamError(f"{name} has documents that are not in the order of their numbers")
    if found[:, 2].min() < 0:
        raise StreamError(f"{name} has a count of {found[:, 2].min():g}")


def _beside(piece: Any) -> tuple[str, ...] | None:
    """Return the words of vocab.x.txt beside docword.x.txt, if there is such a file."""
    folder, base = os.path.split(piece.path) if isinstance(piece, File) else ("", "")
    if not base.startswith("docword."):
        return None
    stem = base.removeprefix("docword.")
    for ending in CODECS:
        stem = stem.removesuffix(ending)
    path = os.path.join(folder, f"vocab.{stem}")
    if not piece.filesystem.get_file_info(path).is_file:
        return None
    with reading(path), piece.filesystem.open_input_stream(path) as file:
        return tuple(file.read().decode().split())
