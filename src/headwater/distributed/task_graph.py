"""Running: parts are read by whoever is free, and what they yield goes up a tree whose shape depends on the parts alone."""

from __future__ import annotations

import asyncio
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
from headwater.distributed.progress import Step
from headwater.distributed.versions import cannot_import, checked, no_import, version

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
        return self._named(f"{function.__name__}-{uuid4()}", function, *given)

    def _named(self, key: str, function: Callable[..., Any], *given: Any) -> Any:
        """Return a task of this key, for workers that have the version that is here."""
        from dask.delayed import delayed

        return delayed(checked, pure=False)(version(), function, *given, dask_key_name=key)

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

        def named(name: str, function: Callable[..., Any], *given: Any) -> Any:
            return self._named(f"headwater-{name}-{run}", function, *given)

        held = named("model", tasks.hold, model)
        way = delayed(plan.way, traverse=False, name=f"headwater-way-{run}")  # it may know all words: once is enough
        functions = dict(self.functions)
        leaves = [
            named(f"{task.__name__}-{at}", task, held, functions, plan.parts[at], plan.blocks[at], way, *options)
            for at in numbers
        ]
        level, height = list(leaves), 0
        while len(level) > 1:
            height += 1
            pairs = [level[at : at + 2] for at in range(0, len(level), 2)]
            level = [
                named(f"added-{height}-{at}", tasks.added, held, functions, *pair, kind) if len(pair) == 2 else pair[0]
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
        try:
            failed = self._watched(end, parts, step)
            found = self._result(end, [names[at] for at in failed if names] if leaves else names)
        finally:
            # Whoever holds on to an exception holds on to futures, and so lets tasks go on that nobody wants.
            for future in (end, *parts.values()):
                future.release()
        if isinstance(found, Refusal):
            raise found.error from None
        return found

    def _watched(self, end: Any, parts: dict[int, Any], step: Step) -> list[int]:
        """Wait for a task, and tell of those it stands on; return which of them have failed."""
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
                self.tell(replace(step, done=step.parts - len(parts)))
            if time.monotonic() - looked > LONELY:
                looked, alone = time.monotonic(), self._lonely(alone)
        self.tell(replace(step, done=step.parts))
        return failed + [at for at, future in parts.items() if future.status == "error"]

    def _result(self, future: Any, failed: Sequence[str]) -> Any:
        from distributed import KilledWorker

        try:
            return self._fetched(future)
        except KilledWorker as error:
            raise ClusterError(
                f"{error.task} ended {error.allowed_failures + 1} workers one after the other, as when memory runs out: make "
                f"parts smaller, or give workers more memory"
            ) from error
        except Exception as error:
            if cannot_import(error):
                raise no_import(error) from error
            if "deserialization of the task graph" in str(error):
                raise ClusterError(
                    f"the scheduler cannot read the tasks: it must have headwater {version()}, too, and what the data needs"
                ) from error
            if not failed or isinstance(error, CancelledError | ClusterError):
                raise
            # What Dask was to make of it went wrong: parts that cannot be read are told of by the task itself.
            why = f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"
            raise RuntimeError(f"{failed[0]} could not be made: {why}") from error

    def _fetched(self, future: Any) -> Any:
        """Return the result of a task, which is run again if the worker that holds it is lost, as long as there are others."""

        async def fetch() -> Any:
            return await future.result()  # in the client's loop, it is a coroutine

        fetching = asyncio.run_coroutine_threadsafe(fetch(), self.client.loop.asyncio_loop)
        alone = None
        try:
            while True:
                with suppress(TimeoutError):
                    return fetching.result(timeout=LONELY)
                alone = self._lonely(alone)
        finally:
            fetching.cancel()

    def _lonely(self, since: float | None) -> float | None:
        """Give up when there has been no worker for a while."""
        if self.client.nthreads():
            return None
        since = since or time.monotonic()
        if time.monotonic() - since > WAIT:
            raise ClusterError(f"the cluster has had no workers for {WAIT:.0f} seconds: start some, and run this again")
        return since
