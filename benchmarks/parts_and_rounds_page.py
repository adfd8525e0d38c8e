"""The page of `parts_and_rounds`: a table of losses for each kind of data."""

from __future__ import annotations

from typing import Any

from benchmarks.page import Page, Section, table


def sections(figures: dict[str, Any]) -> list[Section]:
    return [
        Section(f"parts-and-rounds-{kind['name'].lower()}", kind["name"], about(kind), losses(kind["name"], figures))
        for kind in figures["kinds"]
    ]


def about(kind: dict[str, Any]) -> str:
    sets = f"{kind['sets']} data sets of" if kind["sets"] > 1 else "One data set of"
    return (
        f"{sets} {kind['rows']:,} rows. Nats a {kind['per']} on rows held out that are lost against one stream of the shuffled "
        "rows: the mean over the data sets, and the worst of them; below zero is better than the stream. Sorted rows come "
        "component after component, so that parts differ. There are no more rounds than parts."
    )


def losses(name: str, figures: dict[str, Any]) -> list[str]:
    found: dict[tuple[Any, ...], list[float]] = {}
    for entry in figures["found"]:
        if entry["kind"] == name:
            found.setdefault((entry["order"], entry["way"], entry["rounds"]), []).append(entry["loss"])
    lines = []
    for order in ("shuffled", "sorted"):
        stream = next(way for kept, way, rounds in found if kept == order and rounds is None)
        lines.append([order, stream, cell(found[order, stream, None]), *[""] * (len(figures["rounds"]) - 1)])
        for parts in figures["parts"]:
            cells = [cell(found.get((order, parts, rounds), [])) for rounds in figures["rounds"]]
            lines.append([order, f"{parts} part{'s' if parts > 1 else ''}", *cells])
    heads = ["rows", "", *[f"rounds: {rounds}" for rounds in figures["rounds"]]]
    return table(heads, lines)


def cell(losses: list[float]) -> str:
    if not losses:
        return ""
    mean, worst = (f"{round(value, 4) + 0.0:.4f}" for value in (sum(losses) / len(losses), max(losses)))
    return f"{mean} ({worst})" if len(losses) > 1 else mean


PAGE = Page("parts_and_rounds", "Parts and rounds: what is lost against one stream", sections)
