"""Small tables for terminals and notebooks."""

from __future__ import annotations

import math
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


def html_curve(values: Sequence[float], title: str, width: int = 320, height: int = 64) -> str:
    """Return a curve as an inline picture in the colour of the text; empty if fewer than two values are finite."""
    finite = [value for value in values if math.isfinite(value)]
    if len(finite) < 2:
        return ""
    low, high = min(finite), max(finite)
    span = (high - low) or 1.0
    points = " ".join(
        f"{width * at / (len(values) - 1):.1f},{height - 4 - (height - 8) * ((value - low) / span):.1f}"
        for at, value in enumerate(values)
        if math.isfinite(value)
    )
    return (
        f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img"><title>{escape(title)}</title>'
        f'<polyline fill="none" stroke="currentColor" stroke-width="1.5" points="{points}"/></svg>'
        f"<p>{escape(title)}: from {low:.4g} to {high:.4g}</p>"
    )
