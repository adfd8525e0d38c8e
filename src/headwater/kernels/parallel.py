"""Slabs: work over rows is cut by the number of rows alone and added up in a fixed order.

Kernels release the interpreter lock, so plain threads run them side by side; the number of threads decides who runs a
slab, never what is in it, and so never the answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import TypeVar

SLAB_ROWS = 4096
MOST_SLABS = 16

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
    if threads == 1:
        return [work(task) for task in tasks]
    return list(_pool(threads, os.getpid()).map(work, tasks))


@cache
def available_cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    """A pool per process, since threads do not survive a fork."""
    return ThreadPoolExecutor(threads, thread_name_prefix="headwater")
