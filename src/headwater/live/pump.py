"""The pump: brings events from all sources to the engine, and their answers to all sinks, until it is stopped."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

from headwater.live.engine import Engine
from headwater.live.events import Event
from headwater.live.learner import Notice
from headwater.live.outlets import Outlets
from headwater.live.sinks.sink import Undelivered
from headwater.live.sources.source import Source
from headwater.live.traffic import Traffic

WAITING_BATCHES = 4  # of all sources: more are not read until these are answered
JOIN_SECONDS = 10.0
FETCH_SECONDS = 0.25  # that a source waits at a time, and so the time until it notices that it is to stop


Found: TypeAlias = Sequence[Event] | Exception | Callable[[], None] | None


class Pump:
    """Runs an engine. Sources are read on threads of their own; all else happens on the thread that calls `run`.

    Parameters
    ----------
    engine : Engine
        The engine, not yet started.
    sources : sequence of Source
        Where events come from.
    outlets : Outlets
        Where answers go.
    notice : callable
        Is told what happens.
    traffic : Traffic, optional
        Counts what passes.
    """

    def __init__(
        self, engine: Engine, sources: Sequence[Source], outlets: Outlets, notice: Notice, traffic: Traffic | None = None
    ) -> None:
        self.engine, self.sources, self.outlets, self.notice, self.traffic = engine, sources, outlets, notice, traffic
        self._waits = all(source.waits for source in sources)  # who asks must not wait for the events of others
        self.started, self.stopping = threading.Event(), threading.Event()
        self._inbox: queue.Queue[tuple[Source, Found]] = queue.Queue(WAITING_BATCHES)

    def stop(self) -> None:
        """Let `run` end after the events that it has; any thread may ask, and a signal handler, too."""
        self.stopping.set()

    def do(self, work: Callable[[], None]) -> bool:
        """Let the thread that runs do something between two batches; return whether it will."""
        try:
            self._inbox.put((self.sources[0], work), timeout=FETCH_SECONDS)
        except queue.Full:
            return False
        return not self.stopping.is_set()

    def run(self, requested: Callable[[], bool] = lambda: False) -> None:
        """Answer and learn until all sources have ended, or until it is stopped or that is `requested`; then save."""
        ended = False
        self.outlets.begin(lambda: self.stopping.is_set() or requested())
        threads = [threading.Thread(target=self._read, args=(one,), name=one.name, daemon=True) for one in self.sources]
        try:
            for source in self.sources:
                source.seek(self.engine.places(source.name))
            for taken in self.engine.start():
                self.outlets.write(taken.answers)
                self.engine.commit(taken)
            for thread in threads:
                thread.start()
            self.started.set()
            self.notice("started", sources=[source.name for source in self.sources], learns=self.engine.settings.learns)
            ended = self._work(len(threads), requested)
        except Undelivered:
            self.notice("undelivered", reason="answers that could not be delivered are made again by the next process")
        finally:
            self.stopping.set()
            self.engine.close(ended)
            self.outlets.close()
            for thread in threads:  # a client of a broker must not be closed while it is read
                if thread.ident is not None:
                    thread.join(JOIN_SECONDS)
            for source in self.sources:
                source.close()
            self.notice("stopped", events=self.engine.events, ended=ended)

    def _work(self, running: int, requested: Callable[[], bool]) -> bool:
        """Work until all sources have ended (True), or until it is stopped (False)."""
        while running and not self.stopping.is_set() and not requested():
            self.engine.learner.check()
            try:
                source, found = self._inbox.get(timeout=FETCH_SECONDS)
            except queue.Empty:
                continue
            if isinstance(found, Exception):
                raise found
            if found is None:
                running -= 1
            elif callable(found):
                found()
            elif found:
                self._answer(source, found)
        return not running

    def _answer(self, source: Source, events: Sequence[Event]) -> None:
        began = time.perf_counter()
        try:
            taken = self.engine.take(events, source.name, source.replays)
        except OSError as error:
            source.failed(events, error)
            self.notice("failed", reason=str(error))
            return
        self.outlets.write(taken.answers)
        if self.traffic is not None:
            self.traffic.record(taken.answers, time.perf_counter() - began)
        source.answered(events, taken.answers)
        self.engine.commit(taken, self._waits)

    def _read(self, source: Source) -> None:
        """Read a source until it ends."""
        while not self.stopping.is_set():
            found: Sequence[Event] | Exception | None
            try:
                found = source.fetch(FETCH_SECONDS)
            except Exception as error:  # the thread that works raises it
                found = error
            if found is None or isinstance(found, Exception) or found:
                self._hand_over(source, found)
            if found is None or isinstance(found, Exception):
                return

    def _hand_over(self, source: Source, found: Sequence[Event] | Exception | None) -> None:
        while not self.stopping.is_set():
            try:
                self._inbox.put((source, found), timeout=FETCH_SECONDS)
                return
            except queue.Full:
                continue
