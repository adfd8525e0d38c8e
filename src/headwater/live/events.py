"""What flows: events as a source hands them over, answers as sinks get them, and groups of events as the learner takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from headwater.core.values import AnyArray

Answer: TypeAlias = dict[str, object]  # values that JSON can hold
Places: TypeAlias = dict[str, object]  # by the parts of a source, such as files or partitions: how far it was read


class Event(NamedTuple):
    """One event: its fields by name, or what was wrong with it, and where its source is after it.

    `place` is a part of the source, such as a file, and a position in it that JSON can hold; None if the source cannot be
    read again.
    """

    fields: Mapping[str, object]
    place: tuple[str, object] | None = None
    problem: str = ""
    raw: str = ""  # of an event with a problem: what came


@dataclass(frozen=True, eq=False)
class Group:
    """Events in the order in which they are learned; what was logged, or is to be."""

    values: AnyArray  # (n_events, n_columns): float64, or objects where columns are words
    ids: Sequence[bytes | None]
    places: Mapping[str, Places] = field(default_factory=dict)  # by source, after these events
    logged: int = 0  # number of the last logged event; 0 if they can be read again
    merged: bytes | None = None  # a model file that is to be merged after them
    given: Sequence[Answer] = ()  # fields of the events that their answers have, too; known of logged events alone

    def __len__(self) -> int:
        return len(self.values)
