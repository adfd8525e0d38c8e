"""What commands print: tables for people, JSON for programs."""

from __future__ import annotations

import io
import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.cli.support.advice import to_command_line_words
from headwater.diagnostics.description import number_text

if TYPE_CHECKING:
    from headwater.diagnostics.description import Component
    from headwater.diagnostics.history import History
    from headwater.estimators.base import StreamingEstimator

FILE_WIDTH = 10_000  # characters: a table in a file is never wrapped
NUMBER_PATTERN = re.compile(r"-?[\d.,]*(e[-+]?\d+)?|nan|-?inf")


def to_json_value(value: object) -> object:
    """Return a value in the types of JSON; numbers that are not finite become null."""
    if isinstance(value, Mapping):
        return {str(name): to_json_value(one) for name, one in value.items()}
    if isinstance(value, str) or value is None or isinstance(value, bool):
        return value
    if isinstance(value, complex):
        return [to_json_value(value.real), to_json_value(value.imag)]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, int):
        return value
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):
        return to_json_value(value.tolist())
    if isinstance(value, (Sequence, set, frozenset)):
        return [to_json_value(one) for one in value]
    return str(value)


def print_json(value: object) -> None:
    """Print a value as JSON to standard output."""
    sys.stdout.write(json.dumps(to_json_value(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def replace_control_characters(text: str) -> str:
    """Return text without control characters: column names come from files, and a terminal would obey them."""
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)


def escape_markup(text: str) -> str:
    """Return text for rich, without control characters and with markup escaped."""
    from rich.markup import escape

    return escape(replace_control_characters(text))


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table to standard output; columns of numbers are aligned to the right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title=escape_markup(title) if title else None, title_justify="left", box=box.SIMPLE_HEAD, title_style="")
    for place, column in enumerate(columns):
        left = place == 0 or not all(NUMBER_PATTERN.fullmatch(row[place]) for row in rows)
        table.add_column(escape_markup(column), justify="left" if left else "right")
    for row in rows:
        table.add_row(*(escape_markup(cell) for cell in row))
    console = Console(file=sys.stdout, highlight=False)
    if console.is_terminal:
        console.print(table)
        return
    # In a file, lines may be of any length, and trailing spaces are removed.
    text = io.StringIO()
    console = Console(file=text, highlight=False, width=FILE_WIDTH)
    console.width = console.measure(table).maximum
    console.print(table)
    sys.stdout.write("".join(line.rstrip() + "\n" for line in text.getvalue().splitlines()))


MOST_COMPONENTS = 12  # lines of the table, so that it fits a terminal
MOST_VALUES = 4  # of each component, so that a line does


def print_description(model: StreamingEstimator) -> None:
    """Print what a model has learned, and its health."""
    described = model.describe()
    if "probability" in described.value:  # the model chooses the most distinctive values
        described = model.describe(values=MOST_VALUES)
    print(described.title)
    if described.components:
        shown = described.components[:MOST_COMPONENTS]
        heads = [described.component, described.weight, described.value or "what stands out"]
        print_table(
            "", heads, [[str(one.index), _format_interval(one.weight, one.low, one.high), _format_values(one)] for one in shown]
        )
        hidden = len(described.components) - len(shown) + described.left_out
        if hidden:
            print(f"  and {hidden} more")
    for fact in described.facts:
        print(f"  {fact.name}: {_format_interval(fact.value, fact.low, fact.high)}")
    history = getattr(model, "history_", None)
    if history is not None and history.late_scored:
        print(_held_out_sentence(model, history, described.unit))
    health = model.health_
    known = {finding.sentence for finding in health.findings}
    for note in described.notes:
        if note not in known:
            print(to_command_line_words(note))
    print(f"Health: {health.verdict}.")
    for line in health.lines():
        print(replace_control_characters(f"  {to_command_line_words(line)}"))


def _held_out_sentence(model: StreamingEstimator, history: History, unit: str) -> str:
    """Say how late rows scored; those that were next to impossible are told apart, since the mean of all says nothing then."""
    if not model._traits.measure:
        score, rows, impossible, lost = history.late_parts
        if lost:
            return (
                f"Held-out score: {score:.4g} nats, the mean of {rows:,.0f} {unit} late in the stream, each scored before it "
                f"was learned. {lost:,.0f} more scored {impossible:.3g} on average: by what was known they were next to "
                f"impossible, as where a column that has had one value takes others."
            )
    score_text = f"{history.late_score:.4g} nats{_format_perplexity(model, history)}"
    return (
        f"Held-out score: {score_text}, the mean of {history.late_scored:,} {unit} in the last half of the stream, "
        f"each scored before it was learned."
    )


def _format_values(component: Component) -> str:
    """Return the most distinctive values of a component, or the first ones."""
    values = list(component.values)
    if len(values) > MOST_VALUES and any(value.standing is not None for value in values):
        values.sort(key=lambda value: -abs(value.standing or 0.0))
    parts = [f"{value.name} {number_text(value.value, value.spread)}" for value in values[:MOST_VALUES]]
    return ", ".join([*([component.remark] if component.remark else []), *parts])


def _format_interval(value: float, low: float | None, high: float | None) -> str:
    return (
        format_number(value)
        if low is None or high is None
        else f"{format_number(value)} ({format_number(low)} to {format_number(high)})"
    )


def format_number(value: float) -> str:
    """Return a number in three digits, with commas in large ones."""
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e12 else f"{value:.3g}"


def _format_perplexity(model: StreamingEstimator, history: History) -> str:
    """Return the perplexity per word or symbol, if rows have those."""
    if not model._traits.measure or math.isnan(history.late_perplexity):
        return ""
    return f" per {model._traits.unit[:-1]} (perplexity {history.late_perplexity:,.4g} per {model._traits.measure[:-1]})"
