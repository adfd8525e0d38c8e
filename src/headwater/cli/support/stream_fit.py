"""How `fit` learns on one machine: from a stream in one or more passes, with checkpoints; or from all rows at once."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import TYPE_CHECKING

from headwater.checkpoints import Checkpoint, Position
from headwater.cli.support.continued_data import match_stages, records_of
from headwater.cli.support.failures import print_message, usage_error
from headwater.cli.support.fit_options import CHECKPOINT_SECONDS, FitOptions
from headwater.cli.support.model_arguments import check_companions
from headwater.cli.support.options import MessageOptions
from headwater.cli.support.progress import Watch, progress_bar, share_of_bytes_read
from headwater.cli.support.signals import Stop, defer_stop, remove_parts_on_stop
from headwater.core.chunk import Chunk
from headwater.estimators.component_count import end_warm_up
from headwater.estimators.row_numbers import NUMBERS_ROWS, find_row_numbers
from headwater.io.recipes.tables import whole_sequences
from headwater.io.row_collection import by_sequence, collect_rows

if TYPE_CHECKING:
    from headwater.core.algorithm import Algorithm
    from headwater.estimators.base import StreamingEstimator
    from headwater.io.stream import Stream

MOST_PASSES = 10_000  # of --passes auto; the model is used even if it has not converged by then


def fit_model(
    model: StreamingEstimator,
    algorithm: Algorithm,
    stream: Stream,
    options: FitOptions,
    messages: MessageOptions,
    identity: Mapping[str, object],
) -> StreamingEstimator:
    """Return the model after it has learned the stream; `identity` tells this run from others in its checkpoint."""
    passes = options.parse_passes()
    if needs_all_rows(algorithm, passes):
        if getattr(model, "half_life", None) is not None and algorithm.finish:
            raise usage_error(
                "--half-life is for streams, and passes over all rows forget none: leave out --half-life or --passes"
            )
        if options.checkpoint is not None:
            raise usage_error("--checkpoint needs a stream, and these passes have all rows in memory: leave out one of the two")
        return fit_all_rows(model, algorithm, stream, passes, messages)
    checkpoint = None
    if options.checkpoint is not None:
        if stream.once:
            raise usage_error("--checkpoint needs data that can be read again, and standard input cannot")
        if type(model)._traits.takes_sequences and next(iter(stream)).key is not None:
            raise usage_error("--checkpoint cannot keep sequences that chunks cut in two: write one sequence a line")
        checkpoint = Checkpoint(
            options.checkpoint,
            {**identity, "data": stream.ways()},
            every_rows=options.checkpoint_rows,
            every_seconds=CHECKPOINT_SECONDS if options.checkpoint_seconds is None else options.checkpoint_seconds,
            replaced=("start",) if identity.get("place") == identity.get("output") else (),
        )
    learned = fit_stream(model, stream, passes if isinstance(passes, int) else 1, checkpoint, messages)
    learned._runtime = end_warm_up(learned)
    return learned


def needs_all_rows(algorithm: Algorithm, passes: int | str | None) -> bool:
    """Whether the model is learned from all rows at once: by passes of EM, or by passes in another order."""
    if not algorithm.online:
        return True
    return passes == "auto" or (passes not in (None, 1) and (algorithm.finish or algorithm.again))


def fit_all_rows(
    model: StreamingEstimator, algorithm: Algorithm, stream: Stream, passes: int | str | None, messages: MessageOptions
) -> StreamingEstimator:
    """Return the model after `fit` on all rows of the stream."""
    if model._has_state():
        if algorithm.online:
            raise usage_error("a model that continues learning reads a stream: leave out --passes")
        raise ValueError(
            f"the model was learned by {algorithm.word!r}, which needs all rows at once and cannot continue: learn it anew, or "
            f"by {algorithm.twin!r}"
        )
    instead = "; --passes 1 learns from a stream" if algorithm.online else ""
    with progress_bar(messages, "reading", stream.total_rows) as watch:
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


LEAVE_OUT_IDS = "leave it out by --exclude, or name all columns to learn from by --columns"


def refuse_ids(stream: Stream, chunk: Chunk) -> None:
    """Refuse columns that number the rows, which a model of numbers would learn, unless they were asked for."""
    found = [] if stream.has_chosen_columns else find_row_numbers(chunk)
    if found:
        raise usage_error(f"column {found[0]!r} {NUMBERS_ROWS}: {LEAVE_OUT_IDS}")


@contextmanager
def no_warning_of_ids() -> Iterator[None]:
    """Pass over the warning of a model: columns that number the rows are refused here, or were asked for."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=f".*{NUMBERS_ROWS}", category=UserWarning)
        yield


