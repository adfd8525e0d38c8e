"""Prefetching: a thread runs an iterator ahead of the consumer."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Generator
from queue import Empty, Full, Queue
from typing import TypeVar, cast

Item = TypeVar("Item")

POLL_SECONDS = 0.05  # between checks of a waiting thread whether it should stop
JOIN_SECONDS = 1.0  # for a thread to end; one that waits for a pipe may take longer
_END = object()
_running: set[tuple[threading.Thread, threading.Event]] = set()


@atexit.register
def _end_all() -> None:
    """End the threads that still run at exit: a thread that is stopped inside pyarrow crashes the process."""
    for _, stop in list(_running):
        stop.set()
    for thread, _ in list(_running):
        thread.join(JOIN_SECONDS)


def prefetch(work: Generator[Item, None, None], depth: int = 2) -> Generator[Item, None, None]:
    """Yield the items of a generator, which a thread runs up to `depth` items ahead; errors arrive where their item would.

    When the consumer stops, the generator is closed and the thread ends.
    """
    queue: Queue[tuple[Item | object, BaseException | None]] = Queue(depth)
    stop = threading.Event()

    def put(item: Item | object, error: BaseException | None = None) -> bool:
        while not stop.is_set():
            try:
                queue.put((item, error), timeout=POLL_SECONDS)
            except Full:
                continue
            return True
        return False

    def run() -> None:
        try:
            for item in work:
                if not put(item):
                    return
        except BaseException as error:
            put(_END, error)
        else:
            put(_END)
        finally:
            work.close()
            _running.discard((thread, stop))

    thread = threading.Thread(target=run, name="headwater-stream", daemon=True)
    _running.add((thread, stop))
    thread.start()
    try:
        while True:
            item, error = queue.get()
            if error is not None:
                raise error
            if item is _END:
                return
            yield cast(Item, item)
            del item  # a reference to the chunk here would keep one more in memory
    finally:
        stop.set()
        try:
            while True:
                queue.get_nowait()
        except Empty:
            pass
        thread.join(JOIN_SECONDS)
