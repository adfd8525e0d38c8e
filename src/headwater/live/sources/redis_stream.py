"""Events from a stream of Redis: ``redis://host/stream``, which can be read again from any entry."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import redis

from headwater.core.validation import one_line
from headwater.live.backoff import Backoff
from headwater.live.broker_address import parse_address
from headwater.live.events import Event
from headwater.live.learner import Notice
from headwater.live.redis_client import open_redis, refuse_unless_away
from headwater.live.sources.source import MOST_EVENTS, Source
from headwater.live.text_events import json_event

PART = "stream"
FIRST_ENTRY = "0-0"
LOOK_SECONDS = 5.0  # between two looks at what the server says about the stream


class RedisStream(Source):
    """Hands over the entries of a stream: their fields, or the object in their only field if that is JSON.

    Parameters
    ----------
    text : str
        The address; options are ``from`` (begin, end) and ``db``.
    notice : callable
        Is told when the server is away, and when entries were deleted before they were read.
    """

    def __init__(self, text: str, notice: Notice) -> None:
        address = parse_address(text, ("from", "db"))
        self.name, self._stream, self._from_end = address.name, address.stream, address.from_end
        self._client = open_redis(address)
        self._notice, self._backoff = notice, Backoff(self.name, notice)
        self._after, self._read = "", 0  # last entry that was read, and how many were added until it
        self._looked, self._added, self._told = 0.0, 0, FIRST_ENTRY

    def seek(self, places: Mapping[str, object]) -> None:
        place = places.get(PART)
        if place is None:
            return
        if not isinstance(place, list) or len(place) != 2 or not _is_id(place[0]) or type(place[1]) is not int:
            raise ValueError(f"the position in {self.name} must be that of an entry, got {one_line(place, 60)}")
        self._after, self._read = place

    def fetch(self, seconds: float) -> Sequence[Event] | None:
        if not self._backoff.wait(seconds):
            return ()
        try:
            if time.monotonic() - self._looked > LOOK_SECONDS or not self._after:
                self._look()
            wait = max(1, round(1000.0 * seconds))
            found: Any = self._client.xread({self._stream: self._after}, count=MOST_EVENTS, block=wait)
        except redis.RedisError as error:
            refuse_unless_away(self.name, error)
            self._backoff.failed(error)
            self._looked = 0.0
            return ()
        self._backoff.succeeded()
        return self._events(found[0][1]) if found else ()

    def _look(self) -> None:
        """Ask about the stream: where it begins and ends, and whether entries were deleted before they were read."""
        self._looked = time.monotonic()
        try:
            told: Any = self._client.xinfo_stream(self._stream)
        except redis.ResponseError as error:
            if "no such key" not in str(error):
                raise
            self._after = self._after or FIRST_ENTRY
            return
        last, added = told["last-generated-id"].decode(), told.get("entries-added")
        if not self._after:
            length = 0 if self._from_end else told["length"]
            self._after = last if self._from_end else FIRST_ENTRY
            self._read = (added or length) - length
        elif _number(last) < _number(self._after):
            raise ValueError(
                f"{self.name} ends at entry {last}, and was read until {self._after} before: it is another stream now; begin "
                f"anew with another folder (--state)"
            )
        elif added is not None:
            self._find_gap(added - told["length"], told["max-deleted-entry-id"].decode())
        self._added = added or 0

    def _find_gap(self, removed: int, last_deleted: str) -> None:
        """Say it if entries were deleted before they were read: more than were read, or one after those."""
        trimmed = removed > self._read
        deleted = _number(last_deleted) > max(_number(self._after), _number(self._told))
        if trimmed or deleted:
            self._notice("gap", name=self.name, reason=f"entries after {self._after} were deleted before they were read")
        if trimmed:
            self._read = removed
        if deleted:
            self._told = last_deleted

    def _events(self, entries: Sequence[tuple[bytes, Mapping[bytes, bytes]]]) -> list[Event]:
        found = [_event(fields) for _, fields in entries]
        self._after, self._read = entries[-1][0].decode(), self._read + len(entries)
        return [*found[:-1], found[-1]._replace(place=(PART, [self._after, self._read]))]

    def lag(self) -> float | None:
        """Entries that were not yet read when the server was asked last; None if it does not say."""
        return float(max(self._added - self._read, 0)) if self._added else None

    def close(self) -> None:
        self._client.close()


def _event(fields: Mapping[bytes, bytes]) -> Event:
    if len(fields) == 1:
        (value,) = fields.values()
        if value.lstrip()[:1] == b"{":
            return json_event(value)
    try:
        return Event({name.decode(): value.decode() for name, value in fields.items()})
    except UnicodeDecodeError as error:
        return Event({}, None, f"the fields must be text in UTF-8: {error}", repr(fields)[:1000])


def _is_id(value: object) -> bool:
    return isinstance(value, str) and len(parts := value.split("-")) == 2 and all(part.isdecimal() for part in parts)


def _number(entry: str) -> tuple[int, int]:
    first, _, second = entry.partition("-")
    return int(first), int(second)
