"""One line of the table: two figures in one unit, their ratio, and the target."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from benchmarks.timing import Timing

UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6}


@dataclass(frozen=True)
class Target:
    """A bound on the ratio of a line, or on our figure in the unit of the line."""

    of: Literal["ratio", "ours"]
    sense: Literal[">=", "<="]
    bound: float

    def met(self, line: Line) -> bool:
        value = line.ratio if self.of == "ratio" else line.ours
        if value is None or math.isnan(value):
            return False
        return value >= self.bound if self.sense == ">=" else value <= self.bound

    def text(self, unit: str) -> str:
        return f"{self.sense} {self.bound:g}" + ("x" if self.of == "ratio" else f" {unit}")


def at_least(ratio: float) -> Target:
    return Target("ratio", ">=", ratio)


def at_most(figure: float) -> Target:
    return Target("ours", "<=", figure)


@dataclass(frozen=True)
class Line:
    """A measurement. A ratio above 1 means that headwater is better, unless the note says otherwise."""

    name: str
    ours: float
    peer: float | None
    unit: str
    ratio: float | None
    target: Target | None = None
    note: str = ""
    median_ratio: float | None = None
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        return None if self.target is None else self.target.met(self)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "target": self.target and self.target.text(self.unit), "met": self.met}


def times(
    name: str,
    ours: Timing,
    peer: Timing | None = None,
    *,
    unit: str = "s",
    target: Target | None = None,
    note: str = "",
) -> Line:
    """A line of times: the best repeat of each side, with the ratio of medians beside it."""
    return _line(name, ours, peer, unit, lambda seconds: seconds * UNITS[unit], target, note)


def rates(
    name: str, ours: Timing, peer: Timing | None = None, *, rows: int, target: Target | None = None, note: str = ""
) -> Line:
    """The same as rates, in millions of rows a second."""
    return _line(name, ours, peer, "Mrow/s", lambda seconds: quotient(rows / 1e6, seconds), target, note)


def _line(name, ours, peer, unit, figure, target, note) -> Line:
    details = {"ours_seconds": ours.to_json()}
    if peer is None:
        return Line(name, figure(ours.best), None, unit, None, target, note, details=details)
    details["peer_seconds"] = peer.to_json()
    return Line(
        name, figure(ours.best), figure(peer.best), unit, quotient(peer.best, ours.best), target, note,
        quotient(peer.median, ours.median), details,
    )  # fmt: skip


def quotient(above: float, below: float) -> float:
    """Return a quotient; NaN if noise made a difference of times negative or zero."""
    return above / below if above > 0.0 and below > 0.0 else math.nan
