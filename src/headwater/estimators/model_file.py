"""Estimators in model files: `save`, `load`, and the checks of what was read."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np

from headwater.core.algorithm import Algorithm
from headwater.core.algorithms import OnlineEM
from headwater.core.learner import Learner
from headwater.core.state import State
from headwater.core.values import AnyArray
from headwater.estimators import race_stream
from headwater.estimators.base import StreamingEstimator
from headwater.estimators.component_count import RACE
from headwater.estimators.estimator_core import parameter_names
from headwater.estimators.race import Race
from headwater.estimators.runtime import Runtime
from headwater.estimators.stored_parameters import read_parameter, write_parameter
from headwater.estimators.stored_results import AS_IT_IS, RESULTS, read_race
from headwater.io.files import container
from headwater.io.files.records import Damaged, Reader, Writer
from headwater.io.files.state_reader import StateReader
from headwater.io.files.states import rows_held, write_state
from headwater.models.mixture import Mixture
from headwater.policies.names import GROWTH

MOST_UNSEEN = 10**4  # components of a model that is still in its warm-up, beside those that it has numbers for
# Requests of scikit-learn's metadata routing belong to the pipeline: a file does not hold them.
PRIVATE = {"_runtime", "_metadata_request"}


def pack(
    model: StreamingEstimator, raw_rows: bool = True, extra: object = None, answers: bool = True
) -> tuple[dict[str, object], dict[str, AnyArray]]:
    """Return header and arrays of the file of a model."""
    model._check_stream()
    runtime: Runtime = model._runtime
    grows = model._runtime.grows
    if not raw_rows:
        race = runtime.race
        if race is not None and not race.over:
            runtime = runtime.with_state(runtime.state, model._learner)
            runtime = runtime.with_race(race.decided(runtime.rows, runtime.n_components))
        runtime = runtime.without_rows()
    learner, state = runtime.learner, runtime.state
    writer = Writer()
    known = runtime.made_with
    parameters = model.get_params(deep=False)
    changed = [name for name, value in parameters.items() if value is not known[name]]
    results = {name: model.__dict__[name] for name in RESULTS if name in model.__dict__}
    if not raw_rows:
        results.pop("_open", None)
    strange = {name for name in vars(model) if name not in parameters and name not in RESULTS} - PRIVATE
    if strange:
        raise TypeError(f"{type(model).__name__} has {', '.join(sorted(strange))}, which no model file can hold")
    header = {
        "headwater": import_module("headwater").__version__,
        "model": type(model).__name__,
        "width": learner.width,
        "rows": runtime.rows,
        "holds_rows": runtime.holds_rows,
        "average_exponent": learner.algorithm.average_exponent,  # files without it are older than the choice: 1
        "parameters": {name: write_parameter(writer, value, name) for name, value in parameters.items()},
        "learned_with": {name: write_parameter(writer, known[name], f"learned_with/{name}") for name in changed},
        "results": {
            name: _as_json(value)
            if name in AS_IT_IS
            else writer.write(list(value) if name.endswith("names_in_") else value, name)
            for name, value in results.items()
        },
        "components": learner.for_state(state).model.n_components if grows else None,
        "race": writer.write(runtime.race, "race"),
        "rivals": [_write_rival(writer, rival) for rival in runtime.rivals],
        "state": None if runtime.rivals else write_state(writer, learner, state, "state"),
    }
    header["tables"] = writer.tables
    if extra is not None:
        header["extra"] = extra
    if answers and not runtime.warming_up:
        for name in model._traits.answers:
            writer.arrays[f"answers/{name}"] = np.asarray(getattr(model, name))
    return header, writer.arrays


def _averaged_as_before(model: StreamingEstimator, width: int, race: Race | None) -> Algorithm:
    """Return what the word of online EM meant when rows weighed as their number in its averages."""
    learner = model._make_learner(width) if race is None else race_stream.learner_of(model, width, race)
    return replace(cast(OnlineEM, learner.algorithm), average_exponent=1.0)


def _write_rival(writer: Writer, rival: Runtime) -> dict[str, object]:
    k = rival.n_components
    return {"n_components": k, "state": write_state(writer, rival.learner, rival.state, f"rivals/{k}")}


def _as_json(value: Any) -> object:
    return value.to_dict() if hasattr(value, "to_dict") else dict(value)


def unpack(header: dict[str, object], arrays: dict[str, AnyArray], functions: Mapping[str, object]) -> StreamingEstimator:
    """Return the model of header and arrays, after every part of them was checked."""
    reader = Reader(arrays)
    reader.tables = reader.expect(header.get("tables"), dict, "tables")
    kind = estimator_named(header.get("model"))
    trees = reader.expect(header.get("parameters"), dict, "parameters")
    names = set(parameter_names(kind))
    if not set(trees) <= names:
        raise Damaged(f"it has the parameter {sorted(set(trees) - names)[0][:50]!r}, which {kind.__name__} has not")
    parameters = {name: read_parameter(reader, tree, name, functions) for name, tree in trees.items()}
    changed = {
        name: read_parameter(reader, tree, name, functions)
        for name, tree in reader.expect(header.get("learned_with"), dict, "learned_with").items()
        if name in names
    }
    parameters = {**dict(kind._traits.before), **parameters}
    model = kind(**{**parameters, **changed})
    most = MOST_UNSEEN + sum(array.size for array in arrays.values())
    if isinstance(getattr(model, "n_components", 1), int) and getattr(model, "n_components", 1) > most:
        raise Damaged(f"n_components is {model.n_components}, which is more than there are numbers in it")
    for name, tree in reader.expect(header.get("results"), dict, "results").items():
        if name not in RESULTS:
            raise Damaged(f"it has the result {name[:50]!r}, which no model has")
        model.__dict__[name] = RESULTS[name](reader, tree, name)
    if (header.get("race") is not None) != (model._choice == RACE):
        raise Damaged("it has a race of numbers of components, or should have one")
    if (header.get("components") is not None) != (model._choice == GROWTH):
        raise Damaged("it has a number of components that was found, or should have one")
    width = reader.whole(header.get("width"), "width", 1)
    _check_columns(model, width)
    race = read_race(reader, header.get("race"), "race") if model._choice == RACE else None
    if "average_exponent" not in header and model.algorithm == OnlineEM.word:
        model.algorithm = _averaged_as_before(model, width, race)
    if race is not None and race.leader > most:
        raise Damaged("it has a race of more components than there are numbers in it")
    rivals = reader.items(header.get("rivals"), "rivals")
    if rivals:
        model._runtime = _read_rivals(reader, model, rivals, width, race)
    else:
        learner = model._make_learner(width) if race is None else race_stream.learner_of(model, width, race)
        if learner.has(GROWTH):
            found = reader.whole(header["components"], "components", 1)
            if found > most:
                raise Damaged("it has more components than there are numbers in it")
            learner = replace(learner, model=cast(Mixture, learner.plan.sizing_model).resize(found))
        state = _read_state(reader, model, learner, header.get("state"), "state")
        model._runtime = Runtime(learner, state, model._given_parameters(), race)
    _check_reading(model)
    for name in changed:
        setattr(model, name, parameters[name])
    return model


def _read_state(reader: Reader, model: StreamingEstimator, learner: Learner, tree: object, path: str) -> State:
    states = StateReader(reader, learner)
    state = states.state(tree, path)
    for batch in rows_held(state):
        model._check_stored(batch.X, learner.width)
    states.check_scores(state, path)
    return state


def _read_rivals(reader: Reader, model: StreamingEstimator, trees: list[object], width: int, race: Race | None) -> Runtime:
    """Return the Runtime of a race; those that run in it have states of their own, and it answers by the leader's."""
    rivals = []
    for tree in trees:
        parts = reader.expect(tree, dict, "rivals")
        rival = race_stream.rival_of(model, reader.whole(parts.get("n_components"), "rivals", 1), race.warm_up if race else 0)
        rival.n_features_in_ = model.n_features_in_
        learner = rival._make_learner(width)
        state = _read_state(reader, rival, learner, parts.get("state"), f"rivals/{rival.n_components}")
        rivals.append(Runtime(learner, state))
    if race is None or race.over or race.running != tuple(rival.n_components for rival in rivals):
        raise Damaged("it has others than those that run in its race")
    begun = Runtime(rivals[0].learner, rivals[0].state, model._given_parameters())
    return race_stream.follow(begun, race, tuple(rivals))


