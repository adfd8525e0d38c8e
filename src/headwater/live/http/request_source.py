"""Events of requests: gathered from all connections, so that many small requests cost as little as one large one."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Sequence

from headwater.live.events import Answer, Event
from headwater.live.sources.source import MOST_EVENTS, Source

WAITING_EVENTS = 2**14  # of requests that wait; further ones are refused


class Busy(Exception):
    """More events wait than there is room for: the request is to come again later."""


class RequestSource(Source):
    """Events of requests, each with a future that gets its answers."""

    name = "http"
    replays = False
    waits = False  # who asks wants an answer now, even while the model searches

    def __init__(self) -> None:
        self._waiting: deque[tuple[Sequence[Event], asyncio.Future[list[Answer]]]] = deque()
        self._handed: deque[list[tuple[int, asyncio.Future[list[Answer]]]]] = deque()
        self._events = 0
        self._changed = threading.Condition()
        self._closed = False

    def submit(self, events: Sequence[Event]) -> asyncio.Future[list[Answer]]:
        """Put events in line; the future gets their answers. Called by the loop of the server."""
        future: asyncio.Future[list[Answer]] = asyncio.get_running_loop().create_future()
        with self._changed:
            if self._closed or self._events + len(events) > WAITING_EVENTS:
                raise Busy
            self._waiting.append((events, future))
            self._events += len(events)
            self._changed.notify()
        return future

    def fetch(self, seconds: float) -> Sequence[Event] | None:
        with self._changed:
            if not self._waiting:
                self._changed.wait(seconds)
            found: list[Event] = []
            parts: list[tuple[int, asyncio.Future[list[Answer]]]] = []
            while self._waiting and (not found or len(found) + len(self._waiting[0][0]) <= MOST_EVENTS):
                events, future = self._waiting.popleft()
                found.extend(events)
                parts.append((len(events), future))
            if parts:
                self._handed.append(parts)
        return found

    def answered(self, events: Sequence[Event], answers: Sequence[Answer]) -> None:
        parts, at = self._take(len(events)), 0
        done = []
        for number, future in parts:
            done.append((future, list(answers[at : at + number])))
            at += number
        parts[0][1].get_loop().call_soon_threadsafe(_resolve, done)

    def failed(self, events: Sequence[Event], error: OSError) -> None:
        """Say that events were not taken."""
        parts = self._take(len(events))
        parts[0][1].get_loop().call_soon_threadsafe(_reject, [future for _, future in parts], error)

    def lag(self) -> float | None:
        """Events that wait."""
        return float(self._events)

    def close(self) -> None:
        """Refuse what is still in line."""
        with self._changed:
            self._closed = True
            futures = [future for parts in self._handed for _, future in parts] + [future for _, future in self._waiting]
            self._handed.clear()
            self._waiting.clear()
        for future in futures:
            loop = future.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(_reject, [future], Busy())

    def _take(self, number: int) -> list[tuple[int, asyncio.Future[list[Answer]]]]:
        with self._changed:
            self._events -= number
            return self._handed.popleft()


def _resolve(done: Sequence[tuple[asyncio.Future[list[Answer]], list[Answer]]]) -> None:
    for future, answers in done:
        if not future.done():  # who asked may have gone
            future.set_result(answers)


def _reject(futures: Sequence[asyncio.Future[list[Answer]]], error: Exception) -> None:
    for future in futures:
        if not future.done():
            future.set_exception(error)
