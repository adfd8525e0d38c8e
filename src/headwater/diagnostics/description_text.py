"""A description as text of at most 100 columns, and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from headwater.diagnostics.numbers import format_percent, format_with_spread

if TYPE_CHECKING:
    from headwater.diagnostics.description import Component, Description, Value

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
