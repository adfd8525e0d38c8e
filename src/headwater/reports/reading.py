"""One pass over data for a report: the oddest rows, and a sample of rows to draw, in bounded memory."""

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
from headwater.diagnostics.numbers import format_number
from headwater.estimators.base import StreamingEstimator
from headwater.reports.rates import RateCounts, RateLine
from headwater.reports.series import Series, SeriesReader

Rows: TypeAlias = Any  # what a model takes as rows: an array, a frame, a sparse matrix, documents or a Chunk
Data: TypeAlias = object  # a path, rows, or an iterable of rows

DRAWN_ROWS = 2000  # in a figure, at most
ODD_VALUES = 5  # values that make a row odd
SHOWN_VALUES = 12  # symbols of a sequence, or values of a row
KEPT_LETTERS = 120  # of a value that was kept
USUAL_SCORES = 4096  # that the threshold of odd rows is found by
LOWEST_SCORES = 1000  # that odd rows are counted in
LEAST_SCORES = 40  # with fewer, no row is called odd
TAIL_SHARES = (0.2, 0.05)  # of the rows, between which the fall of the tail is measured: even 5% of odd rows do not bend it
FALSE_ALARMS = 0.05  # rows that are called odd by chance, expected in all of the data


@dataclass(frozen=True, order=True)
class OddRow:
    """An odd row: its score (per word, of documents), its place, what makes it odd, its values, its score and size.

    `anomaly_score` is what rows are ranked by, where there is one. `kept` are the columns that were kept to recognize it by,
    such as an id.
    """

    ranked: float
    row: int
    why: tuple[Value, ...] = field(default=(), compare=False)
    values: tuple[str, ...] = field(default=(), compare=False)
    numbers: Array | None = field(default=None, compare=False)
    score: float = field(default=np.nan, compare=False)
    size: float | None = field(default=None, compare=False)
    kept: dict[str, str] = field(default_factory=dict, compare=False)
    anomaly_score: float = field(default=np.nan, compare=False)


@dataclass(frozen=True, eq=False)
class DataSummary:
    """What a pass over rows found: their number, mean score, the oddest, and evenly spaced ones with their targets.

    The perplexity is that of a word or symbol; NaN if rows have none. `odd` are the oddest rows, `by_anomaly_score` or by the
    lowest score, of which the first `odd_number` are beyond `threshold`: far from all others. There may be more of them than
    `odd` shows. The series is that of a chain.
    """

    rows: int
    score: float
    odd: tuple[OddRow, ...]
    sample: Array | None
    perplexity: float = np.nan
    threshold: float = -np.inf
    odd_number: int = 0
    odd_number_is_least: bool = False
    rates: tuple[RateLine, ...] = ()
    by_anomaly_score: bool = False
    series: Series | None = None


def summarize_data(model: StreamingEstimator, data: Data, most: int) -> DataSummary:
    """Score all rows, and keep the oddest of them."""
    rows, total, scored, words = 0, 0.0, 0, 0.0
    worst: list[tuple[float, int, Array, float, float, float | None, dict[str, str]]] = []
    sample, usual, scorer = _Sample(), ScoreSample(), model._describer.row_scorer()
    rates, by_anomaly_score, series = RateCounts(model), False, SeriesReader(model)
    for chunk in chunks_of(model, data):
        given = select_arguments(model, model._as_rows(chunk, learning=False))
        scores = np.asarray(scorer(**given))
        rates.take(given)
        sizes = model._describer.row_sizes(given["X"], given.get("lengths"))
        shown = scores_per_size(scores, sizes)
        odd_by = rates.anomaly_scores(given)
        by_anomaly_score = odd_by is not None
        ranked = shown if odd_by is None else -odd_by
        finite = np.isfinite(scores)
        total, scored = total + float(scores[finite].sum()), scored + int(finite.sum())
        words += 0.0 if sizes is None else float(sizes[finite].sum())
        finite &= np.isfinite(ranked)
        given_numbers = isinstance(chunk, Chunk) and (chunk.start or chunk.places is not None)
        places = chunk.row_numbers if given_numbers else rows + np.arange(len(scores))
        series.take(chunk, given, places)
        look, label = row_getter(model, given), _kept_getter(chunk, len(scores))
        usual.take(ranked[finite])
        for at in np.argsort(np.where(finite, ranked, np.inf), kind="stable")[:most]:
            entry = (-float(ranked[at]), -int(places[at]))
            if finite[at] and (len(worst) < most or entry > worst[0][:2]):
                # Places differ, so rows are never compared.
                size = None if sizes is None else float(sizes[at])
                found = (*entry, look(int(at)), float(shown[at]), float(scores[at]), size, label(int(at)))
                (heapq.heappush if len(worst) < most else heapq.heapreplace)(worst, found)
        if model._describer.gaussians() is not None or model._traits.target_columns:
            sample.take(look, len(scores), rows)
        rows += len(scores)
    odd = [
        OddRow(shown, -place, model._describer.oddities(row, ODD_VALUES), _format_row(model, row), row, score, size, kept,
               oddness if by_anomaly_score else np.nan)
        for oddness, place, row, shown, score, size, kept in sorted(worst, key=lambda one: (-one[0], -one[1]))
    ]  # fmt: skip
    mean = total / scored if scored else np.nan
    threshold = usual.odd_threshold()
    number = int((usual.lowest < threshold).sum())
    return DataSummary(
        rows, mean, tuple(odd), sample.rows(), perplexity(total, words) if words else np.nan,
        threshold, number, number == LOWEST_SCORES, rates.lines(), by_anomaly_score, series.series(),
    )  # fmt: skip


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


