"""What a model has learned, as text: its description, for terminals."""

from __future__ import annotations

import math
from typing import Any

from headwater.cli.support.advice import for_the_command_line
from headwater.cli.support.display import print_table, printable

# Components, and values of each, that a terminal has room for.
COMPONENTS, VALUES = 12, 4


def print_description(model: Any) -> None:
    """Print what a model has learned."""
    described = model.describe()
    if "probability" in described.value:  # which of them tell most is known to the model alone: not the lowest, however odd
        described = model.describe(values=VALUES)
    print(described.title)
    if described.components:
        shown = described.components[:COMPONENTS]
        heads = [described.component, described.weight, described.value or "what stands out"]
        print_table("", heads, [[str(one.index), _interval(one.weight, one.low, one.high), _values(one)] for one in shown])
        hidden = len(described.components) - len(shown) + described.left_out
        if hidden:
            print(f"  and {hidden} more")
    for fact in described.facts:
        print(f"  {fact.name}: {_interval(fact.value, fact.low, fact.high)}")
    history = getattr(model, "history_", None)
    if history is not None and history.late_scored:
        print(
            f"Held-out score: {history.late_score:.4g} nats{_perplexity(model, history)}, the mean of the last half of the "
            f"stream ({history.late_scored:,} {described.unit}, each scored before it was learned)."
        )
    health = model.health_
    told = {finding.sentence for finding in health.findings}
    for note in described.notes:
        if note not in told:
            print(note)
    print(f"Health: {health.verdict}.")
    for line in health.lines():
        print(printable(f"  {for_the_command_line(line)}"))


def _values(component: Any) -> str:
    """The values of a component that stand out most, or come first."""
    values = list(component.values)
    if len(values) > VALUES and any(value.standing is not None for value in values):
        values.sort(key=lambda value: -abs(value.standing or 0.0))
    parts = [f"{value.name} {_with_spread(value.value, value.spread)}" for value in values[:VALUES]]
    return ", ".join([*([component.remark] if component.remark else []), *parts])


def _with_spread(value: float, spread: float | None) -> str:
    """A number in three digits; if it varies, in as many as that says something about."""
    from headwater.reports.numbers import with_spread

    return number(value) if spread is None else "±".join(with_spread(value, spread, 2)).replace("\u2212", "-")


def _interval(value: float, low: float | None, high: float | None) -> str:
    return number(value) if low is None or high is None else f"{number(value)} ({number(low)} to {number(high)})"


def number(value: float) -> str:
    """Return a number in three digits, with commas in large ones."""
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e12 else f"{value:.3g}"


def _perplexity(model: Any, history: Any) -> str:
    """What the score means for one word or symbol, where rows have those."""
    if not model._measure or math.isnan(history.late_perplexity):
        return ""
    return f" per {model._unit[:-1]} (perplexity {history.late_perplexity:,.4g} per {model._measure[:-1]})"
