"""Values for the page of `parts_and_rounds`: a table of losses for each kind of data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pages.results import Figures, Results
from pages.words import number_table


def losses(results: Results) -> list[dict[str, Any]]:
    kinds: dict[str, list[Figures]] = {}
    for one in results.of("losses"):
        kinds.setdefault(one["kind"], []).append(one)
    return [
        {"name": name, "sets": len(sets), "rows": sets[0]["rows"], "per": sets[0]["per"], "table": loss_table(sets)}
        for name, sets in kinds.items()
    ]


def loss_table(sets: Sequence[Figures]) -> str:
    """Losses by order and number of parts (lines) and by number of rounds (columns)."""
    found: dict[tuple[Any, ...], list[float]] = {}
    for one in sets:
        for order, way, rounds, loss in one["losses"]:
            found.setdefault((order, way, rounds), []).append(loss)
    rounds = sorted({number for _, _, number in found if number is not None}, key=str)
    lines = []
    for order in dict.fromkeys(order for order, _, _ in found):
        for way in dict.fromkeys(way for given, way, _ in found if given == order):
            if (order, way, None) in found:
                lines.append([order, way, cell(found[order, way, None]), *[""] * (len(rounds) - 1)])
            else:
                cells = [cell(found.get((order, way, number), [])) for number in rounds]
                lines.append([order, f"{way} part{'s' if way > 1 else ''}", *cells])
    return number_table(["rows", "", *[f"rounds: {number}" for number in rounds]], lines)


def cell(values: Sequence[float]) -> str:
    """Mean and worst of some losses."""
    if not values:
        return ""
    mean, worst = (f"{round(value, 4) + 0.0:.4f}" for value in (sum(values) / len(values), max(values)))
    return f"{mean} ({worst})" if len(values) > 1 else mean
