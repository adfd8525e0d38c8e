"""Step: how far a run has come, for those who watch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """A moment of a run.

    `stage` says what is done ("looking", "starting", "learning", "passing"), `round` of `rounds` is the one that runs, and
    `done` of its `parts` are over. `rows` were learned in the rounds before, and `score` is their mean score, if it is known.
    """

    stage: str
    round: int = 1
    rounds: int = 1
    done: int = 0
    parts: int = 0
    rows: int = 0
    score: float | None = None
