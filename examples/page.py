"""The page of the examples with counts: its sections from the figures, and the pictures beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from examples import msnbc_page, newsgroups_page

NAME = "counts"
SECTIONS = {"msnbc": msnbc_page, "newsgroups": newsgroups_page}


def page(results: dict[str, Any]) -> str:
    """The whole page, of as many examples as were run."""
    commands = " and ".join(f"`python -m examples.{name}`" for name in SECTIONS)
    lines = [
        "# Counts: web sessions and newsgroups in one pass",
        "",
        f"<!-- Written by {commands.replace('`', '')}: change the commands, not this page. -->",
        "",
        "Two data sets whose rows are counts: steps from page to page, and words. Each is learned as a stream, every row once, "
        f"beside the same model with all rows at hand and beside others. The commands {commands} made the numbers and wrote "
        "this page; `HEADWATER_DATA` names the directory of the data sets. All learners ran in one thread; seconds are of the "
        "machine that ran them.",
    ]
    for name, section in SECTIONS.items():
        lines += ["", f"## {section.TITLE}", ""]
        if name not in results:
            lines.append(f"Not measured yet: `python -m examples.{name}`.")
            continue
        if results[name]["quick"]:
            lines += ["**A quick run on a small part of the data: its numbers test the command and mean nothing else.**", ""]
        lines += section.section(results[name])
    return "\n".join(lines) + "\n"


def write_page(out: Path, results: dict[str, Any]) -> None:
    """Write the page, and the picture of every example that was run."""
    (out / f"{NAME}.md").write_text(page(results), encoding="utf-8")
    for name, figures in results.items():
        SECTIONS[name].draw(out / f"{name}.png", figures)
