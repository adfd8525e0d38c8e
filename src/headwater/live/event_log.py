"""Write-ahead log: events of sources that cannot be read again, on the disk before they are answered.

A log is a folder of segments, named for the number of their first event. A record is its length and its CRC-32, four bytes
each, little-endian, and then a line of JSON and the bytes of the values. The last record of the last segment may be cut short
by the end of the process: it was never answered, and is removed.
"""

from __future__ import annotations

import errno
import json
import os
import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from headwater.core.values import AnyArray
from headwater.live.events import Group

SEGMENT_NAME = re.compile(r"events-(\d{20})\.log")
SEGMENT_BYTES = 2**24  # after which a new segment begins, so that old ones can be removed
RECORD_BYTES = 2**28  # a length beyond this is damage
HEAD = struct.Struct("<II")
SYNC = getattr(os, "fdatasync", os.fsync)  # without the times of the file, where that can be left out


class EventLog:
    """The log of one engine, numbered from 1 in the order in which events came.

    Parameters
    ----------
    folder : Path
        Where the segments are.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.last = 0  # number of the last event
        self.removed_bytes = 0  # of a record that was cut short
        self._file: BinaryIO | None = None
        self._start = 0  # of the last record in its segment
        self._recover()

    def _segments(self) -> list[tuple[int, Path]]:
        found = [(int(match[1]), path) for path in self.folder.iterdir() if (match := SEGMENT_NAME.fullmatch(path.name))]
        return sorted(found)

    def _recover(self) -> None:
        """Find the last whole record, and remove what a process that was killed left of another one."""
        segments = self._segments()
        for place, (first, path) in enumerate(segments):
            self.last = max(self.last, first - 1)
            end = 0
            for group, after in _records(path):
                self.last, end = max(self.last, group.logged), after
            size = path.stat().st_size
            if end == size:
                continue
            if place < len(segments) - 1 or _has_record_after(path, end):
                raise ValueError(
                    f"{path} is damaged at byte {end:,}, before its end: events after it would be lost; move the file away to "
                    f"go on without them"
                )
            self.removed_bytes = size - end
            with path.open("r+b") as file:
                file.truncate(end)
                os.fsync(file.fileno())

    def write(self, group: Group) -> int:
        """Return the number of the last event of a group when it is safe on the disk. After an OSError it is not in the log."""
        before = self.last
        self.append(group)
        try:
            self.sync()
        except OSError:
            self._cut(self._start)
            self.last = before
            raise
        return self.last

    def _cut(self, size: int) -> None:
        """Remove what was written after a place: a later record must not follow a part of one, or one that was refused."""
        assert self._file is not None
        self._file.truncate(size)
        self._file.seek(size)

    def append(self, group: Group) -> int:
        """Write events, and return the number of the last one. They are safe after `sync`."""
        values, ids, merged = group.values, group.ids, group.merged
        last = self.last + max(len(values), 1)
        floats = values.dtype == np.float64
        body = merged if merged is not None else values.tobytes() if floats else json.dumps(values.tolist()).encode()
        header = {
            "last": last,
            "shape": list(values.shape),
            "kind": "merge" if merged is not None else "floats" if floats else "json",
            "ids": [None if one is None else one.hex() for one in ids] if any(one is not None for one in ids) else None,
            "given": list(group.given) if any(group.given) else None,
        }
        payload = json.dumps(header).encode() + b"\n" + body
        if self._file is None or self._file.tell() > SEGMENT_BYTES:
            self.begin_segment()
        assert self._file is not None
        self._start = self._file.tell()
        record = HEAD.pack(len(payload), zlib.crc32(payload)) + payload
        try:
            if self._file.write(record) != len(record):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except BaseException:
            self._cut(self._start)
            raise
        self.last = last
        return last

    def sync(self) -> None:
        """Return when all that was written is on the disk."""
        if self._file is not None:
            SYNC(self._file.fileno())

    def begin_segment(self) -> None:
        """Let the next events go into a new segment."""
        self.close()
        self._file = (self.folder / f"events-{self.last + 1:020d}.log").open("ab", buffering=0)
        with suppress(OSError):  # not every file system lets a directory be synchronised
            descriptor = os.open(self.folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def read(self, after: int) -> Iterator[Group]:
        """Yield the events after a number, as they were written."""
        for _, path in self._segments():
            for group, _ in _records(path):
                if group.logged > after:
                    yield group

    def remove_until(self, number: int) -> None:
        """Remove segments that hold no event after a number."""
        segments = self._segments()
        for (_, path), (following, _) in pairwise(segments):
            if following <= number + 1:
                path.unlink(missing_ok=True)

    @property
    def n_bytes(self) -> int:
        """Size of all segments."""
        return sum(path.stat().st_size for _, path in self._segments())

    def close(self) -> None:
        """Close the segment that is written to."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _records(path: Path) -> Iterator[tuple[Group, int]]:
    """Yield the whole records of a segment, and the place after each; end at the first that is not whole."""
    with path.open("rb") as file:
        while True:
            payload = _next_payload(file)
            if payload is None:
                return
            line, _, body = payload.partition(b"\n")
            yield _group(json.loads(line), body), file.tell()


def _next_payload(file: BinaryIO) -> bytes | None:
    head = file.read(HEAD.size)
    if len(head) < HEAD.size:
        return None
    length, crc = HEAD.unpack(head)
    if not 0 < length <= RECORD_BYTES:
        return None
    payload = file.read(length)
    return payload if len(payload) == length and zlib.crc32(payload) == crc else None


def _group(header: dict[str, object], body: bytes) -> Group:
    shape, kind, ids = header["shape"], header["kind"], header["ids"]
    assert isinstance(shape, list)
    known = [None if one is None else bytes.fromhex(one) for one in ids] if isinstance(ids, list) else [None] * shape[0]
    given: Any = header["given"] or ({},) * len(known)
    logged = int(header["last"])  # type: ignore[call-overload]
    if kind == "merge":
        return Group(np.empty(shape), known, logged=logged, merged=body)
    if kind == "floats":
        return Group(np.frombuffer(body).reshape(shape).copy(), known, logged=logged, given=given)
    return Group(objects(json.loads(body), shape[1]), known, logged=logged, given=given)


def objects(rows: Sequence[Sequence[object]], width: int) -> AnyArray:
    """Return rows of any values as an array of objects (n_rows, width)."""
    found = np.empty((len(rows), width), dtype=object)
    for place, row in enumerate(rows):
        found[place] = row
    return found


def _has_record_after(path: Path, end: int) -> bool:
    """Whether a whole record follows one that is damaged, whose length may still be right."""
    with path.open("rb") as file:
        file.seek(end)
        head = file.read(HEAD.size)
        if len(head) < HEAD.size:
            return False
        file.seek(end + HEAD.size + HEAD.unpack(head)[0])
        return _next_payload(file) is not None
