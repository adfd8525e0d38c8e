"""Checked fields of a schema. Schemas come from model files, which may come from a stranger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

Schema: TypeAlias = Mapping[str, Any]  # how rows are made of what is read, in values that JSON can hold


def check_field(valid: bool, name: str, value: object) -> None:
    """Refuse a schema with a wrong field."""
    if not valid:
        raise ValueError(f"the schema that rows shall be read by is damaged: {name} is {value!r:.80}")


def read_flag(schema: Schema, name: str, default: bool) -> bool:
    """Return a field that is true or false."""
    found = schema.get(name, default)
    check_field(isinstance(found, bool), name, found)
    return bool(found)


def read_integer(schema: Schema, name: str, least: int, most: int, default: int | None = None) -> int:
    """Return a field that is a whole number."""
    found = schema.get(name, default)
    check_field(isinstance(found, int) and not isinstance(found, bool) and least <= found <= most, name, found)
    assert found is not None
    return int(found)


def read_texts(schema: Schema, name: str, most: int) -> tuple[str, ...] | None:
    """Return a field that is a list of different texts, or None if it is not there."""
    found = schema.get(name)
    if found is None:
        return None
    valid = isinstance(found, list | tuple) and len(found) <= most and all(isinstance(one, str) for one in found)
    check_field(valid and len(set(found)) == len(found), name, found)
    return tuple(found)
