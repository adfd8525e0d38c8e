"""Running: parts are read by whoever is free, and what they yield goes up a tree whose shape depends on the parts alone."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from headwater.distributed import tasks
from headwater.distributed.clusters import WAIT, ClusterError
from headwater.distributed.messages import Message
from headwater.distributed.planning import Plan
from headwater.distributed.steps import Step

LOOK = 0.05  # seconds from one look at the tasks to the next
LONELY = 5.0  # ... and at the workers
RETRIES = 2

Watch = Callable[[Step], None]


@dataclass(frozen=True)
class Cluster:
    """A client, and who watches."""

    client: Any
    functions: Mapping[str, Any] = field(default_factory=dict)
    watch: Watch | None = None

    def tell(self, step: Step) -> None:
        """Tell those who watch how far it has come."""
        if self.watch is not None:
            self.watch(step)

    def task(self, function: Callable[..., Any], first: Any, *given: Any) -> Any:
        """Return a task that is still to be run, with what the functions among the parameters of the model are."""
        from dask.delayed import delayed

        return delayed(function, pure=False)(first, dict(self.functions), *given)

    def reduced(
        self,
        task: Callable[..., Message],
        kind: type[Any],
        model: bytes,
        plan: Plan,
        numbers: Sequence[int],
        step: Step,
        *options: Any,
    ) -> Message:
        """Run a task for every one of these parts, and add what they yield, sums of this kind, two by two."""
        from dask.delayed import delayed

        run = uuid4().hex[:12]

        def named(function: Callable[..., Any], name: str) -> Any:
            return lambda *given: delayed(function, pure=False)(*given, dask_key_name=f"headwater-{name}-{run}")

        held = named(tasks.hold, "model")(model)
        functions = dict(self.functions)
        leaves = [
            named(task, f"{task.__name__}-{number}")(
                held, functions, plan.parts[number], plan.blocks[number], plan.way, *options
            )
            for number in numbers
        ]
        level, height = list(leaves), 0
        while len(level) > 1:
            height += 1
            pairs = [level[at : at + 2] for at in range(0, len(level), 2)]
            level = [
                named(tasks.added, f"added-{height}-{at}")(held, functions, *pair, kind) if len(pair) == 2 else pair[0]
                for at, pair in enumerate(pairs)
            ]
        found: Message = self.computed(level[0], leaves, step)
        return found

    def computed(self, root: Any, leaves: Sequence[Any], step: Step) -> Any:
        """Return the value of a task; those it stands on are counted as they are done."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph")
            futures = self.client.compute([*leaves, root], retries=RETRIES)
        end, parts = futures[-1], futures[:-1]
        del futures
        done = 0
        looked, alone = time.monotonic(), None
        self.tell(replace(step, parts=len(leaves)))
        while not end.done():
            time.sleep(LOOK)
            over = sum(future.done() for future in parts)
            parts = [future for future in parts if not future.done()]
            if over:
                done += over
                self.tell(replace(step, done=done, parts=len(leaves)))
            if time.monotonic() - looked > LONELY:
                looked, alone = time.monotonic(), self._lonely(alone)
        self.tell(replace(step, done=len(leaves), parts=len(leaves)))
        return self._result(end)

    def _result(self, future: Any) -> Any:
        from distributed import KilledWorker

        try:
            return future.result()
        except KilledWorker as error:
            raise ClusterError(
                f"{error.task} ended {error.allowed_failures + 1} workers one after the other, as when memory runs out: make "
                f"parts smaller, or give workers more memory"
            ) from error

    def _lonely(self, since: float | None) -> float | None:
        """Give up when there has been no worker for a while."""
        if self.client.nthreads():
            return None
        since = since or time.monotonic()
        if time.monotonic() - since > WAIT:
            raise ClusterError(f"the cluster has had no workers for {WAIT:.0f} seconds: start some, and run this again")
        return since
