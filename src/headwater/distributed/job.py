"""A job: one call of `fit` on a cluster, from a plan or a checkpoint to the end."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from headwater.checkpoints import RECORD, Checkpoint, Position
from headwater.core.climb import Climb
from headwater.core.learner import Learner
from headwater.diagnostics.distributed_report import DistributedReport
from headwater.distributed import tasks
from headwater.distributed.dask_engine import DaskEngine
from headwater.distributed.exact_passes import Passes, run_passes, start_model
from headwater.distributed.messages import SET_BY_HAND, Unread, blank_to_bytes
from headwater.distributed.parts import Plan
from headwater.distributed.progress import Step
from headwater.distributed.rounds import RunProgress, deal_parts, run_round, stream_parts
from headwater.distributed.run_record import parameter_words, read_run_record
from headwater.estimators import race_stream
from headwater.estimators.component_count import RACE
from headwater.estimators.estimator_core import RESULTS, parameter_names
from headwater.estimators.model_file import from_bytes, read
from headwater.estimators.row_numbers import warn_of_row_numbers
from headwater.estimators.runtime import Runtime
from headwater.estimators.seeds import new_key

if TYPE_CHECKING:
    from headwater.estimators.base import StreamingEstimator
    from headwater.estimators.table_input import TableInput
    from headwater.estimators.table_schema import TableSchema


SAMPLED_PARTS = 32  # parts that the sample for the start is taken from, at most
SAMPLE_PLACES = 8  # places in seekable files that it is taken from, at least: neighbouring rows may be alike
START_COUNT = 2  # starts that compete, each on its own rows, scored on others
SAMPLE_WEIGHT = 0.1  # of a row of the sample, which will be learned again with its part
MOST_PASSES = 10_000  # of passes="auto", which ends by convergence

REFUSE, LEAVE_OUT = "refuse", "leave out"


class UnreadError(ValueError):
    """Parts could not be read. `model` has learned all others, and `unread` says what is wrong with each part.

    Examples
    --------
    >>> from headwater.distributed import UnreadError
    >>> issubclass(UnreadError, ValueError)
    True
    """

    def __init__(self, unread: Sequence[Unread], model: StreamingEstimator | None = None) -> None:
        others = len(unread) - 1
        more = f" (and {others} more part{'s' * (others > 1)} could not be read)" if others else ""
        super().__init__(f"{unread[0].sentence}{more}")
        self.unread, self.model = tuple(one.sentence for one in unread), model
        self.numbers = tuple(one.number for one in unread)


@dataclass
class Job:
    """A call of `fit`. The model of the call is not changed."""

    engine: DaskEngine
    plan: Plan
    model: StreamingEstimator
    continues: bool
    rounds: int | str
    passes: int | str | None
    unreadable: str
    checkpoint: Checkpoint | None = None

    @cached_property
    def key(self) -> int:
        """The seed of all random draws."""
        return int(new_key(self.model))

    @cached_property
    def template(self) -> StreamingEstimator:
        """A copy of the model with a number as its seed and no reservoir; unfitted, unless the model continues."""
        own = copy(self.model)
        if "reservoir" in parameter_names(type(own)):
            own.reservoir = 0  # with one, each part would refine the model by its own rows, to another reference
        if not self.continues:
            own._keep_start()
            for name in set(vars(own)) - {*parameter_names(type(own)), *SET_BY_HAND}:
                del own.__dict__[name]
        own.random_state = self.key
        return own

    @cached_property
    def blank(self) -> bytes:
        """The parameters of the template as bytes."""
        return blank_to_bytes(self.template)

    def learn(self, checkpoint: str | Path | None) -> tuple[StreamingEstimator, DistributedReport]:
        """Return a model that has learned all parts, and the report."""
        found: StreamingEstimator | None = None
        if self.continues:
            found = self.template.branch()
            found._runtime = found._runtime.without_refinement()
        progress, over = RunProgress(), False
        trace: list[float] = []
        if checkpoint is not None:
            found, progress, trace, over = self._resume(checkpoint, found)
        if not over:
            width = self._look_at_columns() if found is None else found._learner.width
            if self.template._traits.takes_tables:
                self._list_categories(found)
            learner = self.template._make_learner(width) if found is None else found._learner
            turns, most = self._count_passes(learner)
            if turns and not (trace and most):
                found, progress = self._stream_parts(learner, found, turns, progress)
            if most or not turns:
                found, progress = self._run_exact_passes(learner, found, most, progress, trace)
            assert found is not None  # after one pass or several
            if self.checkpoint is not None:
                self._write_checkpoint(found, progress, complete=True)
        assert found is not None  # the job of a checkpoint has a model at its end
        return found, DistributedReport(len(self.plan.parts), progress.rounds, tuple(one.sentence for one in progress.unread))

    def _count_passes(self, learner: Learner) -> tuple[int, int]:
        """Return how often the parts are streamed, and how many exact passes follow at most."""
        algorithm, passes = learner.algorithm, self.passes
        most = int(self.template.max_iter) if passes is None or isinstance(passes, str) else int(passes)
        if passes == "auto" and (algorithm.finish or not algorithm.online):
            most = MOST_PASSES
        if not algorithm.online:
            return 0, most
        if passes is None:
            return 1, 0
        if algorithm.finish and self.continues:
            return 0, most
        if algorithm.finish:
            return 1, most if passes == "auto" else most - 1
        return most, 0

    def _look_at_columns(self) -> int:
        """Return the width of the model, from the first part that has rows, which also says what the columns of a table are."""
        problem: Unread | None = None
        for part, block in zip(self.plan.parts, self.plan.blocks, strict=True):
            task = self.engine.make_model_task(tasks.look_at_columns, self.blank, part, block, self.plan.read_plan)
            found = self.engine.compute(task, names=[part.name])
            if isinstance(found, tasks.Columns):
                warn_of_row_numbers(list(found.row_numbers), 5)
                for sentence in found.told:
                    warnings.warn(sentence, UserWarning, stacklevel=5)
                self._know_schema(found.schema)
                return found.width
            problem = problem or found
        raise ValueError("there is nothing to learn: the data has no rows" if problem is None else problem.sentence)

    def _know_schema(self, schema: TableSchema | None) -> None:
        """Let workers know what the columns of a table are."""
        if schema is not None:
            self.template.__dict__["_schema"] = schema
            self.__dict__.pop("blank", None)

    def _list_categories(self, found: StreamingEstimator | None) -> None:
        """Let workers, and a model that continues, know the categories that any part has, in the order of the rows.

        Without it each part would number new ones by itself.
        """
        schema = cast("TableInput", found or self.template)._schema
        if schema.codebook.columns:
            self._know_schema(schema)
            capacity = cast("TableInput", self.template)._capacity
            parts = zip(self.plan.parts, self.plan.blocks, strict=True)
            jobs = [
                self.engine.make_model_task(tasks.list_categories, self.blank, part, block, self.plan.read_plan)
                for part, block in parts
            ]
            lists = self.engine.make_model_task(tasks.collect_list, jobs)
            known = self.engine.compute(lists, jobs, Step("looking"), [part.name for part in self.plan.parts])
            for one in known:
                if not isinstance(one, Unread):  # that is reported where it is learned
                    schema = schema.with_categories(one, capacity, self.plan.read_plan.names)
        self._know_schema(schema)
        if found is not None:
            cast("TableInput", found)._know_schema(schema)

    # One pass

    def _stream_parts(
        self, learner: Learner, found: StreamingEstimator | None, turns: int, progress: RunProgress
    ) -> tuple[StreamingEstimator, RunProgress]:
        """Stream all parts; or, if all others were streamed before, those that could not be read then."""
        if found is None:
            found = self._start_model(learner)
        if not progress.rounds or (progress.unread and progress.turn >= turns):
            for name in RESULTS:
                found.__dict__.pop(name, None)
        if progress.unread and progress.turn >= turns:
            missing = [one.number for one in progress.unread]
            found, done, unread = run_round(self.engine, self.plan, found, missing, Step("learning"))
            progress = RunProgress(turns, 0, (*progress.rounds, done), unread)
            self._write_checkpoint(found, progress)
        else:

            def deal(turn: int, parts: Sequence[int]) -> list[list[int]]:
                return deal_parts(parts, self.rounds, self.key + turn)

            found, progress = stream_parts(self.engine, self.plan, found, deal, turns, progress, self._write_checkpoint)
        self._refuse_unread(progress.unread, found)
        return found, progress

    def _start_model(self, learner: Learner) -> StreamingEstimator:
        """Return a model started on a sample, which workers take and learn."""
        own, plan = self.template, self.plan
        rows = 4 * race_stream.plan_race(own, learner.width).warm_up if own._choice == RACE else learner.plan.warm_up_rows
        number = len(plan.parts)
        starts = 1 if own._traits.chained or own._traits.takes_sequences or not learner.settings.polish else START_COUNT
        chosen = np.unique(np.linspace(0, number - 1, min(number, SAMPLED_PARTS)).round().astype(int)).tolist()
        share = -(-rows * (starts + (starts > 1)) // len(chosen))
        wanted = tasks.SampleSize(share, -(-SAMPLE_PLACES // len(chosen)), learner.width)
        jobs = [
            self.engine.make_model_task(
                tasks.sample_rows, self.blank, plan.parts[at], plan.blocks[at], plan.read_plan, wanted, self.key + at
            )
            for at in chosen
        ]
        runs = [
            self.engine.make_model_task(tasks.start_on_sample, self.blank, jobs, SAMPLE_WEIGHT, run, starts)
            for run in range(starts)
        ]
        root = self.engine.make_model_task(tasks.choose_best, runs)
        names = [plan.parts[at].name for at in chosen]
        return from_bytes(self.engine.compute(root, jobs, Step("starting"), names), **self.engine.functions)

    # Exact passes

    def _run_exact_passes(
        self, learner: Learner, found: StreamingEstimator | None, most: int, progress: RunProgress, trace: Sequence[float]
    ) -> tuple[StreamingEstimator, RunProgress]:
        """Return the model after exact passes: the best of `n_init` runs."""
        passes = Passes(self.engine, self.plan, most, self._refuse_unread, progress.rounds, progress.unread)
        if found is not None:
            found.__dict__.pop("history_", None)  # the rows will be learned again
        runs = 1 if learner.algorithm.online or self.continues else self.template.n_init
        best: tuple[StreamingEstimator, list[float], bool] | None = None
        if progress.runs and found is not None:
            best, trace = (found, list(trace), progress.converged), []
        for run in range(progress.runs, runs):
            passes.latest, passes.before = None, len(passes.rounds)
            begun = start_model(passes, self.blank, self.key + run, learner) if found is None or run > 0 else found

            def keep(runtime: Runtime, now: Climb, begun: StreamingEstimator = begun, run: int = run) -> None:
                passes.latest = _with_runtime(begun, runtime.take_summary()[1])
                if run == 0:  # a file holds one model, and during later runs that is the best one so far
                    self._write_checkpoint(
                        _with_runtime(begun, runtime), RunProgress(1, 0, passes.rounds, passes.unread), now.trace
                    )

            try:
                streamed = learner.algorithm.online or self.continues
                bound = getattr(begun, "lower_bound_", -np.inf) if self.continues else -np.inf
                runtime, end = run_passes(passes, begun, self.key, trace, streamed, keep, bound)
            except UnreadError as error:
                self._note_missing(error)
                raise
            reached = (_with_runtime(begun, runtime), list(end.trace), end.converged)
            trace = []
            if best is None or (reached[1] or [-np.inf])[-1] > (best[1] or [-np.inf])[-1]:
                best = reached
            if runs > 1:
                self._write_checkpoint(best[0], RunProgress(1, 0, passes.rounds, passes.unread, run + 1, best[2]), best[1])
        assert best is not None
        found, trace, converged = best
        found._conclude(Climb(None, None, tuple(trace), converged), converged or not most, 5)  # type: ignore[arg-type]
        return found, RunProgress(1, 0, passes.rounds, passes.unread)

    # Faults

    def _refuse_unread(self, unread: Sequence[Unread], model: StreamingEstimator | None = None) -> None:
        """Raise an error about parts that could not be read, or warn and continue without them."""
        if not unread:
            return
        if self.unreadable == REFUSE:
            raise UnreadError(unread, model)
        warnings.warn(str(UnreadError(unread)), UserWarning, stacklevel=5)

    def _resume(
        self, path: str | Path, found: StreamingEstimator | None
    ) -> tuple[StreamingEstimator | None, RunProgress, list[float], bool]:
        """Return the model of a checkpoint, its progress, the trace of its objective, and whether the job was complete."""
        identity = {
            "model": type(self.model).__name__,
            "parameters": parameter_words(self.model),
            "start": None if found is None else found._runtime.lineage,
            "data": self.plan.identity(self.plan.unread_before),
            "rounds": self.rounds,
            "passes": self.passes,
        }
        self.checkpoint = Checkpoint(path, identity)
        resumed = self.checkpoint.resume(**self.engine.functions)
        if resumed is None:
            return found, RunProgress(), [], False
        model, position = resumed
        more = read_run_record(self.checkpoint.more, self.checkpoint.path, len(self.plan.parts), self.template.n_init)
        for name in ("own", "blank"):
            self.__dict__.pop(name, None)
        self.key = more.key  # drawn by the first call, unless random_state is a number
        progress = RunProgress(position.passes, position.rows, more.rounds, more.unread, more.runs, more.converged)
        return model, progress, list(more.trace), position.complete

    def _note_missing(self, error: UnreadError) -> None:
        """Record in the checkpoint the files that could not be read: after a repair their sizes and times will differ."""
        if self.checkpoint is not None and self.checkpoint.path.exists():
            model, extra = read(self.checkpoint.path, **self.engine.functions)
            record = extra[RECORD]
            again = {**record["more"]["again"], **self.plan.missing(error.numbers)}
            self.checkpoint.identity = {**record["identity"], "data": self.plan.identity(again)}
            self.checkpoint.write(model, Position(**record["position"]), {**record["more"], "again": again})

    def _write_checkpoint(
        self, model: StreamingEstimator, progress: RunProgress, trace: Sequence[float] = (), complete: bool = False
    ) -> None:
        """Write the checkpoint, if the call has one."""
        if self.checkpoint is not None:
            report = DistributedReport(len(self.plan.parts), progress.rounds).to_dict()
            unread = [[one.number, one.name, one.sentence] for one in progress.unread]
            again = self.plan.missing([one.number for one in progress.unread])
            more = {
                "report": report, "unread": unread, "trace": list(trace), "key": self.key, "runs": progress.runs,
                "converged": bool(progress.converged), "again": again,
            }  # fmt: skip
            self.checkpoint.identity["data"] = self.plan.identity(again)
            self.checkpoint.write(model, Position(progress.turn, progress.round, complete), more)


def _with_runtime(model: StreamingEstimator, runtime: Runtime) -> StreamingEstimator:
    other = copy(model)
    other._runtime = runtime
    return other
