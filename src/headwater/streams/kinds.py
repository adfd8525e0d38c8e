"""Kinds of rows: tables, sparse rows, documents and sequences, each with a recipe of its own."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from headwater.streams.formats import Format
from headwater.streams.options import Options
from headwater.streams.sentences import StreamError

CALLED = {"tables": "a table", "sparse": "sparse rows", "documents": "lines of text", "sequences": "sequences"}
# What names columns, or speaks of their values: lines have none.
COLUMNS = ("columns", "exclude", "target", "weight", "label", "key", "text", "categories", "missing")
HEADS = {"Head": "choosing", "SparseHead": "sparse"}


def plan(form: Format, head: Any, options: Options, place: str) -> Any:
    """Return the recipe for what a look at the first rows found."""
    home = HEADS.get(type(head).__name__, form.kind)
    if home == "choosing" and options.text is not None:
        home = "documents"
    elif home in ("documents", "sequences"):
        for name in COLUMNS:
            if name in options.said():
                raise StreamError(f"{place} holds {CALLED[home]}, which have no columns: leave out {name}=")
    return import_module(f"headwater.streams.{home}").plan(head, options, place)


def refuse_kind(recipe: Any, kind: str, name: str) -> None:
    """Refuse rows that are of another kind than those before."""
    if kind not in recipe.kinds:
        raise StreamError(f"{name} holds {CALLED[kind]}, where {CALLED[recipe.kinds[0]]} were before")
