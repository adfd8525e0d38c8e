"""Checkpoints: a model and its position in the stream in one file, so that an interrupted run continues to the same result."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.io.files.atomic import remove_parts
from headwater.io.files.records import Damaged

if TYPE_CHECKING:
    from headwater.core.values import Keywords
    from headwater.estimators.base import StreamingEstimator

RECORD = "checkpoint"


@dataclass(frozen=True)
class Position:
    """The position of a run: finished passes, rows learned in the current pass, and whether the run is complete.

    Examples
    --------
    >>> from headwater.checkpoints import Position
    >>> Position(rows=3000)
    Position(passes=0, rows=3000, complete=False)
    """

    passes: int = 0
    rows: int = 0
    complete: bool = False


class Checkpoint:
    """A file that holds a model and its position, replaced atomically.

    Parameters
    ----------
    path : str or Path
        The file.
    identity : mapping
        What identifies the run: data, options, start; in the types of JSON. A file of another run is refused.
    every_rows : int, optional
        Rows between two writes.
    every_seconds : float, default=30.0
        Seconds between two writes, whatever the rows.
    replaced : sequence of str
        Parts of the identity that a complete run changes itself: those of a model that continues in its own file.
    keep_last : bool, default=False
        Whether the file before stays, as `before`, and is read where the newest is damaged.

    Examples
    --------
    >>> import os, tempfile
    >>> from headwater.checkpoints import Checkpoint
    >>> place = os.path.join(tempfile.mkdtemp(), "run.ckpt")
    >>> Checkpoint(place, {"data": "days.csv"}, every_rows=10_000).resume() is None  # there is no file yet
    True
    """

    def __init__(
        self,
        path: str | Path,
        identity: Mapping[str, object],
        *,
        every_rows: int | None = None,
        every_seconds: float = 30.0,
        replaced: Sequence[str] = (),
        keep_last: bool = False,
    ) -> None:
        self.path = Path(path)
        self.identity = json.loads(json.dumps(identity))
        self.replaced = tuple(replaced)
        self.every_rows = every_rows
        self.every_seconds = every_seconds
        self.more: Keywords = {}
        self.before = self.path.with_suffix(f".before{self.path.suffix}") if keep_last else None
        self.fallback = ""  # why the file before was read in place of the newest
        self._written = Position()
        self._moment = time.monotonic()

    def resume(self, **functions: object) -> tuple[StreamingEstimator, Position] | None:
        """Return the model and its position, or None if there is no file; a file of another run is refused.

        Parameters of the model that are functions must be given, since no file can hold them.
        """
        remove_parts(self.path)
        if self.before is None or not (self.path.exists() or self.before.exists()):
            found = self._read(self.path, functions) if self.path.exists() else None
        else:
            remove_parts(self.before)
            found = self._read_newest(self.before, functions)
        if found is None:
            return None
        model, record = found
        self._written, identity = self._check_record(record)
        self._refuse_another(identity, self.replaced if self._written.complete else ())
        self.more = record.get("more") or {}
        return model, self._written

    def _read_newest(self, before: Path, functions: Mapping[str, object]) -> tuple[StreamingEstimator, Keywords]:
        """Return what is in the newest file that is whole; one that is damaged is moved aside."""
        try:
            return self._read(self.path, functions)
        except (Damaged, FileNotFoundError) as error:
            if not before.exists():
                raise
            found = self._read(before, functions)
            self.fallback = f"{error}; the one before it, {before}, is used"
            if self.path.exists():
                os.replace(self.path, self.path.with_suffix(f".damaged{self.path.suffix}"))
            return found

    def _read(self, path: Path, functions: Mapping[str, object]) -> tuple[StreamingEstimator, Keywords]:
        """Return model and record of a file, which must be a checkpoint."""
        from headwater.estimators.model_file import read

        model, extra = read(path, **functions)
        record = extra.get(RECORD) if isinstance(extra, dict) else None
        if record is None:
            raise ValueError(f"{path} is a model file and no checkpoint: choose another name for the checkpoint")
        self._check_record(record)
        return model, record

    def _check_record(self, record: object) -> tuple[Position, Mapping[str, object]]:
        """Return position and identity of a record, or refuse a damaged one."""
        position, identity = (record.get(name) if isinstance(record, dict) else None for name in ("position", "identity"))
        if isinstance(position, dict) and set(position) == {"passes", "rows", "complete"} and isinstance(identity, dict):
            found = Position(**position)
            if (
                all(type(one) is int and 0 <= one < 2**62 for one in (found.passes, found.rows))
                and type(found.complete) is bool
            ):
                return found, identity
        raise ValueError(f"the checkpoint {self.path} is damaged: it does not say where the run is; remove it to begin anew")

    def _refuse_another(self, found: Mapping[str, object], replaced: Sequence[str]) -> None:
        for name in dict.fromkeys([*self.identity, *found]):
            here, there = self.identity.get(name), found.get(name)
            if name in replaced or here == there:
                continue
            if isinstance(here, dict) and isinstance(there, dict):
                name = next(one for one in dict.fromkeys([*here, *there]) if here.get(one) != there.get(one))
                here, there = here.get(name), there.get(name)
            raise ValueError(
                f"the checkpoint {self.path} belongs to another run, of which {name} was {_abridge(there)}, and now it is "
                f"{_abridge(here)}: remove it to begin anew, or choose another name"
            )

    def due(self, position: Position) -> bool:
        """Whether it is time to write again."""
        if self.every_rows is not None:
            before = self._written.rows if position.passes == self._written.passes else 0
            if position.rows - before >= self.every_rows:
                return True
        return time.monotonic() - self._moment >= self.every_seconds

    def write(self, model: StreamingEstimator, position: Position, more: Mapping[str, object] | None = None) -> None:
        """Replace the file by this model and position atomically; `more` is stored with them."""
        from headwater.estimators.model_file import save

        record = {"identity": self.identity, "position": asdict(position)}
        if self.before is not None and self.path.exists():
            _set_aside(self.path, self.before)
        save(model, self.path, extra={RECORD: record if more is None else {**record, "more": dict(more)}})
        self._written, self._moment = position, time.monotonic()


def _set_aside(path: Path, before: Path) -> None:
    """Let a file have a second name, which another file may have had. The first name is always that of a whole file."""
    part = before.with_name(f".{before.name}.link.part")
    part.unlink(missing_ok=True)
    try:
        os.link(path, part)
    except OSError:  # a file system without links
        shutil.copyfile(path, part)
    os.replace(part, before)


def _abridge(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
