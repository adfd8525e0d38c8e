"""Collections of Dask: their partitions are parts, which Dask makes on the workers that learn them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from headwater.core.validation import one_line
from headwater.distributed.messages import answered
from headwater.distributed.parts import Part, Plan, Way, rows_of
from headwater.distributed.read_options import way_of
from headwater.distributed.task_graph import Cluster
from headwater.io.read_errors import NoRows
from headwater.io.stream import stream

BAGS, TEXTS = 256, 10_000  # partitions, and texts in all, that are looked at for their words


def is_collection(data: Any) -> bool:
    """Whether something is a collection of Dask."""
    from dask.base import is_dask_collection

    return bool(is_dask_collection(data))


def collection_plan(
    cluster: Cluster, model: Any, data: Any, y: Any, sample_weight: Any, like: Any, reading: Mapping[str, Any]
) -> Plan:
    """Make a part of every partition."""
    from dask.base import tokenize

    kind = _kind(data)
    if kind == "arrays":
        if reading:
            raise ValueError(f"{next(iter(reading))} is for files, dataframes and bags; an array of Dask is learned as it is")
        blocks, known = _array_blocks(data, y, sample_weight)
    else:
        if y is not None or sample_weight is not None:
            raise ValueError("y and sample_weight belong to arrays; of a dataframe, name the column by target= or weight=")
        blocks = list(data.to_delayed())
        known = [None] * len(blocks)
    if not blocks:
        raise ValueError("data has no partitions")
    name = f"the {type(data).__name__.lower()}"
    parts = tuple(Part(at, f"partition {at} of {name}", None, 0, rows) for at, rows in enumerate(known))
    if kind == "arrays":
        way = Way("arrays", options={} if sample_weight is None else {"weight": "sample_weight"})
    else:
        way = _way(cluster, kind, blocks, model, like, reading)
    return Plan(parts, tuple(blocks), way, tokenize(data, y, sample_weight))


def _kind(data: Any) -> str:
    from dask.bag import Bag
    from dask.delayed import Delayed

    if isinstance(data, Bag):
        return "texts"
    if not isinstance(data, Delayed):
        if hasattr(data, "npartitions") and hasattr(data, "columns"):
            return "frames"
        if hasattr(data, "chunks") and getattr(data, "ndim", 0) in (1, 2):
            return "arrays"
    raise TypeError(f"data must be an array of rows, a dataframe or a bag of Dask, got {type(data).__name__}")


def _array_blocks(data: Any, y: Any, sample_weight: Any) -> tuple[list[Any], list[int | None]]:
    """Return the partitions of an array by rows, each with what belongs to them, and their rows, as far as known."""
    from dask.delayed import delayed

    if data.ndim == 2 and data.numblocks[1] > 1:
        data = data.rechunk({1: -1})
    columns = [data, _beside(data, y, "y"), _beside(data, sample_weight, "sample_weight")]
    number = data.numblocks[0]
    cut = [[None] * number if one is None else list(one.to_delayed().ravel()) for one in columns]
    blocks = [delayed(tuple)(list(block)) for block in zip(*cut, strict=True)]
    return blocks, [None if np.isnan(rows) else int(rows) for rows in data.chunks[0]]


def _beside(data: Any, one: Any, name: str) -> Any:
    """Return an array that belongs to rows, cut as they are."""
    if one is None:
        return None
    if not hasattr(one, "chunks") or getattr(one, "ndim", 0) != 1:
        raise ValueError(f"{name} must be a dask array of one dimension, got {one_line(one)}")
    if np.isnan([*data.chunks[0], *one.chunks[0]]).any():
        if one.numblocks[0] != data.numblocks[0]:
            raise ValueError(f"{name} must be cut like the rows, whose number is not known, into {data.numblocks[0]} parts")
        return one
    if one.shape[0] != data.shape[0]:
        raise ValueError(f"{name} must have a value for each of the {data.shape[0]:,} rows, got {one.shape[0]:,}")
    return one if one.chunks[0] == data.chunks[0] else one.rechunk({0: data.chunks[0]})


def _way(cluster: Cluster, kind: str, blocks: Sequence[Any], model: Any, like: Any, reading: Mapping[str, Any]) -> Way:
    """Look at some partitions: at texts from all over the data, whose words become columns, at others until one has rows."""
    symbols = model._takes_symbols or model._chained
    if kind == "texts":
        some = [blocks[at] for at in np.unique(np.linspace(0, len(blocks) - 1, BAGS).round().astype(int))]
        share = -(-TEXTS // len(some))
        blocks = [cluster.plain(joined, [cluster.plain(first_items, block, share) for block in some])]
    for block in blocks:
        task = cluster.plain(looked, block, kind, symbols, like, dict(reading))
        way: Way | None = cluster.computed(task, names=["a partition of the data"])
        if way is not None:
            return way
    raise ValueError("there is nothing to learn: the data has no rows")


def first_items(block: Any, number: int) -> list[Any]:
    """Return the first items of a partition of a bag; runs on a worker."""
    return list(islice(block, number))


def joined(lists: Sequence[list[Any]]) -> list[Any]:
    """Return the items of several lists in one; runs on a worker."""
    return [item for one in lists for item in one]


@answered
def looked(block: Any, kind: str, symbols: bool, like: Any, reading: Mapping[str, Any]) -> Way | None:
    """Return how partitions are read, which one of them tells, or None if it has no rows; runs on a worker."""
    if kind == "texts":
        block = list(block)
        if not block:
            return None
        kind = _kind_of_items(block[0], symbols)
        if kind in ("rows", "sequences"):
            if reading:
                raise ValueError(f"{next(iter(reading))} is for texts and records; a bag of numbers is learned as it is")
            return Way(kind)
        if kind == "texts":
            reading = {"format": "sequences" if symbols else "text", **reading}
    try:
        return way_of(kind, stream(rows_of(kind, block), like=like, **reading), reading)
    except NoRows:
        return None


def _kind_of_items(first: Any, symbols: bool) -> str:
    """Return what a bag is of: texts (or lists of words), records, rows of numbers, or sequences of rows or of symbols."""
    if isinstance(first, Mapping):
        return "records"
    if isinstance(first, str):
        return "texts"
    if hasattr(first, "columns"):
        raise TypeError("a bag of tables is a dataframe: make one by dask.dataframe.from_delayed(bag.to_delayed())")
    array = None if isinstance(first, bytes) else np.asarray(first) if np.ndim(first) else None
    if array is None or array.dtype.kind not in "iufcbUO" or array.ndim > 2:
        raise TypeError(f"a bag must hold texts, records, rows or sequences, got {one_line(first)[:80]}")
    if array.dtype.kind in "UO":
        return "texts"
    return "sequences" if symbols or array.ndim == 2 else "rows"
