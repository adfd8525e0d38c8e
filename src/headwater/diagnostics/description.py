"""What a model has learned, in a few kinds of records that are the same for every model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from html import escape
from typing import Any, ClassVar, TypedDict

from headwater.diagnostics.numbers import format_percent, format_with_spread


@dataclass(frozen=True)
class Value:
    """A number with a name: of a column, a word, a coefficient.

    Attributes
    ----------
    name : str
        The column, the word, or what else it is.
    value : float
        In the units of the column.
    spread : float, optional
        Its standard deviation from row to row, in the same units.
    low, high : float, optional
        A credible interval, of the level that the description has.
    standing : float, optional
        How far it stands out, on a scale on which 1 is much: of a mean the distance from that of all rows in their standard
        deviations, of a word the logarithm of how much more probable it is than in all rows.
    """

    name: str
    value: float
    spread: float | None = None
    low: float | None = None
    high: float | None = None
    standing: float | None = None

    is_share: ClassVar[bool] = False


@dataclass(frozen=True)
class Share(Value):
    """The probability of a category or a flag, which has no spread."""

    is_share: ClassVar[bool] = True


@dataclass(frozen=True)
class Word(Value):
    """A category or a flag in place of a number: what it is, and what was expected. `value` is its tail probability."""

    word: str = ""
    expected: str = ""


@dataclass(frozen=True)
class Component:
    """One of the hidden sources: its number in the model, its weight (and an interval, if there is one), values, name."""

    index: int
    weight: float
    values: tuple[Value, ...] = ()
    low: float | None = None
    high: float | None = None
    remark: str = ""
    name: str = ""

    @property
    def label(self) -> str:
        """What it is called: its name, or its number."""
        return self.name or str(self.index)


@dataclass(frozen=True)
class Matrix:
    """Probabilities of passing from each row's name to each column's; of one component, if `component` names it."""

    title: str
    names: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    often: tuple[float, ...] = ()
    component: int | None = None


@dataclass(frozen=True)
class Curve:
    """Values along an axis: the spectrum of a component, the power by angle."""

    title: str
    positions: tuple[float, ...]
    values: tuple[float, ...]
    along: str
    what: str
    component: int | None = None


class LeftOut(TypedDict):
    """The fields of a `Description` about components that it leaves out."""

    left_out: int
    weight_left_out: float


class DescribedComponents(LeftOut, total=False):
    """The fields of a `Description` about its components."""

    value: str
    spread: str
    components: tuple[Component, ...]
    values_left_out: int


class DescribedStates(DescribedComponents, total=False):
    """The fields of a `Description` about the states of a chain."""

    component: str
    weight: str
    matrices: tuple[Matrix, ...]


@dataclass(frozen=True)
class Description:
    """What a model has learned. `model.describe()` makes it, `print` shows it, `to_dict` turns it into what JSON knows.

    Attributes
    ----------
    model, algorithm : str
        The class of the model, and the word for how it learns.
    rows, columns : int
        Rows learned from, and how wide they are.
    unit : str
        What a row is: "rows", "documents", "sequences", "frames" or "snapshots".
    width : str
        What a column is: "columns", "words", "symbols", "bins" or "sensors".
    component, weight, value, spread : str
        What components, their weights, their values and the spreads are called; empty where there is none.
    components : tuple of Component
        The heaviest first.
    left_out, weight_left_out : int and float
        Components that are not among them, and what they weigh together.
    values_left_out : int
        Columns or words of each component that are not among its values.
    matrices, curves, facts
        What else there is: `Matrix`, `Curve` and `Value`.
    level : float
        Probability of the intervals.
    notes : tuple of str
        What a reader should know: sentences.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rows = np.random.default_rng(0).normal(size=(300, 2))
    >>> found = hw.GaussianMixture(1, random_state=0).fit(rows).describe()
    >>> [found.rows, found.columns, len(found.components), found.unit]
    [300, 2, 1, 'rows']
    """

    model: str = ""
    algorithm: str = ""
    rows: int = 0
    columns: int = 0
    unit: str = "rows"
    width: str = "columns"
    component: str = "component"
    weight: str = "weight"
    value: str = ""
    spread: str = ""
    components: tuple[Component, ...] = ()
    left_out: int = 0
    weight_left_out: float = 0.0
    values_left_out: int = 0
    matrices: tuple[Matrix, ...] = ()
    curves: tuple[Curve, ...] = ()
    facts: tuple[Value, ...] = ()
    level: float = 0.9
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """One line: the model, how it learns, what it has seen."""
        unit = self.unit[:-1] if self.rows == 1 else self.unit
        width = f" of {self.columns:,} {self.width[:-1] if self.columns == 1 else self.width}" if self.columns else ""
        number = len(self.components) + self.left_out
        parts = f", {number:,} {self.component}{'s' * (number != 1)}" if number else ""
        return f"{self.model} ({self.algorithm}){parts}: {self.rows:,} {unit}{width} seen"

    def __str__(self) -> str:
        return description_text(self)

    def _repr_html_(self) -> str:
        from headwater.diagnostics.description import description_html

        return description_html(self)

    def to_dict(self) -> dict[str, object]:
        """Return the same as dicts, lists, strings and numbers; numbers that are not finite are None."""
        return {"title": self.title, **_to_plain(self)}


def _to_plain(value: object) -> Any:
    if is_dataclass(value):
        return {field.name: _to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [_to_plain(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


LINE_WIDTH = 100  # columns of a terminal or of a cell in a notebook
MOST_COMPONENTS = 12  # lines of the table
MOST_VALUES = 4  # of a component, so that they fit one line
NAME_LETTERS = 24  # of the name of a column or a word


def description_text(found: Description) -> str:
    """Return the title, a table of the components, the facts and the notes, in lines of at most 100 columns."""
    return wide_table_text(found.title, *_table(found), found.notes)


def description_html(found: Description) -> str:
    """Return the same as HTML. It sets no colours, so that it is readable on light and dark pages."""
    return wide_table_html(found.title, *_table(found), found.notes)


def wide_table_text(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]], rest: Sequence[str] = (), notes: Sequence[str] = ()
) -> str:
    """Return a title and a table of three columns, the last of which is long; beneath it lines, which are cut, and notes."""
    lines = [_cut(title, LINE_WIDTH)]
    if rows:
        widths = [max(len(row[at]) for row in [header, *rows]) for at in range(3)]
        for row in [header, *rows]:
            line = f"  {row[0].rjust(widths[0])}  {row[1].ljust(widths[1])}  {row[2]}"
            lines.append(_cut(line.rstrip(), LINE_WIDTH))
    lines += [_cut(f"  {one}", LINE_WIDTH) for one in rest]
    for note in notes:
        lines += _fold(printable(note), LINE_WIDTH)
    return "\n".join(lines)


def wide_table_html(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]], rest: Sequence[str] = (), notes: Sequence[str] = ()
) -> str:
    """Return the same as HTML."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if rows else ""
    beneath = "".join(f"<p>{escape(printable(one))}</p>" for one in [*rest, *notes])
    return f"<p>{escape(title)}</p>{table}{beneath}"


