"""The table on the screen and the same lines as JSON."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.line import Line
from benchmarks.scale import Scale

VERDICT = {True: "[green]yes[/]", False: "[red]no[/]", None: ""}


def table(lines: list[Line], scale: Scale) -> Table:
    """Return the lines as a table; targets are held against figures of the full sizes only."""
    title = "headwater and its peers" if scale.judged else f"{scale.name}: only to see that it runs, sizes are too small"
    result = Table(title=title, title_justify="left", show_lines=False)
    result.add_column("line")
    for heading in ("headwater", "peer", "unit", "ratio", "of medians", "target", "met"):
        result.add_column(heading, justify="right", no_wrap=True)
    result.add_column("note", style="dim")
    for line in lines:
        result.add_row(*cells(line, scale))
    return result


def cells(line: Line, scale: Scale) -> list[str]:
    return [
        line.name,
        number(line.ours),
        number(line.peer),
        line.unit,
        number(line.ratio, "x"),
        number(line.median_ratio, "x"),
        line.target.text(line.unit) if line.target else "",
        VERDICT[line.met if scale.judged else None],
        line.note,
    ]


def number(value: float | None, suffix: str = "") -> str:
    if value is None:
        return ""
    if math.isnan(value):
        return "-"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:.{digits}f}{suffix}" if abs(value) >= 0.01 or value == 0 else f"{value:.1e}{suffix}"


def document(lines: dict[str, list[Line]], spent: dict[str, float], machine: dict[str, Any], scale: Scale) -> Any:
    """Return everything that was measured, ready for JSON (NaN, where noise won, is null)."""
    benchmarks = {
        name: {"spent_seconds": round(spent[name], 1), "lines": [line.to_json() for line in found]}
        for name, found in lines.items()
    }
    if not scale.judged:
        for entry in benchmarks.values():
            for line in entry["lines"]:
                line["met"] = None
    return without_nan(
        {"machine": machine, "scale": {"name": scale.name, "divide": scale.divide, "repeats": scale.repeats,
         "seeds": scale.seeds, "first_seed": scale.first_seed}, "benchmarks": benchmarks}
    )  # fmt: skip


def without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nan(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(each) for each in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n")
