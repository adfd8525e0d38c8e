"""Slabs: work over rows is cut independently of the number of threads, and added up in a fixed order.

Kernels release the interpreter lock, so plain threads run them side by side; the number of threads decides who runs a
slab, never what is in it, and so never the answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from threading import Lock, current_thread
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

SLAB_ROWS = 4096
MOST_SLABS = 16
POOL = "headwater"

Task = TypeVar("Task")
Result = TypeVar("Result")


def slabs(rows: int) -> list[tuple[int, int]]:
    """Return the (start, stop) of every slab of this many rows."""
    if rows < 2 * SLAB_ROWS:
        return [(0, rows)]
    number = min(MOST_SLABS, rows // SLAB_ROWS)
    edges = [rows * index // number for index in range(number + 1)]
    return list(pairwise(edges))


def run_slabs(work: Callable[[int, int, int], Result], rows: int, n_threads: int | None) -> list[Result]:
    """Call work(slab, start, stop) for every slab, on up to `n_threads` threads (all cores if None)."""
    tasks = [(slab, start, stop) for slab, (start, stop) in enumerate(slabs(rows))]
    return run_tasks(lambda task: work(*task), tasks, n_threads)


def run_tasks(work: Callable[[Task], Result], tasks: Sequence[Task], n_threads: int | None) -> list[Result]:
    """Call work(task) for every task, on up to `n_threads` threads (all cores if None)."""
    threads = min(n_threads or available_cores(), len(tasks))
    if threads <= 1 or _in_pool():  # a task that waits for its own pool would wait forever
        return [work(task) for task in tasks]
    return list(_pool(threads, os.getpid()).map(work, tasks))


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep NumPy's products on one thread: many small ones, on a machine that is busy, wait for one another's threads.

    Libraries differ in whether the number is that of the process or of the thread. So every caller sets it, and the last one
    to leave restores what the first one found: while any caller is inside, it stays one. Our own worker threads leave it to
    their caller, since threadpoolctl lets only one thread decide.
    """
    global _inside, _found
    if _in_pool():
        yield
        return
    libraries = _blas()
    with _lock:
        if _inside == 0:
            _found = [library.num_threads for library in libraries]
        _inside += 1
        for library in libraries:
            library.set_num_threads(1)
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                for library, number in zip(libraries, _found, strict=True):
                    library.set_num_threads(number)


_lock, _inside = Lock(), 0
_found: list[int] = []


@cache
def _blas() -> Any:
    return ThreadpoolController().select(user_api="blas").lib_controllers


@cache
def available_cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    """A pool per process, since threads do not survive a fork."""
    return ThreadPoolExecutor(threads, thread_name_prefix=POOL)


def _in_pool() -> bool:
    return current_thread().name.startswith(POOL)
