"""The engine on Dask: tasks run on any free worker, and results are added in a tree whose shape depends only on the parts."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from headwater.distributed import tasks
from headwater.distributed.clusters import WORKER_WAIT, ClusterError
from headwater.distributed.messages import Message, Refusal
from headwater.distributed.parts import Plan
from headwater.distributed.progress import Step
from headwater.distributed.versions import call_checked, cannot_import, import_failure, version

if TYPE_CHECKING:
    from distributed import Client, Future

POLL_INTERVAL = 0.1  # seconds between checks of the tasks: fast enough for a progress bar
WORKER_CHECK_INTERVAL = 5.0  # seconds between checks of the workers, each a request to the scheduler

Watch = Callable[[Step], None]


@dataclass(frozen=True)
class DaskEngine:
    """A Dask client, the functions among the parameters of the model, and who watches the steps."""

    client: Client
    functions: Mapping[str, object] = field(default_factory=dict)
    watch: Watch | None = None

    def report(self, step: Step) -> None:
        """Report a step to the watcher, if there is one."""
        if self.watch is not None:
            self.watch(step)

    def make_task(self, function: Callable[..., object], *given: object) -> object:
        """Return a lazy task."""
        return self._keyed_task(f"{function.__name__}-{uuid4()}", function, *given)

    def _keyed_task(self, key: str, function: Callable[..., object], *given: object) -> object:
        """Return a lazy task with this key, which fails on workers of another version."""
        from dask.delayed import delayed

        return delayed(call_checked, pure=False)(version(), function, *given, dask_key_name=key)

    def make_model_task(self, function: Callable[..., object], first: object, *given: object) -> object:
        """Return a lazy task that gets the functions among the parameters of the model as second argument."""
        return self.make_task(function, first, dict(self.functions), *given)

    def reduce_parts(
        self,
        task: Callable[..., Message],
        kind: type[object],
        model: bytes,
        plan: Plan,
        numbers: Sequence[int],
        step: Step,
        *options: object,
    ) -> Message:
        """Run a task for each of these parts, and add their results, sums of this kind, in pairs."""
        from dask.delayed import delayed

        run = uuid4().hex[:12]

        def named(name: str, function: Callable[..., object], *given: object) -> object:
            return self._keyed_task(f"headwater-{name}-{run}", function, *given)

        held = named("model", tasks.hold, model)
        # The read plan may hold a whole vocabulary, so that it is sent once.
        read_plan = delayed(plan.read_plan, traverse=False, name=f"headwater-read-plan-{run}")
        functions = dict(self.functions)
        leaves = [
            named(f"{task.__name__}-{at}", task, held, functions, plan.parts[at], plan.blocks[at], read_plan, *options)
            for at in numbers
        ]
        level, height = list(leaves), 0
        while len(level) > 1:
            height += 1
            pairs = [level[at : at + 2] for at in range(0, len(level), 2)]
            level = [
                named(f"added-{height}-{at}", tasks.add_messages, held, functions, *pair, kind) if len(pair) == 2 else pair[0]
                for at, pair in enumerate(pairs)
            ]
        names = [plan.parts[number].name for number in numbers]
        found: Message = self.compute(level[0], leaves, step, names)
        return found

    def compute(self, root: object, leaves: Sequence[object] = (), step: Step | None = None, names: Sequence[str] = ()) -> Any:
        """Return the value of a task. Its leaves are counted as they finish; `names` are their names in messages."""
        step = replace(step or Step("looking"), parts=len(leaves))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph")
            futures = self.client.compute([*leaves, root])
        end, parts = futures[-1], dict(enumerate(futures[:-1]))
        del futures  # so that results are released as soon as they are added
        try:
            failed = self._wait(end, parts, step)
            found = self._result(end, [names[at] for at in failed if names] if leaves else names)
        finally:
            # An exception that a caller keeps would hold the futures in its traceback, and their tasks would go on.
            for future in (end, *parts.values()):
                future.release()
        if isinstance(found, Refusal):
            raise found.error from None
        return found

    def _wait(self, end: Future, parts: dict[int, Future], step: Step) -> list[int]:
        """Wait for a task and report its finished leaves; return the places of those that failed."""
        failed: list[int] = []
        looked, alone = time.monotonic(), None
        self.report(step)
        while not end.done():
            with suppress(TimeoutError):
                end.exception(timeout=POLL_INTERVAL)
            over = [at for at, future in parts.items() if future.done()]
            failed += [at for at in over if parts[at].status == "error"]
            for at in over:
                del parts[at]
            if over:
                self.report(replace(step, done=step.parts - len(parts)))
            if time.monotonic() - looked > WORKER_CHECK_INTERVAL:
                looked, alone = time.monotonic(), self._check_for_workers(alone)
        self.report(replace(step, done=step.parts))
        return failed + [at for at, future in parts.items() if future.status == "error"]

    def _result(self, future: Future, failed: Sequence[str]) -> object:
        from distributed import KilledWorker

        try:
            return self._fetch(future)
        except KilledWorker as error:
            raise ClusterError(
                f"{error.task} ended {error.allowed_failures + 1} workers one after the other, as when memory runs out: make "
                f"parts smaller, or give workers more memory"
            ) from error
        except Exception as error:
            if cannot_import(error):
                raise import_failure(error) from error
            if "deserialization of the task graph" in str(error):
                raise ClusterError(
                    f"the scheduler cannot read the tasks: it must have headwater {version()}, too, and what the data needs"
                ) from error
            if not failed or isinstance(error, CancelledError | ClusterError):
                raise
            # Dask failed to make a partition; tasks themselves return parts that cannot be read as messages.
            why = f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"
            raise RuntimeError(f"{failed[0]} could not be made: {why}") from error

    def _fetch(self, future: Future) -> object:
        """Return the result of a task; if the worker that holds it is lost, the task runs again on another."""

        async def fetch() -> object:
            return await future.result()  # a coroutine in the loop of the client

        fetching = asyncio.run_coroutine_threadsafe(fetch(), self.client.loop.asyncio_loop)  # type: ignore[union-attr]
        alone = None
        try:
            while True:
                with suppress(TimeoutError):
                    return fetching.result(timeout=WORKER_CHECK_INTERVAL)
                alone = self._check_for_workers(alone)
        finally:
            fetching.cancel()

    def _check_for_workers(self, since: float | None) -> float | None:
        """Return since when there are no workers, or None; raise an error if that is too long."""
        if self.client.nthreads():
            return None
        since = since or time.monotonic()
        if time.monotonic() - since > WORKER_WAIT:
            raise ClusterError(f"the cluster has had no workers for {WORKER_WAIT:.0f} seconds: start some, and run this again")
        return since
