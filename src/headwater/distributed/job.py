"""Runs: one call of `fit` on a cluster, from the first look at the data, or from a checkpoint, to the end."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from headwater.checkpoints import RECORD, Checkpoint, Position
from headwater.core.learner import Learner
from headwater.diagnostics.distributed_report import DistributedReport
from headwater.distributed import tasks
from headwater.distributed.exact_passes import Passes, begin, pass_over
from headwater.distributed.identities import checked_more, parameters_of
from headwater.distributed.messages import GIVEN, Unread, blank_to_bytes
from headwater.distributed.parts import Plan
from headwater.distributed.progress import Step
from headwater.distributed.rounds import Gone, dealt, one_round, stream_parts
from headwater.distributed.task_graph import Cluster
from headwater.estimators import race_stream
from headwater.estimators.base import RESULTS
from headwater.estimators.model_file import from_bytes, read
from headwater.estimators.runtime import Runtime
from headwater.models.start import Climb

SAMPLED = 32  # parts that a sample is taken from, at most
PLACES = 8  # that it is taken from, where files can be gone into
STARTS = 2  # that compete, each on rows of its own, judged on others
COUNTED = 0.1  # what rows of the sample count: they come again
MOST_PASSES = 10_000  # of passes="auto", which convergence ends

REFUSE, LEAVE_OUT = "refuse", "leave out"


class UnreadError(ValueError):
    """Parts could not be read; `model` has learned all others, and `unread` says what is wrong with each."""

    def __init__(self, unread: Sequence[Unread], model: Any = None) -> None:
        others = len(unread) - 1
        more = f" (and {others} more part{'s' * (others > 1)} could not be read)" if others else ""
        super().__init__(f"{unread[0].sentence}{more}")
        self.unread, self.model = tuple(one.sentence for one in unread), model
        self.numbers = tuple(one.number for one in unread)


@dataclass
class Run:
    """What a call of `fit` was asked for. Nothing of the model that it was called with is changed."""

    cluster: Cluster
    plan: Plan
    model: Any
    goes_on: bool
    rounds: int | str
    passes: int | str | None
    unreadable: str
    kept: Checkpoint | None = None

    @cached_property
    def key(self) -> int:
        """The seed of all that is drawn."""
        return int(self.model._new_key())

    @cached_property
    def own(self) -> Any:
        """The model with a seed that is a number, which keeps no rows; it has learned nothing, unless it goes on."""
        own = copy(self.model)
        if "reservoir" in own._parameter_names():
            own.reservoir = 0  # parts are plain streams: each would heal by its own rows, and to another reference
        if not self.goes_on:
            own._keep_start()
            for name in set(vars(own)) - {*own._parameter_names(), *GIVEN}:
                del own.__dict__[name]
        own.random_state = self.key
        return own

    @cached_property
    def blank(self) -> bytes:
        """Its parameters."""
        return blank_to_bytes(self.own)

    def learn(self, checkpoint: str | Path | None) -> tuple[Any, DistributedReport]:
        """Return a model that has learned all parts, and how that went."""
        found: Any = None
        if self.goes_on:
            found = self.own.branch()
            found._runtime = found._runtime.without_refinement()
        gone, over = Gone(), False
        trace: list[float] = []
        if checkpoint is not None:
            found, gone, trace, over = self._resumed(checkpoint, found)
        if not over:
            learner = self.own._make_learner(self._width()) if found is None else found._learner
            turns, most = self._amount(learner)
            if turns and not (trace and most):
                found, gone = self._streamed(learner, found, turns, gone)
            if most or not turns:
                found, gone = self._passed(learner, found, most, gone, trace)
            if self.kept is not None:
                self._keep(found, gone, complete=True)
        return found, DistributedReport(len(self.plan.parts), gone.rounds, tuple(one.sentence for one in gone.unread))

    def _amount(self, learner: Learner) -> tuple[int, int]:
        """Return how many times parts are streamed, and how many exact passes follow at most."""
        algorithm, passes = learner.algorithm, self.passes
        most = int(self.own.max_iter) if passes is None or isinstance(passes, str) else int(passes)
        if passes == "auto" and (algorithm.finish or not algorithm.online):
            most = MOST_PASSES
        if not algorithm.online:
            return 0, most
        if passes is None:
            return 1, 0
        if algorithm.finish and self.goes_on:
            return 0, most
        if algorithm.finish:
            return 1, most if passes == "auto" else most - 1
        return most, 0

    def _width(self) -> int:
        """Return the width of the model, which the first part that has rows tells."""
        problem: Unread | None = None
        for part, block in zip(self.plan.parts, self.plan.blocks, strict=True):
            task = self.cluster.task(tasks.measured, self.blank, part, block, self.plan.way)
            width = self.cluster.computed(task, names=[part.name])
            if isinstance(width, int):
                return width
            problem = problem or width
        raise ValueError("there is nothing to learn: the data has no rows" if problem is None else problem.sentence)

    # One pass

    def _streamed(self, learner: Learner, found: Any, turns: int, gone: Gone) -> tuple[Any, Gone]:
        """Stream all parts; or those that could not be read before, if all others were."""
        if found is None:
            found = self._started(learner)
        if not gone.rounds or (gone.unread and gone.turn >= turns):
            for name in RESULTS:
                found.__dict__.pop(name, None)
        if gone.unread and gone.turn >= turns:
            missing = [one.number for one in gone.unread]
            found, done, unread = one_round(self.cluster, self.plan, found, missing, Step("learning"))
            gone = Gone(turns, 0, (*gone.rounds, done), unread)
            self._keep(found, gone)
        else:

            def deal(turn: int, parts: Sequence[int]) -> list[list[int]]:
                return dealt(parts, self.rounds, self.key + turn)

            found, gone = stream_parts(self.cluster, self.plan, found, deal, turns, gone, self._keep)
        self._refuse(gone.unread, found)
        return found, gone

    def _started(self, learner: Learner) -> Any:
        """Return a model that stands on a sample, which was taken and learned by workers."""
        own, plan = self.own, self.plan
        rows = 4 * race_stream.planned(own, learner.width).warm_up if own._races else learner.warm_up_rows
        number = len(plan.parts)
        starts = 1 if own._chained or own._takes_sequences or not learner.settings.polish else STARTS
        chosen = np.unique(np.linspace(0, number - 1, min(number, SAMPLED)).round().astype(int)).tolist()
        share = -(-rows * (starts + (starts > 1)) // len(chosen))
        wanted = (share, -(-PLACES // len(chosen)), learner.width)
        jobs = [
            self.cluster.task(tasks.sampled, self.blank, plan.parts[at], plan.blocks[at], plan.way, *wanted, self.key + at)
            for at in chosen
        ]
        runs = [self.cluster.task(tasks.started, self.blank, jobs, COUNTED, run, starts) for run in range(starts)]
        root = self.cluster.task(tasks.best, runs)
        names = [plan.parts[at].name for at in chosen]
        return from_bytes(self.cluster.computed(root, jobs, Step("starting"), names), **self.cluster.functions)

    # Exact passes

    def _passed(self, learner: Learner, found: Any, most: int, gone: Gone, trace: Sequence[float]) -> tuple[Any, Gone]:
        """Return the model after exact passes: the best of several runs, if there are to be such."""
        passes = Passes(self.cluster, self.plan, most, self._refuse, gone.rounds, gone.unread)
        if found is not None:
            found.__dict__.pop("history_", None)  # of rows that are passed over again
        runs = 1 if learner.algorithm.online or self.goes_on else self.own.n_init
        best, trace = (None, trace) if not gone.runs else ((found, list(trace), gone.converged), [])
        for run in range(gone.runs, runs):
            fresh = found is None or run > 0
            passes.latest, passes.before = None, len(passes.rounds)
            begun = begin(passes, self.blank, self.key + run, learner) if fresh else found

            def keep(runtime: Runtime, now: Climb, begun: Any = begun, run: int = run) -> None:
                passes.latest = _with_runtime(begun, runtime.take_summary()[1])
                if run == 0:  # a file has room for one model, and later runs must not lose the best one so far
                    self._keep(_with_runtime(begun, runtime), Gone(1, 0, passes.rounds, passes.unread), now.trace)

            try:
                streamed = learner.algorithm.online or self.goes_on
                bound = getattr(begun, "lower_bound_", -np.inf) if self.goes_on else -np.inf
                runtime, end = pass_over(passes, begun, self.key, trace, streamed, keep, bound)
            except UnreadError as error:
                self._note_missing(error)
                raise
            reached = (_with_runtime(begun, runtime), list(end.trace), end.converged)
            trace = []
            if best is None or (reached[1] or [-np.inf])[-1] > (best[1] or [-np.inf])[-1]:
                best = reached
            if runs > 1:
                self._keep(best[0], Gone(1, 0, passes.rounds, passes.unread, run + 1, best[2]), best[1])
        assert best is not None
        found, trace, converged = best
        found._conclude(Climb(None, None, tuple(trace), converged), converged or not most, 5)  # type: ignore[arg-type]
        return found, Gone(1, 0, passes.rounds, passes.unread)

    # Faults

    def _refuse(self, unread: Sequence[Unread], model: Any = None) -> None:
        """Say which parts could not be read, or go on without them."""
        if not unread:
            return
        if self.unreadable == REFUSE:
            raise UnreadError(unread, model)
        warnings.warn(str(UnreadError(unread)), UserWarning, stacklevel=5)

    def _resumed(self, path: str | Path, found: Any) -> tuple[Any, Gone, list[float], bool]:
        """Return the model of a checkpoint, how far it has come, and whether that was all."""
        identity = {
            "model": type(self.model).__name__,
            "parameters": parameters_of(self.model),
            "start": None if found is None else found._runtime.lineage,
            "data": self.plan.identity(self.plan.again),
            "rounds": self.rounds,
            "passes": self.passes,
        }
        self.kept = Checkpoint(path, identity)
        resumed = self.kept.resume(**self.cluster.functions)
        if resumed is None:
            return found, Gone(), [], False
        model, position = resumed
        more = checked_more(self.kept.more, self.kept.path, len(self.plan.parts), self.own.n_init)
        for name in ("own", "blank"):
            self.__dict__.pop(name, None)
        self.key = more.key  # which was drawn, unless random_state is a number
        gone = Gone(position.passes, position.rows, more.rounds, more.unread, more.runs, more.converged)
        return model, gone, list(more.trace), position.complete

    def _note_missing(self, error: UnreadError) -> None:
        """Keep in the checkpoint that a file could not be read between two passes: mended, it may look like another one."""
        if self.kept is not None and self.kept.path.exists():
            model, extra = read(self.kept.path, **self.cluster.functions)
            record = extra[RECORD]
            again = {**record["more"]["again"], **self.plan.missing(error.numbers)}
            self.kept.identity = {**record["identity"], "data": self.plan.identity(again)}
            self.kept.write(model, Position(**record["position"]), {**record["more"], "again": again})

    def _keep(self, model: Any, gone: Gone, trace: Sequence[float] = (), complete: bool = False) -> None:
        """Write a checkpoint, if there is to be one."""
        if self.kept is not None:
            report = DistributedReport(len(self.plan.parts), gone.rounds).to_dict()
            unread = [[one.number, one.name, one.sentence] for one in gone.unread]
            again = self.plan.missing([one.number for one in gone.unread])
            more = {
                "report": report, "unread": unread, "trace": list(trace), "key": self.key, "runs": gone.runs,
                "converged": bool(gone.converged), "again": again,
            }  # fmt: skip
            self.kept.identity["data"] = self.plan.identity(again)
            self.kept.write(model, Position(gone.turn, gone.round, complete), more)


def _with_runtime(model: Any, runtime: Runtime) -> Any:
    other = copy(model)
    other._runtime = runtime
    return other
