"""Events from files that grow: appended lines, new files, and files that were rotated, each line once."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from headwater.core.validation import one_line
from headwater.live.events import Event
from headwater.live.sources.source import Source
from headwater.live.text_events import LINE_BYTES, LineReader

ENDINGS = (".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".json")
READ_BYTES = 2**16  # of a file at a time: some hundred events
LONG_READ_BYTES = 2 * LINE_BYTES  # where those held no whole line
HEAD_BYTES = 1024  # by which a file is known again under another name
LOOK_SECONDS = 0.1  # between two looks at files that have not grown
PART = "files"


@dataclass
class Followed:
    """How far a file was read, and by what it is known: its number on the disk, and a digest of its first bytes."""

    offset: int = 0
    number: int = 0
    head_bytes: int = 0
    head: str = ""
    lines: LineReader | None = None

    def place(self) -> list[object]:
        return [self.offset, self.number, self.head_bytes, self.head]


def followed(path: Path, file: Path) -> bool:
    """Whether a file is one that a source with this path reads."""
    if not path.is_dir():
        return file.resolve() == path.resolve()
    return file.resolve().parent == path.resolve() and _is_wanted(file.name)


def _is_wanted(name: str) -> bool:
    return name.lower().endswith(ENDINGS) and not name.startswith((".", "_"))


class FollowedFiles(Source):
    """Hands over the lines of a file, or of all files of a folder, in the order of their names.

    Parameters
    ----------
    path : Path
        A file, or a folder.
    follow : bool
        Whether to wait for more; if not, the source ends where the files do.
    """

    def __init__(self, path: Path, follow: bool) -> None:
        self.path, self.follow = path.resolve(), follow
        if not self.path.exists() and not follow:
            raise FileNotFoundError(f"there is no file or folder {path}")
        self.name = f"files:{self.path}"
        self._folder = self.path if self.path.is_dir() else self.path.parent
        self._known: dict[str, Followed] = {}
        self._lag = 0

    def seek(self, places: Mapping[str, object]) -> None:
        found = places.get(PART, {})
        if not isinstance(found, Mapping):
            raise ValueError(f"positions of {self.name} must be by file, got {one_line(found, 60)}")
        for name, place in found.items():
            kinds = (int, int, int, str)
            if (
                not isinstance(place, list)
                or len(place) != 4
                or any(type(a) is not b for a, b in zip(place, kinds, strict=True))
            ):
                raise ValueError(f"the position in {name} must be that of a file, got {one_line(place, 60)}")
            self._known[name] = Followed(*place)

    def fetch(self, seconds: float) -> Sequence[Event] | None:
        end = time.monotonic() + seconds
        while True:
            self._look()
            for name in sorted(self._known):
                if found := self._read(name):
                    return self._with_place(found)
            if not self.follow:
                return self._last_lines()
            if time.monotonic() >= end:
                return ()
            time.sleep(LOOK_SECONDS)

    def lag(self) -> float | None:
        """Bytes that were not yet read when the files were looked at last."""
        return float(self._lag)

    # Which files there are

    def _wanted(self, name: str) -> bool:
        if self.path != self._folder:
            return name == self.path.name
        return _is_wanted(name)

    def _look(self) -> None:
        """Find new files, and files that have another name now."""
        with os.scandir(self._folder) as entries:
            there = {entry.name: entry.stat() for entry in entries if entry.is_file() and not entry.name.startswith(".")}
        moved: dict[str, Followed] = {}
        for name, one in list(self._known.items()):
            if name in there and self._is_same(name, one, there[name], strict=True):
                continue
            others = [other for other in sorted(there) if other != name and self._known.get(other, one) is one]
            now = next((o for o in others if self._is_same(o, one, there[o], strict=True)), None)
            if now is None and name in there and self._is_same(name, one, there[name], strict=False):
                continue
            now = now or next((o for o in others if self._is_same(o, one, there[o], strict=False)), None)
            del self._known[name]
            if now is not None:
                moved[now] = one
        self._known.update(moved)
        for name in sorted(there):
            if name not in self._known and self._wanted(name):
                self._known[name] = Followed()
        self._lag = sum(max(there[name].st_size - one.offset, 0) for name, one in self._known.items() if name in there)

    def _is_same(self, name: str, one: Followed, found: os.stat_result, strict: bool) -> bool:
        """Whether a file is the one that was read so far; a `strict` look asks for its number on the disk, too."""
        if one.offset == 0:
            return True
        if found.st_size < one.offset or (strict and found.st_ino != one.number):
            return False
        try:
            with (self._folder / name).open("rb") as file:
                return _digest(file.read(one.head_bytes)) == one.head
        except OSError:
            return False

    # Lines

    def _read(self, name: str, last: bool = False) -> list[Event]:
        """Return the next events of a file; its `last` line may lack its end."""
        one = self._known[name]
        try:
            with (self._folder / name).open("rb") as file:
                return self._next_events(file, one, last) if one.lines is not None or self._begin(file, name, one) else []
        except FileNotFoundError:  # it was renamed since it was looked for
            return []

    def _begin(self, file: BinaryIO, name: str, one: Followed) -> bool:
        """Look at the first line of a file; return whether there is one."""
        line = file.readline(LINE_BYTES)
        if not line.endswith(b"\n") and (self.follow or not line):
            return False
        one.lines = LineReader(name)
        header = one.lines.begin(line)
        if one.offset == 0 and header:
            self._note(file, one, len(line))
        return True

    def _next_events(self, file: BinaryIO, one: Followed, last: bool) -> list[Event]:
        assert one.lines is not None
        file.seek(one.offset)
        found = file.read(READ_BYTES)
        end = found.rfind(b"\n") + 1
        if not end and len(found) == READ_BYTES:
            found += file.read(LONG_READ_BYTES)
            end = found.rfind(b"\n") + 1 or (len(found) if len(found) > LINE_BYTES else 0)
        if last:
            end = len(found)
        if not end:
            return []
        lines = found[:end].split(b"\n")
        events = one.lines.events(lines, [None] * len(lines))
        self._note(file, one, one.offset + end)
        return events

    def _note(self, file: BinaryIO, one: Followed, offset: int) -> None:
        """Note how far a file was read, and what it begins with."""
        one.offset = offset
        one.number = os.fstat(file.fileno()).st_ino
        if one.head_bytes < min(offset, HEAD_BYTES):
            file.seek(0)
            one.head_bytes = min(offset, HEAD_BYTES)
            one.head = _digest(file.read(one.head_bytes))

    def _with_place(self, events: list[Event]) -> list[Event]:
        """Return events of which the last says how far all files were read."""
        place = (PART, {name: one.place() for name, one in self._known.items() if one.offset})
        return [*events[:-1], events[-1]._replace(place=place)]

    def _last_lines(self) -> Sequence[Event] | None:
        """Return what is left at the ends of files that do not end with a whole line; None if nothing is."""
        for name in sorted(self._known):
            if found := self._read(name, last=True):
                return self._with_place(found)
        return None


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()
