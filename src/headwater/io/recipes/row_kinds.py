"""Kinds of rows: tables, sparse rows, documents and sequences. Each kind has its own recipe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.io.formats import Format
from headwater.io.options import Options
from headwater.io.read_errors import StreamError
from headwater.io.recipes.column_choice import plan_table
from headwater.io.recipes.documents import plan_documents
from headwater.io.recipes.recipe import Recipe
from headwater.io.recipes.sequences import plan_sequences
from headwater.io.recipes.sparse import SparseHead, plan_sparse
from headwater.io.recipes.tables import TableHead

if TYPE_CHECKING:
    from headwater.io.recipes.recipe import Head

# Names of the kinds in errors: as an object, and as a subject with a verb.
KIND_PHRASES = {"tables": "a table", "sparse": "sparse rows", "documents": "lines of text", "sequences": "sequences"}
KIND_CLAUSES = {
    "tables": "a table was",
    "sparse": "sparse rows were",
    "documents": "lines of text were",
    "sequences": "sequences were",
}


def plan_recipe(form: Format, head: Head, options: Options, place: str) -> Recipe:
    """Return the recipe for the first rows of a source."""
    if isinstance(head, SparseHead):
        return plan_sparse(head, options, place)
    if isinstance(head, TableHead):
        return plan_table(head, options, place) if options.text is None else plan_documents(head, options, place)
    return plan_sequences(head, options, place) if form.kind == "sequences" else plan_documents(head, options, place)


def refuse_kind(recipe: Recipe, kind: str, name: str) -> None:
    """Refuse rows of another kind than those before."""
    if kind not in recipe.kinds:
        raise StreamError(f"{name} holds {KIND_PHRASES[kind]}, where {KIND_CLAUSES[recipe.kinds[0]]} before")
