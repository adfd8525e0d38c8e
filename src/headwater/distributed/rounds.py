"""Rounds of a streaming pass: workers stream parts in parallel; the sum of their results is the start of the next round."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from headwater.core.delta import Delta
from headwater.diagnostics.distributed_report import Round
from headwater.diagnostics.history import History
from headwater.distributed import tasks
from headwater.distributed.dask_engine import DaskEngine
from headwater.distributed.messages import Message, Unread
from headwater.distributed.parts import Plan
from headwater.distributed.progress import Step
from headwater.estimators.model_file import to_bytes
from headwater.io.files import messages

if TYPE_CHECKING:
    from headwater.estimators.base import StreamingEstimator


AUTO_ROUNDS = 4  # of a pass with many parts: more gain little, and each waits for its slowest part
TURN_KEY_STEP = 0x2545F4914F6CDD1D  # added to keys for each further pass, so that it draws other numbers


@dataclass(frozen=True)
class RunProgress:
    """The progress of a job: streaming passes that are finished (`turn`), rounds of this one, a record of each, unread parts.

    Of exact passes from several starts, `runs` are finished, and the best of them may have `converged`.
    """

    turn: int = 0
    round: int = 0
    rounds: tuple[Round, ...] = ()
    unread: tuple[Unread, ...] = ()
    runs: int = 0
    converged: bool = False


Keep: TypeAlias = "Callable[[StreamingEstimator, RunProgress], None]"


def deal_parts(parts: Sequence[int], rounds: int | str, key: int) -> list[list[int]]:
    """Deal parts to rounds at random: neighbouring parts may be alike."""
    if rounds == "auto":
        rounds = min(AUTO_ROUNDS, max(1, len(parts) // 4))
    order = np.random.default_rng(np.random.SeedSequence((key, len(parts)))).permutation(len(parts))
    return [sorted(parts[at] for at in some) for some in np.array_split(order, min(int(rounds), len(parts)))]


def stream_parts(
    engine: DaskEngine,
    plan: Plan,
    model: StreamingEstimator,
    deal: Callable[[int, Sequence[int]], list[list[int]]],
    turns: int,
    progress: RunProgress,
    keep: Keep,
) -> tuple[StreamingEstimator, RunProgress]:
    """Stream all parts `turns` times; return the model and the progress. `keep` is called after each round."""
    everything = [part.number for part in plan.parts]
    for turn in range(progress.turn, turns):
        unreadable = {one.number for one in progress.unread}
        rounds = deal(turn, [number for number in everything if number not in unreadable] if turn else everything)
        for number in range(progress.round, len(rounds)):
            score = progress.rounds[-1].score if progress.rounds else np.nan
            step = Step(
                "learning", len(progress.rounds) + 1, turns * len(rounds), rows=sum(one.rows for one in progress.rounds),
                score=None if np.isnan(score) else score,
            )  # fmt: skip
            over = number + 1 == len(rounds)
            model, done, unread = run_round(
                engine, plan, model, rounds[number], step, turn, progress.rounds if over and turns == 1 else None
            )
            progress = RunProgress(
                turn + over, 0 if over else number + 1, (*progress.rounds, done), (*progress.unread, *unread)
            )
            keep(model, progress)
    return model, progress


def run_round(
    engine: DaskEngine,
    plan: Plan,
    model: StreamingEstimator,
    numbers: Sequence[int],
    step: Step,
    turn: int = 0,
    watched: Sequence[Round] | None = None,
) -> tuple[StreamingEstimator, Round, tuple[Unread, ...]]:
    """Stream some parts from one base; return the model that has learned all of them, the record, and unread parts.

    After the first turn the rows are not new, and are not counted again. With `watched`, the records of earlier rounds, the
    history of the model gets the scores of rows before they were learned.
    """
    began = time.perf_counter()
    learner = model._learner
    base = copy(model)
    base._runtime = model._reader.finalize()
    data = to_bytes(base)
    at_hand = base._runtime.weight_seen if turn else np.inf
    message: Message = engine.reduce_parts(
        tasks.learn_part, Delta, data, plan, numbers, step, turn * TURN_KEY_STEP, at_hand, watched is not None
    )
    done = make_round("learning", numbers, message, len(data), began)
    if message.data:
        base._runtime = base._runtime.grow_by(messages.from_bytes(message.data, learner, Delta), again=turn > 0)
        if watched is not None and message.usual is not None and message.usual.scored:
            rounds = [(one.rows, one.score) for one in (*watched, done)]
            history = History.of_rounds(rounds, message.usual, base._runtime.rows - sum(rows for rows, _ in rounds))
            base.history_ = history.with_weights(base._describer.shares_now(), base._runtime.n_eff, np.nan)
    return base, done, message.unread


def make_round(stage: str, numbers: Sequence[int], message: Message, sent: int, began: float) -> Round:
    """Return the record of a round."""
    score = message.score / message.weight if message.weight else np.nan
    return Round(
        stage,
        len(numbers),
        message.rows,
        score,
        message.largest,
        message.merged,
        message.path,
        sent,
        time.perf_counter() - began,
    )
