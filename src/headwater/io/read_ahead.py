"""Reading ahead: a thread does the work of an iterator while what it found before is used."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Generator
from queue import Empty, Full, Queue
from typing import Any, TypeVar

Item = TypeVar("Item")

WAIT = 0.05  # seconds after which a thread that cannot go on looks whether it is still wanted
PATIENCE = 1.0  # seconds that a thread has to end; one that waits for a pipe may not
_END = object()
_running: set[tuple[threading.Thread, threading.Event]] = set()


@atexit.register
def _end_all() -> None:
    """End the threads that still run at exit: one that is cut off while it reads takes the process down with it."""
    for _, stop in list(_running):
        stop.set()
    for thread, _ in list(_running):
        thread.join(PATIENCE)


def ahead(work: Generator[Item, None, None], depth: int = 2) -> Generator[Item, None, None]:
    """Yield the items of a generator, which a thread runs up to `depth` items ahead; errors arrive where their item would.

    If nobody wants more, the generator is closed and the thread ends.
    """
    queue: Queue[tuple[Any, BaseException | None]] = Queue(depth)
    stop = threading.Event()

    def put(item: Any, error: BaseException | None = None) -> bool:
        while not stop.is_set():
            try:
                queue.put((item, error), timeout=WAIT)
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
            yield item
            del item  # a chunk that waits here for its successor would be one more in memory
    finally:
        stop.set()
        try:
            while True:
                queue.get_nowait()
        except Empty:
            pass
        thread.join(PATIENCE)
