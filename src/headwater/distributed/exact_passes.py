"""Exact passes: workers compute the E-step of their parts, a tree adds, the client refreshes; the loop is that of `fit`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from headwater.core.batch import NO_LABELS
from headwater.core.batch_fit import end_passes, pass_prior, sample_places
from headwater.core.climb import Climb, ascend
from headwater.core.contracts import Start
from headwater.core.learner import Learner
from headwater.core.state import Summary
from headwater.diagnostics.distributed_report import Round
from headwater.distributed import tasks
from headwater.distributed.dask_engine import DaskEngine
from headwater.distributed.messages import Message, Unread, blank_from_bytes
from headwater.distributed.parts import Part, Plan
from headwater.distributed.progress import Step
from headwater.distributed.rounds import make_round
from headwater.estimators.estimator_core import RESULTS
from headwater.estimators.model_file import from_bytes, to_bytes
from headwater.estimators.runtime import Runtime
from headwater.io.files import messages
from headwater.kernels.mixture import converged

if TYPE_CHECKING:
    from headwater.estimators.base import StreamingEstimator

Outlines: TypeAlias = dict[int, tasks.Outline]  # of parts, by their numbers


class Passes:
    """Passes over all parts of a plan that can be read. `rounds` records each pass, `unread` the parts that were left out."""

    def __init__(
        self,
        engine: DaskEngine,
        plan: Plan,
        most: int,
        refuse: Callable[[Sequence[Unread], StreamingEstimator | None], None],
        rounds: tuple[Round, ...],
        unread: tuple[Unread, ...],
    ) -> None:
        self.engine, self.plan, self.most, self.refuse = engine, plan, most, refuse
        self.rounds, self.unread = rounds, unread
        self.latest: StreamingEstimator | None = None  # the model after the last pass that was made
        self.before = len(rounds)  # rounds before those of this run

    @property
    def numbers(self) -> list[int]:
        """Numbers of the parts that can be read, as far as is known."""
        gone = {one.number for one in self.unread}
        return [part.number for part in self.plan.parts if part.number not in gone]

    def note_unread(self, unread: Sequence[Unread]) -> None:
        """Record parts that could not be read, or refuse to continue without them."""
        if unread:
            self.unread = (*self.unread, *unread)
            self.refuse(self.unread, self.latest)

    def summarizer(self, model: StreamingEstimator) -> Callable[[object], Summary]:
        """Return a function that computes the E-step of all rows at given parameters."""
        learner = model._learner

        def summarize(parameters: object) -> Summary:
            began = time.perf_counter()
            asked = copy(self.latest or model)
            asked._runtime = asked._reader.report_parameters(parameters)
            for name in RESULTS:
                asked.__dict__.pop(name, None)
            data, numbers = to_bytes(asked), self.numbers
            score = self.rounds[-1].score if self.rounds else None
            step = Step("passing", len(self.rounds) - self.before + 1, self.most + 1, score=score)
            message: Message = self.engine.reduce_parts(tasks.summarize_part, Summary, data, self.plan, numbers, step)
            self.note_unread(message.unread)
            if not message.data:
                raise ValueError("the data has no rows")
            self.rounds = (*self.rounds, make_round("pass", numbers, message, len(data), began))
            return messages.from_bytes(message.data, learner, Summary)

        return summarize


def start_model(passes: Passes, blank: bytes, key: int, learner: Learner) -> StreamingEstimator:
    """Return a model at the start parameters of `fit`, found by a worker on the same rows."""
    outlines = _outline_parts(passes, blank, learner)
    while True:
        found = _start_on_worker(passes, blank, key, learner, outlines)
        if isinstance(found, bytes):
            return from_bytes(found, **passes.engine.functions)
        passes.note_unread(found)


def _start_on_worker(passes: Passes, blank: bytes, key: int, learner: Learner, outlines: Outlines) -> bytes | list[Unread]:
    """Return the bytes of that model, or the parts that could not be read."""
    engine, plan, numbers = passes.engine, passes.plan, passes.numbers
    sizes = np.array([outlines[number].rows for number in numbers])
    n, firsts = int(sizes.sum()), np.cumsum(sizes) - sizes
    least = learner.model.n_components
    if n < least:
        raise ValueError(f"Expected n_samples >= n_components but got n_components = {least}, n_samples = {n}")
    named = [outlines[number].named + first for number, first in zip(numbers, firsts, strict=True)]
    labels = np.empty(0, dtype=np.int64)
    if sum(map(len, named)):
        labels = np.full(n, -1, dtype=np.int8)
        labels[np.concatenate(named)] = 0
    begins = None
    if learner.model.chained:
        lengths = np.concatenate([outlines[number].lengths for number in numbers])
        begins = np.cumsum(lengths) - lengths
    places, sequences = sample_places(learner.plan, n, labels, begins, key)
    if sequences is None and begins is not None:  # each part numbers its sequences from its own first row
        sequences = -1 - np.repeat(begins, np.diff(np.append(begins, n)))
    picks = []
    for number, first, size in zip(numbers, firsts, sizes, strict=True):
        own = places[(places >= first) & (places < first + size)] - first
        if len(own):
            picks.append(
                engine.make_model_task(tasks.pick_rows, blank, plan.parts[number], plan.blocks[number], plan.read_plan, own)
            )
    width = max(outlines[number].width for number in numbers)
    root = engine.make_model_task(tasks.start_passes, blank, picks, sequences, width, key)
    found: bytes | list[Unread] = engine.compute(root, picks, Step("starting"))
    return found


def _outline_parts(passes: Passes, blank: bytes, learner: Learner) -> Outlines:
    """Return the outline of each part by its number; parts are read only if their rows are not known."""
    plan, engine = passes.plan, passes.engine
    plain = not learner.model.chained and not any(plan.read_plan.options.get(role) for role in ("weight", "label"))
    known = plain and plan.read_plan.kind in ("files", "arrays") and plan.rows is not None
    if known:
        return {part.number: tasks.Outline(part.rows or 0, learner.width, NO_LABELS, NO_LABELS) for part in plan.parts}
    numbers = passes.numbers
    jobs = [
        engine.make_model_task(tasks.outline_part, blank, plan.parts[at], plan.blocks[at], plan.read_plan) for at in numbers
    ]
    names = [plan.parts[at].name for at in numbers]
    gathered = engine.compute(engine.make_model_task(tasks.collect_list, jobs), jobs, Step("looking"), names)
    if not blank_from_bytes(blank, engine.functions)._traits.takes_symbols:  # a part may lack some symbols
        gathered = [_check_width(one, plan.parts[at], learner.width) for one, at in zip(gathered, numbers, strict=True)]
    passes.note_unread([one for one in gathered if isinstance(one, Unread)])
    nothing = tasks.Outline(0, 0, NO_LABELS, NO_LABELS)
    return {at: one or nothing for at, one in zip(numbers, gathered, strict=True) if not isinstance(one, Unread)}


def _check_width(found: tasks.Outline | Unread | None, part: Part, width: int) -> tasks.Outline | Unread | None:
    """Return the outline of a part, or why it cannot be learned: its rows have other columns."""
    if found is None or isinstance(found, Unread) or found.width in (0, width):
        return found
    sentence = f"{part.name} cannot be learned: its rows have {found.width} columns, and those of others {width}"
    return Unread(part.number, part.name, sentence)


def run_passes(
    passes: Passes,
    model: StreamingEstimator,
    key: int,
    before: Sequence[float],
    streamed: bool,
    keep: Callable[[Runtime, Climb], None],
    reached: float = -np.inf,
) -> tuple[Runtime, Climb]:
    """Make exact passes from a model on until the objective converges; return the Runtime and the end of the climb.

    `before` are the objectives of passes made before a checkpoint; `reached` is that of a model that continues. A model
    that has `streamed`, or continues, starts with its statistics, any other with an E-step at its parameters.
    """
    learner = model._learner
    summary = None
    if before:  # a checkpoint stores the summary exactly
        summary, model._runtime = model._runtime.take_summary()
    start = model._reader.resume_start()
    summarize = passes.summarizer(model)
    if not streamed and not before:
        summary = summarize(start.parameters)
    if summary is not None:
        start = Start(start.prior, start.parameters, summary)
    prior = pass_prior(learner.plan, start.prior)
    tol = model._patience(start.summary.rows)[1]
    # A run may have been interrupted between its last pass and its end.
    gains = np.diff([-np.inf, *before])
    over = len(gains) > 1 and bool(converged(gains[-1], gains[-2], tol))

    def kept(now: Climb) -> None:
        keep(model._reader.end_pass(key, Start(start.prior, now.parameters, now.summary)), now)

    begun = Climb(start.summary, start.parameters, tuple(before), over)
    end = ascend(
        learner.model, learner.plan.algorithm.pass_readout, prior, begun, summarize, passes.most, tol, reached,
        penalised=learner.model.has_prior or prior is start.prior, told=kept,
    )  # fmt: skip
    return model._reader.with_state(end_passes(learner.plan, key, start, end)), end
