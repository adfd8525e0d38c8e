"""Figures on disk: what was measured by part and set, and for each part the run that measured it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DIGITS = 7  # significant ones that are stored; no page shows more than five
Figures = dict[str, Any]


@dataclass
class Results:
    """Figures of a page, written after each set. `pending` are parts that a run has begun or is yet to begin."""

    path: Path
    scale: Figures
    figures: dict[str, Figures] = field(default_factory=dict)
    pending: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    runs: dict[str, Figures] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path, scale: Figures) -> Results:
        """The figures of a file; none, at this scale, if there is no file."""
        if not path.is_file():
            return cls(path, scale)
        stored = json.loads(path.read_text(encoding="utf-8"))
        return cls(path, **{name: stored[name] for name in ("scale", "figures", "pending", "absent", "runs")})

    def begin(self, parts: Sequence[str], only: Sequence[str] = (), fresh: bool = False) -> list[str]:
        """The parts to measure: those asked for, or those that an interrupted run left, or all. Others are kept."""
        chosen = [part for part in parts if part in (only or (not fresh and self.pending) or parts)]
        for part in chosen:
            if fresh or part not in self.pending:
                self.figures.pop(part, None)
                self.runs.pop(part, None)
        self.pending = [part for part in parts if part in self.pending or part in chosen]
        return chosen

    def write(self) -> None:
        """Write all or nothing; a list of numbers or words takes one line."""
        names = ("scale", "pending", "absent", "runs", "figures")
        text = json.dumps({name: getattr(self, name) for name in names}, indent=1, allow_nan=False)
        text = re.sub(r"\[[^][{}]*\]", lambda found: " ".join(found[0].split()), text)
        part = self.path.with_suffix(".part")
        part.write_text(f"{text}\n", encoding="utf-8")
        part.replace(self.path)

    def measured(self, part: str) -> bool:
        """Whether a part is complete and has figures."""
        return part not in self.pending and bool(self.figures.get(part))

    def one(self, part: str, name: str) -> Figures | None:
        """A set by its name, if there is one."""
        return self.figures.get(part, {}).get(name)

    def of(self, part: str, prefix: str = "") -> list[Figures]:
        """The sets of a part whose names begin so."""
        return [one for name, one in self.figures.get(part, {}).items() if name.startswith(prefix)]


def by_seed(sets: Sequence[Figures], key: str) -> dict[str, dict[str, dict[str, list[Any]]]]:
    """What each learner reached, seed by seed, by a key of the sets: the values that all of its runs have."""
    return {
        str(one[key]): {
            name: {value: [run[value] for run in found] for value in found[0] if all(value in run for run in found)}
            for name, found in one["runs"].items()
        }
        for one in sets
    }


def plain(value: Any) -> Any:
    """The same as JSON has it, in numbers that a reader can bear: tuples are lists, NaN is None."""
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float):
        return None if math.isnan(value) else float(f"{value:.{DIGITS}g}")
    return value
