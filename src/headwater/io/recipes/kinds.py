"""Kinds of rows: tables, sparse rows, documents and sequences, each with a recipe of its own."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from headwater.io.formats import Format
from headwater.io.options import Options
from headwater.io.read_errors import StreamError

CALLED = {"tables": "a table", "sparse": "sparse rows", "documents": "lines of text", "sequences": "sequences"}
# What names columns, or speaks of their values: lines have none.
COLUMNS = ("columns", "exclude", "target", "weight", "label", "key", "text", "categories", "missing")
WERE = {"tables": "a table was", "sparse": "sparse rows were", "documents": "lines of text were", "sequences": "sequences were"}
HEADS = {"Head": "column_choice", "SparseHead": "sparse"}


def plan(form: Format, head: Any, options: Options, place: str) -> Any:
    """Return the recipe for what a look at the first rows found."""
    home = HEADS.get(type(head).__name__, form.kind)
    if home == "column_choice" and options.text is not None:
        home = "documents"
    return import_module(f"headwater.io.recipes.{home}").plan(head, options, place)


def refuse_kind(recipe: Any, kind: str, name: str) -> None:
    """Refuse rows that are of another kind than those before."""
    if kind not in recipe.kinds:
        raise StreamError(f"{name} holds {CALLED[kind]}, where {WERE[recipe.kinds[0]]} before")
