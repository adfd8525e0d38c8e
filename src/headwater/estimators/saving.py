"""Estimators in model files: `save`, `load`, and the parameters and results that are kept beside the state."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import headwater
from headwater import algorithms, schedules
from headwater.estimators.base import StreamingEstimator
from headwater.history import History
from headwater.matching import Match, MergeReport
from headwater.state import State
from headwater.storage import container
from headwater.storage.states import StateReader, holds_rows, without_rows, write_state
from headwater.storage.trees import Damaged, Reader, Writer

# Objects that a parameter may be, by the names of their classes.
OBJECTS = {
    kind.__name__: kind
    for room in (algorithms, schedules)
    for kind in vars(room).values()
    if isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == room.__name__
}
# What is learned beside the state, and how it is read. A reader gets the reader of arrays, the tree, and a path.
Read = Callable[[Reader, Any, str], Any]


def _real(reader: Reader, tree: Any, path: str) -> float:
    return reader.number(tree, path, finite=False)


def _names(reader: Reader, tree: Any, path: str) -> Any:
    return np.array([reader.expect(one, str, path) for one in reader.items(tree, path)], dtype=object)


def _plain(reader: Reader, tree: Any, path: str) -> Any:
    """What JSON knows, as it is; those who use it check it."""
    return reader.expect(tree, dict, path)


def _history(reader: Reader, tree: Any, path: str) -> History:
    try:
        return History.from_dict(reader.expect(tree, dict, path))
    except ValueError as error:
        raise Damaged(f"{path}: {error}") from error


def _given(reader: Reader, tree: Any, path: str) -> dict[str, Any]:
    pairs = [reader.items(pair, path) for pair in reader.items(tree, path)]
    return {
        reader.expect(name, str, path): reader.array(one, path, np.float64, _shape_of(reader, one, path)) for name, one in pairs
    }


def _opened(reader: Reader, tree: Any, path: str) -> dict[Any, int]:
    found: dict[Any, int] = {}
    for pair in reader.items(tree, path):
        key, number = reader.items(pair, path) if isinstance(pair, list) and len(pair) == 2 else (b"", 0)
        if not (key is None or type(key) in (str, int)):
            raise Damaged(f"{path} has a key that is no name and no number")
        found[key] = reader.whole(number, path)
    return found


def _shape_of(reader: Reader, tree: Any, path: str) -> tuple[int, ...]:
    name = tree.get("array") if isinstance(tree, dict) else None
    if not isinstance(name, str) or name not in reader.arrays:
        raise Damaged(f"{path} names an array that is not there")
    return tuple(reader.arrays[name].shape)


def _vector(reader: Reader, tree: Any, path: str, dtype: Any = np.float64) -> Any:
    return reader.array(tree, path, dtype, (None,))


def _merge_report(reader: Reader, tree: Any, path: str) -> MergeReport:
    parts = reader.parts(tree, "MergeReport", {part.name for part in fields(MergeReport) if part.compare}, path)

    def wholes(items: Any) -> tuple[int, ...]:
        return tuple(reader.whole(one, path) for one in reader.items(items, path))

    matches = []
    for one in reader.items(parts["matches"], path):
        match = reader.parts(one, "Match", {part.name for part in fields(Match) if part.compare}, path)
        numbers = [_vector(reader, match[name], path) for name in ("divergence", "margin", "contrast")]
        matches.append(Match(wholes(match["models"]), _vector(reader, match["components"], path, np.int64), *numbers))
    held = frozenset(reader.expect(one, str, path) for one in reader.items(parts["held"], path))
    models, rows, reference = (reader.whole(parts[name], path) for name in ("models", "rows", "reference"))
    repaired, replayed = wholes(parts["repaired"]), wholes(parts["replayed"])
    return MergeReport(models, rows, reference, tuple(matches), repaired, replayed, held)


RESULTS: dict[str, Read] = {
    "n_features_in_": lambda reader, tree, path: reader.whole(tree, path, 1),
    "feature_names_in_": _names,
    "converged_": lambda reader, tree, path: reader.expect(tree, bool, path),
    "n_iter_": lambda reader, tree, path: reader.whole(tree, path, 0),
    "lower_bound_": _real,
    "lower_bounds_": lambda reader, tree, path: [_real(reader, one, path) for one in reader.items(tree, path)],
    "merge_report_": _merge_report,
    "schema_": _plain,
    "history_": _history,
    "_open": _opened,
    "_given": _given,
}
AS_IT_IS = ("schema_", "history_")
MOST_UNSEEN = 10**6  # components of a model that is still in its warm-up


# Parameters


def write_parameter(writer: Writer, value: Any, name: str) -> Any:
    """Return the tree of a parameter, in which tuples, lists, objects and functions are told apart."""
    if isinstance(value, np.random.RandomState):
        kind, keys, place, has_gauss, gauss = value.get_state()
        return {
            "random": [kind, writer.write(np.asarray(keys), f"parameters/{name}"), int(place), int(has_gauss), float(gauss)]
        }
    if isinstance(value, tuple | list):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [write_parameter(writer, one, f"{name}/{at}") for at, one in enumerate(value)]}
    if is_dataclass(value) and type(value).__name__ in OBJECTS:
        parts = {part.name: getattr(value, part.name) for part in fields(value)}
        return {"object": type(value).__name__, **{one: write_parameter(writer, part, name) for one, part in parts.items()}}
    if callable(value):
        return {"function": name}
    if value is None or isinstance(value, bool | str | int | float | np.generic | np.ndarray):
        return writer.write(value, f"parameters/{name}")
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} is {type(value).__name__}, which no model file can hold")
    return writer.write(array, f"parameters/{name}")


def read_parameter(reader: Reader, tree: Any, name: str, functions: Mapping[str, Any]) -> Any:
    """Return a parameter; the estimator checks whether it makes sense."""
    if tree is None or isinstance(tree, bool | str | int | float):
        return tree
    record = reader.expect(tree, dict, name)
    if set(record) == {"float"}:
        return reader.number(record, name, finite=False)
    if set(record) == {"tuple"} or set(record) == {"list"}:
        ((kind, items),) = record.items()
        values = [read_parameter(reader, one, name, functions) for one in reader.items(items, name)]
        return tuple(values) if kind == "tuple" else values
    if set(record) == {"function"}:
        if name not in functions:
            raise Damaged(f"it needs {name}, a function, which no file can hold: pass it on as load(path, {name}=...)")
        return functions[name]
    if "object" in record:
        parts = dict(record)
        kind = OBJECTS.get(str(parts.pop("object")))
        if kind is None or not set(parts) <= {part.name for part in fields(kind)}:
            raise Damaged(f"{name} is an object that is not known")
        return kind(**{one: read_parameter(reader, part, name, functions) for one, part in parts.items()})
    if set(record) == {"random"}:
        kind, keys, place, has_gauss, gauss = reader.items(record["random"], name)
        state = np.random.RandomState()
        state.set_state((kind, reader.array(keys, name, np.uint32, (624,)), place, has_gauss, gauss))
        return state
    shape = _shape_of(reader, record, name)
    return reader.array(record, name, reader.arrays[record["array"]].dtype, shape, missing=True)


# Models


def packed(model: StreamingEstimator, raw_rows: bool = True, extra: Any = None, answers: bool = True) -> tuple[Any, Any]:
    """Return header and arrays of the file of a model."""
    model._fitted_state()
    learner, state = model._learner, model._state
    if not raw_rows:
        state = without_rows(learner, state)
    writer = Writer()
    known = dict(zip(model._parameter_names(), model._parameters[1], strict=True))
    parameters = model.get_params(deep=False)
    changed = [name for name, value in parameters.items() if value is not known[name]]
    results = {name: model.__dict__[name] for name in RESULTS if name in model.__dict__}
    if not raw_rows:
        results.pop("_open", None)
    strange = {name for name in vars(model) if name not in parameters and name not in RESULTS} - PRIVATE
    if strange:
        raise TypeError(f"{type(model).__name__} has {', '.join(sorted(strange))}, which no model file can hold")
    header = {
        "headwater": headwater.__version__,
        "model": type(model).__name__,
        "width": learner.width,
        "rows": state.rows,
        "holds_rows": holds_rows(state),
        "parameters": {name: write_parameter(writer, value, name) for name, value in parameters.items()},
        "learned_with": {name: write_parameter(writer, known[name], f"learned_with/{name}") for name in changed},
        "results": {
            name: _as_json(value)
            if name in AS_IT_IS
            else writer.write(list(value) if name.endswith("names_in_") else value, name)
            for name, value in results.items()
        },
        "state": write_state(writer, learner, state, "state"),
    }
    header["tables"] = writer.tables
    if extra is not None:
        header["extra"] = extra
    if answers and state.base is not None:
        for name in model._answers:
            writer.arrays[f"answers/{name}"] = np.asarray(getattr(model, name))
    return header, writer.arrays


PRIVATE = {"_state", "_learner", "_parameters", "_cache"}


def _as_json(value: Any) -> Any:
    return value.to_dict() if hasattr(value, "to_dict") else dict(value)


def unpacked(header: dict[str, Any], arrays: dict[str, Any], functions: Mapping[str, Any]) -> StreamingEstimator:
    """Return the model of header and arrays, after every part of them was checked."""
    reader = Reader(arrays)
    reader.tables = reader.expect(header.get("tables"), dict, "tables")
    kind = estimator_named(header.get("model"))
    trees = reader.expect(header.get("parameters"), dict, "parameters")
    names = set(kind._parameter_names())
    if not set(trees) <= names:
        raise Damaged(f"it has the parameter {sorted(set(trees) - names)[0][:50]!r}, which {kind.__name__} has not")
    parameters = {name: read_parameter(reader, tree, name, functions) for name, tree in trees.items()}
    changed = {
        name: read_parameter(reader, tree, name, functions)
        for name, tree in reader.expect(header.get("learned_with"), dict, "learned_with").items()
        if name in names
    }
    model = kind(**{**parameters, **changed})
    most = MOST_UNSEEN + sum(array.size for array in arrays.values())
    if isinstance(getattr(model, "n_components", 1), int) and getattr(model, "n_components", 1) > most:
        raise Damaged(f"n_components is {model.n_components}, which is more than there are numbers in it")
    for name, tree in reader.expect(header.get("results"), dict, "results").items():
        if name not in RESULTS:
            raise Damaged(f"it has the result {name[:50]!r}, which no model has")
        model.__dict__[name] = RESULTS[name](reader, tree, name)
    learner = model._make_learner(reader.whole(header.get("width"), "width", 1))
    _check_columns(model, learner.width)
    state = StateReader(reader, learner).state(header.get("state"), "state")
    for batch in (*state.waiting, *(() if state.buffer is None else (state.buffer.batch(),))):
        model._check_stored(batch.X, learner.width)
    model._set(state, learner)
    _check_reading(model, state)
    for name in changed:
        setattr(model, name, parameters[name])
    return model


def _check_columns(model: StreamingEstimator, width: int) -> None:
    """See to it that the model has as many columns as it says, and names for them."""
    known, names = model.__dict__.get("n_features_in_"), model.__dict__.get("feature_names_in_")
    if known != width - model._target_columns:
        raise Damaged(f"n_features_in_ is {known}, and should be {width - model._target_columns}")
    if names is not None and (len(names) > known if model._grows else len(names) != known):
        raise Damaged(f"it has {len(names)} names for {known} columns")


def _check_reading(model: StreamingEstimator, state: State) -> None:
    """See to it that a model past its warm-up can be read."""
    if state.base is not None:
        for name in model._answers:
            if not np.isfinite(getattr(model, name)).all():
                raise Damaged(f"{name} holds NaN or infinity")


def estimator_named(name: Any) -> type[StreamingEstimator]:
    """Return the estimator of this name."""
    home = headwater._HOME_OF.get(name) if isinstance(name, str) else None
    if home is not None and home.startswith("headwater.estimators."):
        import_module(home)
    kinds: list[Any] = [StreamingEstimator]
    for kind in kinds:  # those that others have made of them, too, if they are at hand
        kinds += kind.__subclasses__()
    known: list[type[StreamingEstimator]] = [kind for kind in kinds if kind.__name__ == name and not inspect.isabstract(kind)]
    if not known:
        raise Damaged(f"it is a {str(name)[:50]!r}, which is no model that is known here")
    return next((kind for kind in known if kind.__module__ == home), known[-1])


def save(model: StreamingEstimator, path: str | os.PathLike[str], *, raw_rows: bool = True, extra: Any = None) -> None:
    """Write a model to a file; see `StreamingEstimator.save`. What is `extra`, and JSON knows, is kept beside it."""
    container.write(Path(path), *packed(model, raw_rows, extra))


def read(path: str | os.PathLike[str], **functions: Any) -> tuple[StreamingEstimator, Any]:
    """Return the model of a file, and what was kept beside it."""
    header, arrays = container.read(Path(path))
    return _made(header, arrays, functions, str(path)), header.get("extra")


def load(path: str | os.PathLike[str], **functions: Any) -> Any:
    """Read a model from a file; it goes on learning as if it had never been away.

    Everything in the file is checked, and nothing in it is run: a file that is damaged, or made up, is refused in a sentence.

    Parameters
    ----------
    path : str or path
        The file, as `save` wrote it.
    **functions : callable
        Parameters that are functions, such as `steering` of a `DirectionOfArrival`, which no file can hold.

    Returns
    -------
    model : estimator
        The model.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import headwater as hw
    >>> model = hw.GaussianMixture(2, random_state=0).partial_fit(np.random.default_rng(0).normal(size=(3000, 2)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.hw")
    ...     again = hw.load(f"{folder}/model.hw")
    >>> np.array_equal(again.means_, model.means_)
    True
    """
    return read(path, **functions)[0]


def to_bytes(model: StreamingEstimator) -> bytes:
    """Return the bytes of the file of a model."""
    return container.to_bytes(*packed(model, answers=False))


def from_bytes(data: bytes, **functions: Any) -> Any:
    """Return the model of the bytes of a file."""
    return _made(*container.from_bytes(data), functions, "the model")


def _made(header: dict[str, Any], arrays: dict[str, Any], functions: Mapping[str, Any], name: str) -> StreamingEstimator:
    try:
        with np.errstate(all="ignore"):
            return unpacked(header, arrays, functions)
    except Damaged as error:
        raise Damaged(f"{name} cannot be read: {error}") from error
    except (
        ValueError,
        TypeError,
        ArithmeticError,
        LookupError,
        AttributeError,
        MemoryError,
        RecursionError,
        AssertionError,
    ) as error:
        sentence = " ".join(str(error).split()) or type(error).__name__
        raise Damaged(f"{name} is damaged: {sentence}") from error
