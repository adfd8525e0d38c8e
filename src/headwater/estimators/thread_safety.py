"""One model on several threads: those that learn take turns, and those that read neither wait nor see half of a change.

What writes works on a copy of the model's attributes, which takes their place in one step when all is learned; what reads does
so on a copy that nobody writes to. These copies are shallow: states are values, and are never changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from threading import Lock, RLock
from typing import Any
from weakref import WeakKeyDictionary

# Public methods that change a model; all others read it.
WRITERS = (
    "fit",
    "partial_fit",
    "update",
    "warm_start_from",
    "learn_one",
    "close",
    "fit_predict",
    "fit_transform",
    "set_params",
)

# Methods that are not public and yet called from outside.
PRIVATE_WRITERS = ("_update_after_start",)
PRIVATE_READERS = ("__repr__", "_repr_html_inner")

ROLE = "_role"  # an attribute that only the copies have: of one to read from, the model; of one that is written to, None

_locks: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_guard = Lock()
if hasattr(os, "register_at_fork"):  # whoever holds a lock does not live on in a child
    os.register_at_fork(after_in_child=_locks.clear)


def learning(model: Any) -> Any:
    """Return the lock of a model, which those hold that change it. It is no part of the model: copies have their own."""
    with _guard:
        lock = _locks.get(model)
        if lock is None:
            lock = _locks[model] = RLock()
        return lock


def view_of(model: Any) -> Any:
    """Return the model as it is now, to read from, whatever others learn meanwhile."""
    return model if ROLE in model.__dict__ else _copied(model, model)


def remember(model: Any, name: str, value: Any) -> None:
    """Set an attribute that saves work to those who read later; that of a view is set in the model, too."""
    setattr(model, name, value)
    if model.__dict__.get(ROLE) is not None:
        setattr(model.__dict__[ROLE], name, value)


def _copied(model: Any, role: Any) -> Any:
    other = object.__new__(type(model))
    other.__dict__ = {**model.__dict__, ROLE: role}  # made in one step
    return other


def share(kind: type) -> None:
    """Make the methods of a class safe on several threads: to be called before they are wrapped in any other way."""
    for name, value in list(vars(kind).items()):
        if name in WRITERS or name in PRIVATE_WRITERS:
            setattr(kind, name, _committing(value))
        elif isinstance(value, property) and not name.startswith("_"):
            write = None if value.fset is None else _locking(_committing(value.fset))
            assert value.fget is not None
            setattr(kind, name, property(_viewing(value.fget), write, value.fdel, value.__doc__))


def share_calls(kind: type) -> None:
    """The rest of it, after they were: calls as users make them hold the lock, or read from one view, from beginning to end."""
    for name, value in list(vars(kind).items()):
        if name in WRITERS or name in PRIVATE_WRITERS:
            setattr(kind, name, _locking(value))
        elif callable(value) and not isinstance(value, type) and (not name.startswith("_") or name in PRIVATE_READERS):
            setattr(kind, name, _viewing(value))


def _committing(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method change a copy, which takes the place of the model's attributes if all goes well."""

    @wraps(method)
    def committing(self: Any, *arguments: Any, **options: Any) -> Any:
        if ROLE in self.__dict__:
            return method(self, *arguments, **options)
        work = _copied(self, None)
        found = method(work, *arguments, **options)
        del work.__dict__[ROLE]
        self.__dict__ = work.__dict__
        return self if found is work else found

    return committing


def _locking(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def locking(self: Any, *arguments: Any, **options: Any) -> Any:
        if ROLE in self.__dict__:
            return method(self, *arguments, **options)
        with learning(self):
            return method(self, *arguments, **options)

    return locking


def _viewing(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def viewing(self: Any, *arguments: Any, **options: Any) -> Any:
        return method(view_of(self), *arguments, **options)

    return viewing
