"""Step: the progress of a run, for a watcher."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """A moment of a run.

    `stage` is "looking", "starting", "learning" or "passing"; round `round` of `rounds` is running, and `done` of its `parts`
    are finished. `rows` were learned in the rounds before, and `score` is their mean score, if it is known.

    Examples
    --------
    >>> from headwater.distributed import Step
    >>> Step("learning", round=2, rounds=4, done=3, parts=8).stage
    'learning'
    """

    stage: str
    round: int = 1
    rounds: int = 1
    done: int = 0
    parts: int = 0
    rows: int = 0
    score: float | None = None
