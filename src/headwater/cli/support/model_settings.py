"""Parameters of a model from the command line: -k, --algorithm, --half-life and any other by --set."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from inspect import signature
from typing import Any

from headwater.cli.support.advice import OPTIONS
from headwater.cli.support.failures import usage_error
from headwater.registry import Entry, learner_of


def parse_value(text: str) -> Any:
    """Return the value that a text stands for: as JSON, as Python writes it, or else the text itself."""
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError):
            continue
    return text


def parse_assignments(given: Sequence[str], option: str = "--set") -> dict[str, Any]:
    """Return the names and values of some `name=value`."""
    values: dict[str, Any] = {}
    for one in given:
        name, equals, text = one.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise usage_error(f"{option} takes name=value, got {one!r}")
        if name in values:
            raise usage_error(f"{option} gives {name} twice")
        values[name] = parse_value(text.strip())
    return values


def parse_component_count(text: str | None) -> int | str | None:
    """Return the number of components, or "auto"."""
    if text is None or text == "auto":
        return text
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise usage_error(f"-k must be auto or an integer of at least 1, got {text!r}")
    return number


def make_model(
    entry: Entry, k: str | None, algorithm: str | None, half_life: float | None, seed: int, given: Sequence[str]
) -> Any:
    """Return an unfitted model with these parameters."""
    values = parse_assignments(given)
    own = {name: value for name, value in values.items() if "." not in name}
    inner = {name.partition(".")[2]: value for name, value in values.items() if name.startswith("algorithm.")}
    asked = {"n_components": parse_component_count(k), "algorithm": algorithm, "half_life": half_life}
    for name, value in asked.items():
        if value is not None and own.setdefault(name, value) is not value:
            raise usage_error(f"{name} is given twice, by an option and by --set")
    own.setdefault("random_state", seed)
    known = list(signature(entry.kind).parameters)
    chosen = "n_components" in own
    if not chosen and "n_components" in known:
        own["n_components"] = "auto"
    for name, value in asked.items():
        if value is not None and name not in known:
            raise usage_error(f"{entry.word} takes no {OPTIONS[name]}")
    for name in [*own, *(name for name in values if "." in name and not name.startswith("algorithm."))]:
        if name not in known:
            raise usage_error(f"{entry.word} has no parameter {name!r}{_suggestion(name, known)}; it has {', '.join(known)}")
    if inner:
        own["algorithm"] = _make_algorithm(own.get("algorithm", "auto"), inner)
    model = entry.kind(**own)
    try:
        learner_of(model)
    except (ValueError, TypeError) as error:
        raise usage_error(str(error) if chosen else f"{str(error).rstrip('.')}; -k gives the number of components") from None
    return model


def add_vocabulary(entry: Entry, vocabulary: str | None, given: Sequence[str]) -> list[str]:
    """Return what was set, and that the model takes up new words if the stream is to bring some."""
    if vocabulary != "open" or any(one.startswith("vocabulary=") for one in given):
        return list(given)
    if "vocabulary" not in signature(entry.kind).parameters:
        raise usage_error(
            f"{entry.word} cannot take up new words: leave out --vocabulary open, or give a number to hash words to"
        )
    return [*given, "vocabulary=open"]


def _make_algorithm(word: Any, values: Mapping[str, Any]) -> Any:
    from headwater.core.algorithms import ALGORITHMS

    if word not in ALGORITHMS:
        raise usage_error(f"--algorithm must be one of {', '.join(ALGORITHMS)}, got {word!r}")
    known = list(signature(ALGORITHMS[word]).parameters)
    for name in values:
        if name not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise usage_error(f"algorithm {word} has no parameter {name!r}{_suggestion(name, known)}; {has}")
    return ALGORITHMS[word](**values)


def _suggestion(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
