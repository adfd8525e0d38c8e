"""The pages of the examples: their sections from the figures, and the pictures beside them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from examples import chorales_page, drift_page, letters_page, msnbc_page, newsgroups_page, regimes_page
from examples.tables import listed


@dataclass(frozen=True)
class Page:
    """A page: the name of its files, its title, what it says first, and the module of each section."""

    name: str
    title: str
    about: str
    sections: dict[str, Any]


COUNTS = Page(
    "counts",
    "Counts: web sessions and newsgroups in one pass",
    "Two data sets whose rows are counts: steps from page to page, and words. Each is learned as a stream, every row once, "
    "beside the same model with all rows at hand and beside others.",
    {"msnbc": msnbc_page, "newsgroups": newsgroups_page},
)
CHAINS = Page(
    "chains",
    "Hidden Markov models: returns, letters and chorales",
    "Three series whose rows follow one another. Each is learned as a stream, every row once, and with all rows at hand, "
    "beside hmmlearn's fit of the same model.",
    {"regimes": regimes_page, "letters": letters_page, "chorales": chorales_page},
)
DRIFT = Page(
    "drift",
    "Drift: forgetting that tunes itself",
    "Streams that change, abruptly, gradually or again and again, made up and real.",
    {"drift": drift_page},
)
PAGES = {name: page for page in (COUNTS, CHAINS, DRIFT) for name in page.sections}


def page(results: dict[str, Any], of: Page = COUNTS) -> str:
    """The whole page, of as many examples as were run."""
    commands = listed([f"`python -m examples.{name}`" for name in of.sections])
    lines = [
        f"# {of.title}",
        "",
        f"<!-- Written by {commands.replace('`', '')}: change the commands, not this page. -->",
        "",
        f"{of.about} The commands {commands} made the numbers and wrote "
        "this page; `HEADWATER_DATA` names the directory of the data sets. All learners ran in one thread; seconds are of the "
        "machine that ran them.",
    ]
    for name, section in of.sections.items():
        lines += ["", f"## {section.TITLE}", ""]
        if name not in results:
            lines.append(f"Not measured yet: `python -m examples.{name}`.")
            continue
        if results[name]["quick"]:
            lines += ["**A quick run on a small part of the data: its numbers test the command and mean nothing else.**", ""]
        lines += section.section(results[name])
    return "\n".join(lines) + "\n"


def write_page(out: Path, results: dict[str, Any], of: Page = COUNTS) -> None:
    """Write the page, and the picture of every example that was run."""
    (out / f"{of.name}.md").write_text(page(results, of), encoding="utf-8")
    for name, figures in results.items():
        of.sections[name].draw(out / f"{name}.png", figures)
