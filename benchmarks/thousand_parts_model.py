"""The cost model of learning on many machines: what a round costs, from constants that one machine can measure.

A round of P parts with n rows each on W workers is P tasks that learn and P - 1 that add, in a tree of ceil(log2 P) steps:

    all workers     P (n (read + learn) + task + worker) + (P - 1) add
    the busiest     ceil(P / W) of the tasks that learn, and ceil((P - 1) / W) of those that add
    the scheduler   P scheduler, in one thread, side by side with the workers
    bytes           (P - 1) message in all, ceil(log2 P) message one after the other; every worker is sent the model

The last round of one pass also keeps what scores are usual (`watch` more a row, `watched_add` for an addition), and messages
then have up to `scores` bytes beside them, which are in no report.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

# Assumed, since there is only one machine: the speed of a link between machines, in bytes per second.
LINK = 1.25e9


@dataclass(frozen=True)
class Constants:
    """Seconds of CPU and bytes.

    `read`, `learn` and `exact` are of a row: read it, stream it, or take its E-step; `task` of a part without rows; `add` of
    two messages. Dask takes `worker` on workers and `scheduler` on scheduler and client for a part, which is two tasks: it and
    an addition. Wall-clock seconds: `look` is of a file, `start` of the start on a sample, `keep` of writing a model file.
    """

    read: float
    learn: float
    exact: float
    watch: float
    task: float
    add: float
    watched_add: float
    worker: float
    scheduler: float
    look: float
    start: float
    keep: float
    message: int
    scores: int
    model: int
    checkpoint: int
    row: int


@dataclass(frozen=True)
class Cost:
    """What a round costs: CPU seconds of all workers, of the busiest, and of the scheduler; bytes; and steps of the tree."""

    workers: float
    busiest: float
    scheduler: float
    merged: int
    path: int
    depth: int
    sent: int

    def on(self, cores: int) -> float:
        """Return the seconds it takes where workers, scheduler and client share so many cores."""
        return max(self.busiest, self.scheduler, (self.workers + self.scheduler) / cores)

    def apart(self, constants: Constants, workers: int, link: float = LINK) -> float:
        """Return the seconds it takes where all have a core of their own, and links between them."""
        climb = self.depth * constants.add + self.path / link
        return self.broadcast(constants, workers, link) + max(self.busiest, self.scheduler) + climb

    @staticmethod
    def broadcast(constants: Constants, workers: int, link: float = LINK) -> float:
        """Return the seconds until every worker has the model; workers pass it on."""
        return depth_of(workers) * constants.model / link


def depth_of(parts: int) -> int:
    """Return the steps of a binary tree, which is ceil(log2 parts)."""
    return (parts - 1).bit_length()


def round_cost(constants: Constants, parts: int, rows: float, workers: int, exact: bool = False, watched: bool = False) -> Cost:
    """Return what a round costs with so many parts of so many rows each."""
    row = constants.read + (constants.exact if exact else constants.learn) + watched * constants.watch
    add = constants.watched_add if watched else constants.add
    part = rows * row + constants.task + constants.worker
    depth = depth_of(parts)
    return Cost(
        workers=parts * part + (parts - 1) * add,
        busiest=ceil(parts / workers) * part + ceil((parts - 1) / workers) * add,
        scheduler=parts * constants.scheduler,
        merged=(parts - 1) * constants.message,
        path=depth * constants.message,
        depth=depth,
        sent=workers * constants.model,
    )


def pass_costs(constants: Constants, parts: Sequence[int], rows: float, workers: int) -> list[Cost]:
    """Return what the rounds of one pass cost, of which the last is watched."""
    return [round_cost(constants, some, rows, workers, watched=at == len(parts) - 1) for at, some in enumerate(parts)]
