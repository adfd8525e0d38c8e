"""Sequences of a table: rows with the same key that follow one another, for models whose rows are whole sequences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from headwater.chunk import Chunk
from headwater.cli.gathering import joined, taken


def whole_sequences(model: Any, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Yield chunks of complete sequences if the model learns from such, and chunks as they are if not."""
    if not type(model)._takes_sequences:
        yield from chunks
        return
    waiting: Chunk | None = None
    ended: set[Any] = set()
    for chunk in chunks:
        if chunk.key is None:
            yield chunk
            continue
        together = chunk if waiting is None else joined([waiting, chunk])
        key = np.asarray(together.key)
        begins = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
        # The last sequence may go on in the next chunk.
        done = int(begins[-1])
        if done:
            yield _complete(taken(together, slice(0, done)), ended)
        waiting = taken(together, slice(done, len(together)))
    if waiting is not None:
        yield _complete(waiting, ended)


def _complete(chunk: Chunk, ended: set[Any]) -> Chunk:
    key = np.asarray(chunk.key)
    edges = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1], [True]]))
    names = key[edges[:-1]]
    for name in names.tolist():
        if name in ended:
            raise ValueError(f"rows of the sequence {name!r} are not together: sort the data by its key")
        ended.add(name)
    return replace(chunk, key=None, lengths=np.diff(edges), kept={"key": names})
