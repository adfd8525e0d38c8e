"""The series of a chain: one column over time on the colours of its states, thinned while it is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from headwater.core.chunk import Chunk
from headwater.core.statistics import Array
from headwater.core.values import AnyArray, Rows
from headwater.diagnostics.component_description import column_names, symbol_names
from headwater.estimators.base import StreamingEstimator
from headwater.estimators.table_input import TableInput
from headwater.estimators.table_schema import EncodedChunk
from headwater.plotting.states import state_runs
from headwater.reports.figures import INK, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_BINS = 1000  # about the pixels of the figure
BLOCK = 4096  # rows whose states are found at once
MARGIN = 128  # rows on either side of a block, which its states are found with
NAMED_STATES = 12  # in the legend; more are told by the colours of their cards
NAMED_LEVELS = 20  # categories or symbols with a name on the axis
PRECISION = "datetime64[us]"
SIZE = (9.6, 2.7)


@dataclass(frozen=True, eq=False)
class Series:
    """A column of one sequence, in bins of `stride` rows: the least and the largest value and the usual state of each.

    A bin without values has NaN. `when` is the first row of each bin, or its date. `levels` are the names of values 0, 1 ... of
    a column of categories. `one_of_many` says that there are other sequences.
    """

    name: str
    low: Array
    high: Array
    states: NDArray[np.int64]
    when: AnyArray
    rows: int
    stride: int
    levels: tuple[str, ...]
    one_of_many: bool

    @property
    def dated(self) -> bool:
        """Whether the rows have dates."""
        return bool(np.issubdtype(self.when.dtype, np.datetime64))


class SeriesReader:
    """Reads the series of a chain, chunk by chunk: of the first key, or the longest sequence of the first chunk."""

    def __init__(self, model: StreamingEstimator) -> None:
        self.model: Any = model
        self.wanted = model._traits.chained and not model._traits.takes_sequences
        self.held: list[tuple[Array, AnyArray, AnyArray | None]] = []
        self.held_rows, self.decided = 0, 0  # rows held, and how many of them have their state
        self.key: object = None
        self.one_of_many, self.dated = False, True
        self.column: int | None = None
        self.bins: _Bins | None = None

    def take(self, chunk: object, given: dict[str, Any], places: AnyArray) -> None:
        """Read a chunk: what was given, what the model reads of it, and the places of its rows."""
        if not self.wanted or not len(places):
            return
        rows = np.asarray(self._encoded(given["X"]), dtype=float)
        rows = rows[:, None] if rows.ndim == 1 else rows
        if "y" in given:
            rows = np.column_stack([rows, np.asarray(given["y"], dtype=float)])
        dates = _dates_of(chunk, len(rows))
        mine = self._sequence(given, len(rows))
        self.held.append((rows[mine], places[mine], None if dates is None else dates[mine]))
        self.held_rows += len(self.held[-1][0])
        while self.held_rows - self.decided >= BLOCK + MARGIN:
            self._decide(self.decided + BLOCK)

    def series(self) -> Series | None:
        """Return the series; None if there is none to draw."""
        if self.held_rows > self.decided:
            self._decide(self.held_rows)
        if self.bins is None or self.column is None or self.bins.seen < 2 or np.isnan(self.bins.low).all():
            return None
        bins, name, levels = self.bins, *self._name(self.column)
        when = bins.dates if self.dated and bins.dates[-1] > bins.dates[0] else bins.places
        states = np.asarray(bins.counts.argmax(axis=1))
        return Series(name, bins.low, bins.high, states, when, bins.seen, bins.stride, levels, self.one_of_many)

    def _sequence(self, given: dict[str, Any], number: int) -> slice | NDArray[np.bool_]:
        """The rows of a chunk that belong to the series."""
        if given.get("lengths") is not None:
            lengths = np.asarray(given["lengths"])
            self.one_of_many |= len(lengths) > 1 or self.held_rows > 0
            if self.held_rows:
                return slice(0)
            at = int(lengths.argmax())
            start = int(lengths[:at].sum())
            return slice(start, start + int(lengths[at]))
        if given.get("key") is None:
            return slice(None)
        keys = np.broadcast_to(np.asarray(given["key"]), number)
        self.key = keys[0] if self.key is None else self.key
        mine = cast("NDArray[np.bool_]", keys == self.key)
        self.one_of_many |= not mine.all()
        return mine

    def _decide(self, end: int) -> None:
        """Find the states of rows that are held, up to one of them, and put these rows into bins."""
        rows = np.concatenate([one[0] for one in self.held])
        places = np.concatenate([one[1] for one in self.held])
        self.dated &= all(one[2] is not None for one in self.held)
        dates = np.concatenate([cast(AnyArray, one[2]) for one in self.held]) if self.dated else None
        block, start, until = slice(self.decided, end), max(0, self.decided - MARGIN), min(len(rows), end + MARGIN)
        found = self._states(rows[start:until])[self.decided - start : end - start]
        if self.column is None:
            self.column = self._telling_column(rows[block], found)
            self.bins = _Bins(max(int(self.model.n_components_), int(found.max()) + 1))
        if self.bins is not None:
            when = np.zeros(end - self.decided, PRECISION) if dates is None else dates[block]
            self.bins.take(rows[block, self.column], found, places[block], when)
            self.dated &= self.bins.in_order
        kept = slice(max(0, end - MARGIN), None)
        self.held = [(rows[kept], places[kept], None if dates is None else dates[kept])]
        self.held_rows, self.decided = len(rows) - kept.start, end - kept.start

    def _states(self, rows: Array) -> NDArray[np.int64]:
        names = getattr(self.model, "feature_names_in_", None)
        if self.model._traits.target_columns:
            return np.asarray(self.model.predict(Chunk(rows[:, :-1], names), rows[:, -1]))
        kind = EncodedChunk if isinstance(self.model, TableInput) else Chunk
        return np.asarray(self.model.predict(kind(rows, names)))

    def _encoded(self, X: Rows) -> Rows:
        """The rows of a table as numbers and codes."""
        return TableInput._as_rows(self.model, X, False) if isinstance(self.model, TableInput) else X

    def _telling_column(self, rows: Array, found: NDArray[np.int64]) -> int:
        """The target, or the column of which the states explain most; categories only if there is nothing else."""
        if self.model._traits.target_columns:
            return rows.shape[1] - 1
        coded = self._coded(rows.shape[1])
        explained = np.array([_explained(rows[:, at], found) for at in range(rows.shape[1])])
        explained[[at for at, text in coded.items()]] -= 1.0
        explained[[at for at, text in coded.items() if text == ""]] -= 1.0  # columns that the model leaves out
        return int(explained.argmax())

    def _coded(self, width: int) -> dict[int, str]:
        return cast("dict[int, str]", self.model._describer.category_texts(np.zeros(width)))

    def _name(self, column: int) -> tuple[str, tuple[str, ...]]:
        """The name of a column, and those of its values if they are categories."""
        if self.model._traits.target_columns:
            return "target", ()
        if self.model._traits.takes_symbols:
            return "symbol", tuple(symbol_names(self.model, self.model.describe(values=1, components=1).columns))
        width = int(self.model.n_features_in_)
        levels: list[str] = []
        while column in self._coded(width) and len(levels) <= NAMED_LEVELS:
            row = np.full(width, np.nan)
            row[column] = len(levels)
            text = self.model._describer.category_texts(row).get(column)
            if text is None:
                break
            levels.append(text)
        return str(column_names(self.model, width)[column]), tuple(levels)


class _Bins:
    """Rows in bins, whose number of rows doubles when there are too many bins."""

    def __init__(self, states: int) -> None:
        self.stride, self.seen, self.in_order = 1, 0, True
        self.low, self.high, self.counts = np.empty(0), np.empty(0), np.empty((0, states), dtype=np.int64)
        self.places, self.dates = np.empty(0, dtype=np.int64), np.empty(0, dtype=PRECISION)

    def take(self, values: Array, states: NDArray[np.int64], places: AnyArray, dates: AnyArray) -> None:
        """Add rows."""
        before = self.dates[-1:]
        bins = np.concatenate([np.arange(len(self.low)), (self.seen + np.arange(len(values))) // self.stride])
        self.seen += len(values)
        while bins[-1] >= MOST_BINS:
            self.stride, bins = 2 * self.stride, bins // 2
        first = np.flatnonzero(np.diff(bins, prepend=-1))
        self.low = np.fmin.reduceat(np.concatenate([self.low, values]), first)
        self.high = np.fmax.reduceat(np.concatenate([self.high, values]), first)
        one_hot = (states[:, None] == np.arange(self.counts.shape[1])).astype(np.int64)
        self.counts = np.add.reduceat(np.concatenate([self.counts, one_hot]), first)
        self.places = np.concatenate([self.places, places])[first]
        self.dates = np.concatenate([self.dates, dates])[first]
        steps = np.diff(np.concatenate([before, dates]))
        self.in_order &= not np.isnat(dates).any() and bool((steps >= np.timedelta64(0)).all())


def _explained(values: Array, states: NDArray[np.int64]) -> float:
    """The share of a column's variance that its means by state explain, of the values that are there."""
    known = np.isfinite(values)
    values, states = values[known], states[known]
    spread = values.var() if len(values) else 0.0
    if not spread > 0.0:
        return 0.0
    counts = np.bincount(states)
    means = np.bincount(states, values - values.mean()) / np.maximum(counts, 1)
    return float((counts * means**2).sum() / (len(values) * spread))


