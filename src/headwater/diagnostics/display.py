"""Small tables for terminals and notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def text_table(line: str, header: list[str], rows: list[list[str]], urgent: Sequence[str] = (), more: str = "") -> str:
    """Return a line and a right-aligned table beneath it; under that what is urgent, a line each, and what else there is."""
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in [header, *rows]]
    beneath = [*(f"! {sentence}" for sentence in urgent), *([more] if more else [])]
    return "\n".join([line, *("  " + text for text in [*lines, *beneath])])


def html_table(line: str, header: list[str], rows: list[list[str]], urgent: Sequence[str] = (), more: str = "") -> str:
    """Return the same as HTML."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    beneath = "".join(f"<p><strong>{escape(sentence)}</strong></p>" for sentence in urgent)
    beneath += f"<p>{escape(more)}</p>" if more else ""
    return f"<p>{escape(line)}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{beneath}"
