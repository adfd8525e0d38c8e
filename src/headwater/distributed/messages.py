"""Messages: what workers send up the tree, in the bytes of model files, and models that have learned nothing yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any

from headwater.diagnostics.history import Window
from headwater.estimators.model_file import estimator_named
from headwater.estimators.stored_parameters import read_parameter, write_parameter
from headwater.estimators.stored_results import RESULTS
from headwater.io.files import container
from headwater.io.files.records import Reader, Writer

# What users may set before anything is learned, beside the parameters.
GIVEN = ("_given",)


@dataclass(frozen=True)
class Unread:
    """A part that could not be learned, and why."""

    number: int
    name: str
    sentence: str


@dataclass(frozen=True)
class Refusal:
    """What was wrong, as a task tells it that was not to be raised on a worker: it would be logged there, and tried again."""

    error: Exception


def answered(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function return what is wrong with the data or the model instead of raising it."""

    @wraps(function)
    def answer(*given: Any) -> Any:
        try:
            return function(*given)
        except (ValueError, TypeError, OSError, ImportError) as error:
            return Refusal(error.with_traceback(None))

    return answer


@dataclass(frozen=True)
class Message:
    """What some parts yield: bytes of sums, empty if there are none; rows, their weight, and the sum of their scores.

    `usual` are scores of rows before they were learned, if they are wanted. `merged` bytes went from one task to another to
    make it, `path` of them one after the other, in `largest` at a time.
    """

    data: bytes = b""
    rows: int = 0
    weight: float = 0.0
    score: float = 0.0
    unread: tuple[Unread, ...] = ()
    usual: Window | None = None
    merged: int = 0
    path: int = 0
    largest: int = 0


def functions_of(model: Any) -> dict[str, Any]:
    """Return the parameters of a model that are functions, which no file can hold."""
    return {name: value for name, value in model.get_params(deep=False).items() if callable(value)}


def blank_to_bytes(model: Any) -> bytes:
    """Return the parameters of a model, whatever it has learned."""
    writer = Writer()
    parameters = {name: write_parameter(writer, value, name) for name, value in model.get_params(deep=False).items()}
    given = {name: writer.write(model.__dict__[name], name) for name in GIVEN if name in model.__dict__}
    return container.to_bytes({"model": type(model).__name__, "parameters": parameters, "given": given}, writer.arrays)


def blank_from_bytes(data: bytes, functions: Mapping[str, Any]) -> Any:
    """Return a model with these parameters, which has learned nothing."""
    header, arrays = container.from_bytes(data)
    reader, kind = Reader(arrays), estimator_named(header.get("model"))
    model = kind(**{name: read_parameter(reader, tree, name, functions) for name, tree in header["parameters"].items()})
    for name, tree in header["given"].items():
        model.__dict__[name] = RESULTS[name](reader, tree, name)
    return model
