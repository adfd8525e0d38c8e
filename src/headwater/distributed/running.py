"""Running: parts are read by whoever is free, and what they yield goes up a tree whose shape depends on the parts alone."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from headwater.distributed import tasks
from headwater.distributed.clusters import WAIT, ClusterError
from headwater.distributed.messages import Message, Refusal
from headwater.distributed.parts import Plan
from headwater.distributed.steps import Step

LOOK = 0.1  # seconds from one look at the tasks to the next
LONELY = 5.0  # ... and at the workers

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

    def plain(self, function: Callable[..., Any], *given: Any) -> Any:
        """Return a task that is still to be run."""
        from dask.delayed import delayed

        return delayed(function, pure=False)(*given)

    def task(self, function: Callable[..., Any], first: Any, *given: Any) -> Any:
        """Return a task that is still to be run, with what the functions among the parameters of the model are."""
        return self.plain(function, first, dict(self.functions), *given)

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
        names = [plan.parts[number].name for number in numbers]
        found: Message = self.computed(level[0], leaves, step, names)
        return found

    def computed(self, root: Any, leaves: Sequence[Any] = (), step: Step | None = None, names: Sequence[str] = ()) -> Any:
        """Return the value of a task; those it stands on are counted as they are done, and have names for sentences."""
        step = replace(step or Step("looking"), parts=len(leaves))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph")
            futures = self.client.compute([*leaves, root])
        end, parts = futures[-1], dict(enumerate(futures[:-1]))
        del futures  # what nobody holds is let go as soon as it was added
        failed: list[int] = []
        looked, alone = time.monotonic(), None
        self.tell(step)
        while not end.done():
            with suppress(TimeoutError):
                end.exception(timeout=LOOK)
            over = [at for at, future in parts.items() if future.done()]
            failed += [at for at in over if parts[at].status == "error"]
            for at in over:
                del parts[at]
            if over:
                self.tell(replace(step, done=len(leaves) - len(parts)))
            if time.monotonic() - looked > LONELY:
                looked, alone = time.monotonic(), self._lonely(alone)
        failed += [at for at, future in parts.items() if future.status == "error"]
        self.tell(replace(step, done=len(leaves)))
        try:
            found = self._result(end, [names[at] for at in failed if names] if leaves else names)
        finally:
            end.release()  # exceptions on the way may hold on to it
        if isinstance(found, Refusal):
            raise found.error from None
        return found

    def _result(self, future: Any, failed: Sequence[str]) -> Any:
        from distributed import KilledWorker

        try:
            return future.result()
        except KilledWorker as error:
            raise ClusterError(
                f"{error.task} ended {error.allowed_failures + 1} workers one after the other, as when memory runs out: make "
                f"parts smaller, or give workers more memory"
            ) from error
        except Exception as error:
            if not failed or isinstance(error, CancelledError):
                raise
            # What Dask was to make of it went wrong: parts that cannot be read are told of by the task itself.
            why = f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"
            raise RuntimeError(f"{failed[0]} could not be made: {why}") from error

    def _lonely(self, since: float | None) -> float | None:
        """Give up when there has been no worker for a while."""
        if self.client.nthreads():
            return None
        since = since or time.monotonic()
        if time.monotonic() - since > WAIT:
            raise ClusterError(f"the cluster has had no workers for {WAIT:.0f} seconds: start some, and run this again")
        return since
