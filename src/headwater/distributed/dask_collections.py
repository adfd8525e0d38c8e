"""Dask collections: each partition is a part, which Dask computes on the worker that learns it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from headwater.core.validation import one_line
from headwater.core.values import Keywords, Values
from headwater.distributed.dask_engine import DaskEngine
from headwater.distributed.messages import return_errors
from headwater.distributed.parts import DataToRead, Part, Plan, ReadPlan, read_plan_like, stream_source
from headwater.io.open_stream import stream
from headwater.io.read_errors import NoRows

if TYPE_CHECKING:
    from dask.array import Array as DaskArray

    from headwater.estimators.base import StreamingEstimator


LOOKED_PARTITIONS = 256  # of a bag, spread over the data, whose words are counted
LOOKED_TEXTS = 10_000  # in all of them: enough for all words but rare ones


def is_collection(data: object) -> bool:
    """Whether something is a Dask collection."""
    from dask.base import is_dask_collection

    return bool(is_dask_collection(data))


def collection_plan(engine: DaskEngine, model: StreamingEstimator, data: DataToRead) -> Plan:
    """Return a plan with a part for each partition."""
    from dask.base import tokenize

    source, kind = data.source, _collection_kind(data.source)
    known: list[int | None]
    if kind == "arrays":
        if data.options:
            option = next(iter(data.options))
            raise ValueError(f"{option} is for files, dataframes and bags; an array of Dask is learned as it is")
        blocks, known = _array_blocks(source, data.y, data.sample_weight)
    else:
        if data.y is not None or data.sample_weight is not None:
            raise ValueError("y and sample_weight belong to arrays; of a dataframe, name the column by target= or weight=")
        blocks = list(source.to_delayed())
        known = [None] * len(blocks)
    if not blocks:
        raise ValueError("data has no partitions")
    name = f"the {type(source).__name__.lower()}"
    parts = tuple(Part(at, f"partition {at} of {name}", None, 0, rows) for at, rows in enumerate(known))
    if kind == "arrays":
        read_plan = ReadPlan("arrays", options={} if data.sample_weight is None else {"weight": "sample_weight"})
    else:
        read_plan = _find_read_plan(engine, kind, blocks, model, data)
    return Plan(parts, tuple(blocks), read_plan, tokenize(source, data.y, data.sample_weight))


def _collection_kind(data: object) -> str:
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


def _array_blocks(data: DaskArray, y: Values, sample_weight: Values) -> tuple[list[object], list[int | None]]:
    """Return the partitions of an array by rows, each with its companions, and their numbers of rows, as far as known."""
    from dask.delayed import delayed

    if data.ndim == 2 and data.numblocks[1] > 1:
        data = data.rechunk({1: -1})
    columns = [data, _align_companion(data, y, "y"), _align_companion(data, sample_weight, "sample_weight")]
    number = data.numblocks[0]
    cut = [[None] * number if one is None else list(one.to_delayed().ravel()) for one in columns]
    blocks = [delayed(tuple)(list(block)) for block in zip(*cut, strict=True)]
    return blocks, [None if np.isnan(rows) else int(rows) for rows in data.chunks[0]]


def _align_companion(data: DaskArray, given: Values, name: str) -> DaskArray | None:
    """Return an array of values of rows, cut into partitions as the rows are."""
    if given is None:
        return None
    if not hasattr(given, "chunks") or getattr(given, "ndim", 0) != 1:
        raise ValueError(f"{name} must be a dask array of one dimension, got {one_line(given)}")
    one = cast("DaskArray", given)
    if np.isnan([*data.chunks[0], *one.chunks[0]]).any():
        if one.numblocks[0] != data.numblocks[0]:
            raise ValueError(f"{name} must be cut like the rows, whose number is not known, into {data.numblocks[0]} parts")
        return one
    if one.shape[0] != data.shape[0]:
        raise ValueError(f"{name} must have a value for each of the {data.shape[0]:,} rows, got {one.shape[0]:,}")
    return one if one.chunks[0] == data.chunks[0] else one.rechunk({0: data.chunks[0]})


def _find_read_plan(
    engine: DaskEngine, kind: str, blocks: Sequence[object], model: StreamingEstimator, data: DataToRead
) -> ReadPlan:
    """Look at some partitions: at texts from all over the data, whose words become columns; at others until one has rows."""
    symbols = model._traits.takes_symbols or model._traits.chained
    if kind == "texts":
        some = [blocks[at] for at in np.unique(np.linspace(0, len(blocks) - 1, LOOKED_PARTITIONS).round().astype(int))]
        share = -(-LOOKED_TEXTS // len(some))
        blocks = [engine.make_task(join_lists, [engine.make_task(first_items, block, share) for block in some])]
    for block in blocks:
        task = engine.make_task(look_at_partition, block, kind, symbols, data.like, dict(data.options), dict(data.defaults))
        read_plan: ReadPlan | None = engine.compute(task, names=["a partition of the data"])
        if read_plan is not None:
            return read_plan
    raise ValueError("there is nothing to learn: the data has no rows")


def first_items(block: Iterable[object], number: int) -> list[object]:
    """Return the first items of a partition of a bag; runs on a worker."""
    return list(islice(block, number))


def join_lists(lists: Sequence[list[object]]) -> list[object]:
    """Return the items of several lists in one; runs on a worker."""
    return [item for one in lists for item in one]


@return_errors
def look_at_partition(
    block: Any, kind: str, symbols: bool, like: object, reading: Keywords, defaults: Keywords
) -> ReadPlan | None:
    """Return how all partitions are read, by a look at one; None if it has no rows. Runs on a worker."""
    if kind == "texts":
        block = list(block)
        if not block:
            return None
        kind = _item_kind(block[0], symbols)
        if kind in ("rows", "sequences"):
            if reading:
                raise ValueError(f"{next(iter(reading))} is for texts and records; a bag of numbers is learned as it is")
            return ReadPlan(kind)
        if kind == "texts":
            reading = {"format": "sequences" if symbols else "text", **reading}
    if kind in ("frames", "records"):
        reading = {**defaults, **reading}
    try:
        return read_plan_like(kind, stream(stream_source(kind, block), like=like, **reading), reading)
    except NoRows:
        return None


def _item_kind(first: Any, symbols: bool) -> str:
    """Return what a bag holds: texts (or lists of words), records, rows of numbers, or sequences of rows or symbols."""
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