def _dates_of(chunk: object, number: int) -> AnyArray | None:
    """Dates of the rows of a chunk: the first column of dates that was kept, or the index of a data frame."""
    if isinstance(chunk, Chunk):
        for values in chunk.kept.values():
            kind = str(values.type)
            if len(values) == number and kind.startswith(("timestamp", "date")):
                return np.asarray(values.to_numpy(zero_copy_only=False)).astype(PRECISION)
        return None
    index: Any = getattr(chunk, "index", None)
    index = index.to_timestamp() if hasattr(index, "to_timestamp") else index
    if np.dtype("datetime64") != getattr(index, "dtype", None) and not hasattr(index, "tz"):
        return None
    return np.asarray(index, dtype=PRECISION)


# The picture


def draw_series(series: Series | None, shades: Sequence[str]) -> tuple[Markup, str] | None:
    """Return the picture of a series with what is to be said below it."""
    if series is None:
        return None
    label = _caption(series)
    draw: Callable[[Axes], None] = lambda axes: _draw(axes, series, shades)  # noqa: E731
    return figure(draw, label, "series", SIZE), label


def _caption(series: Series) -> str:
    of = f"“{series.name}” of one of the sequences" if series.one_of_many else f"“{series.name}”"
    label = f"{of} over {series.rows:,} rows, on the colours of the most probable states"
    if series.stride > 1:
        label += f"; a point of time stands for {series.stride:,} rows, with their least and largest values and usual state"
    return label + ("; gaps are missing values" if np.isnan(series.low).any() else "")


