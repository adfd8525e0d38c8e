"""Schemas: how rows were made, kept by a model; checked, since a model file may come from anybody."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headwater.core.validation import one_line
from headwater.io.options import MISSING, Options
from headwater.io.recipes import documents, sequences, sparse, tables
from headwater.io.recipes.columns import MOST_LEVELS
from headwater.io.recipes.companions import ROLES, Companions, refuse_roles
from headwater.io.schema_fields import check_field, flag, texts, whole
from headwater.io.vocabulary import MOST_WORDS, Tokens

MOST_COLUMNS = 1_000_000


def schema_of(like: Any) -> Mapping[str, Any]:
    """Return the schema of a model, of a stream, or itself; with the words that a model with an open vocabulary knows."""
    found = like if isinstance(like, Mapping) else getattr(like, "schema_", getattr(like, "schema", None))
    if found is None:
        raise ValueError(f"like must be a model that learned from a stream, but {type(like).__name__} has no schema_")
    if not isinstance(found, Mapping):
        raise ValueError(f"like must have a schema, got {one_line(found, 80)}")
    kind = found.get("kind")
    check_field(isinstance(kind, str) and kind in KINDS, "kind", kind)
    words = getattr(like, "feature_names_in_", None)
    if found.get("open") and words is not None:
        # A column without a name would be taken for that of the next new word.
        grows = getattr(like, "vocabulary", None) == "open" and len(words) == getattr(like, "n_features_in_", len(words))
        return {**found, "open": grows, "vocabulary": [str(word) for word in words]}
    return found


def recipe_like(schema: Mapping[str, Any], options: Options) -> Any:
    """Return the recipe that a schema speaks of, or refuse it."""
    if options.columns is not None:
        raise ValueError("columns are those of the model where rows are read like others: leave columns= out, or like=")
    return KINDS[schema["kind"]](schema, options)


def _table(schema: Mapping[str, Any], options: Options) -> tables.Recipe:
    inputs = schema.get("inputs")
    check_field(isinstance(inputs, list | tuple) and 0 < len(inputs) <= MOST_COLUMNS, "inputs", inputs)
    chosen = []
    for one in inputs or ():
        check_field(isinstance(one, Mapping) and isinstance(one.get("name"), str), "inputs", one)
        chosen.append(tables.Input(one["name"], texts(one, "levels", MOST_LEVELS)))
    names = [one.name for one in chosen]
    check_field(len(set(names)) == len(names), "inputs", names)
    named = flag(schema, "named", True)
    check_field(named or all(name[:1] == "x" and name[1:].isdecimal() and len(name) < 12 for name in names), "inputs", names)
    missing = schema.get("missing", "refuse")
    check_field(missing in MISSING, "missing", missing)
    missing = missing if options.missing == "refuse" else options.missing
    return tables.Recipe(tuple(chosen), _companions(schema, options), missing, named, flag(schema, "complex", False))


def _sparse(schema: Mapping[str, Any], options: Options) -> sparse.Recipe:
    width = whole(schema, "width", 1, sparse.WIDEST)
    vocabulary = texts(schema, "vocabulary", MOST_WORDS)
    check_field(vocabulary is None or len(vocabulary) == width, "vocabulary", vocabulary)
    return sparse.Recipe(width, vocabulary, _companions(schema, options), base=whole(schema, "base", 0, 1, 1))


def _text(schema: Mapping[str, Any], options: Options) -> documents.Recipe:
    tokens = Tokens.of_schema(schema)
    text = schema.get("text")
    check_field(text is None or isinstance(text, str), "text", text)
    if options.text is not None and isinstance(options.text, str):
        text = options.text
    if "buckets" in schema:
        buckets = whole(schema, "buckets", 2, sparse.WIDEST)
        return documents.Recipe(tokens, buckets=buckets, text=text, companions=_companions(schema, options))
    vocabulary = texts(schema, "vocabulary", MOST_WORDS)
    grows = flag(schema, "open", False) and options.vocabulary != "known"
    check_field(bool(vocabulary) or grows, "vocabulary", vocabulary)
    return documents.Recipe(tokens, vocabulary or (), grows, text=text, companions=_companions(schema, options))


def _sequences(schema: Mapping[str, Any], options: Options) -> sequences.Recipe:
    symbols = texts(schema, "symbols", sequences.MOST_SYMBOLS)
    check_field(bool(symbols), "symbols", symbols)
    refuse_roles(options, "what is read like sequences")
    return sequences.Recipe(symbols or ())


def _companions(schema: Mapping[str, Any], options: Options) -> Companions:
    """Return the companions of the schema, which may be absent, or those that were named now, which may not."""
    roles: dict[str, Any] = {}
    for role in ROLES:
        name = schema.get(role)
        check_field(name is None or isinstance(name, str), role, name)
        roles[role] = name
    levels = texts(schema, "label_levels", MOST_LEVELS)
    named = {role: getattr(options, role) for role in ROLES if getattr(options, role) is not None}
    if any(not isinstance(name, str) for name in named.values()):
        raise ValueError(f"{next(iter(named))} must be the name of a column where rows are read like others, got {named}")
    if not named:
        return Companions(**roles, label_levels=levels, relaxed=True)
    nobody = dict.fromkeys(ROLES)
    return Companions(**{**nobody, **named}, label_levels=levels if named.get("label") == roles["label"] else None)


KINDS: dict[str, Callable[[Mapping[str, Any], Options], Any]] = {
    "table": _table,
    "sparse": _sparse,
    "text": _text,
    "sequences": _sequences,
}
