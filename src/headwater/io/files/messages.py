"""Messages between machines, in the format of model files: deltas, summaries of rows, and reservoirs.

They hold no code. They must fit the statistics of the learner that they are for, or are refused in a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

from headwater.core.delta import Delta
from headwater.core.learner import Learner
from headwater.core.state import Summary
from headwater.io.files import container
from headwater.io.files.records import Damaged, Reader, Writer
from headwater.io.files.state_reader import HEAVIEST, LONGEST_NAME, StateReader
from headwater.policies.reservoir import Reservoir

Sum = TypeVar("Sum", Delta, Summary, Reservoir)
NAME = "the message"


def to_bytes(value: Delta | Summary | Reservoir) -> bytes:
    """Return the bytes of a delta, a summary or a reservoir; for a table, only the rows of the words that it has.

    Parameters
    ----------
    value : Delta, Summary or Reservoir
        What is to be sent.

    Returns
    -------
    data : bytes
        To be read by `from_bytes`.
    """
    writer = Writer()
    tree = writer.write(value, "sum")
    return container.to_bytes({"sum": tree, "tables": writer.tables}, writer.arrays)


def from_bytes(data: bytes, learner: Learner, kind: type[Sum]) -> Sum:
    """Return the delta, the summary or the reservoir of these bytes.

    Parameters
    ----------
    data : bytes
        What `to_bytes` returned.
    learner : Learner
        The learner whose kind and shape of statistics the message must have.
    kind : type
        `Delta`, `Summary` or `Reservoir`: what is expected.

    Returns
    -------
    value : Delta, Summary or Reservoir
        As it was written, bit for bit.

    Raises
    ------
    Damaged
        If the bytes are anything else.
    """
    header, arrays = container.from_bytes(data, NAME)
    reader = Reader(arrays)
    try:
        reader.tables = reader.expect(header.get("tables"), dict, "tables")
        names = {part.name for part in fields(kind) if part.compare}
        parts = reader.parts(header.get("sum"), kind.__name__, names, "sum")
        value: Sum = READERS[kind](StateReader(reader, learner), parts)
    except Damaged as error:
        raise Damaged(f"{NAME} cannot be read: {error}") from error
    return value


def _summary(states: StateReader, parts: Mapping[str, object]) -> Summary:
    return states.summary(dict(parts), "sum", least=0)


def _delta(states: StateReader, parts: Mapping[str, object]) -> Delta:
    reader = states.reader

    def weight(name: str) -> float:
        found = reader.number(parts[name], f"sum/{name}")
        if not (found >= 0.0 or name == "n_eff") or abs(found) > HEAVIEST:  # the share of a base may exceed 1
            raise Damaged(f"sum/{name} is negative, or more than any stream can hold")
        return found

    lineage = reader.expect(parts["lineage"], str, "sum/lineage")
    if len(lineage) > LONGEST_NAME:
        raise Damaged("sum/lineage is a name that is too long")
    statistics = states.differences(parts["statistics"], "sum/statistics")
    average = parts["average"]
    numbers = ("weight", "folds", "kept", "beyond", "least", "n_eff", "pace", "of_average", "of_statistics")
    delta = Delta(
        lineage=lineage,
        parts=reader.whole(parts["parts"], "sum/parts", 1),
        rows=reader.whole(parts["rows"], "sum/rows", 0),
        statistics=statistics,
        average=None if average is None else states.differences(average, "sum/average"),
        **{name: weight(name) for name in numbers},
    )
    if delta.least + delta.n_eff <= 0.0 or delta.pace == 0.0:
        raise Damaged("sum is worth no row")
    return delta


def _reservoir(states: StateReader, parts: Mapping[str, object]) -> Reservoir:
    return states.reservoir(parts, "sum")


READERS: Mapping[type, Callable[[StateReader, Mapping[str, object]], Any]] = {
    Delta: _delta,
    Summary: _summary,
    Reservoir: _reservoir,
}
