"""How public methods are called: on several threads, and with a stream in place of rows.

Every public method of an estimator has one of these decorators; a method of a subclass that overrides one is called in the same
way, without its own decorator (`call_like_inherited`).

- `reads` does not change the model: it sees one model from beginning to end, whatever others learn meanwhile.
- `learns` changes it: calls that learn take turns, and the result becomes visible in one step, if the call did not fail.

Methods that take X, which may be a stream, also say how they read it:

- `learns_by_chunk` learns one chunk after the other: partial_fit, update
- `learns_at_once` needs all rows: fit, warm_start_from, fit_predict
- `answers_by_chunk` has an answer for each row; answers of chunks are concatenated: predict, score_samples
- `answers_by_score` asks for the scores of all rows, and needs no more: score, bic
- `answers_at_once` needs all rows: decode, perplexity

A method works on a shallow copy of the model, which costs less than a microsecond: what was learned is a Runtime, which is
never changed, and its cache is shared by all copies. The attributes of a copy that has learned take the place of the model's in
one assignment.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import copy
from functools import wraps
from inspect import signature
from threading import Lock, RLock
from types import FunctionType
from typing import TYPE_CHECKING, TypeVar, cast
from weakref import WeakKeyDictionary

from headwater.core.chunk import Chunk, Chunks
from headwater.estimators.stream_input import (
    Method,
    answer_at_once,
    answer_by_score,
    answer_chunks,
    call_with_place,
    given_beside,
    learn_at_once,
    learn_chunks,
)

if TYPE_CHECKING:
    from headwater.estimators.estimator_core import EstimatorCore

F = TypeVar("F", bound=Method)

_locks: WeakKeyDictionary[object, RLock] = WeakKeyDictionary()
_guard = Lock()
if hasattr(os, "register_at_fork"):  # threads that hold a lock do not exist in a child process
    os.register_at_fork(after_in_child=_locks.clear)


def lock_of(model: EstimatorCore) -> RLock:
    """Return the lock of a model, held by calls that change it. It is not part of the model: copies have their own."""
    with _guard:
        lock = _locks.get(model)
        if lock is None:
            lock = _locks[model] = RLock()
        return lock


def reads(method: F) -> F:
    """Let a method, or the getter of a property, see one model from beginning to end."""

    @wraps(method)
    def read(self: object, *arguments: object, **options: object) -> object:
        return method(copy(self), *arguments, **options)

    read.calls_by = reads  # type: ignore[attr-defined]
    return cast(F, read)


def learns(method: F) -> F:
    """Let a method change the model while it holds its lock."""

    @wraps(method)
    def learn(self: EstimatorCore, *arguments: object, **options: object) -> object:
        with lock_of(self):
            work = copy(self)
            found = method(work, *arguments, **options)
            self.__dict__ = work.__dict__
            return self if found is work else found

    learn.calls_by = learns  # type: ignore[attr-defined]
    return cast(F, learn)


def learns_by_chunk(method: F) -> F:
    """Let a method learn a stream one chunk after the other; readers see the model after each."""
    return _learns_rows(method, learn_chunks)


def learns_at_once(method: F) -> F:
    """Let a method learn all rows of a stream at once."""
    return _learns_rows(method, learn_at_once)


def answers_by_chunk(method: F) -> F:
    """Let a method answer for one chunk of a stream after the other."""
    return _answers_rows(method, answer_chunks)


def answers_by_score(method: F) -> F:
    """Let a method that only uses `score_samples` take streams, too."""
    return _answers_rows(method, answer_by_score)


def answers_at_once(method: F) -> F:
    """Let a method answer for all rows of a stream at once."""
    return _answers_rows(method, answer_at_once)


def _learns_rows(method: F, go_through: Callable[[Method, EstimatorCore, Chunks, dict[str, object]], object]) -> F:
    learn, place = learns(method), _place_of_rows(method)

    @wraps(method)
    def learn_rows(self: EstimatorCore, *arguments: object, **options: object) -> object:
        X = _rows_among(arguments, options, place)
        if isinstance(X, Chunks):
            with lock_of(self):
                return go_through(learn, self, X, given_beside(method, self, arguments, options))
        if isinstance(X, Chunk):
            return call_with_place(X, learn, self, *arguments, **options)
        with lock_of(self):
            work = copy(self)
            found = method(work, *arguments, **options)
            self.__dict__ = work.__dict__
            return self if found is work else found

    learn_rows.takes_streams = True  # type: ignore[attr-defined]
    learn_rows.calls_by = lambda other: _learns_rows(other, go_through)  # type: ignore[attr-defined]
    return cast(F, learn_rows)


def _answers_rows(method: F, go_through: Callable[[Method, EstimatorCore, Chunks, dict[str, object]], object]) -> F:
    place = _place_of_rows(method)

    @wraps(method)
    def answer(self: EstimatorCore, *arguments: object, **options: object) -> object:
        X, view = _rows_among(arguments, options, place), copy(self)
        if isinstance(X, Chunks):
            return go_through(method, view, X, given_beside(method, view, arguments, options))
        if isinstance(X, Chunk):
            return call_with_place(X, method, view, *arguments, **options)
        return method(view, *arguments, **options)

    answer.takes_streams = True  # type: ignore[attr-defined]
    answer.calls_by = lambda other: _answers_rows(other, go_through)  # type: ignore[attr-defined]
    return cast(F, answer)


def _place_of_rows(method: Method) -> int:
    """Return where X stands among the arguments of a method."""
    names = list(signature(method).parameters)[1:]
    return names.index("X") if "X" in names else 0


def _rows_among(arguments: tuple[object, ...], options: dict[str, object], place: int) -> object:
    """Return X; a stream that comes first is X wherever X stands."""
    first = arguments[0] if arguments else None
    if isinstance(first, Chunks):
        return first
    return arguments[place] if len(arguments) > place else options.get("X")


def call_like_inherited(kind: type) -> None:
    """Let methods of a new class that override decorated ones be called in the same way."""
    inherited = kind.__mro__[1:]
    for name, method in list(vars(kind).items()):
        if not isinstance(method, FunctionType) or hasattr(method, "calls_by"):
            continue
        before = next((vars(base)[name] for base in inherited if name in vars(base)), None)
        decorate = getattr(before, "calls_by", None)
        if decorate is not None:
            setattr(kind, name, decorate(method))