def _table(found: Description) -> tuple[list[str], list[list[str]], list[str]]:
    """Return the header and rows of the components, and a line each for what is left out and for the facts."""
    shown = found.components[:MOST_COMPONENTS]
    rows = [[printable(one.label), _interval(one.weight, one.low, one.high), _values(one, found.value)] for one in shown]
    hidden = len(found.components) - len(shown) + found.left_out
    rest = [f"and {hidden:,} more"] if hidden else []
    rest += [f"{printable(fact.name)}: {_interval(fact.value, fact.low, fact.high)}" for fact in found.facts]
    return [found.component, found.weight, found.value or "values"], rows, rest


def _values(component: Component, what: str) -> str:
    values = list(component.values)
    if "probability" in what:  # what is improbable here says little, however far it stands out
        values.sort(key=lambda value: -(value.standing or 0.0))
    elif len(values) > MOST_VALUES and any(value.standing is not None for value in values):
        values.sort(key=lambda value: -abs(value.standing or 0.0))
    parts = [_value(value) for value in values[:MOST_VALUES]]
    return ", ".join([*([printable(component.remark)] if component.remark else []), *parts])


def _value(value: Value) -> str:
    shown = format_percent(value.value) if value.is_share else number_text(value.value, value.spread)
    return f"{short_name(value.name)} {shown}"


def number_text(value: float, spread: float | None) -> str:
    """Return a number in three digits; with a spread, in as many digits as the spread supports."""
    return _number(value) if spread is None else "±".join(format_with_spread(value, spread, 2)).replace("\u2212", "-")


def _interval(value: float, low: float | None, high: float | None) -> str:
    return _number(value) if low is None or high is None else f"{_number(value)} ({_number(low)} to {_number(high)})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e12 else f"{value:.3g}"


def printable(text: str) -> str:
    """Return text without control characters: names come from files, and a terminal would obey them."""
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)


def short_name(name: str) -> str:
    """Return the name of a column, short enough for a table."""
    return _cut(printable(name), NAME_LETTERS)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _fold(text: str, most: int) -> list[str]:
    from textwrap import wrap

    return wrap(text, most) or [""]
