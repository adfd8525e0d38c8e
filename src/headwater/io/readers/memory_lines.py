"""Documents and sequences in memory: texts one after the other, from a series or a generator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

from headwater.core.validation import one_line
from headwater.io.options import Options
from headwater.io.pieces import Held, Meter
from headwater.io.read_errors import NoRows, StreamError, reading

JUMPS = False
SAMPLE, STEP = 10_000, 1024


def head(piece: Held, options: Options) -> Any:
    """Return the first texts; of what comes once, they are put back in front of the rest."""
    items = iter(piece.items)
    seen = list(islice(items, SAMPLE))
    if piece.once:
        object.__setattr__(piece, "items", chain(seen, items))
    if not seen:
        raise NoRows(f"{piece.name} has no rows")
    return _texts(seen, piece.name)


def blocks(piece: Held, options: Options, recipe: Any, skip: int, meter: Meter) -> Iterator[Any]:
    """Yield arrays of texts."""
    items = iter(piece.items)
    while some := list(islice(items, STEP)):
        yield _texts(some, piece.name)


def count(piece: Held, options: Options) -> int | None:
    """Return how many texts there are, if that is known."""
    return len(piece.items) if hasattr(piece.items, "__len__") else None


def _texts(items: list[Any], name: str) -> Any:
    import pyarrow as pa

    with reading(name):
        return pa.array([_text(item, name) for item in items], pa.string())


def _text(item: Any, name: str) -> str:
    """Return a document, or a sequence whose symbols come one by one, as text."""
    if hasattr(item, "as_py"):
        item = item.as_py()
    if isinstance(item, str):
        return item
    if item is None or isinstance(item, bytes) or not isinstance(item, Iterable):
        raise StreamError(f"{name} must hold texts, got {one_line(item, 80)}")
    return " ".join(str(symbol) for symbol in item)