def select_arguments(model: StreamingEstimator, chunk: Rows) -> dict[str, object]:
    """Return rows and what the model reads beside them."""
    given = {**chunk} if isinstance(chunk, Chunk) else {"X": chunk}
    wanted = {"X", "lengths", "key"} | ({"y"} if model._traits.target_columns else set())
    return {name: value for name, value in given.items() if name in wanted}


def _kept_getter(chunk: Rows, number: int) -> Callable[[int], dict[str, str]]:
    """A function that returns the columns that were kept beside a row, as text, by its place in the chunk."""
    kept = chunk.kept if isinstance(chunk, Chunk) else {}
    columns = {name: values for name, values in kept.items() if len(values) == number}  # a sequence has none of its own
    return lambda at: {name: _format_kept(values[at].as_py()) for name, values in columns.items()}


def _format_kept(value: object) -> str:
    if isinstance(value, float):
        return format_number(value)
    text = "" if value is None else str(value)
    return text if len(text) <= KEPT_LETTERS else text[: KEPT_LETTERS - 1] + "…"


def row_getter(model: StreamingEstimator, given: dict[str, Any]) -> Callable[[int], Array]:
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
        shown = ["missing" if np.isnan(at) else names[int(at)] for at in values[:SHOWN_VALUES]]
        return (" ".join(shown) + (" …" if len(values) > SHOWN_VALUES else ""),)
    names = column_names(model, len(values) - model._traits.target_columns) + ["target"] * model._traits.target_columns
    places = np.arange(len(values)) if len(values) <= SHOWN_VALUES else np.flatnonzero(values)
    if len(places) > SHOWN_VALUES:
        places = np.sort(places[np.argsort(-np.abs(values[places]), kind="stable")[:SHOWN_VALUES]])
    texts = model._describer.category_texts(values)
    said = {int(at): texts.get(int(at)) for at in places}
    return tuple(
        f"{names[at]}: {_format_value(values[at]) if text is None else text}" for at, text in said.items() if text != ""
    )


def _format_value(value: float | complex) -> str:
    if np.isnan(value):
        return "missing"
    return f"{value:.3g}" if np.iscomplexobj(value) else format_number(float(value.real))


class ScoreSample:
    """Scores at places that a stride divides, and the lowest ones: how low is too low to be chance, in bounded memory."""

    def __init__(self) -> None:
        self.stride, self.seen, self.kept = 1, 0, np.empty(0)
        self.lowest = np.empty(0)

    def take(self, scores: Array) -> None:
        """Add the scores of some rows."""
        while (self.seen + len(scores)) // self.stride > USUAL_SCORES:
            self.stride, self.kept = 2 * self.stride, self.kept[::2]
        self.kept = np.concatenate([self.kept, scores[-self.seen % self.stride :: self.stride]])
        self.seen += len(scores)
        self.lowest = np.sort(np.concatenate([self.lowest, scores]))[:LOWEST_SCORES]

    def odd_threshold(self) -> float:
        """Return the score below which chance would hardly put a row; minus infinity if there are too few rows to say.

        Log-densities of a model's own rows fall about exponentially in their tail. The line through two of their quantiles says
        how low the lowest of so many rows should be.
        """
        if len(self.kept) < LEAST_SCORES:
            return -np.inf
        upper, lower = np.quantile(self.kept, TAIL_SHARES)
        scale = (upper - lower) / np.log(TAIL_SHARES[0] / TAIL_SHARES[1])
        return float(upper - scale * np.log(TAIL_SHARES[0] * self.seen / FALSE_ALARMS)) if scale > 0.0 else -np.inf


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
