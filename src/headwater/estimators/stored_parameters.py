"""Parameters of an estimator as trees, and back: numbers, arrays, lists, mappings, algorithms, schedules, random states."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass

import numpy as np

from headwater.core import algorithms, schedules, simulated_algorithms
from headwater.io.files.records import Damaged, Reader, Writer

# Objects that a parameter may be, by the names of their classes.
OBJECTS = {
    kind.__name__: kind
    for room in (algorithms, simulated_algorithms, schedules)
    for kind in vars(room).values()
    if isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == room.__name__
}


def write_parameter(writer: Writer, value: object, name: str) -> object:
    """Return the tree of a parameter, which distinguishes tuples, lists, objects and functions."""
    if isinstance(value, np.random.RandomState):
        kind, keys, place, has_gauss, gauss = value.get_state()
        return {
            "random": [kind, writer.write(np.asarray(keys), f"parameters/{name}"), int(place), int(has_gauss), float(gauss)]
        }
    if isinstance(value, tuple | list):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [write_parameter(writer, one, f"{name}/{at}") for at, one in enumerate(value)]}
    if isinstance(value, dict):
        pairs = [list(pair) for pair in value.items()]
        return {"mapping": [[write_parameter(writer, one, name) for one in pair] for pair in pairs]}
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


def read_parameter(reader: Reader, tree: object, name: str, functions: Mapping[str, object]) -> object:
    """Return a parameter; the estimator checks whether it makes sense."""
    if tree is None or isinstance(tree, bool | str | int | float):
        if isinstance(tree, int) and abs(tree) >= 2**63:
            raise Damaged(f"{name} is {str(tree)[:20]}..., and should be less than 2**63 in size")
        return tree
    record = reader.expect(tree, dict, name)
    if set(record) == {"float"}:
        number = reader.number(record, name, finite=False)
        if math.isnan(number):
            raise Damaged(f"{name} is NaN, and should be a number")
        return number
    if set(record) == {"tuple"} or set(record) == {"list"}:
        ((kind, items),) = record.items()
        values = [read_parameter(reader, one, name, functions) for one in reader.items(items, name)]
        return tuple(values) if kind == "tuple" else values
    if set(record) == {"mapping"}:
        pairs = [reader.items(pair, name) for pair in reader.items(record["mapping"], name)]
        if not all(len(pair) == 2 and type(pair[0]) in (str, int) and type(pair[1]) is str for pair in pairs):
            raise Damaged(f"{name} is not a mapping from columns to words")
        return {pair[0]: pair[1] for pair in pairs}
    if set(record) == {"function"}:
        if name not in functions:
            raise Damaged(f"it needs {name}, a function, which no file can hold: pass it as load(path, {name}=...)")
        return functions[name]
    if "object" in record:
        parts = dict(record)
        kind = OBJECTS.get(str(parts.pop("object")))
        if name != "algorithm" or kind is None or not set(parts) <= {part.name for part in fields(kind)}:
            raise Damaged(f"{name} is an object that is not known")
        known = {one: read_parameter(reader, part, name, functions) for one, part in parts.items()}
        if issubclass(kind, algorithms.OnlineEM):
            known.setdefault("average_exponent", 1.0)  # as before it could be chosen
        return kind(**known)
    if set(record) == {"random"}:
        items = reader.items(record["random"], name)
        if len(items) != 5 or items[0] != "MT19937":
            raise Damaged(f"{name} is not a random state")
        place, has_gauss = reader.whole(items[2], name, 0), reader.whole(items[3], name, 0)
        if place > 624 or has_gauss > 1:  # NumPy would read beyond its memory
            raise Damaged(f"{name} is not a random state")
        state = np.random.RandomState()
        keys = reader.array(items[1], name, np.uint32, (624,))
        state.set_state(("MT19937", keys, place, has_gauss, reader.number(items[4], name)))
        return state
    shape = shape_of(reader, record, name)
    return reader.array(record, name, reader.arrays[record["array"]].dtype, shape, missing=True)


def shape_of(reader: Reader, tree: object, path: str) -> tuple[int, ...]:
    """Return the shape of an array that a tree names."""
    name = tree.get("array") if isinstance(tree, dict) else None
    if not isinstance(name, str) or name not in reader.arrays:
        raise Damaged(f"{path} names an array that is not there")
    return tuple(reader.arrays[name].shape)
