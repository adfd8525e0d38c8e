"""The pump: brings events from all sources to the engine, and their answers to all sinks, until it is stopped."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence

from headwater.live.engine import Engine, Taken
from headwater.live.events import Event
from headwater.live.learner import Notice
from headwater.live.outlets import Outlets
from headwater.live.sources.source import Source

WAITING_BATCHES = 4  # of all sources: more are not read until these are answered
FETCH_SECONDS = 0.25  # that a source waits at a time, and so the time until it notices that it is to stop


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
    """

    def __init__(self, engine: Engine, sources: Sequence[Source], outlets: Outlets, notice: Notice) -> None:
        self.engine, self.sources, self.outlets, self.notice = engine, sources, outlets, notice
        self.stopping = threading.Event()
        self._inbox: queue.Queue[tuple[Source, Sequence[Event] | Exception | None]] = queue.Queue(WAITING_BATCHES)

    def stop(self) -> None:
        """Let `run` end after the events that it has; any thread may ask, and a signal handler, too."""
        self.stopping.set()

    def run(self, requested: Callable[[], bool] = lambda: False) -> None:
        """Answer and learn until all sources have ended, or until it is stopped or that is `requested`; then save."""
        ended = False
        try:
            for source in self.sources:
                source.seek(self.engine.places(source.name))
            for taken in self.engine.start():
                self.outlets.write(taken.answers)
                self.engine.commit(taken)
            threads = [threading.Thread(target=self._read, args=(one,), name=one.name, daemon=True) for one in self.sources]
            for thread in threads:
                thread.start()
            ended = self._work(len(threads), requested)
        finally:
            self.stopping.set()
            self.engine.close(ended)
            self.outlets.close()
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
            elif found:
                self._answer(source, found)
        return not running

    def _answer(self, source: Source, events: Sequence[Event]) -> Taken:
        taken = self.engine.take(events, source.name, source.replays)
        self.outlets.write(taken.answers)
        self.engine.commit(taken)
        source.answered(events, taken.answers)
        return taken

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
