"""The options of a stream, and their checks."""

from __future__ import annotations

import numbers
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import PurePath
from typing import Any

from headwater.core.validation import one_line
from headwater.io.read_errors import explain_read_errors

CATEGORY_POLICIES = ("refuse", "one-hot", "drop", "keep")
DATE_POLICIES = ("refuse", "parts")
MISSING_POLICIES = ("refuse", "drop", "keep", "blank", "zero")
VOCABULARY_MODES = ("first", "open", "known")


@dataclass(frozen=True)
class Options:
    """The options of the user; None means that the value is found in the data."""

    format: str | None = None
    columns: tuple[str | int, ...] | None = None
    exclude: tuple[str | int, ...] = ()
    keep: tuple[str | int, ...] = ()
    target: str | int | None = None
    weight: str | int | None = None
    label: str | int | None = None
    key: str | int | None = None
    standard_errors: tuple[str | int, ...] = ()
    text: str | int | None = None
    categories: str = "refuse"
    missing: str = "refuse"
    dates: str = "refuse"
    chunk_rows: int | None = None
    shuffle: int = 0
    seed: int = 0
    header: bool | None = None
    delimiter: str | None = None
    decimal: str | None = None
    array: str | None = None
    width: int | None = None
    vocabulary: str | int | tuple[str, ...] = "first"
    lowercase: bool = True
    shortest: int = 1
    stop_words: tuple[str, ...] = ()
    symbols: tuple[str, ...] | None = None
    brief: bool = False  # whether only the first row decides how rows are read: the next row of a pipe may take long

    def non_defaults(self) -> dict[str, object]:
        """Return what differs from the defaults, in values that JSON can hold."""
        found = {field.name: getattr(self, field.name) for field in fields(self) if getattr(self, field.name) != field.default}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}


def make_options(**given: Any) -> Options:
    """Return the options, or refuse one in a sentence."""
    _check_choice("categories", given["categories"], CATEGORY_POLICIES)
    _check_choice("missing", given["missing"], MISSING_POLICIES)
    _check_choice("dates", given["dates"], DATE_POLICIES)
    given["columns"] = None if given["columns"] is None else _check_columns("columns", given["columns"])
    if given["columns"] == ():
        raise ValueError("columns must name at least one column, got none")
    for name in ("exclude", "keep", "standard_errors"):
        given[name] = () if given[name] is None else _check_columns(name, given[name])
    given["stop_words"] = tuple(_check_words("stop_words", given["stop_words"] or ()))
    given["symbols"] = None if given["symbols"] is None else tuple(_check_words("symbols", given["symbols"]))
    given["vocabulary"] = _check_vocabulary(given["vocabulary"])
    for name in ("target", "weight", "label", "key", "text"):
        if given[name] is not None:
            (given[name],) = _check_columns(name, [given[name]])
    given["chunk_rows"] = None if given["chunk_rows"] == "auto" else _check_integer("chunk_rows", given["chunk_rows"], 1)
    for name, least in (("shuffle", 0), ("seed", 0), ("shortest", 1)):
        given[name] = _check_integer(name, given[name], least)
    if given["width"] is not None:
        given["width"] = _check_integer("width", given["width"], 1)
    if given["delimiter"] is not None and (not isinstance(given["delimiter"], str) or len(given["delimiter"]) != 1):
        raise ValueError(f"delimiter must be one character, got {one_line(given['delimiter'], 80)}")
    if given["decimal"] not in (None, ".", ","):
        raise ValueError(f"decimal must be '.' or ',', got {one_line(given['decimal'], 80)}")
    for name in ("format", "array"):
        if given[name] is not None and not isinstance(given[name], str):
            raise ValueError(f"{name} must be a word, got {one_line(given[name], 80)}")
    if given["header"] not in (None, True, False):
        raise ValueError(f"header must be True, False or None, which looks for itself, got {one_line(given['header'], 80)}")
    given["lowercase"] = bool(given["lowercase"])
    return Options(**given)


def _check_choice(name: str, value: object, words: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in words:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, words))}, got {one_line(value, 80)}")


def _check_integer(name: str, value: object, least: int) -> int:
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {one_line(value, 80)}")
    return int(value)


def _check_columns(name: str, value: object) -> tuple[str | int, ...]:
    listed = [value] if isinstance(value, str | numbers.Integral) else value
    if isinstance(listed, Iterable) and not isinstance(listed, Mapping):
        found = tuple(int(one) if isinstance(one, numbers.Integral) else one for one in listed)
        if all(isinstance(one, str | int) and not isinstance(one, bool) for one in found):
            return found
    raise ValueError(f"{name} must name columns, or give their places from 0, got {one_line(value, 80)}")


def _check_words(name: str, value: object) -> list[str]:
    if isinstance(value, str | PurePath) and os.path.isfile(value):
        with explain_read_errors(str(value)), open(value, encoding="utf8") as file:
            value = file.read().split()
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ValueError(f"{name} must be a list of words, or a file of them, got {one_line(value, 80)}")
    words = [str(word) for word in value]
    if len(set(words)) != len(words):
        seen: set[str] = set()
        twice = next(word for word in words if word in seen or seen.add(word))  # type: ignore[func-returns-value]
        raise ValueError(f"{name} must hold each word once, got {twice!r} twice")
    return words


def _check_vocabulary(value: object) -> str | int | tuple[str, ...]:
    if isinstance(value, str) and not os.path.isfile(value):
        _check_choice("vocabulary", value, VOCABULARY_MODES)
    if isinstance(value, str) and value in VOCABULARY_MODES:
        return value
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return _check_integer("vocabulary", value, 2)
    words = tuple(_check_words("vocabulary", value))
    if not words:
        raise ValueError("vocabulary must hold at least one word, got none")
    return words
