"""Schemas: how rows were made, kept by a model; checked, since a model file may come from anybody."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headwater.streams import tables
from headwater.streams.columns import MOST_LEVELS
from headwater.streams.options import MISSING, Options

MOST_COLUMNS = 1_000_000


def schema_of(like: Any) -> Mapping[str, Any]:
    """Return the schema of a model, of a stream, or itself."""
    found = like if isinstance(like, Mapping) else getattr(like, "schema_", getattr(like, "schema", None))
    if found is None:
        raise ValueError(f"like must be a model that learned from a stream, but {type(like).__name__} has no schema_")
    if not isinstance(found, Mapping):
        raise ValueError(f"like must have a schema, got {found!r:.80}")
    _check(found.get("kind") in KINDS, "kind", found.get("kind"))
    return found


def recipe_like(schema: Mapping[str, Any], options: Options) -> Any:
    """Return the recipe that a schema speaks of, or refuse it."""
    return KINDS[schema["kind"]](schema, options)


def _table(schema: Mapping[str, Any], options: Options) -> tables.Recipe:
    inputs = schema.get("inputs")
    _check(isinstance(inputs, list) and 0 < len(inputs) <= MOST_COLUMNS, "inputs", inputs)
    assert isinstance(inputs, list)
    chosen = []
    for one in inputs:
        _check(isinstance(one, Mapping) and isinstance(one.get("name"), str), "inputs", one)
        chosen.append(tables.Input(one["name"], _texts(one, "levels", MOST_LEVELS)))
    missing = schema.get("missing", "refuse")
    _check(missing in MISSING, "missing", missing)
    roles: dict[str, Any] = {}
    for role in tables.ROLES:
        name = schema.get(role)
        _check(name is None or isinstance(name, str), role, name)
        roles[role] = name
    for name in ("named", "complex"):
        _check(isinstance(schema.get(name, True), bool), name, schema.get(name))
    return tables.Recipe(
        tuple(chosen), **roles, label_levels=_texts(schema, "label_levels", MOST_LEVELS),
        missing=missing if options.missing == "refuse" else options.missing,
        named=schema.get("named", True), complex=schema.get("complex", False), relaxed=True,
    )  # fmt: skip


def _texts(schema: Mapping[str, Any], name: str, most: int) -> tuple[str, ...] | None:
    """Return a list of different texts."""
    found = schema.get(name)
    if found is None:
        return None
    fine = isinstance(found, list | tuple) and len(found) <= most and all(isinstance(one, str) for one in found)
    _check(fine and len(set(found)) == len(found), name, found)
    return tuple(found)


def _check(fine: bool, name: str, value: Any) -> None:
    if not fine:
        raise ValueError(f"the schema of the model is damaged: {name} is {value!r:.80}")


KINDS: dict[str, Callable[[Mapping[str, Any], Options], Any]] = {"table": _table}
