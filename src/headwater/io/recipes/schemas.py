"""Schemas: how the rows of a model were made. They are checked, since a model file may come from a stranger."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headwater.core.validation import one_line
from headwater.io.options import MISSING_POLICIES, Options
from headwater.io.recipes import documents, sequences, sparse, tables, typed_columns
from headwater.io.recipes.arrow_columns import LEVEL_LIMIT
from headwater.io.recipes.companions import ROLES, Companions, refuse_roles
from headwater.io.recipes.date_parts import KINDS as DATE_KINDS
from headwater.io.recipes.recipe import Recipe
from headwater.io.schema_fields import Schema, check_field, read_flag, read_integer, read_texts
from headwater.io.vocabulary import VOCABULARY_LIMIT, Tokenizer

COLUMN_LIMIT = 1_000_000  # of a schema


def schema_of(like: object) -> Schema:
    """Return the schema of a model, of a stream, or itself; with the words that a model with an open vocabulary knows."""
    found = like if isinstance(like, Mapping) else getattr(like, "schema_", getattr(like, "schema", None))
    if found is None:
        raise ValueError(f"like must be a model that learned from a stream, but {type(like).__name__} has no schema_")
    if not isinstance(found, Mapping):
        raise ValueError(f"like must have a schema, got {one_line(found, 80)}")
    kind = found.get("kind")
    check_field(isinstance(kind, str) and kind in RECIPE_READERS, "kind", kind)
    words = getattr(like, "feature_names_in_", None)
    if found.get("open") and words is not None:
        # The next new word would take a column without a name.
        open_vocabulary = getattr(like, "vocabulary", None) == "open" and len(words) == getattr(
            like, "n_features_in_", len(words)
        )
        return {**found, "open": open_vocabulary, "vocabulary": [str(word) for word in words]}
    return found


def recipe_like(schema: Schema, options: Options) -> Recipe:
    """Return the recipe that a schema describes, or refuse it."""
    if options.columns is not None:
        raise ValueError("columns are those of the model where rows are read like others: leave columns= out, or like=")
    return RECIPE_READERS[schema["kind"]](schema, options)


def _table_recipe(schema: Schema, options: Options) -> tables.TableRecipe:
    inputs = schema.get("inputs")
    check_field(isinstance(inputs, list | tuple) and 0 < len(inputs) <= COLUMN_LIMIT, "inputs", inputs)
    chosen = []
    for one in inputs or ():
        check_field(isinstance(one, Mapping) and isinstance(one.get("name"), str), "inputs", one)
        dates = one.get("dates")
        check_field(dates is None or dates in DATE_KINDS, "inputs", one)
        chosen.append(tables.Input(one["name"], read_texts(one, "levels", LEVEL_LIMIT), dates))
    names = [one.name for one in chosen]
    check_field(len(set(names)) == len(names), "inputs", names)
    named = read_flag(schema, "named", True)
    check_field(named or all(name[:1] == "x" and name[1:].isdecimal() and len(name) < 12 for name in names), "inputs", names)
    missing = schema.get("missing", "refuse")
    check_field(missing in MISSING_POLICIES, "missing", missing)
    missing = missing if options.missing == "refuse" else options.missing
    return tables.TableRecipe(tuple(chosen), _companions(schema, options), missing, named, read_flag(schema, "complex", False))


def _columns_recipe(schema: Schema, options: Options) -> typed_columns.TypedColumnsRecipe:
    inputs = schema.get("inputs")
    check_field(isinstance(inputs, list | tuple) and 0 < len(inputs) <= COLUMN_LIMIT, "inputs", inputs)
    types: dict[str, str] = {}
    for one in inputs or ():
        known = isinstance(one, Mapping) and isinstance(one.get("name"), str) and one.get("type") in typed_columns.COLUMN_TYPES
        check_field(known and one["name"] not in types, "inputs", one)
        types[one["name"]] = one["type"]
    named = read_flag(schema, "named", True)
    check_field(
        named or all(name[:1] == "x" and name[1:].isdecimal() and len(name) < 12 for name in types), "inputs", list(types)
    )
    typed_columns.refuse_missing(options.missing)
    return typed_columns.TypedColumnsRecipe(types, _companions(schema, options), named)


def _sparse_recipe(schema: Schema, options: Options) -> sparse.SparseRecipe:
    width = read_integer(schema, "width", 1, sparse.WIDTH_LIMIT)
    vocabulary = read_texts(schema, "vocabulary", VOCABULARY_LIMIT)
    check_field(vocabulary is None or len(vocabulary) == width, "vocabulary", vocabulary)
    return sparse.SparseRecipe(width, vocabulary, _companions(schema, options), base=read_integer(schema, "base", 0, 1, 1))


def _document_recipe(schema: Schema, options: Options) -> documents.DocumentRecipe:
    tokens = Tokenizer.of_schema(schema)
    text = schema.get("text")
    check_field(text is None or isinstance(text, str), "text", text)
    if options.text is not None and isinstance(options.text, str):
        text = options.text
    if "buckets" in schema:
        buckets = read_integer(schema, "buckets", 2, sparse.WIDTH_LIMIT)
        return documents.DocumentRecipe(tokens, buckets=buckets, text=text, companions=_companions(schema, options))
    vocabulary = read_texts(schema, "vocabulary", VOCABULARY_LIMIT)
    open_vocabulary = read_flag(schema, "open", False) and options.vocabulary != "known"
    check_field(bool(vocabulary) or open_vocabulary, "vocabulary", vocabulary)
    return documents.DocumentRecipe(
        tokens, vocabulary or (), open_vocabulary, text=text, companions=_companions(schema, options)
    )


def _sequence_recipe(schema: Schema, options: Options) -> sequences.SequenceRecipe:
    symbols = read_texts(schema, "symbols", sequences.SYMBOL_LIMIT)
    check_field(bool(symbols), "symbols", symbols)
    refuse_roles(options, "what is read like sequences")
    return sequences.SequenceRecipe(symbols or ())


def _companions(schema: Schema, options: Options) -> Companions:
    """Return the companions of the schema, which may be absent, or those that were named now, which may not."""
    roles: dict[str, str | None] = {}
    for role in ROLES:
        name = schema.get(role)
        check_field(name is None or isinstance(name, str), role, name)
        roles[role] = name
    levels = read_texts(schema, "label_levels", LEVEL_LIMIT)
    errors = read_texts(schema, "standard_errors", COLUMN_LIMIT) or ()
    if options.standard_errors:
        raise ValueError("standard_errors are those of the model where rows are read like others: leave one of the two out")
    named = {role: getattr(options, role) for role in ROLES if getattr(options, role) is not None}
    if any(not isinstance(name, str) for name in named.values()):
        raise ValueError(f"{next(iter(named))} must be the name of a column where rows are read like others, got {named}")
    if not named:
        return Companions(**roles, label_levels=levels, standard_errors=errors, optional=True)
    absent = dict.fromkeys(ROLES)
    return Companions(**{**absent, **named}, label_levels=levels if named.get("label") == roles["label"] else None)


RECIPE_READERS: dict[str, Callable[[Schema, Options], Recipe]] = {
    "table": _table_recipe,
    "columns": _columns_recipe,
    "sparse": _sparse_recipe,
    "text": _document_recipe,
    "sequences": _sequence_recipe,
}
