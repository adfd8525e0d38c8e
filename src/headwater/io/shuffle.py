"""Shuffling of rows: the order depends only on the seed and the place in the stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwater.core.chunk import COMPANIONS, Chunk


def permute_rows(whole: Chunk, size: int, seed: int, number: int) -> Iterator[Chunk]:
    """Yield the rows of a chunk in another order, in chunks of `size` rows."""
    rows = len(whole) if whole.lengths is None else len(whole.lengths)
    order = np.random.default_rng(np.random.SeedSequence((seed, number))).permutation(rows)
    for begin in range(0, rows, size):
        yield select_items(whole, order[begin : begin + size], whole.start + begin)


def select_items(whole: Chunk, places: NDArray[np.int64], start: int) -> Chunk:
    """Return some rows of a chunk, or some of its sequences, with their companions."""
    found: dict[str, Any] = {name: values[places] for name in COMPANIONS if (values := getattr(whole, name)) is not None}
    if whole.kept:
        found["kept"] = {name: values.take(places) for name, values in whole.kept.items()}
    if whole.lengths is None:
        return replace(whole, X=whole.X[places], start=start, **found)
    ends = np.cumsum(whole.lengths)
    lengths = whole.lengths[places]
    # The symbols of a sequence stay in their order: each begins where its first one is.
    offsets = np.repeat(ends[places] - lengths - (np.cumsum(lengths) - lengths), lengths)
    return replace(whole, X=whole.X[offsets + np.arange(lengths.sum())], start=start, **found)
