"""Messages: what workers send up the tree, as bytes in the format of model files; and unfitted models as bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING

from headwater.diagnostics.history import Window
from headwater.estimators.model_file import estimator_named
from headwater.estimators.stored_parameters import read_parameter, write_parameter
from headwater.estimators.stored_results import RESULTS
from headwater.io.files import container
from headwater.io.files.records import Reader, Writer

if TYPE_CHECKING:
    from headwater.estimators.base import StreamingEstimator


# Attributes that users may set before anything is learned, beside the parameters.
SET_BY_HAND = ("_given",)
# Those, and what the columns of a table are, which all workers must agree on.
KNOWN_BEFORE = (*SET_BY_HAND, "_schema")


@dataclass(frozen=True)
class Unread:
    """A part that could not be learned, and why."""

    number: int
    name: str
    sentence: str


@dataclass(frozen=True)
class Refusal:
    """An error that a task returns: if it were raised, the worker would log it, and the task would be tried again."""

    error: Exception


def return_errors(function: Callable[..., object]) -> Callable[..., object]:
    """Make a function return errors of data or model as a Refusal instead of raising them."""

    @wraps(function)
    def answer(*given: object) -> object:
        try:
            return function(*given)
        except (ValueError, TypeError, OSError, ImportError) as error:
            return Refusal(error.with_traceback(None))

    return answer


@dataclass(frozen=True)
class Message:
    """The result of some parts: bytes of sums (empty if there are none), rows, their weight, and the sum of their scores.

    `usual` are scores of rows before they were learned, if they are wanted. To make the message, `merged` bytes were sent
    between tasks, `path` of them one after the other, at most `largest` at a time.
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


def functions_of(model: StreamingEstimator) -> dict[str, object]:
    """Return the parameters of a model that are functions: no file can hold them."""
    return {name: value for name, value in model.get_params(deep=False).items() if callable(value)}


def blank_to_bytes(model: StreamingEstimator) -> bytes:
    """Return the parameters of a model as bytes, without what it has learned."""
    writer = Writer()
    parameters = {name: write_parameter(writer, value, name) for name, value in model.get_params(deep=False).items()}
    given = {name: writer.write(model.__dict__[name], name) for name in KNOWN_BEFORE if name in model.__dict__}
    return container.to_bytes({"model": type(model).__name__, "parameters": parameters, "given": given}, writer.arrays)


def blank_from_bytes(data: bytes, functions: Mapping[str, object]) -> StreamingEstimator:
    """Return an unfitted model with these parameters."""
    header, arrays = container.from_bytes(data)
    reader, kind = Reader(arrays), estimator_named(header.get("model"))
    model = kind(**{name: read_parameter(reader, tree, name, functions) for name, tree in header["parameters"].items()})
    for name, tree in header["given"].items():
        model.__dict__[name] = RESULTS[name](reader, tree, name)
    return model
