"""How `fit` learns: from a stream, once or again and again, with checkpoints; or from all rows at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwater.checkpoints import Checkpoint, Position
from headwater.chunk import Chunk
from headwater.cli.failures import tell, usage
from headwater.cli.gathering import by_sequence, gathered
from headwater.cli.models import check_companions
from headwater.cli.options import Talk
from headwater.cli.progress import progress
from headwater.registry import word_of


@dataclass(frozen=True)
class Effort:
    """How much is to be done: passes (None: what the algorithm needs), and where and how often it is kept."""

    passes: int | str | None = None
    checkpoint: Path | None = None
    checkpoint_rows: int | None = None
    checkpoint_seconds: float = 30.0


def learn(model: Any, stream: Any, effort: Effort, talk: Talk, identity: Mapping[str, Any]) -> Any:
    """Return a model that has learned the stream."""
    if in_memory(model, effort.passes):
        if effort.checkpoint is not None:
            raise usage("--checkpoint needs a stream, and these passes have all rows in memory: leave out one of the two")
        return learn_at_once(model, stream, effort.passes, talk)
    passes = effort.passes if isinstance(effort.passes, int) else 1
    checkpoint = None
    if effort.checkpoint is not None:
        checkpoint = Checkpoint(
            effort.checkpoint,
            {**identity, "data": stream.fingerprint()},
            every_rows=effort.checkpoint_rows,
            every_seconds=effort.checkpoint_seconds,
        )
    return learn_stream(model, stream, passes, checkpoint, talk)


def in_memory(model: Any, passes: int | str | None) -> bool:
    """Whether the model is to be learned from all rows at once: by passes of EM, or again and again in another order."""
    algorithm = algorithm_of(model)
    if not algorithm.online:
        return True
    return passes == "auto" or (passes not in (None, 1) and (algorithm.finish or algorithm.again))


def algorithm_of(model: Any) -> Any:
    """Return the algorithm that a model is learned by."""
    if model._has_state():
        return model._learner.algorithm
    return model._make_learner(2 + type(model)._target_columns).algorithm


def learn_at_once(model: Any, stream: Any, passes: int | str | None, talk: Talk) -> Any:
    """Return a model that was fitted to all rows."""
    if model._has_state():
        raise usage("a model that goes on learning reads a stream: leave out --passes")
    instead = "; --passes 1 learns from a stream" if algorithm_of(model).online else ""
    with progress(talk, "reading", stream.total_rows) as watch:
        rows = 0
        held: list[Chunk] = []
        for chunk in stream:
            if not held:
                check_companions(model, chunk)
            held.append(chunk)
            rows += len(chunk)
            watch(rows)
    together = by_sequence(gathered(held, instead=instead))
    if isinstance(passes, int):
        name = "max_iter" if "max_iter" in model.get_params() else "n_iter"
        model.set_params(**{name: passes})
    return model.fit(**together)


def learn_stream(model: Any, stream: Any, passes: int, checkpoint: Checkpoint | None, talk: Talk) -> Any:
    """Return a model that has read the stream so many times, going on from a checkpoint if there is one."""
    position = Position()
    found = None if checkpoint is None else checkpoint.resume()
    if found is not None:
        model, position = found
        if position.complete:
            tell("note: the checkpoint says that all of this was learned before")
            return model
    for number in range(position.passes, passes):
        rows = position.rows if number == position.passes else 0
        title = "learning" if passes == 1 else f"pass {number + 1} of {passes}"
        with progress(talk, title, stream.total_rows, rows) as watch:
            for chunk in stream.chunks(start_row=rows):
                if not rows:
                    check_companions(model, chunk)
                model.partial_fit(**chunk)
                rows += len(chunk)
                watch(rows)
                now = Position(number, rows)
                if checkpoint is not None and checkpoint.due(now):
                    checkpoint.write(model, now)
        if not rows:
            raise ValueError("the data has no rows")
    if not model._has_state():
        raise ValueError(f"{word_of(model)} has learned nothing: the data has no rows")
    if checkpoint is not None:
        checkpoint.write(model, Position(passes, 0, complete=True))
    return model