def _check_columns(model: StreamingEstimator, width: int) -> None:
    """Refuse a model whose number or names of columns do not fit its state."""
    known, names = model.__dict__.get("n_features_in_"), model.__dict__.get("feature_names_in_")
    if known != model._features_of(width):
        raise Damaged(f"n_features_in_ is {known}, and should be {model._features_of(width)}")
    if names is not None and (len(names) > known if model._vocabulary_is_open else len(names) != known):
        raise Damaged(f"it has {len(names)} names for {known} columns")
    if model._traits.takes_tables:
        schema = model.__dict__.get("_schema")
        if schema is None or len(schema.kinds) != known:
            raise Damaged(f"it says of {0 if schema is None else len(schema.kinds)} of {known} columns what they are")
        if max(schema.codebook.sizes, default=0) > model.max_categories:
            raise Damaged(f"it has more categories of a column than max_categories, which is {model.max_categories}")


def _check_reading(model: StreamingEstimator) -> None:
    """Refuse a model past its warm-up that cannot be read."""
    end = model.__dict__.get("_end")
    if end is not None and len(end) != model._learner.model.n_components:
        raise Damaged("it has another number of states at the end of a sequence than it has components")
    model._check_kept()
    if not model._runtime.warming_up:
        for name in model._traits.answers:
            if not np.isfinite(getattr(model, name)).all():
                raise Damaged(f"{name} holds NaN or infinity")


