"""One model on several threads: those that learn take turns, and those that read neither wait nor see half of a change.

A method that `learns` works on a copy of the model, whose attributes take the place of the model's in one assignment when all
went well. A method that `reads` does so on a copy that nobody writes to. Copies are shallow, and cost about a microsecond: what
was learned is a Runtime, which is never changed, and its cache is shared by all copies.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import copy
from functools import wraps
from threading import Lock, RLock
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

Method = TypeVar("Method", bound=Callable[..., Any])

_locks: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_guard = Lock()
if hasattr(os, "register_at_fork"):  # whoever holds a lock does not live on in a child
    os.register_at_fork(after_in_child=_locks.clear)


def lock_of(model: Any) -> Any:
    """Return the lock of a model, which those hold that change it. It is no part of the model: copies have their own."""
    with _guard:
        lock = _locks.get(model)
        if lock is None:
            lock = _locks[model] = RLock()
        return lock


def reads(method: Method) -> Method:
    """Let a method, or the getter of a property, see one model from beginning to end, whatever others learn meanwhile."""

    @wraps(method)
    def read(self: Any, *arguments: Any, **options: Any) -> Any:
        return method(copy(self), *arguments, **options)

    return cast(Method, read)


def learns(method: Method) -> Method:
    """Let a method change a model while it holds its lock; what it changes is seen in one step, if it does not fail."""
    commit = commits(method)

    @wraps(method)
    def learn(self: Any, *arguments: Any, **options: Any) -> Any:
        with lock_of(self):
            return commit(self, *arguments, **options)

    return cast(Method, learn)


def commits(method: Method) -> Method:
    """Let a method change a copy, whose attributes become the model's if it does not fail. The caller holds the lock."""

    @wraps(method)
    def commit(self: Any, *arguments: Any, **options: Any) -> Any:
        work = copy(self)
        found = method(work, *arguments, **options)
        self.__dict__ = work.__dict__
        return self if found is work else found

    return cast(Method, commit)
