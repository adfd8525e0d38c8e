"""Figures that are kept: as JSON and as a page beneath docs/benchmarks, and as tables in pages that others have written.

A section has a name. Where another page of docs has the two lines

    <!-- table: NAME -->
    <!-- end of table: NAME -->

what stands between them is the table of that section, and is written anew together with the page.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.report import without_nan

DOCS = Path(__file__).resolve().parents[1] / "docs"
OUT = DOCS / "benchmarks"


@dataclass(frozen=True)
class Section:
    """A heading, what is said before the table, and the table as lines of Markdown."""

    name: str
    heading: str
    about: str
    table: list[str]


@dataclass(frozen=True)
class Page:
    """A page: the name of its command and files, its title, and how its sections are made of the figures."""

    name: str
    title: str
    sections: Callable[[dict[str, Any]], list[Section]]


def table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> list[str]:
    """A table of Markdown; all columns but the first are numbers."""
    return [_row(heads), "|---|" + "---:|" * (len(heads) - 1), *[_row(line) for line in lines]]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def text(page: Page, figures: dict[str, Any]) -> str:
    """The whole page."""
    about = figures["machine"]
    lines = [
        f"# {page.title}", "",
        f"<!-- Written by python -m benchmarks.{page.name}: change the command, not this page. -->", "",
        f"`python -m benchmarks.{page.name}` made the numbers and wrote this page: {about['cpu']}, {about['cores']} cores, "
        f"{about['memory_gb']:.0f} GB; load {about['load_average']:.1f} before it; {about['date'][:10]}; "
        f"headwater {about['headwater']}.",
    ]  # fmt: skip
    if figures["quick"]:
        lines += ["", "**A quick run with few rows: its numbers test the command and mean nothing else.**"]
    for section in page.sections(figures):
        lines += ["", f"## {section.heading}", "", section.about, "", *section.table]
    return "\n".join(lines) + "\n"


def filled(page: str, sections: Iterable[Section]) -> str:
    """Another page, with the tables of these sections wherever it has lines for them."""
    for section in sections:
        begin, end = f"<!-- table: {section.name} -->", f"<!-- end of table: {section.name} -->"
        between = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        new = "\n".join([begin, "", *section.table, "", end])
        page = between.sub(lambda _, new=new: new, page)  # type: ignore[misc]
    return page


def write(out: Path, page: Page, figures: dict[str, Any]) -> None:
    """Write figures and page, and the tables that pages beside the folder have lines for."""
    out.mkdir(parents=True, exist_ok=True)
    content = json.dumps(without_nan(figures), indent=1, allow_nan=False)
    (out / f"{page.name}.json").write_text(content + "\n", encoding="utf-8")
    (out / f"{page.name}.md").write_text(text(page, figures), encoding="utf-8")
    for other in sorted(out.parent.rglob("*.md")) if out == OUT else []:
        before = other.read_text(encoding="utf-8")
        after = filled(before, page.sections(figures))
        if after != before:
            other.write_text(after, encoding="utf-8")


def parser(page: Page, about: str | None) -> argparse.ArgumentParser:
    """Options that every command with a page has."""
    result = argparse.ArgumentParser(f"python -m benchmarks.{page.name}", description=(about or "").splitlines()[0])
    result.add_argument("--quick", action="store_true", help="few rows, to see that everything runs; needs --out")
    result.add_argument("--render", action="store_true", help="write the page again from the figures there are")
    result.add_argument("--out", type=Path, default=OUT, help="where to write (default: docs/benchmarks)")
    result.add_argument("--seed", type=int, default=1000, help="first seed, for fresh data")
    return result


def run(page: Page, options: argparse.Namespace, measure: Callable[[], Iterator[dict[str, Any]]]) -> None:
    """Measure, unless the figures there are will do, and write.

    Figures come in stages, each with all that was measured so far, so that a run which is broken off leaves what it had.
    """
    from pages import machine

    begin, path = perf_counter(), options.out / f"{page.name}.json"
    if options.render:
        if not path.is_file():
            raise SystemExit(f"there are no figures to render in {options.out}")
        write(options.out, page, json.loads(path.read_text(encoding="utf-8")))
    else:
        if options.quick and options.out == OUT:
            raise SystemExit("a quick run is no result: give another --out")
        about = machine.describe()
        for figures in measure():
            write(options.out, page, {"quick": options.quick, "machine": about, **figures})
    print(f"wrote {page.name}.json and {page.name}.md to {options.out} in {perf_counter() - begin:.0f} s")
