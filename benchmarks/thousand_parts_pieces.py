"""The constants of the cost model, each measured by itself: what tasks do, in this process; and what Dask adds to it.

Seconds are of CPU wherever one process does the work, so that others on the machine disturb them less.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import inf
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import headwater as hw
from headwater.core.delta import Delta
from headwater.distributed import tasks
from headwater.distributed.dask_engine import DaskEngine
from headwater.distributed.messages import Message
from headwater.distributed.parts import Part, Plan, ReadPlan, read_chunks, read_plan_like
from headwater.distributed.progress import Step
from headwater.estimators.model_file import to_bytes

LONG, FEW = 2**17, 16  # rows of files, between which lies what rows cost


def spent(work: Callable[[], Any]) -> float:
    """Return the CPU seconds of a call."""
    begin = process_time()
    work()
    return process_time() - begin


@dataclass(frozen=True)
class Bench:
    """Files with many rows, with as many as parts have, and with a few; and the bytes of a model that all begin with."""

    long: Sequence[Part]
    middle: Sequence[Part]
    few: Sequence[Part]
    read_plan: ReadPlan
    model: Any
    data: bytes

    @classmethod
    def of(cls, long: Sequence[Path], middle: Sequence[Path], rows: int, few: Sequence[Path], model: Any) -> Bench:
        read_plan = read_plan_like("files", hw.stream([str(path) for path in long]), {})
        return cls(parts_of(long, LONG), parts_of(middle, rows), parts_of(few, FEW), read_plan, model, to_bytes(model))

    def learned(self, parts: Sequence[Part]) -> list[Message]:
        return [tasks.learn_part(self.data, {}, part, None, self.read_plan) for part in parts]

    def watched(self, parts: Sequence[Part]) -> list[Message]:
        return [tasks.learn_part(self.data, {}, part, None, self.read_plan, 0, inf, True) for part in parts]

    def summarized(self, parts: Sequence[Part]) -> list[Message]:
        return [tasks.summarize_part(self.data, {}, part, None, self.read_plan) for part in parts]

    def read(self, parts: Sequence[Part]) -> int:
        return sum(len(chunk) for part in parts for chunk in read_chunks(self.model, part, None, self.read_plan))

    def added(self, messages: Sequence[Message]) -> None:
        for one, other in pairwise(messages):
            tasks.add_messages(self.data, {}, one, other, Delta)


def parts_of(paths: Sequence[Path], rows: int) -> list[Part]:
    return [Part(at, str(path), str(path), 0, rows) for at, path in enumerate(paths)]


def of_tasks(bench: Bench, repeats: int) -> dict[str, Any]:
    """Return the seconds of a row, of a part without rows, and of an addition: medians of some repeats."""
    messages, watched = bench.learned(bench.few), bench.watched(bench.middle)
    works: dict[str, Callable[[Sequence[Part]], Any]] = {
        "read": bench.read, "learn": bench.learned, "watch": bench.watched, "exact": bench.summarized,
    }  # fmt: skip
    found: dict[str, list[float]] = {}
    for turn in range(repeats + 1):
        for name, work in works.items():
            for size, parts in (("long", bench.long), ("few", bench.few)):
                found.setdefault(f"{name} {size}", []).append(spent(partial(work, parts)) / len(parts))
        for name, some in (("add", messages), ("watched_add", watched)):
            found.setdefault(name, []).append(spent(partial(bench.added, some)) / (len(some) - 1))
        if not turn:
            found.clear()  # kernels are loaded
    middle = {name: median(values) for name, values in found.items()}
    row = {name: (middle[f"{name} long"] - middle[f"{name} few"]) / (LONG - FEW) for name in works}
    return {
        "read": row["read"],
        "learn": row["learn"] - row["read"],
        "exact": row["exact"] - row["read"],
        "watch": watched_more(found),
        "task": middle["learn few"] - FEW * row["learn"],
        "add": middle["add"],
        "watched_add": middle["watched_add"],
        "scores": max(len(pickle.dumps(message.usual)) for message in watched),
        "message": max(len(message.data) for message in messages),
        "model": len(bench.data),
    }


def watched_more(found: Mapping[str, Sequence[float]]) -> float:
    """Seconds more that a row takes whose score is stored: the median of turns that timed both; never less."""
    turns = zip(found["watch long"], found["learn long"], strict=True)
    return max(median(watch - learn for watch, learn in turns) / LONG, 0.0)


def nothing(held: bytes, functions: Any, part: Part, block: Any, read_plan: ReadPlan) -> Message:
    """A task of the same shape that does nothing: its cost is that of Dask."""
    return Message()


def of_dask(client: Any, bench: Bench, parts: int) -> dict[str, float]:
    """Return what Dask takes for a part by itself, on workers and on scheduler and client, which are one process here."""
    names = tuple(Part(at, f"part {at}", None, 0, 0) for at in range(parts))
    plan = Plan(names, (None,) * parts, bench.read_plan)
    cluster = DaskEngine(client)
    cluster.reduce_parts(nothing, Delta, bench.data, plan, range(min(parts, 20)), Step("learning"))
    before, begin = on_workers(client), process_time()
    clock = perf_counter()
    cluster.reduce_parts(nothing, Delta, bench.data, plan, range(parts), Step("learning"))
    seconds, here = perf_counter() - clock, process_time() - begin
    return {
        "worker": (on_workers(client) - before) / parts,
        "scheduler": here / parts,
        "tasks_a_second": (2 * parts - 1) / seconds,
    }


def on_workers(client: Any) -> float:
    """Return the CPU seconds that all workers have spent so far."""
    return float(sum(client.run(process_time).values()))
