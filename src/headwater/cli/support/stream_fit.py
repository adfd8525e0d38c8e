"""How `fit` learns: from a stream, once or again and again, with checkpoints; or from all rows at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from typing import Any

from headwater.checkpoints import Checkpoint, Position
from headwater.cli.support.continued_data import match_stages, records_of
from headwater.cli.support.failures import print_message, usage_error
from headwater.cli.support.model_arguments import check_companions
from headwater.cli.support.options import MessageOptions
from headwater.cli.support.progress import Watch, progress_bar, share_of_bytes_read
from headwater.cli.support.signals import defer_stop, remove_parts_on_stop
from headwater.core.chunk import Chunk
from headwater.io.recipes.table_sequences import whole_sequences
from headwater.io.row_collection import by_sequence, collect_rows
from headwater.registry import learner_of

# Passes after which a model that does not converge is taken as it is.
MOST_PASSES = 10_000


@dataclass(frozen=True)
class FitOptions:
    """How much is to be done: passes (None: what the algorithm needs), and where and how often it is kept."""

    passes: int | str | None = None
    checkpoint: Path | None = None
    checkpoint_rows: int | None = None
    checkpoint_seconds: float = 30.0


def fit_model(model: Any, stream: Any, effort: FitOptions, talk: MessageOptions, identity: Mapping[str, Any]) -> Any:
    """Return a model that has learned the stream."""
    if needs_all_rows(model, effort.passes):
        if getattr(model, "half_life", None) is not None and algorithm_of(model).finish:
            raise usage_error(
                "--half-life is for streams, and passes over all rows forget none: leave out --half-life or --passes"
            )
        if effort.checkpoint is not None:
            raise usage_error("--checkpoint needs a stream, and these passes have all rows in memory: leave out one of the two")
        return fit_all_rows(model, stream, effort.passes, talk)
    passes = effort.passes if isinstance(effort.passes, int) else 1
    checkpoint = None
    if effort.checkpoint is not None:
        if stream.once:
            raise usage_error("--checkpoint needs data that can be read again, and standard input cannot")
        if type(model)._takes_sequences and next(iter(stream)).key is not None:
            raise usage_error("--checkpoint cannot keep sequences that chunks cut in two: write one sequence a line")
        checkpoint = Checkpoint(
            effort.checkpoint,
            {**identity, "data": stream.ways()},
            every_rows=effort.checkpoint_rows,
            every_seconds=effort.checkpoint_seconds,
            replaced=("start",) if identity.get("place") == identity.get("output") else (),
        )
    learned = fit_stream(model, stream, passes, checkpoint, talk)
    learned._end_warm_up()
    return learned


def needs_all_rows(model: Any, passes: int | str | None) -> bool:
    """Whether the model is to be learned from all rows at once: by passes of EM, or again and again in another order."""
    algorithm = algorithm_of(model)
    if not algorithm.online:
        return True
    return passes == "auto" or (passes not in (None, 1) and (algorithm.finish or algorithm.again))


def algorithm_of(model: Any) -> Any:
    """Return the algorithm that a model is learned by."""
    if model._has_state():
        return model._learner.algorithm
    return learner_of(model).algorithm


def fit_all_rows(model: Any, stream: Any, passes: int | str | None, talk: MessageOptions) -> Any:
    """Return a model that was fitted to all rows."""
    algorithm = algorithm_of(model)
    if model._has_state():
        if algorithm.online:
            raise usage_error("a model that goes on learning reads a stream: leave out --passes")
        raise ValueError(
            f"the model was learned by {algorithm.word!r}, which needs all rows at once and cannot go on: learn it anew, or by "
            f"{algorithm.twin!r}"
        )
    instead = "; --passes 1 learns from a stream" if algorithm.online else ""
    with progress_bar(talk, "reading", stream.total_rows) as watch:
        together = by_sequence(collect_rows(_check_and_watch(model, stream, watch), instead=instead))
    name = "max_iter" if "max_iter" in model.get_params() else "n_iter"
    if isinstance(passes, int):
        model.set_params(**{name: passes})
    elif passes == "auto" or getattr(model, name) == signature(type(model)).parameters[name].default:
        given = getattr(model, name)
        model.set_params(**{name: MOST_PASSES})
        try:
            return model.fit(**together)
        finally:
            setattr(model, name, given)
    return model.fit(**together)


def _check_and_watch(model: Any, stream: Any, watch: Watch) -> Iterator[Chunk]:
    for chunk in whole_sequences(model, stream):
        if not chunk.start:
            check_companions(model, chunk)
        yield chunk
        watch(chunk.start + len(chunk), share=share_of_bytes_read(stream))


def fit_stream(model: Any, stream: Any, passes: int, checkpoint: Checkpoint | None, talk: MessageOptions) -> Any:
    """Return a model that has read the stream so many times, going on from a checkpoint if there is one."""
    if passes > 1 and stream.once:
        raise usage_error("--passes needs data that can be read again, and standard input cannot")
    if checkpoint is None:
        return drop_times(_fit_stage(model, stream, Position(), passes, None, {}, talk)[0])
    found, position, done = checkpoint.resume(), Position(), 0
    files, records = [stream.files], []
    if found is None:
        records = [records_of(stream.files)]
    else:
        model, position = found
        records = checkpoint.more.get("stages", [])
        files, new = match_stages(stream, records, checkpoint.path)
        if position.complete and not new:
            print_message("note: the checkpoint says that all of this was learned before")
            return model
        done = len(files) if position.complete else len(files) - 1
        if new:
            print_message(f"note: going on with {len(new):,} new file{'s' if len(new) > 1 else ''}")
            files, records = [*files, new], [*records, records_of(new)]
        if position.complete:
            position = Position()
    first = stream if found is None else stream.of(files[0], anew=True)  # how all are read is found out there
    for place in range(done, len(files)):
        more = {"stages": records[: place + 1]}
        stage = first if place == 0 else first.of(files[place], model)
        model, position = _fit_stage(model, stage, position, passes, checkpoint, more, talk)
        with remove_parts_on_stop(checkpoint.path):
            checkpoint.write(drop_times(model), replace(position, complete=True), more)
        position = Position()
    return model


def _fit_stage(
    model: Any,
    stream: Any,
    position: Position,
    passes: int,
    checkpoint: Checkpoint | None,
    more: Mapping[str, Any],
    talk: MessageOptions,
) -> tuple[Any, Position]:
    """Return a model that has read some files so many times, and where it is then."""
    from headwater.monitors import Monitor

    def keep() -> None:
        assert checkpoint is not None
        with remove_parts_on_stop(checkpoint.path):
            checkpoint.write(drop_times(model), position, more)

    monitor = Monitor(model)
    with defer_stop() if checkpoint is not None else nullcontext() as stop:
        while position.passes < passes:
            title = "learning" if passes == 1 else f"pass {position.passes + 1} of {passes}"
            with progress_bar(talk, title, stream.total_rows, position.rows) as watch:
                for chunk in whole_sequences(model, stream.chunks(start_row=position.rows)):
                    if not chunk.start:
                        check_companions(model, chunk)
                    monitor.learn(chunk)
                    position = replace(position, rows=stream.position(chunk))
                    watch(position.rows, monitor.history.late_score, share_of_bytes_read(stream))
                    # The last chunk may be short; a stream goes on only from where whole ones end.
                    if checkpoint is not None and position.rows % stream.chunk_rows == 0:
                        stopped = stop if stop is not None and stop.asked else None
                        if stopped is not None or checkpoint.due(position):
                            keep()
                        if stopped is not None:
                            print_message(f"note: {checkpoint.path} is written, from which the same command goes on")
                            stopped.now()
            if not model._has_state():
                raise ValueError("there is nothing to learn: the data has no rows")
            position = Position(position.passes + 1)
            if position.passes < passes:
                _close_sequences(model)
    return model, position


def _close_sequences(model: Any) -> None:
    """Sequences of one pass do not go on in the next."""
    for key in list(getattr(model, "open_sequences_", ())):
        model.close(key)


def drop_times(model: Any) -> Any:
    """Return the model without the times that its history took, so that the same rows make the same file."""
    history = model.history_
    model.history_ = replace(history, seconds=0.0, points=tuple(replace(point, seconds=0.0) for point in history.points))
    return model
