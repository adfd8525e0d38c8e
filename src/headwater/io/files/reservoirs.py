"""Reservoirs of rows in model files and messages, which are read only if a stream could have made them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields

import numpy as np

from headwater.core.batch import Batch
from headwater.core.row_keys import KEYS, ranks_of
from headwater.io.files.records import LARGEST, Damaged, Reader
from headwater.policies.reservoir import Reservoir
from headwater.policies.reservoir_sample import Sample


def read_reservoir(
    reader: Reader, tree: object, path: str, rows: Callable[[object, str], Batch], within: int = LARGEST
) -> Reservoir:
    """Return the reservoir of a tree.

    Parameters
    ----------
    reader : Reader
        Of the file or the message.
    tree : Any
        What is to be read.
    path : str
        Its name in sentences.
    rows : callable
        Reads a batch, which may be empty, and refuses rows that the model could not have taken.
    within : int
        Rows of the stream: all places are before.

    Returns
    -------
    reservoir : Reservoir
        The same, bit for bit, as that which was written.
    """
    parts = reader.parts(tree, "Reservoir", {part.name for part in fields(Reservoir) if part.compare}, path)
    reservoir = Reservoir(
        reader.whole(parts["key"], f"{path}/key", 0, KEYS - 1),
        reader.whole(parts["capacity_rows"], f"{path}/capacity_rows", 1),
        reader.whole(parts["capacity_bytes"], f"{path}/capacity_bytes", 1),
        reader.number(parts["limit"], f"{path}/limit", finite=False),
        None if parts["sample"] is None else _sample(reader, parts["sample"], f"{path}/sample", rows, within),
    )
    if math.isnan(reservoir.limit) or reservoir.limit == -math.inf:
        raise Damaged(f"{path}/limit is {reservoir.limit}, and should be a number, or infinite")
    if len(reservoir) > reservoir.capacity_rows or reservoir.nbytes > reservoir.capacity_bytes:
        raise Damaged(f"{path} holds {len(reservoir)} rows of {reservoir.nbytes} bytes, which is more than it has room for")
    if len(reservoir) and reservoir.ranks[-1] >= reservoir.limit:
        raise Damaged(f"{path} holds rows beyond its limit")
    if reservoir.sample is None and reservoir.limit < math.inf:
        raise Damaged(f"{path} has a limit, and yet has seen no row")
    return reservoir


def _sample(reader: Reader, tree: object, path: str, rows: Callable[[object, str], Batch], within: int) -> Sample:
    parts = reader.parts(tree, "Sample", {part.name for part in fields(Sample)}, path)
    batch = rows(parts["batch"], f"{path}/batch")
    n = len(batch)
    if batch.weights.size != n or batch.labels.size != n or batch.sequences.size:
        raise Damaged(f"{path}/batch has rows without weights or labels, or with sequences")
    ranks = reader.array(parts["ranks"], f"{path}/ranks", np.float64, (n,))
    places = reader.array(parts["places"], f"{path}/places", np.int64, (n,))
    keys = reader.array(parts["keys"], f"{path}/keys", np.uint64, (n,))
    tied = np.diff(ranks) == 0.0
    if (np.diff(ranks) < 0.0).any() or (np.diff(places)[tied] < 0).any():
        raise Damaged(f"{path}/ranks are not in their order")
    if (ranks > ranks_of(keys)).any():
        raise Damaged(f"{path}/ranks are not those of its keys")
    if n and (places.min() < 0 or places.max() >= within):
        raise Damaged(f"{path}/places lie outside of the stream")
    return Sample(ranks, places, keys, batch)