def _check_and_watch(model: StreamingEstimator, stream: Stream, watch: Watch) -> Iterator[Chunk]:
    """Yield the chunks of a stream; check the first, and report progress after each."""
    for chunk in whole_sequences(model, stream):
        if not chunk.start:
            check_companions(model, chunk)
            refuse_ids(stream, chunk)
        yield chunk
        watch(chunk.start + len(chunk), share=share_of_bytes_read(stream))


def fit_stream(
    model: StreamingEstimator, stream: Stream, passes: int, checkpoint: Checkpoint | None, messages: MessageOptions
) -> StreamingEstimator:
    """Return the model after some passes over the stream; it continues from the checkpoint if there is one."""
    if passes > 1 and stream.once:
        raise usage_error("--passes needs data that can be read again, and standard input cannot")
    run = _Run(passes, messages, checkpoint)
    if checkpoint is None:
        return drop_times(run.learn(model, stream, Position())[0])
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
            print_message(f"note: continuing with {len(new):,} new file{'s' if len(new) > 1 else ''}")
            files, records = [*files, new], [*records, records_of(new)]
        if position.complete:
            position = Position()
    # The files of the first stage decide how all are read.
    first = stream if found is None else stream.of(files[0], anew=True)
    for place in range(done, len(files)):
        stage = first if place == 0 else first.of(files[place], model)
        run = replace(run, more={"stages": records[: place + 1]})
        model, position = run.learn(model, stage, position)
        run.write_checkpoint(model, replace(position, complete=True))
        position = Position()
    return model


@dataclass(frozen=True)
class _Run:
    """Passes over some files; `more` is the part of the checkpoint besides model and position."""

    passes: int
    messages: MessageOptions
    checkpoint: Checkpoint | None
    more: Mapping[str, object] = field(default_factory=dict)

    def learn(self, model: StreamingEstimator, stream: Stream, position: Position) -> tuple[StreamingEstimator, Position]:
        """Return the model after all passes from a position on, and the position after them."""
        from headwater.monitors import Monitor

        monitor = Monitor(model)
        with defer_stop() if self.checkpoint is not None else nullcontext() as stop:
            while position.passes < self.passes:
                title = "learning" if self.passes == 1 else f"pass {position.passes + 1} of {self.passes}"
                with progress_bar(self.messages, title, stream.total_rows, position.rows) as watch:
                    for chunk in whole_sequences(model, stream.chunks(start_row=position.rows)):
                        if not chunk.start:
                            check_companions(model, chunk)
                            refuse_ids(stream, chunk)
                        monitor.learn(chunk)
                        position = replace(position, rows=stream.position(chunk))
                        watch(position.rows, monitor.history.late_score, share_of_bytes_read(stream))
                        # The last chunk may be short, and a stream continues only from the end of a whole one.
                        if position.rows % stream.chunk_rows == 0:
                            self._keep(model, position, stop)
                if not model._has_state():
                    raise ValueError("there is nothing to learn: the data has no rows")
                position = Position(position.passes + 1)
                if position.passes < self.passes:
                    _close_sequences(model)
        return model, position

    def _keep(self, model: StreamingEstimator, position: Position, stop: Stop | None) -> None:
        """Write the checkpoint if it is due, or if a signal asks the process to stop; then stop."""
        if self.checkpoint is None:
            return
        stopped = stop is not None and stop.requested
        if stopped or self.checkpoint.due(position):
            self.write_checkpoint(model, position)
        if stop is not None and stopped:
            print_message(f"note: {self.checkpoint.path} is written, from which the same command continues")
            stop.now()

    def write_checkpoint(self, model: StreamingEstimator, position: Position) -> None:
        """Write the checkpoint; an unfinished file is removed if the process is stopped meanwhile."""
        assert self.checkpoint is not None
        with remove_parts_on_stop(self.checkpoint.path):
            self.checkpoint.write(drop_times(model), position, self.more)


def _close_sequences(model: StreamingEstimator) -> None:
    """Close the sequences of a pass: they do not continue in the next one."""
    for key in list(getattr(model, "open_sequences_", ())):
        model.close(key)


def drop_times(model: StreamingEstimator) -> StreamingEstimator:
    """Remove the times from the history of a model, so that the same rows make the same file; return the model."""
    history = model.history_
    model.history_ = replace(history, seconds=0.0, points=tuple(replace(point, seconds=0.0) for point in history.points))
    return model
