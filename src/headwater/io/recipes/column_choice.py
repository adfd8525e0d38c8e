"""The choice of columns: which are inputs, companions or left out, and why a column is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from headwater.io.options import Options
from headwater.io.read_errors import NoNumbers, StreamError, column_phrase, quote_names
from headwater.io.recipes import arrow_columns
from headwater.io.recipes.companions import EXACT, ROLES, KeptColumns, plan_companions, value_type
from headwater.io.recipes.date_parts import kind_of_dates
from headwater.io.recipes.recipe import Recipe
from headwater.io.recipes.tables import Input, TableHead, TableRecipe
from headwater.io.recipes.typed_columns import NUMBER, TypedColumnsRecipe, column_type, refuse_missing

if TYPE_CHECKING:
    import pyarrow as pa

    from headwater.io.recipes.recipe import Head

HINTED = 32  # columns that are looked at for a hint


def plan_table(head: TableHead, options: Options, place: str) -> TableRecipe | TypedColumnsRecipe:
    """Choose the inputs, companions and columns to leave out, or refuse them."""
    refuse_duplicate_names(head.names, place)
    roles = {role: resolve_column(getattr(options, role), head.names, place, role) for role in ROLES}
    kept = set(resolve_columns(options.keep, head.names, place, "keep"))
    errors = tuple(
        EXACT if one == EXACT else str(resolve_column(one, head.names, place, "standard_errors"))
        for one in options.standard_errors
    )
    taken = {name for name in (*roles.values(), *errors, *kept) if name is not None}
    excluded = set(resolve_columns(options.exclude, head.names, place, "exclude"))
    if options.columns is None:
        left_out = taken | excluded
        chosen = [name for name in head.names if name not in left_out]
    else:
        named = resolve_columns(options.columns, head.names, place, "columns")
        chosen = [name for name in dict.fromkeys(named) if name not in excluded]
    typed = options.categories == "keep"
    if typed:
        refuse_missing(options.missing)
    inputs = tuple(Input(name) for name in chosen) if typed else _inputs(chosen, head, options, place)
    if not inputs:
        raise StreamError(f"{place} has no column to learn from; it has {quote_names(head.names)}")
    if errors and typed:
        raise StreamError("standard_errors are for models of numbers, such as GaussianMixture: leave them out")
    if errors:
        check_errors(errors, [label for one in inputs for label in one.labels])
    companions = plan_companions(roles, head.types, head.sample, place, errors)
    others = None if options.columns is not None else tuple(name for name in excluded | set(chosen) if name is not None)
    if typed:
        types = {name: _typed_column(head.types.get(name), options) for name in chosen}
        return TypedColumnsRecipe(types, companions, head.named, others)
    return TableRecipe(inputs, companions, options.missing, head.named, head.complex, others=others)


def _typed_column(kind: pa.DataType | None, options: Options) -> str:
    """Return what a column that is passed on as it is holds; numbers, where the file has no types."""
    if kind is None:
        return NUMBER
    return (kind_of_dates(kind) if options.dates == "parts" else None) or column_type(kind)


def check_errors(errors: tuple[str, ...], names: list[str]) -> None:
    """Refuse standard errors of which there is not one for each column that is learned."""
    if len(errors) != len(names):
        raise StreamError(
            f"standard_errors must name a column for each column of numbers ({quote_names(names)}), with "
            f"'-' for one that is exact, got {len(errors)}"
        )


def add_kept_columns(recipe: Recipe, head: Head, options: Options, place: str) -> Recipe:
    """Return a recipe that keeps the columns that were named, or refuse them."""
    if not isinstance(head, TableHead):
        raise StreamError(f"{place} is no table, so that keep= can name no columns of it")
    names = dict.fromkeys(resolve_columns(options.keep, head.names, place, "keep"))
    # One row does not tell the type of a column of text: its values are kept as they are written.
    types = {} if options.brief and head.guessed else head.types
    kept = KeptColumns(tuple((name, value_type(types.get(name, default_column_type(head)))) for name in names))
    changed: Recipe = replace(cast(Any, recipe), kept=kept)  # recipes of tables and of documents in tables have this field
    return changed


def default_column_type(head: TableHead) -> pa.DataType | None:
    """Return the type of an untyped column: text in a file of text, and none in a matrix."""
    import pyarrow as pa

    return pa.string() if head.guessed else None


def refuse_duplicate_names(names: tuple[str, ...] | list[str], place: str) -> None:
    """Refuse names that stand for more than one column."""
    if len(set(names)) < len(names):
        twice = sorted(name for name, times in Counter(names).items() if times > 1)
        raise StreamError(f"{place} has the {column_phrase(twice)} more than once")


def resolve_column(name: str | int | None, names: tuple[str, ...], place: str, role: str) -> str | None:
    """Return the name of a column, which may be given by its place."""
    if isinstance(name, int) and -len(names) <= name < len(names):
        return names[name]
    if name is None or (isinstance(name, str) and name in names):
        return name
    raise StreamError(
        f"{role} names {name!r}, which {place} does not have; it has {quote_names(names) or 'no columns with names'}"
    )


def resolve_columns(given: Iterable[str | int], names: tuple[str, ...], place: str, role: str) -> list[str]:
    """Return the names of columns, each of which may be given by its place; there may be very many."""
    known = frozenset(names)
    return [one if isinstance(one, str) and one in known else str(resolve_column(one, names, place, role)) for one in given]


def _comma_hint(head: TableHead, wrong: list[str], options: Options) -> str:
    """What to say of a column of words that may be numbers with a comma for a decimal point."""
    if not head.guessed or head.sample is None or options.decimal is not None:
        return ""
    for name in wrong[:HINTED]:
        if arrow_columns.is_category(head.types[name]) and arrow_columns.has_decimal_commas(head.sample(name)):
            return f"; decimal=',' reads the commas of {name!r} as decimal points"
    return ""


def _inputs(chosen: list[str], head: TableHead, options: Options, place: str) -> tuple[Input, ...]:
    dates = {}
    if options.dates == "parts":
        found = {name: kind_of_dates(head.types[name]) for name in chosen if name in head.types}
        dates = {name: kind for name, kind in found.items() if kind is not None}
    odd = [
        name for name in chosen if name in head.types and name not in dates and not arrow_columns.is_number(head.types[name])
    ]
    if options.categories == "refuse" and head.guessed and head.sample:
        # The reader can name the line of a value that is not a number.
        odd = [
            name
            for name in odd
            if not (arrow_columns.is_category(head.types[name]) and arrow_columns.is_mostly_numbers(head.sample(name)))
        ]
    if options.categories == "drop":
        words = set(odd)
        return tuple(Input(name, dates=dates.get(name)) for name in chosen if name not in words)
    nested = [name for name in odd if not arrow_columns.is_category(head.types[name])]
    if odd and (options.categories == "refuse" or nested):
        wrong = odd if options.categories == "refuse" else nested
        kinds = ", ".join(dict.fromkeys(str(head.types[name]) for name in wrong))
        ways = "exclude=" if nested else "categories='one-hot', categories='drop', or exclude="
        if any(kind_of_dates(head.types[name]) for name in wrong):
            ways = ways.replace("or exclude=", "dates='parts', or exclude=") if not nested else f"dates='parts', or {ways}"
        if options.categories == "refuse" and not nested:
            ways += ", or MixedMixture (headwater fit mixed), which takes them as they are"
        sentence = (
            f"{place} holds no numbers in {column_phrase(wrong)} ({kinds:.120}): use {ways}{_comma_hint(head, wrong, options)}"
        )
        raise NoNumbers(sentence, place, () if nested else wrong)
    words = set(odd)
    return tuple(
        Input(name, arrow_columns.find_levels(head.sample(name), f"column {name!r} of {place}"))
        if name in words and head.sample
        else Input(name, dates=dates.get(name))
        for name in chosen
    )
