"""DistributedReport: what learning on many machines did, and what it moved."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from html import escape
from typing import Any, TypeVar

Kind = TypeVar("Kind")

HEADINGS = ("round", "parts", "rows", "score", "message", "merged", "critical path", "model", "seconds")


@dataclass(frozen=True)
class Round:
    """What one round did: parts were read side by side, and what they yielded was added up a tree.

    Attributes
    ----------
    stage : str
        "learning", where parts are streamed, or "pass", where they are summarized.
    parts, rows : int
        Parts that it read, and the rows they had.
    score : float
        Mean score of the rows: before they were learned, or at the parameters that the pass was made with. NaN if not known.
    message : int
        Bytes of the largest message: the statistics, or of large tables the words that some parts have touched.
    merged : int
        Bytes of the messages that went from one task to another, all together: (parts - 1) times the size, at most.
    path : int
        Bytes of those that had to wait for one another: log2(parts) times the size, at most.
    sent : int
        Bytes of the model that every worker was sent.
    seconds : float
        How long it took. It is not kept in files.

    Examples
    --------
    >>> from headwater.distributed import Round
    >>> Round("learning", 4, 1000, -2.5, message=640, merged=1920, path=1280, sent=640).rows
    1000
    """

    stage: str
    parts: int
    rows: int
    score: float
    message: int
    merged: int
    path: int
    sent: int
    seconds: float = field(default=math.nan, compare=False)


@dataclass(frozen=True)
class DistributedReport:
    """What `headwater.distributed.fit` did; `print` it for a table.

    Attributes
    ----------
    parts : int
        Parts of the data.
    rounds : tuple of Round
        Rounds of one pass over all parts, or a pass each.
    unread : tuple of str
        A sentence for every part that could not be read.
    workers : int
        Workers that the cluster had at the end. The answer does not depend on them, and files do not keep it.

    Examples
    --------
    >>> from headwater.distributed import DistributedReport
    >>> DistributedReport(parts=4).parts
    4
    """

    parts: int
    rounds: tuple[Round, ...] = ()
    unread: tuple[str, ...] = ()
    workers: int = field(default=0, compare=False)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def __str__(self) -> str:
        by = f" by {self.workers} worker{'s' * (self.workers != 1)}" if self.workers else ""
        rows: list[tuple[str, ...]] = [HEADINGS]
        for number, one in enumerate(self.rounds, start=1):
            rows.append(
                (
                    f"{one.stage} {number}",
                    f"{one.parts:,}",
                    f"{one.rows:,}",
                    "" if math.isnan(one.score) else f"{one.score:.4f}",
                    *map(_format_bytes, (one.message, one.merged, one.path, one.sent)),
                    "" if math.isnan(one.seconds) else f"{one.seconds:.2f}",
                )
            )
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [f"{self.parts:,} part{'s' * (self.parts != 1)}{by}."]
        lines += ["  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)) for row in rows]
        return "\n".join([*lines, *self.unread])

    @property
    def sentence(self) -> str:
        """The report in one sentence."""
        number, moved = len(self.rounds), sum(one.merged for one in self.rounds)
        stages = "pass" if all(one.stage == "pass" for one in self.rounds) else "round"
        several = f"{number} {stages}{'es' if stages == 'pass' else 's'}" if number != 1 else f"one {stages}"
        parts = f"{self.parts:,} part{'s' * (self.parts != 1)}"
        missing = f", of which {len(self.unread)} could not be read" if self.unread else ""
        return (
            f"Learned on many machines from {parts}{missing}, in {several}; {_format_bytes(moved)} of statistics were merged."
        )

    def to_dict(self) -> dict[str, object]:
        """Return it in values that JSON can hold, without what depends on the cluster."""
        rounds = [{name: value for name, value in asdict(one).items() if name != "seconds"} for one in self.rounds]
        for one in rounds:
            one["score"] = None if math.isnan(one["score"]) else one["score"]
        return {"parts": self.parts, "rounds": rounds, "unread": list(self.unread)}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> DistributedReport:
        """Return what `to_dict` was made of, or refuse what it never is."""
        try:
            rounds = tuple(_read_round(one) for one in found["rounds"])
            unread = tuple(_check_type(str, one) for one in found["unread"])
            return cls(_check_type(int, found["parts"]), rounds, unread)
        except (KeyError, TypeError) as error:
            raise ValueError("it is no report of learning on many machines") from error


def _read_round(found: Mapping[str, object]) -> Round:
    names = {one.name for one in fields(Round)} - {"seconds", "stage", "score"}
    if set(found) != names | {"stage", "score"}:
        raise TypeError("a round has other parts")
    score = math.nan if found["score"] is None else float(_check_type(float, found["score"]))
    return Round(stage=_check_type(str, found["stage"]), score=score, **{name: _check_type(int, found[name]) for name in names})


def _check_type(kind: type[Kind], value: object) -> Kind:
    if type(value) is not kind:
        raise TypeError(f"{value!r:.20} is no {kind.__name__}")
    return value


def _format_bytes(number: int) -> str:
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if number < 1000 or unit == "TB":
            break
        number /= 1000  # type: ignore[assignment]
    return f"{number:.0f} {unit}" if unit == "B" or number >= 100 else f"{number:.1f} {unit}"
