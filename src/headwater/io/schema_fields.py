"""Fields of a schema, each of the kind it must be: schemas come from model files, which anybody may have written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def check_field(fine: bool, name: str, value: Any) -> None:
    """Refuse a schema whose field is not what it must be."""
    if not fine:
        raise ValueError(f"the schema that rows shall be read by is damaged: {name} is {value!r:.80}")


def flag(schema: Mapping[str, Any], name: str, default: bool) -> bool:
    """Return a field that is true or false."""
    found = schema.get(name, default)
    check_field(isinstance(found, bool), name, found)
    return bool(found)


def whole(schema: Mapping[str, Any], name: str, least: int, most: int, default: int | None = None) -> int:
    """Return a field that is a whole number."""
    found = schema.get(name, default)
    check_field(isinstance(found, int) and not isinstance(found, bool) and least <= found <= most, name, found)
    assert found is not None
    return int(found)


def texts(schema: Mapping[str, Any], name: str, most: int) -> tuple[str, ...] | None:
    """Return a field that is a list of different texts, or None if it is not there."""
    found = schema.get(name)
    if found is None:
        return None
    fine = isinstance(found, list | tuple) and len(found) <= most and all(isinstance(one, str) for one in found)
    check_field(fine and len(set(found)) == len(found), name, found)
    return tuple(found)
