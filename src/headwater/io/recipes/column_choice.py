"""Choosing: what becomes of each column that a look at a table found, or why it is refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from headwater.io.options import Options
from headwater.io.read_errors import StreamError, columns_called, listed
from headwater.io.recipes import columns as of
from headwater.io.recipes.companions import ROLES, plan_companions
from headwater.io.recipes.kept_columns import Kept, plain
from headwater.io.recipes.tables import Head, Input, Recipe


def plan(head: Head, options: Options, place: str) -> Recipe:
    """Choose the columns and say what becomes of each, or refuse them."""
    refuse_twice(head.names, place)
    roles = {role: resolved(getattr(options, role), head.names, place, role) for role in ROLES}
    kept = {resolved(one, head.names, place, "keep") for one in options.keep}
    taken = {name for name in (*roles.values(), *kept) if name is not None}
    excluded = {resolved(one, head.names, place, "exclude") for one in options.exclude}
    if options.columns is None:
        left_out = taken | excluded
        chosen = [name for name in head.names if name not in left_out]
    else:
        named = (resolved(one, head.names, place, "columns") or "" for one in options.columns)
        chosen = [name for name in dict.fromkeys(named) if name not in excluded]
    inputs = _inputs(chosen, head, options, place)
    if not inputs:
        raise StreamError(f"{place} has no column to learn from; it has {listed(head.names)}")
    others = None if options.columns is not None else tuple(excluded | set(chosen))
    return Recipe(
        inputs, plan_companions(roles, head.types, head.sample, place), options.missing, head.named, head.complex,
        others=None if others is None else tuple(name for name in others if name is not None),
    )  # fmt: skip


def keeping(recipe: Any, head: Any, options: Options, place: str) -> Any:
    """Return a recipe that keeps the columns that were named, or refuse them."""
    if not isinstance(head, Head):
        raise StreamError(f"{place} is no table, so that keep= can name no columns of it")
    names = dict.fromkeys(str(resolved(one, head.names, place, "keep")) for one in options.keep)
    # The first row alone does not tell the type of a column of text: its values are kept as they are written.
    types = {} if options.brief and head.guessed else head.types
    return replace(recipe, kept=Kept(tuple((name, plain(types.get(name, text_type(head)))) for name in names)))


def text_type(head: Head) -> Any:
    """Return the type of a column that has none: that of text in a file of text, and no type in a matrix."""
    import pyarrow as pa

    return pa.string() if head.guessed else None


def refuse_twice(names: tuple[str, ...] | list[str], place: str) -> None:
    """Refuse names that stand for more than one column."""
    if len(set(names)) < len(names):
        twice = sorted(name for name, times in Counter(names).items() if times > 1)
        raise StreamError(f"{place} has the {columns_called(twice)} more than once")


def resolved(name: str | int | None, names: tuple[str, ...], place: str, role: str) -> str | None:
    """Return the name of a column, which may be given by its place."""
    if isinstance(name, int) and -len(names) <= name < len(names):
        return names[name]
    if name is None or (isinstance(name, str) and name in names):
        return name
    raise StreamError(f"{role} names {name!r}, which {place} does not have; it has {listed(names) or 'no columns with names'}")


def _inputs(chosen: list[str], head: Head, options: Options, place: str) -> tuple[Input, ...]:
    odd = [name for name in chosen if name in head.types and not of.is_number(head.types[name])]
    if options.categories == "refuse" and head.guessed and head.sample:
        # Where the reader meets what is no number, it can say the line.
        odd = [name for name in odd if not (of.is_category(head.types[name]) and of.mostly_numbers(head.sample(name)))]
    if options.categories == "drop":
        words = set(odd)
        return tuple(Input(name) for name in chosen if name not in words)
    nested = [name for name in odd if not of.is_category(head.types[name])]
    if odd and (options.categories == "refuse" or nested):
        wrong = odd if options.categories == "refuse" else nested
        kinds = ", ".join(dict.fromkeys(str(head.types[name]) for name in wrong))
        ways = "exclude=" if nested else "categories='one-hot', categories='drop', or exclude="
        raise StreamError(f"{place} holds no numbers in {columns_called(wrong)} ({kinds:.120}): use {ways}")
    return tuple(
        Input(name, of.levels(head.sample(name), f"column {name!r} of {place}")) if name in odd and head.sample else Input(name)
        for name in chosen
    )
