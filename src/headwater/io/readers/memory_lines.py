"""Documents and sequences in memory: texts one after the other, from a series or a generator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING

from headwater.core.validation import one_line
from headwater.io.options import Options
from headwater.io.read_errors import NoRows, StreamError, explain_read_errors
from headwater.io.recipes.recipe import Recipe
from headwater.io.sources import InMemory, Meter

if TYPE_CHECKING:
    import pyarrow as pa

RANDOM_ACCESS = False
SAMPLE_TEXTS, TEXTS_PER_BLOCK = 10_000, 1024


def head(source: InMemory, options: Options) -> pa.StringArray:
    """Return the first texts. If the source can be read only once, they are put back in front of the rest."""
    items = iter(source.items)
    seen = list(islice(items, SAMPLE_TEXTS))
    if source.once:
        source.items = chain(seen, items)
    if not seen:
        raise NoRows(f"{source.name} has no rows")
    return _texts(seen, source.name)


def blocks(source: InMemory, options: Options, recipe: Recipe, skip: int, meter: Meter) -> Iterator[pa.StringArray]:
    """Yield arrays of texts."""
    items = iter(source.items)
    while some := list(islice(items, TEXTS_PER_BLOCK)):
        yield _texts(some, source.name)


def count(source: InMemory, options: Options) -> int | None:
    """Return how many texts there are, if that is known."""
    return len(source.items) if hasattr(source.items, "__len__") else None


def _texts(items: list[object], name: str) -> pa.StringArray:
    import pyarrow as pa

    with explain_read_errors(name):
        return pa.array([_text(item, name) for item in items], pa.string())


def _text(item: object, name: str) -> str:
    """Return a document, or a sequence whose symbols come one by one, as text."""
    if hasattr(item, "as_py"):
        item = item.as_py()
    if isinstance(item, str):
        return item
    if item is None or isinstance(item, bytes) or not isinstance(item, Iterable):
        raise StreamError(f"{name} must hold texts, got {one_line(item, 80)}")
    return " ".join(str(symbol) for symbol in item)
