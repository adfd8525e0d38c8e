"""Sequences of a table: rows with the same key that follow one another, for models whose rows are whole sequences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from headwater.core.chunk import Chunk
from headwater.io.row_collection import concatenate_chunks, select_rows


def whole_sequences(model: Any, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Yield chunks of complete sequences if the model learns from such, and chunks as they are if not."""
    return complete_sequences(chunks) if type(model)._traits.takes_sequences else iter(chunks)


def complete_sequences(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Yield chunks of complete sequences: rows of one key that follow one another, with their lengths in place of the key."""
    waiting: list[Chunk] = []  # parts of a sequence that may continue in the next chunk
    ended: set[str | int] = set()
    for chunk in chunks:
        if chunk.key is None:
            if chunk.start and chunk.lengths is None and chunk.shape[1:] in ((), (1,)):
                raise ValueError(
                    "the stream has one column of symbols and no key, so that all rows are one sequence, which does not fit in "
                    "a chunk: name the column that tells sequences apart by key=, or raise chunk_rows"
                )
            yield chunk
            continue
        key = np.asarray(chunk.key)
        others = np.flatnonzero(key[1:] != key[:-1]) + 1
        if waiting and not len(others) and np.asarray(waiting[0].key)[-1] == key[0]:
            waiting.append(chunk)
            continue
        last = int(others[-1]) if len(others) else 0
        done = [*waiting, select_rows(chunk, slice(0, last))] if last else waiting
        if done:
            yield _with_lengths(concatenate_chunks(done), ended)
        waiting = [replace(select_rows(chunk, slice(last, len(chunk))), start=chunk.start + last)]
    if waiting:
        yield _with_lengths(concatenate_chunks(waiting), ended)


def _with_lengths(chunk: Chunk, ended: set[str | int]) -> Chunk:
    key = np.asarray(chunk.key)
    edges = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1], [True]]))
    names = key[edges[:-1]]
    for name in names.tolist():
        if name in ended:
            raise ValueError(f"rows of the sequence {name!r} are not together: sort the data by its key")
        ended.add(name)
    return replace(chunk, key=None, lengths=np.diff(edges), kept={"key": names})
