"""One pass: parts are streamed side by side, round by round; after each, what all of them learned is the next one's start."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from headwater.core.delta import Delta
from headwater.diagnostics.distributed_report import Round
from headwater.diagnostics.history import History
from headwater.distributed import tasks
from headwater.distributed.messages import Message, Unread
from headwater.distributed.parts import Plan
from headwater.distributed.progress import Step
from headwater.distributed.task_graph import Cluster
from headwater.estimators.model_file import to_bytes
from headwater.io.files import messages

ROUNDS = 4
TURN_KEYS = 0x2545F4914F6CDD1D  # another pass draws anew


@dataclass(frozen=True)
class Gone:
    """How far a run has come: passes over all parts, rounds of this one, what each did, and parts that were not read.

    Of exact passes from several starts, `runs` are over, and the best of them may have `converged`.
    """

    turn: int = 0
    round: int = 0
    rounds: tuple[Round, ...] = ()
    unread: tuple[Unread, ...] = ()
    runs: int = 0
    converged: bool = False


Keep = Callable[[Any, Gone], None]


def dealt(parts: Sequence[int], rounds: int | str, key: int) -> list[list[int]]:
    """Deal parts to rounds, to each from all over the data: what lies side by side may be alike."""
    if rounds == "auto":
        rounds = min(ROUNDS, max(1, len(parts) // 4))
    order = np.random.default_rng(np.random.SeedSequence((key, len(parts)))).permutation(len(parts))
    return [sorted(parts[at] for at in some) for some in np.array_split(order, min(int(rounds), len(parts)))]


def stream_parts(
    cluster: Cluster,
    plan: Plan,
    model: Any,
    deal: Callable[[int, Sequence[int]], list[list[int]]],
    turns: int,
    gone: Gone,
    keep: Keep,
) -> tuple[Any, Gone]:
    """Stream all parts, `turns` times; return the model and how it went. `keep` is told after every round."""
    everything = [part.number for part in plan.parts]
    for turn in range(gone.turn, turns):
        unreadable = {one.number for one in gone.unread}
        rounds = deal(turn, [number for number in everything if number not in unreadable] if turn else everything)
        for number in range(gone.round, len(rounds)):
            score = gone.rounds[-1].score if gone.rounds else np.nan
            step = Step(
                "learning", len(gone.rounds) + 1, turns * len(rounds), rows=sum(one.rows for one in gone.rounds),
                score=None if np.isnan(score) else score,
            )  # fmt: skip
            over = number + 1 == len(rounds)
            model, done, unread = one_round(
                cluster, plan, model, rounds[number], step, turn, gone.rounds if over and turns == 1 else None
            )
            gone = Gone(turn + over, 0 if over else number + 1, (*gone.rounds, done), (*gone.unread, *unread))
            keep(model, gone)
    return model, gone


def one_round(
    cluster: Cluster,
    plan: Plan,
    model: Any,
    numbers: Sequence[int],
    step: Step,
    turn: int = 0,
    watched: Sequence[Round] | None = None,
) -> tuple[Any, Round, tuple[Unread, ...]]:
    """Stream some parts from one base, and return the model that has learned what all of them did.

    After the first turn, rows come again, and are not more rows. If it is `watched`, scores of rows before they were learned
    are kept in its history, after those of the rounds before.
    """
    began = time.perf_counter()
    learner = model._learner
    base = copy(model)
    base._runtime = model._reader.finalize()
    data = to_bytes(base)
    at_hand = base._runtime.weight_seen if turn else np.inf
    message: Message = cluster.reduced(
        tasks.learn, Delta, data, plan, numbers, step, turn * TURN_KEYS, at_hand, watched is not None
    )
    done = told("learning", numbers, message, len(data), began)
    if message.data:
        base._runtime = base._runtime.grow_by(messages.from_bytes(message.data, learner, Delta), again=turn > 0)
        if watched is not None and message.usual is not None and message.usual.scored:
            rounds = [(one.rows, one.score) for one in (*watched, done)]
            history = History.of_rounds(rounds, message.usual, base._runtime.rows - sum(rows for rows, _ in rounds))
            base.history_ = history.with_weights(base._shares_now(), base._runtime.n_eff, np.nan)
    return base, done, message.unread


def told(stage: str, numbers: Sequence[int], message: Message, sent: int, began: float) -> Round:
    """Return what a round did."""
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
