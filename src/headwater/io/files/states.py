"""The state of a learner as a tree of plain values; `state_reader.py` is the way back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from headwater.core.average import AVERAGE
from headwater.core.batch import Batch, SparseRows
from headwater.core.contents import folded_progress, other_records
from headwater.core.fit_result import FIT_RESULT
from headwater.core.learner import Learner
from headwater.core.loop import read
from headwater.core.records import fingerprint
from headwater.core.state import Progress, State, Stream, WarmUp
from headwater.core.steps import refresh
from headwater.io.files.records import Writer, tables_of
from headwater.policies.names import DRIFT, GROWTH, REFINEMENT, RESERVOIR
from headwater.policies.search_policy import stop_search

# The parts of a state in a file: those of its warm-up or stream, of its step and of its policies. None where there is nothing.
# Records of policies that have no part here are in `records`, by their names; a file without such has no `records`.
PARTS = (
    "key", "buffer", "base", "parameters", "reported", "statistics", "average", "pending", "progress", "parts", "carry",
    "waiting", "reservoir", "healing", "drift", "records",
)  # fmt: skip
BASE_PARTS = ("prior", "statistics", "average", "progress", "lineage", "ancestors", "growth")
LATER_PARTS: dict[str, object] = {"reservoir": None, "healing": None, "drift": None, "records": {}}  # not in all files


def rows_held(state: State) -> Iterator[Batch]:
    """Yield the rows that a state holds as they came: of its warm-up, before a block is complete, in its reservoir."""
    if isinstance(state, WarmUp):
        if state.rows:
            yield state.buffer.batch()
        return
    yield from getattr(state.unfolded, "waiting", ())
    if RESERVOIR in state.records and len(state.records[RESERVOIR]):
        yield state.records[RESERVOIR].batch
    for shard in getattr(state.unfolded, "streams", ()):
        yield from rows_held(shard)


def holds_rows(state: State) -> bool:
    """Whether any rows are kept as they came."""
    return any(True for _ in rows_held(state))


def without_rows(learner: Learner, state: State) -> Stream:
    """Return the state as if the stream ended here, in which no row is kept as it came; it goes on without a reservoir.

    Costs what a read does.
    """
    return stop_search(learner.plan, read(learner.plan, state))


def write_state(writer: Writer, learner: Learner, state: State, path: str) -> dict[str, object]:
    """Return the tree of a state. Parameters are left out where they follow from the rest."""
    tree: dict[str, object] = dict.fromkeys(PARTS) | {"key": state.key, "parts": [], "waiting": []}
    del tree["records"]
    if isinstance(state, WarmUp):
        tree["progress"] = writer.write(Progress(), f"{path}/progress")
        tree["buffer"] = _write_rows(writer, state.buffer.batch(), f"{path}/buffer") if state.rows else None
        return tree
    base, unfolded = state.base, state.unfolded
    given = not _are_alike(refresh(learner.plan, state).parameters, state.parameters)
    own = {name: base.records.get(name) if name in (AVERAGE, GROWTH) else getattr(base, name) for name in BASE_PARTS}
    tree["base"] = {"kind": "Base"} | {name: writer.write(one, f"{path}/base/{name}") for name, one in own.items()}
    parts = {
        "parameters": state.parameters if given else None,
        "reported": state.records.get(FIT_RESULT),
        "statistics": state.statistics,
        "average": state.records.get(AVERAGE),
        "pending": getattr(unfolded, "summary", None),
        "progress": folded_progress(state),
        "carry": getattr(unfolded, "carry", None),
        "reservoir": state.records.get(RESERVOIR),
        "healing": state.records.get(REFINEMENT),
        "drift": state.records.get(DRIFT),
    }
    tree |= {name: writer.write(one, f"{path}/{name}") for name, one in parts.items()}
    others = other_records(state)
    if others:
        tree["records"] = {name: writer.write(one, f"{path}/records/{name}") for name, one in others.items()}
    waiting, shards = getattr(unfolded, "waiting", ()), getattr(unfolded, "streams", ())
    tree["waiting"] = [_write_rows(writer, batch, f"{path}/waiting/{at}") for at, batch in enumerate(waiting)]
    tree["parts"] = [write_state(writer, learner, shard, f"{path}/parts/{at}") for at, shard in enumerate(shards)]
    return tree


def _are_alike(one: object, other: object) -> bool:
    """Whether two records are the same bit for bit, tables before their factors, too: logarithms are taken of both apart."""
    if fingerprint(one, size=16) != fingerprint(other, size=16):
        return False
    for table, twin in zip(tables_of(one), tables_of(other), strict=True):
        if table.factor != twin.factor:
            return False
        if table.same_rows(twin):
            continue
        (words, rows), (others, twins) = table.stored(), twin.stored()
        if not np.array_equal(words, others) or not np.array_equal(rows, twins):
            return False
    return True


def _write_rows(writer: Writer, batch: Batch, path: str) -> object:
    X = batch.X.copy() if isinstance(batch.X, SparseRows) else batch.X
    return writer.write(replace(batch, X=X), path)
