"""Records: every array and number in a value, in order, and a name for what they are."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from math import inf, prod

import numpy as np

from headwater.core.batch import Batch, Buffer, join_batches
from headwater.core.values import AnyArray


def arrays_of(value: object, dense: bool = True, largest_table: float = inf) -> Iterator[AnyArray]:
    """Yield every array and number in a state, or in any part of one, in order; a table as a matrix, or as what it holds.

    Tables of more numbers than `largest_table` are left out: to read one costs a copy.
    """
    if isinstance(value, np.ndarray):
        yield value
    elif hasattr(value, "held") and hasattr(value, "shape"):  # a table
        if prod(value.shape) <= largest_table:
            yield from (np.asarray(value),) if dense else value.held()
    elif isinstance(value, Buffer):
        yield from arrays_of(value.batch() if value.rows else None, dense, largest_table)
    elif is_dataclass(value) and not isinstance(value, type):
        record = getattr(value, "settled", value)  # the same for every history of a reservoir
        for part in fields(record):
            if part.compare:  # other fields are caches
                yield from arrays_of(getattr(record, part.name), dense, largest_table)
    elif isinstance(value, dict):
        for name in sorted(value):
            if not isinstance(name, str):  # the number of an open sequence
                yield np.asarray(name)
            yield from arrays_of(value[name], dense, largest_table)
    elif isinstance(value, tuple):
        for part in (join_batches(value),) if value and isinstance(value[0], Batch) else value:  # cuts do not count
            yield from arrays_of(part, dense, largest_table)
    elif isinstance(value, int | float):
        yield np.asarray(value)


def fingerprint(*parts: object, size: int) -> str:
    """Return a digest of every array and number in a value."""
    digest = hashlib.blake2b(digest_size=size)
    for part in parts:
        for array in arrays_of(part, dense=False):
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