def estimator_named(name: object) -> type[StreamingEstimator]:
    """Return the estimator of this name."""
    home = import_module("headwater")._HOME_OF.get(name) if isinstance(name, str) else None
    if home is not None and home.startswith("headwater.estimators."):
        import_module(home)
    kinds: list[type] = [StreamingEstimator]
    for kind in kinds:  # and subclasses from other packages, if they are imported
        kinds += kind.__subclasses__()
    known: list[type[StreamingEstimator]] = [kind for kind in kinds if kind.__name__ == name and not inspect.isabstract(kind)]
    if not known:
        raise Damaged(f"it is a {str(name)[:50]!r}, which is no model that is known here")
    return next((kind for kind in known if kind.__module__ == home), known[-1])


def save(model: StreamingEstimator, path: str | os.PathLike[str], *, raw_rows: bool = True, extra: object = None) -> None:
    """Write a model to a file; see `StreamingEstimator.save`. What is `extra`, and JSON knows, is kept beside it."""
    container.write(Path(path), *pack(model, raw_rows, extra))


def read(path: str | os.PathLike[str], **functions: object) -> tuple[StreamingEstimator, Any]:
    """Return the model of a file, and what was kept beside it."""
    header, arrays = container.read(Path(path))
    return _made(header, arrays, functions, str(path)), header.get("extra")


def load(path: str | os.PathLike[str], **functions: object) -> Any:
    """Read a model from a file; it continues to learn as if it had never stopped.

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
    return container.to_bytes(*pack(model, answers=False))


def from_bytes(data: bytes, **functions: object) -> StreamingEstimator:
    """Return the model of the bytes of a file."""
    return _made(*container.from_bytes(data), functions, "the model")


def _made(
    header: dict[str, object], arrays: dict[str, AnyArray], functions: Mapping[str, object], name: str
) -> StreamingEstimator:
    try:
        with np.errstate(all="ignore"):
            return unpack(header, arrays, functions)
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
