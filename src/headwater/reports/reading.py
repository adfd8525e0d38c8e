"""One pass over data for a report: the rows with the lowest scores, and a sample of rows to draw, in bounded memory."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from headwater.core.chunk import Chunk
from headwater.core.statistics import Array
from headwater.diagnostics.component_description import column_names, scores_per_size, symbol_names
from headwater.diagnostics.description import Value
from headwater.diagnostics.history import perplexity
from headwater.estimators.base import StreamingEstimator
from headwater.reports.numbers import format_number

Rows: TypeAlias = Any  # what a model takes as rows: an array, a frame, a sparse matrix, documents or a Chunk
Data: TypeAlias = Any  # a path, rows, or an iterable of rows

DRAWN_ROWS = 2000  # in a figure, at most
ODD_VALUES = 5  # values that make a row odd
SHOWN_VALUES = 12  # symbols of a sequence, or values of a row


@dataclass(frozen=True, order=True)
class OddRow:
    """A row with a low score: the score it is ranked by, its place, what makes it odd, its values, its score and size."""

    ranked: float
    row: int
    why: tuple[Value, ...] = field(default=(), compare=False)
    values: tuple[str, ...] = field(default=(), compare=False)
    numbers: Array | None = field(default=None, compare=False)
    score: float = field(default=np.nan, compare=False)
    size: float | None = field(default=None, compare=False)


@dataclass(frozen=True, eq=False)
class DataSummary:
    """What a pass over rows found: their number, mean score, the oddest, and evenly spaced ones with their targets.

    The perplexity is that of a word or symbol; NaN if rows have none.
    """

    rows: int
    score: float
    odd: tuple[OddRow, ...]
    sample: Array | None
    perplexity: float = np.nan


def summarize_data(model: StreamingEstimator, data: Data, most: int) -> DataSummary:
    """Score all rows, and keep the oddest of them."""
    rows, total, scored, words = 0, 0.0, 0, 0.0
    worst: list[tuple[float, int, Array, float, float | None]] = []
    sample, scorer = _Sample(), model._describer.row_scorer()
    for chunk in chunks_of(model, data):
        given = _select_arguments(model, model._as_rows(chunk, learning=False))
        scores = np.asarray(scorer(**given))
        sizes = model._describer.row_sizes(given["X"], given.get("lengths"))
        ranked = scores_per_size(scores, sizes)
        finite = np.isfinite(scores)
        total, scored = total + float(scores[finite].sum()), scored + int(finite.sum())
        words += 0.0 if sizes is None else float(sizes[finite].sum())
        finite &= np.isfinite(ranked)
        given_numbers = isinstance(chunk, Chunk) and (chunk.start or chunk.places is not None)
        places = chunk.row_numbers if given_numbers else rows + np.arange(len(scores))
        look = _row_getter(model, given)
        for at in np.argsort(np.where(finite, ranked, np.inf), kind="stable")[:most]:
            entry = (-float(ranked[at]), -int(places[at]))
            if finite[at] and (len(worst) < most or entry > worst[0][:2]):
                # Places differ, so rows are never compared.
                found = (*entry, look(int(at)), float(scores[at]), None if sizes is None else float(sizes[at]))
                (heapq.heappush if len(worst) < most else heapq.heapreplace)(worst, found)
        if model._describer.gaussians() is not None or model._traits.target_columns:
            sample.take(look, len(scores), rows)
        rows += len(scores)
    odd = sorted(
        OddRow(-ranked, -place, model._describer.oddities(row, ODD_VALUES), _format_row(model, row), row, score, size)
        for ranked, place, row, score, size in worst
    )  # fmt: skip
    mean = total / scored if scored else np.nan
    return DataSummary(rows, mean, tuple(odd), sample.rows(), perplexity(total, words) if words else np.nan)


def chunks_of(model: StreamingEstimator, data: Data) -> Iterator[Rows]:
    """Chunks of what was given: a path, one chunk, array, matrix, frame or list of texts, or some of these after each other."""
    if isinstance(data, str | Path):
        data = import_module("headwater").stream(data, like=model, vocabulary="known")
    documents = isinstance(data, list | tuple) and data and isinstance(data[0], str)
    if documents or isinstance(data, Chunk) or hasattr(data, "shape") or hasattr(data, "dtypes"):
        yield data
    elif isinstance(data, Iterable):
        yield from data
    else:
        raise TypeError(f"data must be rows, or an iterable of chunks of them, got {type(data).__name__}")


def _select_arguments(model: StreamingEstimator, chunk: Rows) -> dict[str, Any]:
    given = {**chunk} if isinstance(chunk, Chunk) else {"X": chunk}
    wanted = {"X", "lengths", "key"} | ({"y"} if model._traits.target_columns else set())
    return {name: value for name, value in given.items() if name in wanted}


def _row_getter(model: StreamingEstimator, given: dict[str, Any]) -> Callable[[int], Array]:
    """A function that returns a row by its place in the chunk, as numbers; a target comes last."""
    rows = given["X"].X if isinstance(given["X"], Chunk) else given["X"]
    if model._traits.takes_sequences:
        if given.get("lengths") is None:
            return lambda at: np.array(rows[at])
        ends = np.concatenate([[0], np.cumsum(given["lengths"])])
        return lambda at: np.ravel(rows)[ends[at] : ends[at + 1]].copy()
    if hasattr(rows, "tocsr"):
        sparse = rows.tocsr()
        return lambda at: sparse[[at]].toarray()[0]
    table = np.asarray(rows)
    table = table[:, None] if table.ndim == 1 else table
    if "y" in given:
        table = np.column_stack([table, np.asarray(given["y"])])
    return lambda at: table[at].copy()  # a view would hold on to its whole chunk


def _format_row(model: StreamingEstimator, row: Array) -> tuple[str, ...]:
    """Return a row as text: a few numbers with the names of their columns, the nonzero counts, or symbols."""
    values = np.atleast_1d(row)
    if model._traits.takes_symbols:
        names = symbol_names(model, model.describe(values=1, components=1).columns)
        told = ["missing" if np.isnan(at) else names[int(at)] for at in values[:SHOWN_VALUES]]
        return (" ".join(told) + (" …" if len(values) > SHOWN_VALUES else ""),)
    names = column_names(model, len(values) - model._traits.target_columns) + ["target"] * model._traits.target_columns
    places = np.arange(len(values)) if len(values) <= SHOWN_VALUES else np.flatnonzero(values)
    if len(places) > SHOWN_VALUES:
        places = np.sort(places[np.argsort(-np.abs(values[places]), kind="stable")[:SHOWN_VALUES]])
    return tuple(f"{names[at]}: {_format_value(values[at])}" for at in places)


def _format_value(value: float | complex) -> str:
    if np.isnan(value):
        return "missing"
    return f"{value:.3g}" if np.iscomplexobj(value) else format_number(float(value.real))


class _Sample:
    """Rows at places that a stride divides, which doubles when there are too many."""

    def __init__(self) -> None:
        self.stride, self.kept = 1, dict[int, Array]()

    def take(self, look: Callable[[int], Array], number: int, before: int) -> None:
        while (before + number) // self.stride > DRAWN_ROWS:
            self.stride *= 2
            self.kept = {place: row for place, row in self.kept.items() if place % self.stride == 0}
        for place in range(-(-before // self.stride) * self.stride, before + number, self.stride):
            self.kept[place] = look(place - before)

    def rows(self) -> Array | None:
        return np.array(list(self.kept.values()), dtype=float) if self.kept else None
