"""Pages from templates and figures.

Templates are Markdown with Jinja's marks: {{ a figure | f(".2f") }}, {% for %} around the rows of a table, {% if part %} around
what needs a part that may not be measured. A name that is not known is an error.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from itertools import groupby
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from pages import words
from pages.page import DOCS, ROOT, Page
from pages.results import Results, plain

PICTURE = re.compile(r"!\[[^]]*\]\((\w+)\.png\)")
TABLE = re.compile(r"<!-- table: ([\w-]+) -->.*?<!-- end of table: \1 -->", re.DOTALL)
FILTERS = {
    "f": words.form, "n": words.thousands, "each": words.each, "listed": words.listed, "percent": words.percent,
    "fine_percent": words.fine_percent, "median": words.median, "mean": words.mean, "median_and_range": words.median_and_range,
    "mean_and_range": words.mean_and_range,
}  # fmt: skip


def environment(page: Page) -> Environment:
    """What the template of a page is read by; tags that have a line to themselves leave none."""
    made = Environment(
        loader=FileSystemLoader(ROOT), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True, autoescape=False,
    )  # fmt: skip
    made.filters |= {**FILTERS, **page.filters}
    return made


def text(page: Page, results: Results) -> str:
    """The whole page."""
    values = {
        name: make(results) if name not in page.parts or results.measured(name) else None for name, make in page.values.items()
    }
    template = environment(page).get_template(page.template)
    title, body = template.render(page.names, **values, scale=results.scale, words=words).split("\n", 1)
    written = f"<!-- Written by python -m pages {page.name} from {page.template}: change these, not this page. -->"
    made = f"Made by `python -m pages {page.name}`. {came_from(page, results)}"
    body = re.sub(r"\n{3,}", "\n\n", body.strip())  # tags that were left out leave empty lines
    return "\n\n".join([title, written, *notices(page, results), body, "---", made]) + "\n"


def notices(page: Page, results: Results) -> list[str]:
    """What is wrong with the figures, if anything, to be read first."""
    lines = []
    if results.scale != plain(asdict(page.full)):
        lines.append("**A reduced run, to try the command: its figures mean little.**")
    if results.pending:
        lines.append(f"**Not complete yet**: {words.listed(results.pending)}.")
    if results.absent:
        lines.append(f"**Not available, so left out**: {words.listed(results.absent)}.")
    return lines


def came_from(page: Page, results: Results) -> str:
    """Commit, date, machine and seeds of the runs; parts that were measured together are named together."""
    runs = [(part, results.runs[part]) for part in page.parts if part in results.runs]
    if not runs:
        return "Nothing is measured yet."
    stated = []
    for run, parts in groupby(runs, key=lambda one: (one[1]["commit"], one[1]["date"][:10], one[1]["machine"].get("cpu"))):
        commit, date, cpu = run
        among = [part for part, _ in parts]
        machine = results.runs[among[0]]["machine"]
        seconds = [results.runs[part]["seconds"] for part in among]
        minutes = None if None in seconds else round(sum(seconds) / 60.0)
        spent = "" if minutes is None else f", {minutes} minute{'' if minutes == 1 else 's'}"
        where = f"{cpu}, {machine['cores']} cores{spent}" if cpu else "the machine was not recorded"
        names = "" if len(among) == len(runs) else f"{words.listed(among)}: "
        stated.append(f"{names}commit {commit}, {date}, {where}")
    return f"Figures: {'; '.join(stated)}. Seeds: {page.seeds}."


def write(page: Page, results: Results, out: Path) -> None:
    """Write the page, the pictures that it shows, and its tables into pages of docs that have a place for them."""
    body = text(page, results)
    (out / f"{page.name}.md").write_text(body, encoding="utf-8")
    for name in PICTURE.findall(body):
        page.pictures[name](out / f"{name}.png", results)
    if out == page.out:
        fill_others(body)


def fill_others(body: str) -> None:
    """Copy the tables of a page, which stand between two comments, to where other pages of docs have the same comments."""
    tables = {found[1]: found[0] for found in TABLE.finditer(body)}
    for other in sorted(DOCS.rglob("*.md")) if tables else []:
        before = other.read_text(encoding="utf-8")
        after = TABLE.sub(lambda found: tables.get(found[1], found[0]), before)
        if after != before:
            other.write_text(after, encoding="utf-8")
