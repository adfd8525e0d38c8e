"""Checkpoints: a model and its place in the stream in one file, so that a run that was cut short goes on to the same end."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

RECORD = "checkpoint"


@dataclass(frozen=True)
class Position:
    """Where a run is: passes that are over, rows of this one that are learned, and whether all is done."""

    passes: int = 0
    rows: int = 0
    complete: bool = False


class Checkpoint:
    """A file that holds a model and its position, written in one piece.

    Parameters
    ----------
    path : str or Path
        The file.
    identity : mapping
        What the run is: data, options, where it began; in words that JSON knows. A file of another run is refused.
    every_rows : int, optional
        Rows after which it is written again.
    every_seconds : float, default=30.0
        Seconds after which it is written again, whatever the rows.
    """

    def __init__(
        self, path: str | Path, identity: Mapping[str, Any], *, every_rows: int | None = None, every_seconds: float = 30.0
    ) -> None:
        self.path = Path(path)
        self.identity = json.loads(json.dumps(identity))
        self.every_rows = every_rows
        self.every_seconds = every_seconds
        self._written = Position()
        self._moment = time.monotonic()

    def resume(self) -> tuple[Any, Position] | None:
        """Return the model and its position if there is a file of this run, None if there is none, or refuse another's."""
        from headwater import storage

        if not self.path.exists():
            return None
        model, extra = storage.read(self.path)
        record = (extra or {}).get(RECORD)
        if record is None:
            raise ValueError(f"{self.path} is a model file and no checkpoint: choose another name for the checkpoint")
        self._refuse_another(record["identity"])
        self._written = Position(**record["position"])
        return model, self._written

    def _refuse_another(self, found: Mapping[str, Any]) -> None:
        for name in dict.fromkeys([*self.identity, *found]):
            here, there = self.identity.get(name), found.get(name)
            if here != there:
                raise ValueError(
                    f"the checkpoint {self.path} belongs to another run: its {name} is {_short(there)}, and this one's is "
                    f"{_short(here)}; remove it to begin anew, or choose another name"
                )

    def due(self, position: Position) -> bool:
        """Whether it is time to write again."""
        if self.every_rows is not None:
            before = self._written.rows if position.passes == self._written.passes else 0
            if position.rows - before >= self.every_rows:
                return True
        return time.monotonic() - self._moment >= self.every_seconds

    def write(self, model: Any, position: Position) -> None:
        """Write model and position in one piece: whoever reads finds the last one written in full."""
        model.save(self.path, extra={RECORD: {"identity": self.identity, "position": asdict(position)}})
        self._written, self._moment = position, time.monotonic()


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
