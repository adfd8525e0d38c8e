"""Tasks: what runs on workers. They take and return bytes, names and sentences; a part that cannot be read is told of."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from headwater.core.batch_fit import polishes
from headwater.core.chunk import Chunk
from headwater.core.contracts import NO_SCORES, Start
from headwater.core.loop import PART_KEYS
from headwater.core.loop import started as start_on
from headwater.core.state import NO_LABELS, Batch, Summary, joined
from headwater.diagnostics.history import History
from headwater.distributed.messages import Message, Refusal, Unread, answered, blank_from_bytes
from headwater.distributed.parts import Part, Way, check_companions, chunks, first_rows, sample
from headwater.estimators.component_count import with_choice
from headwater.estimators.model_file import from_bytes, to_bytes
from headwater.estimators.runtime import Runtime
from headwater.io import row_collection
from headwater.io.files import messages
from headwater.io.read_errors import NoRows
from headwater.kernels.parallel import one_blas_thread
from headwater.models.start import climb
from headwater.monitors import Monitor

WATCHED = 4  # one chunk in so many is watched, the first of a part among them
FEW = 4000  # rows of a sample that is not divided
PASSES = 20  # over the sample, from parameters that were given
TRIES = 3  # of a file that cannot be opened: others may come and go

Functions = Mapping[str, Any]


@dataclass(frozen=True)
class Outline:
    """What is to be known of rows before some of them are picked: how many there are, those with labels, and sequences.

    `width` is that of a model of these rows: no part alone may have all symbols.
    """

    rows: int
    width: int
    named: Any
    lengths: Any


def hold(data: bytes) -> bytes:
    """Return bytes as they are, so that they are on the cluster once and can be made again."""
    return data


def listed(items: Sequence[Any], functions: Functions) -> list[Any]:
    """Return what other tasks yield, together."""
    return list(items)


@lru_cache(maxsize=1)
def _decoded(data: bytes, functions: tuple[tuple[str, Any], ...]) -> Any:
    model = from_bytes(data, **dict(functions))
    model.n_threads = 1  # a worker has as many threads as it has tasks
    model._runtime = replace(model._runtime.with_threads(1), made_with=model._parameter_values())
    return model


def forget() -> None:
    """Let go of the model that this worker knows."""
    _decoded.cache_clear()


def decoded(data: bytes, functions: Functions) -> Any:
    """Return the model of these bytes, which nobody writes to."""
    return _decoded(data, tuple(sorted(functions.items())))


def sampled(
    blank: bytes, functions: Functions, part: Part, block: Any, way: Way, rows: int, places: int, width: int, key: int
) -> Any:
    """Return some rows of a part, or the sentence that says why there are none."""
    model = blank_from_bytes(blank, functions)

    def read() -> Any:
        found = sample(model, part, block, way, rows, places, key)
        if found is not None:
            # Rows that cannot be learned are missing in the sample, and are told of later.
            _, learner = model._taken(True, **found)
            if learner.width != width and not model._takes_symbols:
                columns = width - model._target_columns
                raise ValueError(f"X has {learner.width - model._target_columns} features, and other parts have {columns}")
        return found

    return _told(part, read)


@answered
def started(
    blank: bytes, functions: Functions, samples: Sequence[Any], weight: float, run: int, starts: int
) -> tuple[bytes, float]:
    """Return a model that stands on some rows of all parts, which count for little: they come again; and its score on others.

    Of several starts each has its own rows. Labels are too few to be shared.
    """
    model = blank_from_bytes(blank, functions)
    together = [one for one in samples if one is not None and not isinstance(one, Unread)]
    if not together:
        unread = [one.sentence for one in samples if isinstance(one, Unread)]
        raise ValueError(unread[0] if unread else "the data has no rows")
    chunk = judge = row_collection.concatenate_chunks(together)
    if starts > 1 and chunk.labels is None and len(chunk) >= FEW:
        chunk, judge = (row_collection.select_rows(chunk, slice(first, None, starts + 1)) for first in (run, starts))
    elif run:
        return b"", -np.inf
    with one_blas_thread():
        model.warm_start_from(**chunk, weight=weight)
        if not model._learner.settings.polish:
            _climb(model, chunk)
        score = 0.0
        if judge is not chunk:
            batch, learner = model._taken(False, **judge)
            scores = learner.model.log_likelihood(model._read().parameters, batch, 1)
            score = float(np.average(scores, weights=batch.row_weights))
    return to_bytes(model), score


def best(candidates: Sequence[Any], functions: Functions) -> Any:
    """Return the bytes of the model that scored best, or why there is none."""
    refused = [one for one in candidates if isinstance(one, Refusal)]
    return refused[0] if refused else max(candidates, key=lambda one: one[1])[0]


def _climb(model: Any, chunk: Chunk) -> None:
    """Make some passes over the sample from parameters that were given: parts have few rows to correct them by."""
    runtime: Runtime = model._reader
    learner = runtime.learner
    name = learner.algorithm.readout
    if ("exact", name) not in learner.model.ways:
        return
    begun, (batch, _) = runtime.resume_start(), model._taken(False, **chunk)
    summary = learner.model.summarize(begun.parameters, batch, n_threads=1)
    end = climb(learner.model, name, begun.prior, begun.parameters, summary, batch, PASSES, 1e-3, 1, penalised=False)
    weight = begun.summary.size / end.summary.size
    counted = Summary(end.summary.statistics.scaled(weight), 0, begun.summary.size)
    model._runtime = runtime.restart(Start(begun.prior, end.parameters, counted))


def measured(blank: bytes, functions: Functions, part: Part, block: Any, way: Way) -> Any:
    """Return the width of the model that learns from a part, None if it has no rows, or why it cannot be read."""
    model = blank_from_bytes(blank, functions)

    def read() -> int | None:
        for chunk in chunks(model, part, block, way):
            check_companions(model, chunk)
            return int(model._taken(True, **row_collection.by_sequence(first_rows(model, chunk)))[1].width)
        return None

    return _told(part, read)


def outlined(blank: bytes, functions: Functions, part: Part, block: Any, way: Way) -> Any:
    """Return how many rows a part has, which of them have labels, and how long its sequences are; or why nobody knows."""
    model = blank_from_bytes(blank, functions)

    def read() -> Outline:
        rows, width, named, lengths = 0, 0, [], []
        for chunk in whole(model, chunks(model, part, block, way)):
            if len(chunk):
                batch, learner = model._taken(True, **chunk)
                width = max(width, learner.width)
                named.append(rows + np.flatnonzero(batch.labels >= 0))
                rows += len(batch)
                if batch.sequences.size:
                    cuts = np.flatnonzero(np.diff(batch.sequences)) + 1
                    lengths.append(np.diff(np.concatenate([[0], cuts, [len(batch)]])))
        return Outline(rows, width, np.concatenate([NO_LABELS, *named]), np.concatenate([NO_LABELS, *lengths]))

    return _told(part, read)


def picked(blank: bytes, functions: Functions, part: Part, block: Any, way: Way, places: Any) -> Any:
    """Return some rows of a part by their places, and a chunk that has its columns."""
    model = blank_from_bytes(blank, functions)

    def read() -> tuple[Batch, Any]:
        found, at, head = [], 0, Chunk(None)
        for chunk in whole(model, chunks(model, part, block, way)):
            if len(chunk):
                batch, _ = model._taken(True, **chunk)
                head = head if at else chunk
                some = places[(places >= at) & (places < at + len(batch))] - at
                found.append(batch[some])
                at += len(batch)
                if at > places[-1]:
                    break
        return joined(found), first_rows(model, head)

    return _told(part, read)


@answered
def begun(blank: bytes, functions: Functions, picks: Sequence[Any], numbers: Any, width: int, key: int) -> Any:
    """Return a model at the parameters that passes over all rows begin with, found on some of them; or what was not read."""
    model = blank_from_bytes(blank, functions)
    unread = [one for one in picks if isinstance(one, Unread)]
    if unread:
        return unread
    batch, head = joined([one for one, _ in picks]), picks[0][1]
    if numbers is not None:
        batch = replace(batch, sequences=numbers)
    learner = model._make_learner(width)
    with one_blas_thread():
        race, learner = model._chosen(batch, learner, key, going_on=False) if model._races else (None, learner)
        start = start_on(learner, batch, key, polishes(learner))
    model._note_columns(model._chunk(head["X"]), reset=True)
    model.n_features_in_ = learner.width - model._target_columns
    model._runtime = with_choice(Runtime.begin_at(learner, key, start, model._parameter_values()), race)
    return to_bytes(model)


def learn(
    held: bytes,
    functions: Functions,
    part: Part,
    block: Any,
    way: Way,
    key: int = 0,
    rows_at_hand: float = np.inf,
    watched: bool = False,
) -> Message:
    """Stream a part from where all parts begin; return what was learned since, and the scores of rows, if it is watched."""
    base = decoded(held, functions)

    def read() -> Message:
        model = copy(base)
        # Draws of its own: where latent variables are drawn, no two parts draw alike. And an average of its own.
        own = (base._runtime.key + key + (1 + part.number) * PART_KEYS) % 2**63
        model._runtime = base._runtime.part(own, rows_at_hand)
        scored = weighed = 0.0
        monitor = Monitor(model, History()) if watched else None
        for number, chunk in enumerate(chunks(model, part, block, way)):
            if monitor is not None and number % WATCHED == 0:
                monitor.learn(chunk)
            elif model._scores_by_learning and model._scored_share == 1.0:
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

    with one_blas_thread():  # the bits of large products depend on their threads
        return _message(part, read)


def summarize(held: bytes, functions: Functions, part: Part, block: Any, way: Way) -> Message:
    """Take the E-step of a part at the parameters that the model reports."""
    base = decoded(held, functions)

    def read() -> Message:
        learner, parameters = base._learner, base._read().parameters
        summary: Summary | None = None
        for chunk in whole(base, chunks(base, part, block, way)):
            batch, _ = base._taken(False, **chunk)
            if len(batch):
                summary = learner.model.summarize(parameters, batch, summary, NO_SCORES, 1)
        if summary is None:
            return Message()
        data = messages.to_bytes(summary)
        return Message(data, summary.rows, summary.size, summary.score, largest=len(data))

    with one_blas_thread():
        return _message(part, read)


def whole(model: Any, found: Iterator[Any]) -> Iterator[Any]:
    """Yield chunks of complete sequences where rows hang together: those that chunks cut are put together again."""
    if not model._chained:
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


def added(held: bytes, functions: Functions, one: Message, other: Message, kind: type[Any]) -> Message:
    """Add what two sets of parts yield; one of the two has come a way."""
    moved = min(len(one.data), len(other.data))
    data = one.data or other.data
    if one.data and other.data:
        learner = decoded(held, functions)._learner
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


def _message(part: Part, read: Callable[[], Message]) -> Message:
    found = _told(part, read)
    return Message(unread=(found,)) if isinstance(found, Unread) else found or Message()


def _told(part: Part, read: Callable[[], Any]) -> Any:
    """Return what was read, or why it was not: what is wrong with a file is no reason to lose the others."""
    for turn in range(TRIES):
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
