"""Tasks of workers. They take and return bytes and records; a part that cannot be read is returned as Unread."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import NO_LABELS, Batch, join_batches
from headwater.core.batch_fit import seeds_compete
from headwater.core.chunk import Chunk
from headwater.core.climb import climb
from headwater.core.contracts import NO_SCORES, Start
from headwater.core.shards import SHARD_KEYS
from headwater.core.state import Summary
from headwater.core.values import Values
from headwater.core.warm_up import find_start
from headwater.diagnostics.history import History
from headwater.distributed.messages import Message, Refusal, Unread, blank_from_bytes, return_errors
from headwater.distributed.parts import Part, ReadPlan, check_companions, first_rows, read_chunks, sample_part
from headwater.estimators.component_count import RACE, choose, with_choice
from headwater.estimators.model_file import from_bytes, to_bytes
from headwater.estimators.runtime import Runtime
from headwater.estimators.table_schema import TableSchema
from headwater.io import row_collection
from headwater.io.files import messages
from headwater.io.read_errors import NoRows
from headwater.kernels.parallel import one_blas_thread
from headwater.monitors import Monitor

if TYPE_CHECKING:
    from headwater.estimators.base import StreamingEstimator


WATCH_PERIOD = 4  # chunks, of which the first is scored before it is learned
LEAST_ROWS_TO_DIVIDE = 4000  # of a sample: with fewer, each start would have too few of its own
SAMPLE_PASSES = 20  # of EM over the sample, from given parameters
OPEN_TRIES = 3  # attempts to open a file, since remote storage may fail once

Functions = Mapping[str, object]


@dataclass(frozen=True)
class Outline:
    """Facts about a part that are needed before rows are picked: their number, those with labels, and lengths of sequences.

    `width` is that of a model of these rows; one part alone may lack some symbols.
    """

    rows: int
    width: int
    named: object
    lengths: Values


@dataclass(frozen=True)
class Columns:
    """The width of a model of some rows, the names of columns that number them, and what the columns of a table are.

    `told` are warnings about columns of a table that are left out.
    """

    width: int
    row_numbers: tuple[str, ...]
    schema: TableSchema | None = None
    told: tuple[str, ...] = ()


@dataclass(frozen=True)
class SampleSize:
    """Rows to sample from a part, from how many places of it, and the width that a model of them must have."""

    rows: int
    places: int
    width: int


def hold(data: bytes) -> bytes:
    """Return bytes as they are: as a task, they are stored on the cluster once and can be recomputed."""
    return data


def collect_list(items: Sequence[object], functions: Functions) -> list[object]:
    """Return the results of other tasks as one list."""
    return list(items)


@lru_cache(maxsize=1)
def _cached_model(data: bytes, functions: tuple[tuple[str, object], ...]) -> StreamingEstimator:
    model: StreamingEstimator = from_bytes(data, **dict(functions))
    model.n_threads = 1  # a worker has as many threads as it has tasks
    model._runtime = replace(model._runtime.with_threads(1), made_with=model._given_parameters())
    return model


def forget_model() -> None:
    """Drop the cached model of this worker."""
    _cached_model.cache_clear()


def decode_model(data: bytes, functions: Functions) -> StreamingEstimator:
    """Return the model of these bytes. It is shared by threads, and may not be changed."""
    return _cached_model(data, tuple(sorted(functions.items())))


def sample_rows(
    blank: bytes, functions: Functions, part: Part, block: object, read_plan: ReadPlan, wanted: SampleSize, key: int
) -> object:
    """Return some rows of a part, or why there are none."""
    model = blank_from_bytes(blank, functions)

    def read() -> object:
        found = sample_part(model, part, block, read_plan, wanted.rows, wanted.places, key)
        if found is not None:
            # A part that cannot be learned is left out of the sample, and reported later.
            _, learner = model._taken(True, **found)
            if learner.width != wanted.width and not model._traits.takes_symbols:
                columns = wanted.width - model._traits.target_columns
                raise ValueError(
                    f"X has {learner.width - model._traits.target_columns} features, and other parts have {columns}"
                )
        return found

    return _try_to_read(part, read)


@return_errors
def start_on_sample(
    blank: bytes, functions: Functions, samples: Sequence[Chunk | Unread | None], weight: float, run: int, starts: int
) -> tuple[bytes, float]:
    """Return a model started on a sample of all parts, with a small weight since the rows come again; and its score on others.

    Each of several starts has its own rows of the sample. A sample with labels is not divided: they are too few.
    """
    model = blank_from_bytes(blank, functions)
    together = [one for one in samples if one is not None and not isinstance(one, Unread)]
    if not together:
        unread = [one.sentence for one in samples if isinstance(one, Unread)]
        raise ValueError(unread[0] if unread else "the data has no rows")
    chunk = judge = row_collection.concatenate_chunks(together)
    if starts > 1 and chunk.labels is None and len(chunk) >= LEAST_ROWS_TO_DIVIDE:
        chunk, judge = (row_collection.select_rows(chunk, slice(first, None, starts + 1)) for first in (run, starts))
    elif run:
        return b"", -np.inf
    with one_blas_thread():
        model.warm_start_from(**chunk, weight=weight)
        if not model._learner.settings.polish:
            _climb_on_sample(model, chunk)
        score = 0.0
        if judge is not chunk:
            batch, learner = model._taken(False, **judge)
            scores = learner.model.log_likelihood(model._read().parameters, batch, 1)
            score = float(np.average(scores, weights=batch.row_weights))
    return to_bytes(model), score


def choose_best(candidates: Sequence[tuple[bytes, float] | Refusal], functions: Functions) -> object:
    """Return the bytes of the model with the best score, or the first refusal."""
    refused = [one for one in candidates if isinstance(one, Refusal)]
    return refused[0] if refused else max(cast("Sequence[tuple[bytes, float]]", candidates), key=lambda one: one[1])[0]


def _climb_on_sample(model: StreamingEstimator, chunk: Chunk) -> None:
    """Improve given parameters by some passes over the sample: a part has few rows to correct them."""
    runtime: Runtime = model._reader
    learner = runtime.learner
    name = learner.algorithm.readout
    if ("exact", name) not in learner.model.ways:
        return
    begun, (batch, _) = runtime.resume_start(), model._taken(False, **chunk)
    summary = learner.model.summarize(begun.parameters, batch, n_threads=1)
    end = climb(learner.model, name, begun.prior, begun.parameters, summary, batch, SAMPLE_PASSES, 1e-3, 1, penalised=False)
    weight = begun.summary.size / end.summary.size
    counted = Summary(end.summary.statistics.scaled(weight), 0, begun.summary.size)
    model._runtime = runtime.restart(Start(begun.prior, end.parameters, counted))


def look_at_columns(blank: bytes, functions: Functions, part: Part, block: object, read_plan: ReadPlan) -> object:
    """Return what the columns of this part are, None if it has no rows, or why it cannot be read."""
    model = blank_from_bytes(blank, functions)

    def read() -> Columns | None:
        for chunk in read_chunks(model, part, block, read_plan):
            check_companions(model, chunk)
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                schema = model._find_kinds(chunk)
            width = int(model._taken(True, **row_collection.by_sequence(first_rows(model, chunk)))[1].width)
            return Columns(width, tuple(model._row_numbers(chunk)), schema, tuple(str(one.message) for one in told))
        return None

    return _try_to_read(part, read)


def list_categories(blank: bytes, functions: Functions, part: Part, block: object, read_plan: ReadPlan) -> object:
    """Return the schema of a table with the categories of this part, or why it cannot be read."""
    model = blank_from_bytes(blank, functions)

    def read() -> TableSchema:
        for chunk in read_chunks(model, part, block, read_plan):
            model._note_categories(chunk)
        return cast(TableSchema, model._schema)

    return _try_to_read(part, read)


def outline_part(blank: bytes, functions: Functions, part: Part, block: object, read_plan: ReadPlan) -> object:
    """Return the outline of a part, or why it cannot be read."""
    model = blank_from_bytes(blank, functions)

    def read() -> Outline:
        rows, width, named, lengths = 0, 0, [], []
        for chunk in join_cut_sequences(model, read_chunks(model, part, block, read_plan)):
            if len(chunk):
                batch, learner = model._taken(True, **chunk)
                width = max(width, learner.width)
                named.append(rows + np.flatnonzero(batch.labels >= 0))
                rows += len(batch)
                if batch.sequences.size:
                    cuts = np.flatnonzero(np.diff(batch.sequences)) + 1
                    lengths.append(np.diff(np.concatenate([[0], cuts, [len(batch)]])))
        return Outline(rows, width, np.concatenate([NO_LABELS, *named]), np.concatenate([NO_LABELS, *lengths]))

    return _try_to_read(part, read)


def pick_rows(
    blank: bytes, functions: Functions, part: Part, block: object, read_plan: ReadPlan, places: NDArray[np.int64]
) -> object:
    """Return the rows of a part at these places, and a chunk with its columns."""
    model = blank_from_bytes(blank, functions)

    def read() -> tuple[Batch, object]:
        found, at, head = [], 0, Chunk(None)
        for chunk in join_cut_sequences(model, read_chunks(model, part, block, read_plan)):
            if len(chunk):
                batch, _ = model._taken(True, **chunk)
                head = head if at else chunk
                some = places[(places >= at) & (places < at + len(batch))] - at
                found.append(batch[some])
                at += len(batch)
                if at > places[-1]:
                    break
        return join_batches(found), first_rows(model, head)

    return _try_to_read(part, read)


@return_errors
def start_passes(
    blank: bytes, functions: Functions, picks: Sequence[Any], numbers: NDArray[np.int64], width: int, key: int
) -> object:
    """Return a model at the start parameters of exact passes, found on picked rows; or the parts that could not be read."""
    model = blank_from_bytes(blank, functions)
    unread = [one for one in picks if isinstance(one, Unread)]
    if unread:
        return unread
    batch, head = join_batches([one for one, _ in picks]), picks[0][1]
    if numbers is not None:
        batch = replace(batch, sequences=numbers)
    learner = model._make_learner(width)
    with one_blas_thread():
        race, learner = choose(model, batch, learner, key, going_on=False) if model._choice == RACE else (None, learner)
        start = find_start(learner.plan, batch, key, seeds_compete(learner.plan))
    model._note_columns(model._chunk(head["X"]), reset=True)
    model.n_features_in_ = model._features_of(learner.width)
    model._runtime = with_choice(Runtime.begin_at(learner, key, start, model._given_parameters()), race)
    return to_bytes(model)


def learn_part(
    held: bytes,
    functions: Functions,
    part: Part,
    block: object,
    read_plan: ReadPlan,
    key: int = 0,
    rows_at_hand: float = np.inf,
    watched: bool = False,
) -> Message:
    """Stream a part from the base that all parts share; return what was learned since, and scores of rows if `watched`."""
    base = decode_model(held, functions)

    def read() -> Message:
        model = copy(base)
        # Its own key, so that no two parts draw the same numbers, and its own running average.
        own = (base._runtime.key + key + (1 + part.number) * SHARD_KEYS) % 2**63
        model._runtime = base._runtime.part(own, rows_at_hand)
        scored = weighed = 0.0
        monitor = Monitor(model, History()) if watched else None
        for number, chunk in enumerate(read_chunks(model, part, block, read_plan)):
            if monitor is not None and number % WATCH_PERIOD == 0:
                monitor.learn(chunk)
            elif model._traits.scores_by_learning and model._traits.scored_share == 1.0:
                scores, weights = model.update(**chunk), chunk.sample_weight
                weights = np.ones(len(scores)) if weights is None else np.asarray(weights, dtype=float)
                scored, weighed = scored + float(np.nansum(scores * weights)), weighed + float(weights.sum())
            else:
                model.partial_fit(**chunk)
        usual = None
        if monitor is not None:
            history = monitor.history
            usual = history.before.beside(history.now)
            points = [(point.score, point.scored) for point in history.points if point.scored]
            scored += history.total + sum(score * rows for score, rows in points)
            weighed += history.scored + sum(rows for _, rows in points)
        rows = model._runtime.rows - base._runtime.rows
        data = messages.to_bytes(model._reader.delta()) if rows > 0 else b""
        return Message(data, rows, weighed, scored, usual=usual, largest=len(data))

    with one_blas_thread():  # the last bits of large products depend on the number of threads
        return _read_message(part, read)


def summarize_part(held: bytes, functions: Functions, part: Part, block: object, read_plan: ReadPlan) -> Message:
    """Compute the E-step of a part at the parameters that the model reports."""
    base = decode_model(held, functions)

    def read() -> Message:
        learner, parameters = base._learner, base._read().parameters
        summary: Summary | None = None
        for chunk in join_cut_sequences(base, read_chunks(base, part, block, read_plan)):
            batch, _ = base._taken(False, **chunk)
            if len(batch):
                summary = learner.model.summarize(parameters, batch, summary, NO_SCORES, 1)
        if summary is None:
            return Message()
        data = messages.to_bytes(summary)
        return Message(data, summary.rows, summary.size, summary.score, largest=len(data))

    with one_blas_thread():
        return _read_message(part, read)


def join_cut_sequences(model: StreamingEstimator, found: Iterator[Chunk]) -> Iterator[Chunk]:
    """Yield chunks of complete sequences, if the model needs them: sequences that chunks cut are joined."""
    if not model._traits.chained:
        yield from found
        return
    cut = []
    for chunk in found:
        if chunk.lengths is not None:
            yield chunk
        else:
            cut.append(chunk)
    if cut:
        yield row_collection.by_sequence(row_collection.concatenate_chunks(cut))


def add_messages(held: bytes, functions: Functions, one: Message, other: Message, kind: type) -> Message:
    """Add the messages of two sets of parts; the smaller one was sent to the worker of the other."""
    moved = min(len(one.data), len(other.data))
    data = one.data or other.data
    if one.data and other.data:
        learner = decode_model(held, functions)._learner
        with one_blas_thread():
            data = messages.to_bytes(
                messages.from_bytes(one.data, learner, kind) + messages.from_bytes(other.data, learner, kind)
            )
    return Message(
        data,
        one.rows + other.rows,
        one.weight + other.weight,
        one.score + other.score,
        one.unread + other.unread,
        one.usual.beside(other.usual) if one.usual is not None and other.usual is not None else one.usual or other.usual,
        one.merged + other.merged + moved,
        max(one.path, other.path) + moved,
        max(one.largest, other.largest, len(data)),
    )


def _read_message(part: Part, read: Callable[[], Message]) -> Message:
    found = _try_to_read(part, read)
    return Message(unread=(found,)) if isinstance(found, Unread) else found or Message()


def _try_to_read(part: Part, read: Callable[[], object]) -> Any:
    """Return the result of reading a part, or an Unread that says what is wrong, so that all other parts go on."""
    for turn in range(OPEN_TRIES):
        try:
            return read()
        except NoRows:
            return None
        except OSError as error:
            problem: Exception = error
            time.sleep(0.1 * turn)
        except (ValueError, TypeError) as error:
            problem = error
            break
    sentence = " ".join(str(problem).split())[:1000]
    name = part.path or part.name
    return Unread(part.number, part.name, sentence if name in sentence else f"{part.name} cannot be learned: {sentence}")