def _draw(axes: Axes, series: Series, shades: Sequence[str]) -> None:
    from matplotlib.patches import Patch, PathPatch
    from matplotlib.path import Path

    twice = 1 if series.stride == 1 else 2
    lines = np.stack([series.low, series.high], axis=1)[:, :twice].ravel()
    lonely = _lonely(series.low)
    axes.plot(np.repeat(series.when, twice), lines, color=INK, linewidth=0.7)
    if lonely.any():
        axes.vlines(series.when[lonely], series.low[lonely], series.high[lonely], color=INK, linewidth=0.7)
        axes.plot(series.when[lonely], series.high[lonely], color=INK, linestyle="", marker=".", markersize=1.5)
    at = np.asarray(axes.convert_xunits(series.when), dtype=float)
    edges = np.append(at, at[-1] + (at[-1] - at[0]) / max(1, len(at) - 1))
    spans: dict[int, list[Path]] = {}
    for begin, end, state in state_runs(series.states):
        left, right = edges[begin], edges[end]
        corners = [(left, 0.0), (left, 1.0), (right, 1.0), (right, 0.0), (left, 0.0)]
        spans.setdefault(state, []).append(Path(corners, closed=True))
    for state, paths in sorted(spans.items()):
        whole = Path.make_compound_path(*paths)
        axes.add_patch(PathPatch(
            whole, facecolor=shades[state], alpha=0.35, linewidth=0.0, transform=axes.get_xaxis_transform(), zorder=0.5,
        ))  # fmt: skip
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylabel("" if series.levels else series.name)
    if not series.dated:
        axes.set_xlabel("row")
        axes.xaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]
    if 0 < len(series.levels) <= NAMED_LEVELS:
        axes.set_yticks(range(len(series.levels)), series.levels)
    if len(spans) <= NAMED_STATES:
        marks = [Patch(facecolor=shades[state], alpha=0.6, label=f"state {state}") for state in sorted(spans)]
        axes.legend(handles=marks, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=len(marks), frameon=False,
                    borderaxespad=0.2, handlelength=1.2, columnspacing=1.4)  # fmt: skip


def _lonely(values: Array) -> NDArray[np.bool_]:
    """Which values have gaps on both sides, where a line would show nothing."""
    there = np.concatenate([[False], ~np.isnan(values), [False]])
    return cast("NDArray[np.bool_]", there[1:-1] & ~there[:-2] & ~there[2:])
