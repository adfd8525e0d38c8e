"""Checks that every rendered page must pass."""

import json
import re
from contextlib import contextmanager
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

from pages.render import text
from pages.results import Results, plain


def complete(told):
    """Check that no number is missing, and that each row of a table has as many cells as its header."""
    assert not re.search(
        r"\bnan\b|\binf\b|None|\{|\}|Not measured|[-+]?\d\.\d+e[+]\d", re.sub(r"```.*?```", "", told, flags=re.S)
    )
    for line, rule in pairwise(told.splitlines()):
        if rule.startswith("|---"):
            cells = line.count("|")
        if line.startswith("| ") and rule.startswith("|"):
            assert line.count("|") == rule.count("|") == cells
    return told


def results_with(page, /, pending=(), absent=(), scale=None, **figures):
    """Return made-up figures of a page."""
    figures = json.loads(json.dumps(plain(figures)))
    return Results(Path("nowhere.json"), plain(asdict(scale or page.full)), figures, [*pending], [*absent])


def page_of(page, /, **figures):
    """Return the text of a page with made-up figures."""
    return text(page, results_with(page, **figures))


@contextmanager
def sketched(path, height, *arguments, **options):
    """Draw all pictures; only slow tests also lay them out and render them."""
    from matplotlib.figure import Figure

    yield Figure(figsize=(11.0, height))
    path.write_bytes(b"sketch")
