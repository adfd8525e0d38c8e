"""The figures of paper 003's experiments on disk, and how they are read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

PARTS = ("figure1", "tables", "overfitting", "printed")


@dataclass
class Results:
    """Figures by part and set, written after each, and the parts that are not complete yet."""

    path: Path
    scale: str
    figures: dict[str, dict[str, Any]]
    pending: list[str]
    absent: list[str]

    @classmethod
    def read(cls, path: Path, scale: str) -> Results:
        if not path.is_file():
            return cls(path, scale, {}, [], [])
        stored = json.loads(path.read_text(encoding="utf-8"))
        return cls(path, stored["scale"], stored["figures"], stored["pending"], stored["absent"])

    def begin(self, only: Sequence[str], fresh: bool) -> list[str]:
        """The parts to make: those asked for, or those that an interrupted run left, or all. Others are kept."""
        parts = [part for part in PARTS if part in (only or (not fresh and self.pending) or PARTS)]
        for part in parts:
            if fresh or part not in self.pending:
                self.figures.pop(part, None)
        self.pending = [part for part in PARTS if part in self.pending or part in parts]
        return parts

    def write(self) -> None:
        stored = {"scale": self.scale, "pending": self.pending, "absent": self.absent, "figures": rounded(self.figures)}
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
        part.replace(self.path)

    def sets(self, part: str) -> list[dict[str, Any]]:
        return [*self.figures.get(part, {}).values()]

    def tables(self, kind: str) -> list[dict[str, Any]]:
        return [one for name, one in self.figures.get("tables", {}).items() if name.startswith(f"{kind}/")]


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(one) for one in value]
    return float(f"{value:.7g}") if isinstance(value, float) else value


def gap(one: dict[str, Any], name: str) -> float:
    """A learner's last score on a generated set minus the truth's."""
    return one["learners"][name]["scores"][-1] - one["truth"]


def average(one: dict[str, Any], name: str, key: str = "scores") -> float:
    """A learner's mean over the splits of a set."""
    return float(np.mean(one["learners"][name][key]))
