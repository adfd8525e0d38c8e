"""Bags of words as the UCI repository has them: three numbers (documents, words, entries), then document, word and count."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from headwater.streams.options import Options
from headwater.streams.pieces import CODECS, File, Meter, peeked
from headwater.streams.sentences import StreamError, reading
from headwater.streams.sparse import SparseHead, SparseRows, check_width

JUMPS = False
STEP = 65536  # documents of a block at most


def head(piece: Any, options: Options) -> SparseHead:
    """Look at the first three lines, and for the words beside the file."""
    documents, width, entries = _sizes(piece)
    names = options.vocabulary if isinstance(options.vocabulary, tuple) else _beside(piece)
    if names is not None and len(names) != width:
        raise StreamError(f"{piece.name} has {width} words, but the vocabulary holds {len(names)}")
    return SparseHead(width, names, (), max(16, 16 * entries // documents))


def blocks(piece: Any, options: Options, recipe: Any, skip: int, meter: Meter) -> Iterator[SparseRows]:
    """Yield the documents, those without words included."""
    from pyarrow import csv, int64

    documents, width, entries = _sizes(piece)
    names = ["document", "word", "count"]
    done, seen, waiting = 0, 0, np.empty((0, 3), np.int64)
    with reading(piece.name), piece.open(meter) as stream:
        batches = csv.open_csv(
            stream,
            csv.ReadOptions(use_threads=False, column_names=names, skip_rows=3),
            csv.ParseOptions(delimiter=" "),
            csv.ConvertOptions(column_types=dict.fromkeys(names, int64())),
        ) if entries else ()  # fmt: skip
        for batch in batches:
            found = np.column_stack([_whole(column, piece.name) for column in batch.columns])
            seen += len(found)
            waiting = np.concatenate([waiting, found])
            if not len(waiting):
                continue
            _check(waiting, done, documents, width, piece.name)
            last = int(waiting[-1, 0]) - 1  # the last document may go on in the next batch
            for begin in range(done, last, STEP):
                yield _rows(waiting, begin, min(begin + STEP, last), width)
            waiting, done = waiting[waiting[:, 0] > last], last
        if seen != entries:
            raise StreamError(f"{piece.name} holds {seen} entries, where its head says {entries}")
        for begin in range(done, documents, STEP):
            yield _rows(waiting, begin, min(begin + STEP, documents), width)


def count(piece: Any, options: Options) -> int | None:
    """Return the number of documents."""
    return _sizes(piece)[0]


def _sizes(piece: Any) -> tuple[int, int, int]:
    lines = peeked(piece, 4096).split(b"\n")[:3]
    try:
        documents, width, entries = (int(line) for line in lines)
    except ValueError:
        raise StreamError(f"{piece.name} is no docword file: its first three lines must be numbers") from None
    if documents < 1 or entries < 0 or documents > 10 * entries + 1000:
        raise StreamError(f"{piece.name} speaks of {documents} documents with {entries} entries, which cannot be")
    return documents, check_width(width, piece.name), entries


def _whole(column: Any, name: str) -> Any:
    if column.null_count:
        raise StreamError(f"{name} lacks a number in one of its lines")
    return column.to_numpy()


def _check(found: Any, done: int, documents: int, width: int, name: str) -> None:
    numbers = found[:, 0]
    if numbers[0] <= done or np.any(np.diff(numbers) < 0):
        raise StreamError(f"{name} has documents that are not in the order of their numbers")
    if numbers[-1] > documents:
        raise StreamError(f"{name} has a document {numbers[-1]}, where its head says {documents}")
    if found[:, 1].min() < 1 or found[:, 1].max() > width:
        raise StreamError(f"{name} has a word outside of 1 to {width}")
    if found[:, 2].min() < 0:
        raise StreamError(f"{name} has a count of {found[:, 2].min()}")


def _rows(found: Any, begin: int, end: int, width: int) -> SparseRows:
    part = found[(found[:, 0] > begin) & (found[:, 0] <= end)]
    counts = csr_array((part[:, 2].astype(np.float64), (part[:, 0] - 1 - begin, part[:, 1] - 1)), shape=(end - begin, width))
    return SparseRows(counts)


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
