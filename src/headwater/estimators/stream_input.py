"""Streams in place of rows: what a method does with `headwater.stream(...)` as X, chunk by chunk wherever it can."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from headwater.core.chunk import COMPANIONS, Chunk, Chunks, by_sequence
from headwater.core.validation import n_dimensions

if TYPE_CHECKING:
    from headwater.estimators.estimator_core import EstimatorCore

ROWS_AT = {"separate": 1}  # the axis of the rows in an answer, where it is not the first

# The option of a stream that names the column of each companion.
NAMED_BY = {
    "y": "target",
    "sample_weight": "weight",
    "labels": "label",
    "noise": "standard_errors",
    "lengths": "key",
    "key": "key",
}

Method = Callable[..., Any]
Answer = TypeVar("Answer")


def given_beside(
    method: Method, model: EstimatorCore, arguments: tuple[object, ...], options: dict[str, object]
) -> dict[str, object]:
    """What was given beside X, by its names."""
    given = signature(method).bind_partial(model, *arguments, **options).arguments
    rows = "X" if "X" in given else list(given)[1]
    return {name: value for name, value in list(given.items())[1:] if name != rows and value is not None}


def call_with_place(chunk: object, method: Callable[..., Answer], /, *arguments: object, **options: object) -> Answer:
    """Call a method; what it says of rows of a chunk that is not the first begins with where that chunk lies."""
    if not isinstance(chunk, Chunk) or chunk.start == 0:
        return method(*arguments, **options)
    try:
        return method(*arguments, **options)
    except (ValueError, TypeError) as error:
        place = f"chunk from row {chunk.start} of the stream on: "
        if type(error) not in (ValueError, TypeError) or str(error).startswith(place):
            raise
        raise type(error)(f"{place}{error}") from error


def learn_chunks(method: Method, model: EstimatorCore, X: Chunks, options: dict[str, object]) -> object:
    """Learn one chunk after the other, with what belongs to their rows; if one is refused, the model is as it was."""
    refuse_beside(model, method.__name__, options)
    before = model.__dict__  # which chunks replace, and do not change
    found, scores = None, []
    try:
        for chunk in X.whole_sequences() if model._traits.takes_sequences else X:
            found = call_with_place(chunk, method, model, **_join(_belongings(method, model, chunk), options))
            scores.append(found)
    except BaseException:
        model.__dict__ = before
        raise
    return found if found is model else np.concatenate(scores)


def answer_chunks(method: Method, model: EstimatorCore, X: Chunks, options: dict[str, object]) -> object:
    """Concatenate the answers of all chunks; sequences are answered at once."""
    if model._traits.chained:
        return answer_at_once(method, model, X, options)
    refuse_beside(model, method.__name__, options)
    chunks = X.whole_sequences() if model._traits.takes_sequences else X
    found = [call_with_place(chunk, method, model, **_join(_arguments_of(method, model, chunk), options)) for chunk in chunks]
    if isinstance(found[0], tuple):
        return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))
    return np.concatenate(found, axis=ROWS_AT.get(method.__name__, 0))


def answer_by_score(method: Method, model: EstimatorCore, X: Chunks, options: dict[str, object]) -> object:
    """Let the method use the scores of the stream; those of sequences, and of a regressor, are not scores of rows."""
    if model._traits.chained or model._traits.takes_sequences or (model._traits.target_columns and method.__name__ == "score"):
        return answer_at_once(method, model, X, options)
    return method(model, X, **options)


def learn_at_once(method: Method, model: EstimatorCore, X: Chunks, options: dict[str, object]) -> object:
    """Learn all rows of a stream, with what belongs to them."""
    return method(model, **_join(_belongings(method, model, by_sequence(X.at_once())), options))


def answer_at_once(method: Method, model: EstimatorCore, X: Chunks, options: dict[str, object]) -> object:
    """Answer for all rows of a stream."""
    chunk = X.at_once()
    if model._traits.takes_sequences:
        chunk = by_sequence(chunk)
    elif model._traits.chained and chunk.key is not None:
        raise ValueError(
            f"the rows of the stream have keys, and {type(model).__name__}.{method.__name__} takes sequences one after "
            f"the other: pass their rows with lengths"
        )
    elif chunk.lengths is not None and len(chunk.lengths) > 1 and "lengths" not in _companions(method, model):
        raise ValueError(
            f"{type(model).__name__}.{method.__name__} takes the rows of one sequence, got a stream of {len(chunk.lengths)}"
        )
    return method(model, **_join(_arguments_of(method, model, chunk), options))


def refuse_beside(model: EstimatorCore, method: str, options: dict[str, object]) -> None:
    """Refuse what belongs to all rows of a stream where each chunk would get it; the one key of all rows is none of it."""
    for name, value in options.items():
        if name in COMPANIONS and not (name == "key" and (isinstance(value, str) or n_dimensions(value) == 0)):
            raise ValueError(
                f"{name} must come with the rows of the stream, from a column that {NAMED_BY[name]}= names, since "
                f"{type(model).__name__}.{method} takes one chunk after the other, got it beside the stream"
            )


def _join(given: dict[str, object], options: dict[str, object]) -> dict[str, object]:
    """What the stream has and what was given beside it, none of it twice."""
    for name in given:
        if name in options:
            raise ValueError(f"{name} must be given once, got it twice: by the stream and beside it")
    return {**given, **options}


def _belongings(method: Method, model: EstimatorCore, chunk: Chunk) -> dict[str, object]:
    """The rows of a chunk and what belongs to them, all of which is to be learned."""
    taken = _companions(method, model)
    lost = [name for name in chunk.keys() if name not in taken]  # noqa: SIM118
    if lost:
        raise ValueError(
            f"the stream comes with {' and '.join(lost)}, which {type(model).__name__}.{method.__name__} does not take"
        )
    return {**chunk}


def _arguments_of(method: Method, model: EstimatorCore, chunk: Chunk) -> dict[str, object]:
    """The rows of a chunk and what the method takes of what belongs to them: answers need no weights and labels."""
    taken = _companions(method, model)
    return {name: chunk[name] for name in chunk.keys() if name in taken}  # noqa: SIM118


def _companions(method: Method, model: EstimatorCore) -> set[str]:
    """What a method takes of a chunk. Chains have no target: their second argument is hmmlearn's place for lengths."""
    return set(signature(method).parameters) - ({"y"} if model._traits.chained and not model._traits.target_columns else set())
