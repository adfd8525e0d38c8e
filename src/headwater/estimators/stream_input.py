"""Streams in place of rows: what a model does with `headwater.stream(...)` as X, chunk by chunk wherever it can."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any

import numpy as np

from headwater.core.chunk import COMPANIONS, Chunk, Chunks, by_sequence

# What learns a chunk after the other.
LEARN = ("partial_fit", "update")

# What has an answer for each row, so that answers of chunks are put under one another.
ANSWER = (
    "score_samples", "predictive_score_samples", "predict", "predict_proba", "predict_components", "predict_component_means",
    "transform", "separate", "source", "impute",
)  # fmt: skip
ROWS_AT = {"separate": 1}  # the axis of the rows in an answer, where it is not the first

# What is made of `score_samples` alone, which takes streams.
SUM = ("score", "aic", "bic", "log_posterior")

# What needs all rows at once.
AT_ONCE = (
    "fit", "fit_predict", "fit_transform", "warm_start_from", "score_steps", "decode", "filter", "sample", "perplexity",
    "divergence", "next_state_proba", "next_distribution",
)  # fmt: skip

# How a stream is told which column is what belongs to the rows.
NAMED_BY = {"y": "target", "sample_weight": "weight", "labels": "label", "lengths": "key", "key": "key"}

Method = Callable[..., Any]


def take_streams(kind: type, base: type) -> None:
    """Make the methods of a class take streams as X, beside rows: its own, and those of classes that do not have this base."""
    for names, way in ((LEARN, _learned), (ANSWER, _answered), (SUM, _summed), (AT_ONCE, _at_once)):
        for name in names:
            home = next((one for one in kind.__mro__ if name in vars(one)), None)
            if home is None or (home is not kind and issubclass(home, base)):
                continue
            method = getattr(kind, name)
            if "X" in signature(method).parameters:
                setattr(kind, name, _taking(method, way))


def _taking(method: Method, way: Callable[[Method, Any, Chunks, dict[str, Any]], Any]) -> Method:
    taken = signature(method)

    @wraps(method)
    def taking(self: Any, *arguments: Any, **options: Any) -> Any:
        X = arguments[0] if arguments else options.get("X")
        if not isinstance(X, Chunks):
            return _placed(X, method, self, *arguments, **options)
        given = taken.bind_partial(self, *arguments, **options).arguments
        return way(method, self, X, {name: value for name, value in list(given.items())[2:] if value is not None})

    return taking


def _placed(chunk: Any, method: Method, /, *arguments: Any, **options: Any) -> Any:
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


def _learned(method: Method, model: Any, X: Chunks, options: dict[str, Any]) -> Any:
    """Learn one chunk after the other, with what belongs to their rows; if one is refused, the model is as it was."""
    refuse_beside(model, method.__name__, options)
    before = model.__dict__.copy()
    found: Any = None
    scores = []
    try:
        for chunk in X.whole_sequences() if model._takes_sequences else X:
            found = _placed(chunk, method, model, **_joined(_belongings(method, model, chunk), options))
            scores.append(found)
    except BaseException:
        model.__dict__ = before
        raise
    return found if found is model else np.concatenate(scores)


def _answered(method: Method, model: Any, X: Chunks, options: dict[str, Any]) -> Any:
    """Put the answers of all chunks under one another; rows that hang together are asked at once."""
    if model._chained:
        return _at_once(method, model, X, options)
    refuse_beside(model, method.__name__, options)
    chunks = X.whole_sequences() if model._takes_sequences else X
    found = [_placed(chunk, method, model, **_joined(_asked(method, model, chunk), options)) for chunk in chunks]
    if isinstance(found[0], tuple):
        return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))
    return np.concatenate(found, axis=ROWS_AT.get(method.__name__, 0))


def _summed(method: Method, model: Any, X: Chunks, options: dict[str, Any]) -> Any:
    """Let the method ask for the scores of the stream; those of sequences, and of a regressor, are no scores of rows."""
    if model._chained or model._takes_sequences or (model._target_columns and method.__name__ == "score"):
        return _at_once(method, model, X, options)
    return method(model, X, **options)


def _at_once(method: Method, model: Any, X: Chunks, options: dict[str, Any]) -> Any:
    chunk = X.at_once()
    if method.__name__.startswith(("fit", "warm_start")):
        return method(model, **_joined(_belongings(method, model, by_sequence(chunk)), options))
    if model._takes_sequences:
        chunk = by_sequence(chunk)
    elif model._chained and chunk.key is not None:
        raise ValueError(
            f"the rows of the stream have keys, and {type(model).__name__}.{method.__name__} takes sequences one after "
            f"the other: pass on their rows with lengths"
        )
    elif chunk.lengths is not None and len(chunk.lengths) > 1 and "lengths" not in _companions(method, model):
        raise ValueError(
            f"{type(model).__name__}.{method.__name__} takes the rows of one sequence, got a stream of {len(chunk.lengths)}"
        )
    return method(model, **_joined(_asked(method, model, chunk), options))


def refuse_beside(model: Any, method: str, options: dict[str, Any]) -> None:
    """Refuse what belongs to all rows of a stream where each chunk would get it; the one key of all rows is none of it."""
    for name, value in options.items():
        if name in COMPANIONS and not (name == "key" and (isinstance(value, str) or np.ndim(value) == 0)):
            raise ValueError(
                f"{name} must come with the rows of the stream, from a column that {NAMED_BY[name]}= names, since "
                f"{type(model).__name__}.{method} takes one chunk after the other, got it beside the stream"
            )


def _joined(given: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """What the stream has and what was given beside it, none of it twice."""
    for name in given:
        if name in options:
            raise ValueError(f"{name} must be given once, got it twice: by the stream and beside it")
    return {**given, **options}


def _belongings(method: Method, model: Any, chunk: Chunk) -> dict[str, Any]:
    """The rows of a chunk and what belongs to them, all of which is to be learned."""
    taken = _companions(method, model)
    lost = [name for name in chunk.keys() if name not in taken]  # noqa: SIM118
    if lost:
        raise ValueError(
            f"the stream comes with {' and '.join(lost)}, which {type(model).__name__}.{method.__name__} does not take"
        )
    return {**chunk}


def _asked(method: Method, model: Any, chunk: Chunk) -> dict[str, Any]:
    """The rows of a chunk and what the method takes of what belongs to them: answers need no weights and labels."""
    taken = _companions(method, model)
    return {name: chunk[name] for name in chunk.keys() if name in taken}  # noqa: SIM118


def _companions(method: Method, model: Any) -> set[str]:
    """What a method takes of a chunk. Chains have no target: their second argument is hmmlearn's place for lengths."""
    return set(signature(method).parameters) - ({"y"} if model._chained else set())
