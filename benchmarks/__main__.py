"""python -m benchmarks [names...] [--quick] [--seed N] [--json FILE]"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from rich.console import Console
from rich.markup import escape

from benchmarks import report
from benchmarks.line import Line
from benchmarks.registry import TOPICS, run
from benchmarks.scale import FULL, QUICK, Scale
from pages import machine

RESULTS = Path(__file__).with_name("results.json")


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser().parse_args(arguments)
    scale = replace(QUICK if options.quick else FULL, first_seed=options.seed)
    names = options.names or TOPICS
    path = options.json or (RESULTS if scale.judged and set(names) == set(TOPICS) else None)
    console = Console(width=None if os.isatty(1) else 180)
    about = machine.describe()
    console.print(f"{about['cpu']}, {about['cores']} cores, load {about['load_average']:.2f}; {about['date']}")
    if about["load_average"] > 0.3:
        console.print("[yellow]The machine is not idle: ratios may stand, figures will not.[/]")
    lines: dict[str, list[Line]] = {}
    spent: dict[str, float] = {}
    for name in names:
        begin = perf_counter()
        lines[name] = []
        for line in run(name, scale):
            lines[name].append(line)
            console.print(f"[dim]{name:>10}[/]  {escape(' | '.join(filter(None, report.cells(line, scale)[:6])))}")
        spent[name] = perf_counter() - begin
    console.print(report.table([line for found in lines.values() for line in found], scale))
    console.print("  ".join(f"{name} {seconds:.0f} s" for name, seconds in spent.items()), style="dim")
    if path:
        about["load_average_after"] = os.getloadavg()[0]
        report.write(path, report.document(lines, spent, about, scale))
        console.print(f"written to {path}")


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser("python -m benchmarks", description="headwater and its peers, side by side")
    result.add_argument("names", nargs="*", metavar="name", help=f"any of {', '.join(TOPICS)}; all by default")
    result.add_argument("--quick", action="store_true", help="small sizes, to see that everything runs")
    result.add_argument("--seed", type=int, default=Scale.first_seed, help="first seed, for fresh data")
    result.add_argument("--json", type=Path, metavar="FILE", help="where to write; a full run writes results.json")
    return result


if __name__ == "__main__":
    main()
